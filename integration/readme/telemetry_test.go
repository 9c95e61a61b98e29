package readme_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// names is a set of names, in the order of the alphabet where it is shown.
type names map[string]bool

func (n names) String() string { return strings.Join(slices.Sorted(maps.Keys(n)), ", ") }

// line is a kind of log line: how often it is written apart, it is one.
type line struct{ levels, fields names }

// shown is what code or a page says of log lines and spans.
type shown struct {
	lines  map[string]line  // By message.
	span   names            // Attributes of spans.
	events map[string]names // Attributes by the event's name.
}

// Every log line with its levels and fields, and every attribute of a span, stands
// in docs/telemetry.md as the code has it, and nothing else does. Metrics are
// compared by examples/prometheus.
func TestTelemetryPageIsTheCode(t *testing.T) {
	t.Parallel()
	code := inCode(t, "../../outbound", "../../internal/console")
	page := onPage(read(t, "../../docs/telemetry.md"))
	if len(code.lines) < 15 || len(code.span) < 8 || len(code.events) < 1 {
		t.Fatalf("the code has %d log lines, %d attributes and %d events: is it elsewhere?", len(code.lines), len(code.span), len(code.events))
	}
	for message := range union(code.lines, page.lines) {
		c, p := code.lines[message], page.lines[message]
		if c.fields.String() != p.fields.String() {
			t.Errorf("%q has the fields %q in the code, %q on the page", message, c.fields, p.fields)
		}
		if !c.levels["any"] && c.levels.String() != p.levels.String() {
			t.Errorf("%q has the levels %q in the code, %q on the page", message, c.levels, p.levels)
		}
	}
	if code.span.String() != page.span.String() {
		t.Errorf("spans have %q in the code, %q on the page", code.span, page.span)
	}
	for event := range union(code.events, page.events) {
		if c, p := code.events[event], page.events[event]; c.String() != p.String() {
			t.Errorf("the event %q has %q in the code, %q on the page", event, c, p)
		}
	}
}

func union[V any](a, b map[string]V) names {
	all := names{}
	for _, m := range []map[string]V{a, b} {
		for name := range m {
			all[name] = true
		}
	}
	return all
}

// everyLine are the fields that a client's log lines begin with.
var everyLine = []string{"provider", "operation", "command"}

// onPage reads the tables of log lines and spans.
func onPage(page []string) shown {
	s := shown{lines: map[string]line{}, span: names{}, events: map[string]names{}}
	quoted := regexp.MustCompile("`([^`]+)`")
	quotes := func(text string) names {
		all := names{}
		for _, q := range quoted.FindAllStringSubmatch(text, -1) {
			all[q[1]] = true
		}
		return all
	}
	section := ""
	for _, text := range page {
		if title, ok := strings.CutPrefix(text, "## "); ok {
			section = title
		}
		cells := strings.Split(strings.Trim(text, "| "), " | ")
		switch {
		case section == "Spans" && strings.HasPrefix(text, "| `"):
			maps.Copy(s.span, quotes(cells[0]))
		case section == "Spans" && strings.HasPrefix(text, "Event "):
			all := quoted.FindAllStringSubmatch(regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(text, ""), -1) // without values
			s.events[all[0][1]] = names{}
			for _, q := range all[1:] {
				s.events[all[0][1]][q[1]] = true
			}
		case section == "Log lines" && strings.HasPrefix(text, "| `"):
			s.lines[quoted.FindStringSubmatch(cells[0])[1]] = lineOf(cells, quotes)
		}
	}
	return s
}

// lineOf reads a row: message, level, fields.
func lineOf(cells []string, quotes func(string) names) line {
	l := line{names{}, names{}}
	for _, level := range regexp.MustCompile(`\b(Debug|Info|Warn|Error)\b`).FindAllString(cells[1], -1) {
		l.levels[level] = true
	}
	if len(cells) > 2 {
		l.fields = quotes(cells[2])
	}
	if strings.HasPrefix(cells[0], "`samekey: ") && !strings.HasSuffix(cells[len(cells)-1], "only") {
		for _, field := range everyLine {
			l.fields[field] = true
		}
	}
	return l
}

// inCode reads what the packages under the folders show.
func inCode(t *testing.T, folders ...string) shown {
	t.Helper()
	s := shown{lines: map[string]line{}, span: names{}, events: map[string]names{}}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
					s.read(t, path, f.Body)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// read notes what one function shows. The fields that it makes are those of each
// log line in it.
func (s *shown) read(t *testing.T, path string, body *ast.BlockStmt) {
	t.Helper()
	fields, written := fieldsIn(body, "slog"), []string(nil)
	calls(body, func(name string, call *ast.CallExpr) {
		switch name {
		case "who":
			for _, field := range everyLine {
				fields[field] = true
			}
		case "SetAttributes":
			maps.Copy(s.span, fieldsIn(call, "attribute"))
		case "AddEvent":
			s.events[literal(call.Args[0])] = fieldsIn(call, "attribute")
		case "DebugContext", "InfoContext", "WarnContext", "ErrorContext", "Log", "LogAttrs":
			level, at := strings.TrimSuffix(name, "Context"), 1
			if strings.HasPrefix(name, "Log") {
				level, at = "any", 2
			}
			if len(call.Args) <= at {
				return
			}
			message := literal(call.Args[at])
			if message == "" {
				t.Errorf("%s: a log line without a constant message", path)
			}
			if s.lines[message].levels == nil {
				s.lines[message] = line{names{}, names{}}
			}
			s.lines[message].levels[level] = true
			for _, pair := range call.Args[at+1:] { // a name, a value
				if field := literal(pair); field != "" {
					s.lines[message].fields[field] = true
				}
			}
			written = append(written, message)
		}
	})
	for _, message := range written {
		maps.Copy(s.lines[message].fields, fields)
	}
}

// fieldsIn are the names in calls as slog.String("name", …) within a node.
func fieldsIn(n ast.Node, pkg string) names {
	all := names{}
	calls(n, func(_ string, call *ast.CallExpr) {
		x, ok := call.Fun.(*ast.SelectorExpr).X.(*ast.Ident)
		if name := first(call); ok && x.Name == pkg && name != "" {
			all[name] = true
		}
	})
	return all
}

// calls visits the calls of the form x.name(…).
func calls(n ast.Node, visit func(name string, call *ast.CallExpr)) {
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
				visit(sel.Sel.Name, call)
			}
		}
		return true
	})
}

// first returns a call's first argument where it is a constant text.
func first(call *ast.CallExpr) string {
	if len(call.Args) == 0 {
		return ""
	}
	return literal(call.Args[0])
}

// literal returns a constant text, "" for everything else.
func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		text, err := strconv.Unquote(l.Value)
		if err == nil {
			return text
		}
	}
	return ""
}
