package main

import "mcphubd/transport/filter"

// jqWorkerCmd is what the daemon starts for a jq program. See package filter.
type jqWorkerCmd struct{}

func (jqWorkerCmd) Run(a *app) error {
	if !filter.Work(a.stdin, a.stdout, a.stderr) {
		return fail(codeFailed, errTold)
	}
	return nil
}
