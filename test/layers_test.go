package test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rooms is the import diagram. A package belongs to the longest room that its path
// begins with, and may import what is named beside that room, and what is in the
// room itself unless the room is pure.
var rooms = []struct {
	room    string
	imports []string
	pure    bool // functions of values: nothing of the module that is not named, no system
}{
	{room: "cmd", imports: []string{"transport", "actors", "store", "config"}},
	{room: "transport", imports: []string{"actors", "config"}},
	{room: "transport/wire", imports: []string{"actors/mask"}, pure: true},
	{room: "actors", imports: []string{"store", "config"}},
	{room: "actors/shape", pure: true},
	{room: "actors/mask", pure: true},
	{room: "actors/budget", imports: []string{"actors/shape", "actors/mask"}, pure: true},
	{room: "actors/catalog", imports: []string{"actors/budget"}, pure: true},
	{room: "actors/excerpt", imports: []string{"actors/shape"}, pure: true},
	{room: "store"},
	{room: "config"},
	{room: "test", imports: []string{"store"}},
}

// homes says where a dependency may be imported. A new one gets a line here, and
// enters one room.
var homes = map[string][]string{
	"github.com/modelcontextprotocol/go-sdk":  {"transport", "test"},
	"zombiezen.com/go/sqlite":                 {"store"},
	"modernc.org/sqlite":                      {"store"},
	"github.com/klauspost/compress":           {"store"},
	"github.com/anthdm/hollywood":             {"actors"},
	"github.com/BurntSushi/toml":              {"config", "test"},
	"github.com/alecthomas/kong":              {"cmd"},
	"github.com/dustin/go-humanize":           {"cmd"},
	"github.com/mattn/go-isatty":              {"cmd"},
	"gopkg.in/natefinch/lumberjack.v2":        {"cmd"},
	"github.com/itchyny/gojq":                 {"transport/filter", "cmd"},
	"github.com/pmezard/go-difflib":           {"config", "cmd"},
	"github.com/fsnotify/fsnotify":            {"config"},
	"github.com/google/jsonschema-go":         {"test", "actors"}, // of actors only tests
	"github.com/go-json-experiment/json":      {"actors", "transport"},
	"github.com/rs/zerolog":                   {"cmd", "transport", "actors"},
	"golang.org/x/oauth2":                     {"transport/grant", "test"},
	"golang.org/x/sync":                       {"transport/grant"},
	"github.com/prometheus/client_golang":     {"transport/debug"},
	"github.com/chromedp/chromedp":            {"test"},
	"github.com/chromedp/cdproto":             {"test"},
	"golang.org/x/sys/unix":                   {"cmd", "transport", "store", "test"},
	"golang.org/x/sys/cpu":                    {"actors/mask"},
	"github.com/rogpeppe/go-internal/testenv": {"test"},
	"github.com/tiktoken-go/tokenizer":        {"test"},
}

// system is what no pure package touches.
var system = []string{"os", "os/exec", "os/signal", "net", "net/http", "syscall", "log", "database/sql", "unsafe"}

// pkg is what `go list` says of a package.
type pkg struct {
	ImportPath, Dir, Doc, Name         string
	Imports, TestImports, XTestImports []string
	GoFiles                            []string
}

// short is the path inside the module.
func (p pkg) short() string { return strings.TrimPrefix(p.ImportPath, "mcphubd/") }

func packages(t *testing.T) (all []pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Name,Imports,TestImports,XTestImports,GoFiles", "mcphubd/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

// under reports whether path is room or lies in it.
func under(path, room string) bool { return path == room || strings.HasPrefix(path, room+"/") }

// roomOf is the longest room that path is in, "" for none.
func roomOf(path string) (room string, imports []string, pure bool) {
	for _, r := range rooms {
		if under(path, r.room) && len(r.room) > len(room) {
			room, imports, pure = r.room, r.imports, r.pure
		}
	}
	return room, imports, pure
}

// forbidden says why a package may not import what it imports, "" if it may. test
// says that the import is of a test, which may look at its own module as it likes.
func forbidden(from, to string, test bool) string {
	room, imports, pure := roomOf(from)
	if inner, ours := strings.CutPrefix(to, "mcphubd/"); ours {
		switch {
		case test, !pure && under(inner, strings.SplitN(room, "/", 2)[0]):
			return ""
		case slices.ContainsFunc(imports, func(r string) bool { return under(inner, r) }):
			return ""
		}
		return "imports point down: cmd -> transport -> actors -> store, config"
	}
	if pure && !test && slices.Contains(system, to) {
		return "this room is pure"
	}
	first, _, _ := strings.Cut(to, "/")
	if !strings.Contains(first, ".") {
		return "" // the standard library
	}
	for dependency, homes := range homes {
		if under(to, dependency) {
			if test || slices.ContainsFunc(homes, func(r string) bool { return under(from, r) }) {
				return ""
			}
			return "this dependency lives in " + strings.Join(homes, ", ")
		}
	}
	if test {
		return ""
	}
	return "this dependency is new: give it a home in layers_test.go"
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		if room, _, _ := roomOf(p.short()); room == "" {
			t.Errorf("%s is in no room", p.ImportPath)
		}
		for _, to := range p.Imports {
			if why := forbidden(p.short(), to, false); why != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, to, why)
			}
		}
		for _, to := range slices.Concat(p.TestImports, p.XTestImports) {
			if why := forbidden(p.short(), to, true); why != "" {
				t.Errorf("tests of %s import %s: %s", p.ImportPath, to, why)
			}
		}
	}
}

// The table would be worthless if it let everything through.
func TestTheDiagramForbidsWhatItShould(t *testing.T) {
	for _, edge := range [][2]string{
		{"store", "mcphubd/actors"}, {"config", "mcphubd/store"}, {"actors", "mcphubd/transport/wire"},
		{"actors/budget", "mcphubd/actors"}, {"actors/budget", "mcphubd/actors/catalog"}, {"actors/budget", "os"},
		{"transport/agent", "mcphubd/cmd/mcphubd"}, {"transport/wire", "mcphubd/transport/agent"},
		{"transport/debug", "mcphubd/store"}, {"cmd/mcphubd", "mcphubd/test/mcptest"},
		{"cmd/mcphubd", "github.com/modelcontextprotocol/go-sdk/mcp"}, {"actors", "zombiezen.com/go/sqlite"},
		{"transport/agent", "github.com/anthdm/hollywood/actor"}, {"cmd/mcphubd", "github.com/BurntSushi/toml"},
		{"store", "example.com/new"},
	} {
		if forbidden(edge[0], edge[1], false) == "" {
			t.Errorf("%s may import %s", edge[0], edge[1])
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		want := "Package " + p.Name
		if p.Name == "main" {
			want = "Command "
		}
		if len(p.GoFiles) > 0 && !strings.HasPrefix(p.Doc, want) {
			t.Errorf("the comment of %s begins with %.60q, not with %q", p.ImportPath, p.Doc, want)
		}
	}
}
