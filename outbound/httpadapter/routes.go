package httpadapter

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// routes finds the row of a request by method and path. A literal segment wins
// over a parameter, from left to right.
type routes struct{ methods map[string]*route }

type route struct {
	literal   map[string]*route
	parameter *route
	row       *replaysemantics.Operation
}

// newRoutes returns the rows' table, and what is wrong with their paths.
func newRoutes(rows []replaysemantics.Operation) (*routes, []error) {
	t := &routes{methods: make(map[string]*route)}
	var problems []error
	for _, row := range rows {
		if row.Selector != "" {
			continue // method and path do not tell which row it is
		}
		if err := t.add(row); err != nil {
			problems = append(problems, err)
		}
	}
	return t, problems
}

func (t *routes) add(row replaysemantics.Operation) error {
	if !strings.HasPrefix(row.Path, "/") || strings.ContainsAny(row.Path, "?# ") {
		return fmt.Errorf("operation %s: the path %q is no path below the base URL", row.Name, row.Path)
	}
	if t.methods[row.Method] == nil {
		t.methods[row.Method] = &route{}
	}
	at := t.methods[row.Method]
	for segment := range strings.SplitSeq(row.Path[1:], "/") {
		if !isParameter(segment) && strings.ContainsAny(segment, "{}") {
			return fmt.Errorf("operation %s: in the path %q a {…} is not a whole segment", row.Name, row.Path)
		}
		at = at.step(segment)
	}
	if at.row == nil { // two rows on one route are replaysemantics.Check's to report
		at.row = &row
	}
	return nil
}

func (r *route) step(segment string) *route {
	if isParameter(segment) {
		if r.parameter == nil {
			r.parameter = &route{}
		}
		return r.parameter
	}
	if r.literal == nil {
		r.literal = make(map[string]*route)
	}
	if r.literal[segment] == nil {
		r.literal[segment] = &route{}
	}
	return r.literal[segment]
}

// match returns the row for an escaped path below the base URL. Segments are
// compared as what they mean: "%72efunds" is "refunds".
func (t *routes) match(method, path string) (replaysemantics.Operation, bool) {
	root := t.methods[method]
	if root == nil || !strings.HasPrefix(path, "/") {
		return replaysemantics.Operation{}, false
	}
	row := root.find(path[1:], true)
	if row == nil {
		return replaysemantics.Operation{}, false
	}
	return *row, true
}

// find follows path, if there is more of it.
func (r *route) find(path string, more bool) *replaysemantics.Operation {
	if !more {
		return r.row
	}
	segment, path, more := strings.Cut(path, "/")
	segment = unescaped(segment)
	if next := r.literal[segment]; next != nil {
		if row := next.find(path, more); row != nil {
			return row
		}
	}
	if r.parameter != nil && segment != "" {
		return r.parameter.find(path, more)
	}
	return nil
}

// follows reports whether an escaped path is one of the template's.
func follows(template, path string) bool {
	for {
		segment, restOfTemplate, more := strings.Cut(template, "/")
		got, restOfPath, alsoMore := strings.Cut(path, "/")
		got = unescaped(got)
		if segment != got && (!isParameter(segment) || got == "") || more != alsoMore {
			return false
		}
		if !more {
			return true
		}
		template, path = restOfTemplate, restOfPath
	}
}

// segments are an escaped path's steps, unescaped.
func segments(path string) []string {
	steps := strings.Split(path, "/")
	for i, s := range steps {
		steps[i] = unescaped(s)
	}
	return steps
}

func unescaped(segment string) string {
	if plain, err := url.PathUnescape(segment); err == nil {
		return plain
	}
	return segment
}

func isParameter(segment string) bool {
	return len(segment) > 2 && segment[0] == '{' && segment[len(segment)-1] == '}'
}
