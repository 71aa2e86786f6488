package config_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcphubd/config"
)

var update = flag.Bool("update", false, "write the goldens anew; read the diff")

// world is an Env in which only what a test names exists.
func world(vars, files map[string]string) config.Env {
	return config.Env{
		Lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
		ReadFile: func(path string) ([]byte, error) {
			text, ok := files[path]
			if !ok {
				return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
			}
			return []byte(text), nil
		},
		Home: func() (string, error) { return "/home/me", nil },
	}
}

func testWorld() config.Env {
	return world(
		map[string]string{"HOME": "/home/me", "DOCS_TOKEN": "sk-test-DDDD"},
		map[string]string{"/home/me/.config/mcphubd/codex.token": "sk-test-CCCC\n"},
	)
}

// each runs check on every file of a folder and compares what it says with the
// golden beside the file.
func each(t *testing.T, folder, goldenExt string, check func(t *testing.T, name string, text []byte) string) {
	files, _ := filepath.Glob(filepath.Join("testdata", folder, "*.toml"))
	if len(files) == 0 {
		t.Fatalf("no files in testdata/%s", folder)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".toml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := check(t, name, text)
			golden := strings.TrimSuffix(file, ".toml") + goldenExt
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if strings.Contains(got, "sk-test") || strings.Contains(got, "hunter22") {
				t.Errorf("shows a secret:\n%s", got)
			}
		})
	}
}

func TestGoodFilesGiveTheseSettings(t *testing.T) {
	each(t, "good", ".golden", func(t *testing.T, name string, text []byte) string {
		c, err := config.Parse(name, text, testWorld())
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := config.Write(&b, c.Settings(), true); err != nil {
			t.Fatal(err)
		}
		for _, warning := range c.Warnings {
			b.WriteString("\n# warning: " + warning + "\n")
		}
		return b.String()
	})
}

func TestBadFilesAreRefusedWithLineAndRemedy(t *testing.T) {
	each(t, "bad", ".golden", func(t *testing.T, name string, text []byte) string {
		_, err := config.Parse(name, text, testWorld())
		var invalid *config.Error
		if !errors.As(err, &invalid) {
			t.Fatalf("got %v, want an *Error", err)
		}
		for _, p := range invalid.Problems {
			if p.Line == 0 || p.Line > strings.Count(string(text), "\n") {
				t.Errorf("no line: %v", p)
			}
		}
		return err.Error() + "\n"
	})
}
