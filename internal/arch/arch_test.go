package arch

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// rules is everything that the source is held to. Each finding says why.
var rules = map[string]func(*module) []finding{
	"imports":           doorFindings,
	"confined_packages": confinedFindings,
	"no_init":           initFindings,
	"no_changing_vars":  variableFindings,
	"no_skipped_test":   skipFindings,
	"no_sleep":          sleepFindings,
	"short_files":       lineFindings,
	"package_names":     nameFindings,
	"doc_comments":      commentFindings,
}

// TestModule holds this module to the rules.
func TestModule(t *testing.T) {
	m := load(t, "../..")
	if len(m.packages) < 10 {
		t.Fatalf("%d packages found: is the module's root elsewhere?", len(m.packages))
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			for _, f := range rule(m) {
				t.Error(f)
			}
		})
	}
}

// TestRulesFindViolations proves the rules with a broken module: a line that
// violates one ends in "// want rule", and no other line is found. A file whose
// violation has no line of its own begins with "// want-file rule".
func TestRulesFindViolations(t *testing.T) {
	m := load(t, "testdata/broken")
	want, got := wanted(m), map[string]bool{}
	for name, rule := range rules {
		for _, f := range rule(m) {
			place := fmt.Sprintf("%s:%d", f.path, f.line)
			if want["file "+f.path+" "+name] {
				place = "file " + f.path
			}
			got[place+" "+name] = true
			if !want[place+" "+name] {
				t.Errorf("%s: found without reason: %v", name, f)
			}
		}
	}
	proved := map[string]bool{}
	for _, w := range slices.Sorted(maps.Keys(want)) {
		if !got[w] {
			t.Errorf("not found: %s", w)
		}
		proved[w[strings.LastIndex(w, " ")+1:]] = true
	}
	for name := range rules {
		if !proved[name] {
			t.Errorf("rule %s is proved by no broken source", name)
		}
	}
}

// wanted reads the broken module's want comments.
func wanted(m *module) map[string]bool {
	want := map[string]bool{}
	m.each(func(_ *pkg, f *file) {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				addWanted(want, m, f, c)
			}
		}
	})
	return want
}

func addWanted(want map[string]bool, m *module, f *file, c *ast.Comment) {
	if names, ok := strings.CutPrefix(c.Text, "// want-file "); ok {
		for _, name := range strings.Fields(names) {
			want["file "+f.path+" "+name] = true
		}
	}
	if names, ok := strings.CutPrefix(c.Text, "// want "); ok {
		for _, name := range strings.Fields(names) {
			want[fmt.Sprintf("%s:%d %s", f.path, m.fset.Position(c.Pos()).Line, name)] = true
		}
	}
}
