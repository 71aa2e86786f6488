// Package npm proves mcphubd with real servers and real clients, as npm has them.
// Behind the daemon: the official servers for files, memory, thinking and everything
// (that one over its three transports), a git server, and Playwright with Debian's
// chromium. In front of it: the official TypeScript SDK, the Inspector and mcp-remote.
// Each server is asked directly as well, and that answer is the measure. The packages
// file lists them, and the install script brings them into a folder outside the repository.
//
// Without them the tests are skipped, but never in CI (CI=true): there they fail.
package npm
