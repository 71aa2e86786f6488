package npm

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mcphubd/test/mcptest"
)

// seen is what sdk.mjs prints.
type seen struct {
	Tools []struct {
		Name       string
		ReadOnly   bool
		Same       bool // but for its outputSchema
		SameSchema bool
	}
	Calls map[string]struct {
		Threw                        string
		Same                         bool // through the gateway as directly
		CallID, InText, InStructured string
	}
}

// reads are calls of every tool that only reads, small, and of those that can write
// much, big: over the default budget, but below the 10 MiB at which the client's own
// stdio reader hangs up on the server.
func reads(files, modules string) (small, big map[string]any) {
	path := func(name string) map[string]any { return map[string]any{"path": filepath.Join(files, name)} }
	sub := path("sub")
	small = map[string]any{
		"read_file":                 path("small.txt"),
		"read_text_file":            path("sub/deep/a.json"),
		"read_media_file":           path("pixel.png"),
		"read_multiple_files":       map[string]any{"paths": []string{filepath.Join(files, "small.txt"), filepath.Join(files, "none")}},
		"list_directory":            sub,
		"list_directory_with_sizes": sub,
		"directory_tree":            sub,
		"search_files":              map[string]any{"path": files, "pattern": "**/*.json"},
		"get_file_info":             path("untouched.txt"),
		"list_allowed_directories":  map[string]any{},
	}
	big = map[string]any{
		"read_file":           path("half.txt"),
		"read_text_file":      path("half.txt"),
		"read_media_file":     path("half.txt"),
		"read_multiple_files": map[string]any{"paths": []string{filepath.Join(files, "half.txt")}},
		"directory_tree":      map[string]any{"path": filepath.Join(modules, "zod")},
		"search_files":        map[string]any{"path": modules, "pattern": "**/*.json"},
	}
	return small, big
}

// ask runs the agent of sdk.mjs.
func ask(t *testing.T, npm, url string, server []string, calls map[string]any) (s seen) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), node(npm), "sdk.mjs")
	cmd.Stdin = strings.NewReader(raw(map[string]any{"npm": npm, "url": url, "server": server, "calls": calls}))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the agent of the TypeScript SDK: %v\n%s", err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, &s); err != nil || len(s.Tools) != 14 || len(s.Calls) != len(calls) {
		t.Fatalf("the agent saw %d tools and made %d calls of %d: %v", len(s.Tools), len(s.Calls), len(calls), err)
	}
	return s
}

func TestTheTypeScriptClientSeesSmallResultsAsTheServerGivesThem(t *testing.T) {
	npm := need(t)
	files := folder(t)
	command := filesystem(npm, files)
	d := mcptest.StartReady(t, table("fs", command))
	small, _ := reads(files, "")
	s := ask(t, npm, d.URL("sdk"), command, small)
	for _, tool := range s.Tools {
		if !tool.Same {
			t.Errorf("%s is listed otherwise than by the server", tool.Name)
		}
		if _, called := small[tool.Name]; tool.ReadOnly && !called {
			t.Errorf("%s only reads, and was not called", tool.Name)
		}
	}
	for name, c := range s.Calls {
		if c.Threw != "" || !c.Same || c.CallID != "" {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestTheTypeScriptClientTakesReceiptsWithoutThrowing(t *testing.T) {
	npm := need(t)
	files, modules := folder(t), filepath.Join(npm, "node_modules")
	command := filesystem(npm, files, modules)
	d := mcptest.StartReady(t, table("fs", command))
	_, big := reads(files, modules)
	for name, c := range ask(t, npm, d.URL("sdk"), command, big).Calls {
		if c.Threw != "" || c.CallID == "" || c.InText != c.CallID || c.InStructured != c.CallID {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// Where nothing can be stored the schemas stay as they are, and the client holds
// every result against them.
func TestTheTypeScriptClientValidatesWhatIsNeverStored(t *testing.T) {
	npm := need(t)
	files := folder(t)
	command := filesystem(npm, files, filepath.Join(npm, "node_modules"))
	d := mcptest.StartReady(t, "response_budget = \"0\"\n"+table("fs", command))
	small, big := reads(files, filepath.Join(npm, "node_modules"))
	for _, calls := range []map[string]any{small, big} {
		s := ask(t, npm, d.URL("sdk"), command, calls)
		for _, tool := range s.Tools {
			if !tool.Same || !tool.SameSchema {
				t.Errorf("%s: %+v", tool.Name, tool)
			}
		}
		for name, c := range s.Calls {
			if c.Threw != "" || !c.Same || c.CallID != "" {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}
