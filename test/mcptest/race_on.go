//go:build race

package mcptest

// raced makes the daemon under test use the race detector when the test does.
const raced = true
