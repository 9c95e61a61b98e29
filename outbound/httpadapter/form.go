package httpadapter

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// pair is one field of a form or a query: decoded, and as it came.
type pair struct{ name, value, raw string }

// parsePairs reads name=value pairs in their order.
func parsePairs(s string) ([]pair, error) {
	if s == "" {
		return nil, nil
	}
	pairs := make([]pair, 0, strings.Count(s, "&")+1)
	for raw := range strings.SplitSeq(s, "&") {
		if raw == "" {
			continue
		}
		name, value, _ := strings.Cut(raw, "=")
		n, nameErr := url.QueryUnescape(name)
		v, valueErr := url.QueryUnescape(value)
		if nameErr != nil || valueErr != nil || strings.Contains(raw, ";") {
			return nil, errors.New("a form or query field is not percent-encoded")
		}
		pairs = append(pairs, pair{n, v, raw})
	}
	return pairs, nil
}

func joinPairs(pairs []pair) []byte {
	size := len(pairs)
	for _, p := range pairs {
		size += len(p.raw)
	}
	b := make([]byte, 0, size)
	for i, p := range pairs {
		if i > 0 {
			b = append(b, '&')
		}
		b = append(b, p.raw...)
	}
	return b
}

func newPair(name, value string) pair {
	return pair{name, value, url.QueryEscape(name) + "=" + url.QueryEscape(value)}
}

// fieldSteps walks a form field's name: "card[exp][0]" is card, exp, 0. It begins
// with rest as the name.
type fieldSteps struct {
	rest   string
	nested bool // rest is what stands between the first [ and the last ]
	over   bool
}

func (s *fieldSteps) next() (step string, ok bool) {
	if s.over {
		return "", false
	}
	if s.nested {
		step, rest, more := strings.Cut(s.rest, "][")
		s.rest, s.over = rest, !more
		return step, true
	}
	first, rest, nested := strings.Cut(s.rest, "[")
	if !nested || !strings.HasSuffix(rest, "]") {
		s.over = true
		return s.rest, true
	}
	s.rest, s.nested = strings.TrimSuffix(rest, "]"), true
	return first, true
}

// fieldPath is all steps of a form field's name.
func fieldPath(name string) (path []string) {
	for s := (fieldSteps{rest: name}); ; {
		step, ok := s.next()
		if !ok {
			return path
		}
		path = append(path, step)
	}
}

// covers reports whether place is name or stands above it: "card" covers
// "card[number]". A "*" in place stands for any one step.
func covers(place, name string) bool {
	p, n := fieldSteps{rest: place}, fieldSteps{rest: name}
	for {
		step, more := p.next()
		if !more {
			return true
		}
		if got, ok := n.next(); !ok || step != "*" && step != got {
			return false
		}
	}
}

// withoutField drops the fields that place covers.
func withoutField(pairs []pair, place string) []pair {
	return slices.DeleteFunc(pairs, func(p pair) bool { return covers(place, p.name) })
}

// fieldFilled reports whether a field that place covers has a value.
func fieldFilled(pairs []pair, place string) bool {
	return slices.ContainsFunc(pairs, func(p pair) bool { return p.value != "" && covers(place, p.name) })
}

// withMark adds a field where the caller left its place free: neither the field
// nor one above or below it is there, an empty field of the same name apart.
func withMark(pairs []pair, name, value string) (marked []pair, changed bool) {
	for _, p := range pairs {
		if p.name == name && p.value == "" {
			continue
		}
		if covers(name, p.name) || covers(p.name, name) {
			return pairs, false
		}
	}
	marked = make([]pair, 0, len(pairs)+1)
	for _, p := range pairs {
		if p.name != name {
			marked = append(marked, p)
		}
	}
	return append(marked, newPair(name, value)), true
}

// sortPairs puts pairs into the order of their names. Values of one name keep
// their order, which counts.
func sortPairs(pairs []pair) {
	slices.SortStableFunc(pairs, func(a, b pair) int { return strings.Compare(a.name, b.name) })
}

// unorderList makes the order of a list field's values not count: "expand[0]"
// and "expand[]" become "expand[]", their values sorted.
func unorderList(pairs []pair, place string) {
	var values []string
	var at []int
	for i, p := range pairs {
		path := fieldPath(p.name)
		if covers(place, p.name) && len(path) <= len(fieldPath(place))+1 && (p.name == place || isIndex(path[len(path)-1])) {
			at, values = append(at, i), append(values, p.value)
		}
	}
	slices.Sort(values)
	for n, i := range at {
		pairs[i] = newPair(place+"[]", values[n])
	}
}

func isIndex(s string) bool { return strings.Trim(s, "0123456789") == "" }
