package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// codesIn finds every code of a problem that the sources below dir raise: the member
// Code of a Problem, and the first argument of what doctor finds.
func codesIn(t *testing.T, dir string) (codes []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		consts := map[string]ast.Expr{}
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
				for i, name := range v.Names {
					consts[name.Name] = v.Values[i]
				}
			}
			return true
		})
		note := func(e ast.Expr) {
			if id, ok := e.(*ast.Ident); ok {
				e = consts[id.Name]
			}
			lit, ok := e.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return // a value that was found elsewhere
			}
			code, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if nameOf(n.Type) != "Problem" && nameOf(n.Type) != "finding" {
					return true
				}
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && nameOf(kv.Key) == "Code" {
						note(kv.Value)
					}
				}
			case *ast.CallExpr:
				if name := nameOf(n.Fun); len(n.Args) > 1 && (name == "found" || name == "warned") {
					note(n.Args[0])
				}
			case *ast.FuncDecl:
				if n.Name.Name != "troubleOf" {
					return true
				}
				ast.Inspect(n, func(n ast.Node) bool {
					if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
						note(r.Results[0])
					}
					return true
				})
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func TestEveryProblemThatIsRaisedIsExplained(t *testing.T) {
	raised := codesIn(t, "../..")
	if len(raised) < 15 || !slices.Contains(raised, "server-down") || !slices.Contains(raised, "exits-early") {
		t.Fatalf("found only %v", raised)
	}
	for _, code := range raised {
		if _, ok := problems[code]; !ok {
			t.Errorf("%s is raised and cmd/mcphubd/problems.go does not explain it", code)
		}
	}
	for code, p := range problems {
		if !slices.Contains(raised, code) && code != "config-invalid" && code != "secret-missing" {
			t.Errorf("%s is explained and nobody raises it", code)
		}
		if p.title == "" || p.means == "" || p.fix == "" || strings.HasSuffix(p.fix, ".") {
			t.Errorf("%s: title, meaning and a fix without a full stop are due: %+v", code, p)
		}
	}
}
