// Package mcptest stands outside the house and looks at it through the wire. It
// has three parts: a fake MCP server that does exactly what a Script orders
// (misbehave included), a raw Agent that sends and shows bytes without
// understanding them, and a Daemon, the built mcphubd in a home of its own.
//
// Nothing here uses the MCP SDK or the wire package, so a test that compares
// what the server wrote with what the agent got compares bytes, not two uses of
// the same encoder. The server can run inside the test binary itself:
//
//	func TestMain(m *testing.M) { mcptest.Run(m) }
//
// or as the command mcphubd/test/mcptest/fakeserver.
package mcptest
