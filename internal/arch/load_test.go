package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/seed-6b5e302b/samekey"

// module is the parsed source of one module.
type module struct {
	fset     *token.FileSet
	packages []*pkg // in the order of their folders
}

// pkg is one package of a folder; a folder's external tests are one of their own.
type pkg struct {
	dir   string // below the module's root, "." for the root
	name  string
	files []*file
}

type file struct {
	path string // below the module's root
	test bool   // its name ends in _test.go
	text []byte
	ast  *ast.File
}

// finding is one violation of a rule.
type finding struct {
	path string
	line int
	text string // what is wrong, and why the rule exists
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.text) }

func (m *module) at(f *file, pos token.Pos, text string, args ...any) finding {
	return finding{f.path, m.fset.Position(pos).Line, fmt.Sprintf(text, args...)}
}

// load parses every Go file below root, but not those of modules within it.
func load(t *testing.T, root string) *module {
	t.Helper()
	m := &module{fset: token.NewFileSet()}
	source := os.DirFS(root)
	err := fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && elsewhere(source, name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		return m.add(source, name)
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// elsewhere reports whether a folder is none of the module's.
func elsewhere(source fs.FS, dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := fs.Stat(source, path.Join(dir, "go.mod"))
	return err == nil
}

func (m *module) add(source fs.FS, name string) error {
	text, err := fs.ReadFile(source, name)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(m.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := &file{path: name, test: strings.HasSuffix(name, "_test.go"), text: text, ast: parsed}
	for _, p := range m.packages {
		if p.dir == path.Dir(name) && p.name == parsed.Name.Name {
			p.files = append(p.files, f)
			return nil
		}
	}
	m.packages = append(m.packages, &pkg{dir: path.Dir(name), name: parsed.Name.Name, files: []*file{f}})
	return nil
}

// importPath returns what an import names.
func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

// within reports whether an import path or a folder is root or lies below it.
func within(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }
