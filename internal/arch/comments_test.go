package arch

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// commentFindings: every exported name that a service can reach says what it is.
func commentFindings(m *module) (found []finding) {
	for _, p := range m.packages {
		if p.name == "main" || strings.HasSuffix(p.name, "_test") || slices.Contains(strings.Split(p.dir, "/"), "internal") {
			continue
		}
		fset, files := p.parseAgain()
		if len(files) == 0 {
			continue
		}
		say := func(pos token.Pos, text string) {
			at := fset.Position(pos)
			found = append(found, finding{at.Filename, at.Line, text})
		}
		d, err := doc.NewFromFiles(fset, files, p.dir)
		if err != nil {
			say(files[0].Package, err.Error())
			continue
		}
		if d.Doc == "" {
			say(files[0].Package, "package "+p.name+" has no comment: say what it is for, and for whom not")
		}
		for _, u := range uncommented(d) {
			say(u.Pos(), u.Name+" is exported and has no comment: say what it guarantees")
		}
	}
	return found
}

// parseAgain parses the package without its tests: go/doc takes trees apart.
func (p *pkg) parseAgain() (*token.FileSet, []*ast.File) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, f := range p.files {
		if again, err := parser.ParseFile(fset, f.path, f.text, parser.ParseComments); err == nil && !f.test {
			files = append(files, again)
		}
	}
	return fset, files
}

// uncommented returns the exported names of a package that have no comment.
func uncommented(d *doc.Package) (names []*ast.Ident) {
	names = append(names, inValues(d.Consts)...)
	names = append(names, inValues(d.Vars)...)
	names = append(names, inFuncs(d.Funcs)...)
	for _, t := range d.Types {
		for _, s := range t.Decl.Specs {
			spec, ok := s.(*ast.TypeSpec)
			if !ok || spec.Name.Name != t.Name || !spec.Name.IsExported() {
				continue
			}
			if t.Doc == "" && spec.Doc == nil && spec.Comment == nil {
				names = append(names, spec.Name)
			}
			names = append(names, inInterface(spec.Type)...)
		}
		names = append(names, inValues(t.Consts)...)
		names = append(names, inValues(t.Vars)...)
		names = append(names, inFuncs(t.Funcs)...)
		names = append(names, inFuncs(t.Methods)...)
	}
	return names
}

func inFuncs(funcs []*doc.Func) (names []*ast.Ident) {
	for _, fn := range funcs {
		if fn.Doc == "" && ast.IsExported(fn.Name) {
			names = append(names, fn.Decl.Name)
		}
	}
	return names
}

// inValues returns the names whose group, and which themselves, have no comment.
func inValues(values []*doc.Value) (names []*ast.Ident) {
	for _, v := range values {
		for _, s := range v.Decl.Specs {
			spec, ok := s.(*ast.ValueSpec)
			if !ok || v.Doc != "" || spec.Doc != nil || spec.Comment != nil {
				continue
			}
			for _, name := range spec.Names {
				if name.IsExported() {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// inInterface returns the methods without a comment; one that is alone is
// explained by its type's.
func inInterface(t ast.Expr) (names []*ast.Ident) {
	i, ok := t.(*ast.InterfaceType)
	if !ok || len(i.Methods.List) < 2 {
		return nil
	}
	for _, method := range i.Methods.List {
		if method.Doc == nil && method.Comment == nil {
			for _, name := range method.Names {
				if name.IsExported() {
					names = append(names, name)
				}
			}
		}
	}
	return names
}
