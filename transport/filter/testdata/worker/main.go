// Command worker is a child of package filter and nothing else. Tests build it without
// the race detector, which would take all the memory and time that a child may have.
package main

import (
	"os"

	"mcphubd/transport/filter"
)

func main() {
	if !filter.Work(os.Stdin, os.Stdout, os.Stderr) {
		os.Exit(1)
	}
}
