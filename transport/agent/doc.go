// Package agent is where agents attach over HTTP: both eras of MCP at one URL. The server of
// their connections is transport/front.
//
// Two SDK handlers speak the protocol: handshakes, sessions, subscriptions and
// every error rule. In front of them a fast path answers what is well-formed of
// tools/call, prompts/get, resources/read, completion/complete and the lists itself,
// because the results are bytes that nobody here may decode. It takes a request only
// when nothing about it is in doubt; what it does not take, the SDK gets with its body
// unread.
//
// An agent attaches to all servers in its scope (/mcp, /mcp/NAME) or to one alone
// (/servers/SERVER/mcp, and /NAME behind it): that is another identity, with sessions
// of its own, the server's own names and capabilities, and nothing stored unless the
// configuration says so.
//
// Before either sees a request, the guard has checked who asks (Host and Origin),
// the body was read whole within bounds, it is one valid JSON object, and a legacy
// session belongs to the identity that uses it. So a malformed body never reaches a
// server's pipe, and a session made under one name is useless under another.
//
// One request is one goroutine: it makes the call, and the answer leaves through the
// exchange that the call came in on. Answers are never matched by id, so two requests
// with the same id do not meet. A batch is refused whole, whatever the revision.
//
// While a call runs, its server may ask the agent something. On a legacy session the
// question is a request of ours on the stream of the call, and the agent's POST with
// the answer is taken before the SDK sees it (ask.go). A 2026-07-28 agent gets
// input_required with a requestState: its call is parked, goes on without a request,
// and is found again when the agent comes back with the answers (park.go).
//
// Whoever has something to tell an agent never waits for it to read: the oldest news
// gives way, but never a question (stream.go). Every stream says something at once and
// every fifteen seconds.
package agent
