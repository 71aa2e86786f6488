package main

import (
	"fmt"
	"io"
	"os"

	"mcphubd/transport/sample"
)

type sampleCmd struct {
	Dir    string `default:"." help:"The folder to offer." type:"path"`
	Ledger string `hidden:"" help:"Note the size and SHA-256 of every result in this file."`
}

func (sampleCmd) Help() string {
	return `Speaks MCP on stdin and stdout: four tools that read below one folder. It is what the demo
runs; as a server of your own configuration it is something to try mcphubd with.`
}

func (cmd sampleCmd) Run(a *app) error {
	root, err := os.OpenRoot(cmd.Dir)
	if err != nil {
		return fail(codeNotFound, fmt.Errorf("--dir: %w", err))
	}
	defer root.Close()
	var ledger io.Writer
	if cmd.Ledger != "" {
		f, err := os.OpenFile(cmd.Ledger, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("--ledger: %w", err)
		}
		defer f.Close()
		ledger = f
	}
	return sample.Serve(a.ctx, root, a.stdin, a.stdout, ledger)
}
