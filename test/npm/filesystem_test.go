package npm

import (
	"path/filepath"
	"testing"

	"mcphubd/test/mcptest"
)

// The result that the server writes when it is asked directly is the measure: the
// receipt names its size and hash, and the way back gives its bytes.
func TestResultsOfTheFilesystemServerAreStoredAndComeBackByteForByte(t *testing.T) {
	npm := need(t)
	files, modules := folder(t), filepath.Join(npm, "node_modules")
	command := filesystem(npm, files, modules)
	server := dial(t, command)
	d := mcptest.StartReady(t, table("fs", command))
	agents := map[string]*mcptest.Agent{"older": d.Agent("older"), "newest": d.Modern("newest")}
	for _, c := range []struct {
		tool string
		path string
		over int
	}{
		{"directory_tree", modules, 2 << 20},
		{"read_text_file", filepath.Join(files, "big.txt"), 10 << 20}, // the text stands in it twice
	} {
		arguments := map[string]any{"path": c.path}
		want := server.call(c.tool, arguments)
		if len(want) <= c.over {
			t.Fatalf("%s wrote only %d bytes", c.tool, len(want))
		}
		for name, agent := range agents {
			t.Run(c.tool+"/"+name, func(t *testing.T) {
				comesBack(t, agent, "fs__"+c.tool, arguments, want)
			})
		}
	}
}
