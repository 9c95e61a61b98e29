package main

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// scaffolded runs new-provider in a new folder outside of any module and lets the
// module that it begins find samekey here, without a network.
func scaffolded(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), name)
	out, err := runCommand(t, "new-provider", name, "--dir", dir, "--module", "example.com/"+name)
	if err != nil || !strings.Contains(out, "go test .") {
		t.Fatalf("got %q, %v", out, err)
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	const path = "github.com/seed-6b5e302b/samekey"
	if out, err := goTool(t, dir, "mod", "edit", "-require", path+"@v0.0.0", "-replace", path+"="+checkout); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func runCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func goTool(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The scaffold compiles and fails with what to fill in, and whoever follows
// docs/adding-a-provider.md to the letter has a green kit.
func TestNewProviderByThePage(t *testing.T) {
	t.Parallel()
	dir := scaffolded(t, "bank")
	if out, err := goTool(t, dir, "vet", "."); err != nil {
		t.Fatalf("the scaffold does not compile: %v\n%s", err, out)
	}
	page, err := os.ReadFile("../../docs/adding-a-provider.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := pageSteps(string(page))
	if len(steps) != 7 {
		t.Fatalf("the page has %d blocks of Go, want 7", len(steps))
	}
	for i, want := range []string{
		"FILL IN 1 in bank.go",      // the scaffold
		"FILL IN 4 in bank_test.go", // the row has a key, and the fake takes none
		"FILL IN 4 in bank_test.go", // Judge
		"unknown field Amount",      // the typed call: the samples follow
		"the codec is no Finder",    // the fake and the samples
		"",                          // Find
		"",                          // webhooks
		"",                          // their test
	} {
		if i > 0 {
			follow(t, dir, steps[i-1])
		}
		if out, err := goTool(t, dir, "test", "."); (err == nil) != (want == "") || !strings.Contains(out, want) {
			t.Fatalf("after %d blocks want %q, got %v:\n%s", i, want, err, out)
		}
	}
}

// What no package can be made of is refused in a line, before anything is written.
func TestNewProviderRefuses(t *testing.T) {
	t.Parallel()
	outside, inside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(inside, "go.mod"), []byte("module example.com/mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dir, module, want string }{
		{"stripe", inside, "", "choose another one"},
		{"httpadapter", inside, "", "choose another one"},
		{"func", inside, "", "word of Go"},
		{"Acme", inside, "", "lower-case letters"},
		{"my-bank", inside, "", "lower-case letters"},
		{"../acme", inside, "", "lower-case letters"},
		{"", inside, "", "lower-case letters"},
		{"acme", outside, "", "--module example.com/acme"},
		{"acme", outside, "a b", "no path of a module"},
		{"acme", outside, "a.b/../../c", "no path of a module"},
		{"acme", outside, "a.b/./c", "no path of a module"},
		{"acme", outside, "a.b//c", "no path of a module"},
		{"acme", outside, "a.b/", "no path of a module"},
		{"acme", outside, "a.b/.c", "no path of a module"},
		{"acme", outside, "a.b/c.", "no path of a module"},
		{"acme", outside, "a.b/nul.txt", "no path of a module"},
		{"acme", outside, "a.b/acme/v1", "no path of a module"},
		{"acme", outside, strings.Repeat("a", 256), "no path of a module"},
		{"acme", inside, "example.com/acme", "leave --module out"},
	} {
		args := []string{"new-provider", c.name, "--dir", filepath.Join(c.dir, "acme")}
		if c.module != "" {
			args = append(args, "--module", c.module)
		}
		_, err := runCommand(t, args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want %q", c.name, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(c.dir, "acme")); err == nil {
			t.Errorf("%q: a folder was made", c.name)
		}
	}
}

// A file that is there stays as it is, and no other one is written beside it.
func TestNewProviderOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := filepath.Join(dir, "acme_test.go")
	for name, text := range map[string]string{filepath.Join(dir, "go.mod"): "module example.com/mine\n", own: "package mine\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := runCommand(t, "new-provider", "acme", "--dir", dir); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("got %v, want that the file exists", err)
	}
	if text, err := os.ReadFile(own); err != nil || string(text) != "package mine\n" {
		t.Errorf("the file is now %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "acme.go")); err == nil {
		t.Error("another file was written")
	}
}

// step is a block of Go of the page and the file that it is for.
type step struct{ file, code string }

func pageSteps(page string) (steps []step) {
	for _, m := range regexp.MustCompile("(?s)In `(bank[a-z_]*\\.go)`:\n\n```go\n(.*?)\n```\n").FindAllStringSubmatch(page, -1) {
		steps = append(steps, step{m[1], m[2]})
	}
	return steps
}

// follow puts a block's declarations in the place of those with the same names, and
// new ones at the end.
func follow(t *testing.T, dir string, s step) {
	t.Helper()
	name := filepath.Join(dir, s.file)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const head = "package bank\n"
	block := head + s.code + "\n"
	for _, d := range declarations(t, block) {
		fresh := block[d.from:d.to]
		replaced := false
		for _, old := range declarations(t, string(text)) {
			if old.name == d.name {
				text = []byte(string(text[:old.from]) + fresh + string(text[old.to:]))
				replaced = true
				break
			}
		}
		if !replaced {
			text = append(text, "\n"+fresh+"\n"...)
		}
	}
	text = withImports(t, text)
	if formatted, err := format.Source(text); err != nil || !bytes.Equal(formatted, text) {
		t.Errorf("%s is not formatted after the block:\n%s\n%v", s.file, s.code, err)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// withImports does what goimports does.
func withImports(t *testing.T, text []byte) []byte {
	t.Helper()
	const own = "github.com/seed-6b5e302b/samekey/"
	standard := []string{"context", "crypto/hmac", "crypto/sha256", "encoding/hex", "encoding/json", "errors", "io", "net/http", "testing", "time"}
	ours := []string{own + "outbound", own + "outbound/httpadapter", own + "providers/providertest", own + "recordstore/memory", own + "replaysemantics"}
	file, err := parser.ParseFile(token.NewFileSet(), "block.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	lines := func(paths []string) (out string) {
		for _, p := range paths {
			switch name := p[strings.LastIndex(p, "/")+1:]; {
			case name == "replaysemantics" && used["rs"]:
				out += "\trs \"" + p + "\"\n"
			case used[name]:
				out += "\t\"" + p + "\"\n"
			}
		}
		return out
	}
	block := "import (\n" + lines(standard) + "\n" + lines(ours) + ")"
	for _, d := range declarations(t, string(text)) {
		if d.name == "import" {
			return []byte(string(text[:d.from]) + block + string(text[d.to:]))
		}
	}
	t.Fatal("the file imports nothing")
	return nil
}

// declaration is where one stands, with its comment.
type declaration struct {
	name     string
	from, to int
}

func declarations(t *testing.T, text string) (found []declaration) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "block.go", text, parser.ParseComments)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, d := range file.Decls {
		var name string
		var doc *ast.CommentGroup
		switch d := d.(type) {
		case *ast.FuncDecl:
			name, doc = "func "+d.Name.Name, d.Doc
		case *ast.GenDecl:
			name, doc = d.Tok.String(), d.Doc
			switch spec := d.Specs[0].(type) {
			case *ast.ValueSpec:
				name += " " + spec.Names[0].Name
			case *ast.TypeSpec:
				name += " " + spec.Name.Name
			}
		}
		from := d.Pos()
		if doc != nil {
			from = doc.Pos()
		}
		found = append(found, declaration{name, fset.Position(from).Offset, fset.Position(d.End()).Offset})
	}
	return found
}
