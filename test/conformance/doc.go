// Package conformance runs the official conformance suite of MCP against mcphubd: at
// /servers/conf/mcp, where the SDK's fixture server is reached under its own names,
// and at the aggregate /mcp through a shim that takes the gateway's names off again.
// The other way round, the suite is the server: the SDK's own client reaches it through
// the daemon, at both places, and the suite judges what the daemon sent.
// The fixture and that client are built from the SDK's module; the suite is a package
// from npm, which test/npm/install brings in.
//
// Without it the tests are skipped, but never in CI (CI=true): there they fail.
package conformance
