package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// build is what version prints.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (cmd versionCmd) Run(a *app) error {
	b := thisBuild()
	if cmd.JSON {
		return a.writeJSON(b)
	}
	_, err := fmt.Fprintf(a.stdout, "mcphubd %s (%s, %s)\n", b.Version, b.Go, b.Platform)
	return err
}

// thisBuild reads what the Go tool wrote into the binary.
func thisBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}
