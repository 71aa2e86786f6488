package test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = ".." // of the module

// TestEverySwitchOverMessagesIsWhole runs the linter that go.mod names as a tool.
func TestEverySwitchOverMessagesIsWhole(t *testing.T) {
	// Made first: on a machine without it, go tells of what it downloads.
	linter := filepath.Join(t.TempDir(), "linter")
	if out, err := exec.Command("go", "build", "-o", linter, "github.com/alecthomas/go-check-sumtype/cmd/go-check-sumtype").CombinedOutput(); err != nil {
		t.Fatalf("build go-check-sumtype: %v\n%s", err, out)
	}
	cmd := exec.Command(linter, "./...")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("go-check-sumtype: %v\n%s", err, out)
	}
}

// messages is what the source of the actors says about messages.
type messages struct {
	sealed map[string]bool            // marker methods of interfaces under //sumtype:decl
	open   []string                   // interfaces with a marker and without that line
	of     map[string]map[string]bool // types by marker method
	doc    string                     // of the package
}

var marker = regexp.MustCompile(`^is([A-Z][A-Za-z]*)Msg$`)

func readMessages(t *testing.T) messages {
	t.Helper()
	m := messages{sealed: map[string]bool{}, of: map[string]map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(root, "actors", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("sources of the actors: %v, %v", files, err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		m.doc += f.Doc.Text()
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				m.method(d)
			case *ast.GenDecl:
				m.types(d)
			}
		}
	}
	return m
}

// method notes the receiver of a marker method.
func (m *messages) method(d *ast.FuncDecl) {
	if d.Recv == nil || !marker.MatchString(d.Name.Name) {
		return
	}
	if id, ok := d.Recv.List[0].Type.(*ast.Ident); ok {
		if m.of[d.Name.Name] == nil {
			m.of[d.Name.Name] = map[string]bool{}
		}
		m.of[d.Name.Name][id.Name] = true
	}
}

// types notes interfaces that are sealed by a marker method.
func (m *messages) types(d *ast.GenDecl) {
	for _, s := range d.Specs {
		spec, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		i, ok := spec.Type.(*ast.InterfaceType)
		if !ok || len(i.Methods.List) != 1 || len(i.Methods.List[0].Names) != 1 {
			continue
		}
		name := i.Methods.List[0].Names[0].Name
		switch {
		case !marker.MatchString(name):
		case hasLine(d.Doc, "//sumtype:decl") || hasLine(spec.Doc, "//sumtype:decl"):
			m.sealed[name] = true
		default:
			m.open = append(m.open, spec.Name.Name)
		}
	}
}

func hasLine(g *ast.CommentGroup, line string) bool {
	return g != nil && slices.ContainsFunc(g.List, func(c *ast.Comment) bool { return c.Text == line })
}

func TestEveryKindOfMessageIsSealed(t *testing.T) {
	m := readMessages(t)
	for _, name := range m.open {
		t.Errorf("%s has no //sumtype:decl, so its switches are not checked", name)
	}
	for name := range m.of {
		if !m.sealed[name] {
			t.Errorf("types have the method %s, and no interface under //sumtype:decl asks for it", name)
		}
	}
	if len(m.sealed) < 5 {
		t.Errorf("only %d kinds of messages were found", len(m.sealed))
	}
}

func TestTheMessageTableNamesEveryMessageThereIs(t *testing.T) {
	m := readMessages(t)
	table := messageTable(t, m.doc)
	for name := range m.sealed {
		actor := strings.ToLower(marker.FindStringSubmatch(name)[1])
		if len(m.of[name]) == 0 {
			continue // nobody in the house speaks to it
		}
		for message := range m.of[name] {
			if !table[actor][message] {
				t.Errorf("actors/doc.go: the row of %s lacks %s", actor, message)
			}
		}
		for message := range table[actor] {
			if !m.of[name][message] {
				t.Errorf("actors/doc.go: the row of %s names %s, which is no message of it", actor, message)
			}
		}
	}
}

var (
	remark = regexp.MustCompile(`\([^)]*\)`)
	word   = regexp.MustCompile(`[A-Za-z]+`)
)

// messageTable reads the table under "to  asked  told": the messages by actor.
func messageTable(t *testing.T, doc string) map[string]map[string]bool {
	t.Helper()
	table, actor, inside := map[string]map[string]bool{}, "", false
	for line := range strings.Lines(doc) {
		fields := strings.Fields(line)
		switch {
		case slices.Equal(fields, []string{"to", "asked", "told"}):
			inside = true
			continue
		case !inside || len(fields) == 0:
			inside = false
			continue
		}
		row := strings.TrimPrefix(line, "\t")
		if !strings.HasPrefix(row, " ") {
			actor, row = fields[0], strings.TrimPrefix(row, fields[0])
			table[actor] = map[string]bool{}
		}
		for _, message := range word.FindAllString(remark.ReplaceAllString(row, ""), -1) {
			table[actor][message] = true
		}
	}
	if len(table) < 5 {
		t.Fatalf("actors/doc.go has no message table that can be read: %v", table)
	}
	return table
}

// TestNothingOfThisMachineIsInTheTree looks for paths and hosts that mean something
// only where the tree was made.
func TestNothingOfThisMachineIsInTheTree(t *testing.T) {
	strangers := machine(t)
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "out", ".cache", "node_modules"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || strings.HasSuffix(path, ".test") || strings.HasSuffix(path, ".prof") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		for _, s := range strangers {
			if at := s.FindIndex(b); at != nil {
				line := 1 + bytes.Count(b[:at[0]], []byte("\n"))
				t.Errorf("%s:%d holds what only this machine knows: %q", strings.TrimPrefix(path, "../"), line, b[at[0]:at[1]])
			}
		}
		return nil
	})
	if err != nil || seen < 100 {
		t.Errorf("looked at %d files: %v", seen, err)
	}
}

// machine is what gives this machine away: where the module lies, where its cache
// is, whose home this is, where modules come from.
func machine(t *testing.T) (strangers []*regexp.Regexp) {
	t.Helper()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	home, _ := os.UserHomeDir()
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Split(string(out), "\n")
	for _, path := range []string{here, home, env[0], "/" + "work", "/" + "farm", "/" + "root"} {
		if strings.Count(path, "/") > 0 && len(path) > 3 {
			strangers = append(strangers, regexp.MustCompile(`(?:^|[^\w./~-])`+regexp.QuoteMeta(path)+`/`))
		}
	}
	for _, proxy := range strings.FieldsFunc(env[1], func(r rune) bool { return r == ',' || r == '|' }) {
		if u, err := url.Parse(proxy); err == nil && strings.Contains(u.Hostname(), ".") && u.Hostname() != "127.0.0.1" {
			strangers = append(strangers, regexp.MustCompile(regexp.QuoteMeta(u.Hostname())))
		}
	}
	return strangers
}
