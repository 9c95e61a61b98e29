package arch

import (
	"bytes"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

const maxLines = 500

// lineFindings: a file that is longer holds more than one concern.
func lineFindings(m *module) (found []finding) {
	m.each(func(_ *pkg, f *file) {
		if bytes.Count(f.text, []byte("\n")) > maxLines {
			found = append(found, finding{f.path, maxLines + 1, "the file is longer than 500 lines: divide it by concern"})
		}
	})
	return found
}

// nameFindings: a package is named for what it does.
func nameFindings(m *module) (found []finding) {
	vague := []string{"util", "utils", "common", "types", "helper", "helpers", "manager", "misc", "base", "shared"}
	m.each(func(p *pkg, f *file) {
		if slices.Contains(vague, strings.TrimSuffix(p.name, "_test")) {
			found = append(found, m.at(f, f.ast.Name.Pos(), "package %s says nothing: name it for what it does", p.name))
		}
	})
	return found
}

// initFindings: what runs at import cannot be left out, ordered or tested.
func initFindings(m *module) (found []finding) {
	m.each(func(_ *pkg, f *file) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				found = append(found, m.at(f, fn.Pos(), "func init runs at import: let the caller call it, or compute the variable in its declaration"))
			}
		}
	})
	return found
}

// skipFindings: a skipped test proves nothing and looks green. Skip of a rapid.T
// is another thing: it draws the next example.
func skipFindings(m *module) (found []finding) {
	m.calls(func(_ *pkg, f *file, call *ast.SelectorExpr) {
		name := call.Sel.Name
		if name != "Skip" && name != "Skipf" && name != "SkipNow" || !imports(f, "testing") {
			return
		}
		if x, ok := call.X.(*ast.Ident); ok && slices.Contains(parameters(f, "rapid", "T"), x.Name) {
			return
		}
		found = append(found, m.at(f, call.Pos(), "no test skips: what it needs is there, or the test fails and says what is missing"))
	})
	return found
}

// parameters returns the names of all parameters of type *pkg.name in a file.
func parameters(f *file, pkg, name string) (names []string) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok {
			return true
		}
		if star, ok := field.Type.(*ast.StarExpr); ok && isSelector(star.X, pkg, name) {
			for _, id := range field.Names {
				names = append(names, id.Name)
			}
		}
		return true
	})
	return names
}

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg && sel.Sel.Name == name
}

// sleepFindings: a sleep does not end with its context.
func sleepFindings(m *module) (found []finding) {
	m.calls(func(_ *pkg, f *file, call *ast.SelectorExpr) {
		if !f.test && isSelector(call, "time", "Sleep") {
			found = append(found, m.at(f, call.Pos(), "time.Sleep outlives its context: wait on a timer and ctx.Done()"))
		}
	})
	return found
}

func (m *module) each(visit func(*pkg, *file)) {
	for _, p := range m.packages {
		for _, f := range p.files {
			visit(p, f)
		}
	}
}

// calls visits every call of the form x.name(…).
func (m *module) calls(visit func(*pkg, *file, *ast.SelectorExpr)) {
	m.each(func(p *pkg, f *file) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
					visit(p, f, sel)
				}
			}
			return true
		})
	})
}

func imports(f *file, imp string) bool {
	return slices.ContainsFunc(f.ast.Imports, func(s *ast.ImportSpec) bool { return importPath(s) == imp })
}

// variableFindings: a package variable that changes is shared by all clients,
// tests and goroutines of a process.
func variableFindings(m *module) (found []finding) {
	for _, p := range m.packages {
		info := p.resolve(m.fset)
		for _, f := range p.files {
			say := func(n ast.Node, format string, args ...any) {
				found = append(found, m.at(f, n.Pos(), format+": put it into a struct, or into the caller's hands", args...))
			}
			for _, name := range lockVariables(f) {
				say(name, "package variable %s changes by its nature", name.Name)
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				for _, target := range changed(n) {
					if name := packageVariable(target, info); name != "" {
						say(target, "package variable %s changes outside its declaration", name)
					}
				}
				return true
			})
		}
	}
	return found
}

// resolve finds what the package's identifiers mean. Imported packages stay
// empty, so most expressions have no type: nothing here needs one.
func (p *pkg) resolve(fset *token.FileSet) *types.Info {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: emptyImporter{}, Error: func(error) {}}
	var files []*ast.File
	for _, f := range p.files {
		files = append(files, f.ast)
	}
	conf.Check(p.dir, fset, files, info) // its errors are those of the empty imports
	return info
}

type emptyImporter struct{}

func (emptyImporter) Import(imp string) (*types.Package, error) {
	p := types.NewPackage(imp, path.Base(imp))
	p.MarkComplete()
	return p, nil
}

// changed returns the operands that a node may write to.
func changed(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if fn, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (fn.Name == "delete" || fn.Name == "clear" || fn.Name == "copy") {
			return n.Args[:1]
		}
	}
	return nil
}

// packageVariable returns the name of the package variable that e is or is a part
// of, "" if it is none. A variable of another package counts.
func packageVariable(e ast.Expr, info *types.Info) string {
	switch e := e.(type) {
	case *ast.Ident:
		if v, ok := info.Uses[e].(*types.Var); ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
			return e.Name
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			switch info.Uses[x].(type) {
			case *types.PkgName, nil: // nil: an import whose name is not its path's end
				return x.Name + "." + e.Sel.Name
			}
		}
		return packageVariable(e.X, info)
	case *ast.IndexExpr:
		return packageVariable(e.X, info)
	case *ast.SliceExpr:
		return packageVariable(e.X, info)
	case *ast.StarExpr:
		return packageVariable(e.X, info)
	case *ast.ParenExpr:
		return packageVariable(e.X, info)
	}
	return ""
}

// lockVariables returns the package variables of a type of sync or sync/atomic.
func lockVariables(f *file) (names []*ast.Ident) {
	for _, d := range f.ast.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			v, ok := s.(*ast.ValueSpec)
			if ok && (ofSync(v.Type) || slices.ContainsFunc(v.Values, func(e ast.Expr) bool {
				lit, ok := e.(*ast.CompositeLit)
				return ok && ofSync(lit.Type)
			})) {
				names = append(names, v.Names...)
			}
		}
	}
	return names
}

func ofSync(t ast.Expr) bool {
	if index, ok := t.(*ast.IndexExpr); ok { // atomic.Pointer[T]
		t = index.X
	}
	sel, ok := t.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && (x.Name == "sync" || x.Name == "atomic")
}
