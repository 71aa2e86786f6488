// Package downstream runs MCP servers and speaks to them.
//
// A stdio server is a child process in a group of its own. One goroutine reads
// its stdout and cuts it into lines. What answers one of our calls goes to that
// call as raw bytes; what the server asks its user or says about a call goes to the
// agent behind that call; every other message goes, decoded and checked, to the SDK
// client, which did the handshake. Both share the pipe because our ids start at 1<<32
// and the SDK counts from 1. Lines that are no message at all are counted and go nowhere.
//
// Only the newest revision says for whom a server asks (elicitation, sampling, roots).
// Before it, a question belongs to the call on whose stream it came, or to the only
// call that the server can be working on: one in flight, and none of another agent that
// was given up and not answered. Else the server is declined at once; no agent ever
// hears what may be meant for another (ask.go). The same holds for log messages, but
// those that belong to no call go to the owner of the connection.
//
// A stdio server reads initialize first, because some choke on anything else. One that
// refuses it is started once more and asked server/discover; the result is remembered,
// also over restarts of the daemon, and can be pinned (era.go). What the newest revision
// demands of each request is put into its _meta, as far as the agent did not say it itself;
// the revision that an agent names is taken out for servers of an older one (modern.go).
//
// A line is as long as max_frame allows. Short ones are copied once into a pooled
// buffer that becomes the body of the answer. Long ones flow through a splitter in
// a goroutine of their own, the result straight into the spool: who waits for it is
// known only at the end of the line, since many servers write the id last. Between
// pipe and splitter stand a few MiB of blocks; only when they are full does a slow
// spool hold up the pipe.
//
// Nothing here blocks on a child that does not read. Writing tries once, in the
// caller's goroutine, and leaves the rest to a pump that waits for the pipe; a call
// that gives up takes its unsent bytes along. A child that has read nothing and
// said nothing for a while is ended.
//
// Death is told once: every waiting call gets the exit code and the last lines of
// stderr. Nothing is ever sent twice.
//
// A server at a URL is reached by POSTs of our own; the SDK again does the handshake
// and answers questions, over the same requests. The answer to a call comes as a
// document or as a stream of events, and is read by the goroutine that asked, so a slow
// spool holds up that connection only. What a call proves decides what happens next:
//
//   - The session is gone (404 and its relatives): one new handshake for all calls, and
//     each refused call is sent once more. It did not run.
//   - Nobody listens at the address: the connection is lost, after a few attempts in
//     half a second. Nothing was sent.
//   - The transport broke, or a gateway said 502 to 504, or the credential was refused:
//     that call fails. Three in a row, and the connection is lost.
//   - Anything else that is no answer is that call's own error; so is a JSON-RPC error,
//     whatever the status it came with.
//
// To lose a connection over HTTP is to stop using it: calls that are under way still
// end by themselves. The stream on which a server speaks unasked is optional, and none
// of its troubles are the connection's. With the older HTTP with SSE that stream carries
// all answers, and its end is the end of the connection and of the calls on it.
//
// Requests carry the headers that are configured and those of the protocol, built from
// the body, and go to the configured host only. Where no credential is configured they show
// the token that a user was granted, if there is one. A 401 has it renewed, and the request
// sent once more, for it was not looked at; what that does not mend is for the user
// (http_token.go).
package downstream
