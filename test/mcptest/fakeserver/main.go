// Command fakeserver is the scriptable MCP server of package mcptest on stdio:
//
//	fakeserver                  the built-in tools
//	fakeserver SCRIPT           a file with a script, or the JSON itself
//
// MCPTEST_SCRIPT does the same where arguments cannot be given.
package main

import (
	"fmt"
	"os"

	"mcphubd/test/mcptest"
)

func main() {
	mcptest.Main()
	script := mcptest.Script{}
	if len(os.Args) > 1 {
		var err error
		if script, err = mcptest.ParseScript(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	if err := mcptest.ServeStdio(script); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
