// Package bridge is what harnesses launch that only speak MCP over stdio: it
// relays lines to the daemon and back. It knows no more of the protocol than it
// must: which line is a request, how a handshake is repeated when the daemon was
// restarted, and which requests may be sent again. A call whose outcome is unknown
// never is. The bridge outlives the daemon; it ends with its standard input.
package bridge
