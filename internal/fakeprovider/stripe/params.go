package stripe

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// Limits of a request's parameters.
const (
	maxPairs = 2000
	maxDepth = 8
)

// params are decoded parameters. A value is a string, a params (an object, or a
// form's list under the names "0", "1", …), or what JSON has besides.
type params map[string]any

// parseForm decodes names such as metadata[order] and expand[0].
func parseForm(values url.Values) (params, *failure) {
	out := params{}
	n := 0
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names) // a conflict is refused in the same words each time
	for _, name := range names {
		path, ok := splitName(name)
		if !ok {
			return nil, invalid("", "A parameter's name is malformed or too deeply nested.")
		}
		for _, v := range values[name] {
			if n++; n > maxPairs {
				return nil, invalid("", "Too many parameters.")
			}
			if !out.set(path, v) {
				return nil, invalid(path[0], "A parameter is both a value and an object.")
			}
		}
	}
	return out, nil
}

// splitName turns "a[b][c]" into its parts; "a[]" ends with an empty part.
func splitName(name string) ([]string, bool) {
	first, rest, nested := strings.Cut(name, "[")
	if first == "" {
		return nil, false
	}
	parts := []string{first}
	if !nested {
		return parts, !strings.Contains(name, "]")
	}
	if !strings.HasSuffix(rest, "]") {
		return nil, false
	}
	more := strings.Split(rest[:len(rest)-1], "][")
	for _, part := range more {
		if strings.ContainsAny(part, "[]") {
			return nil, false
		}
	}
	parts = append(parts, more...)
	return parts, len(parts) <= maxDepth
}

func (p params) set(path []string, v string) bool {
	for i, part := range path {
		if part == "" {
			part = strconv.Itoa(len(p))
		}
		if i == len(path)-1 {
			if _, object := p[part].(params); object {
				return false
			}
			p[part] = v
			return true
		}
		next, ok := p[part].(params)
		if !ok {
			if _, taken := p[part]; taken {
				return false
			}
			next = params{}
			p[part] = next
		}
		p = next
	}
	return false
}

// parseJSON decodes a v2 body.
func parseJSON(body []byte) (params, *failure) {
	if len(bytes.TrimSpace(body)) == 0 {
		return params{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var raw any
	if err := d.Decode(&raw); err != nil {
		return nil, invalid("", "The body is not JSON.")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, invalid("", "Something follows the JSON object.")
	}
	m, ok := raw.(map[string]any)
	if !ok {
		return nil, invalid("", "The body must be a JSON object.")
	}
	return nest(m), nil
}

func nest(m map[string]any) params {
	out := make(params, len(m))
	for k, v := range m {
		if o, ok := v.(map[string]any); ok {
			v = nest(o)
		}
		out[k] = v
	}
	return out
}

// canonical writes the parameters so that their order does not count.
func (p params) canonical() string { return string(fakeprovider.JSON(p.plain())) }

// plain returns the parameters as the maps that fakeprovider.JSON knows.
func (p params) plain() map[string]any {
	out := make(map[string]any, len(p))
	for name, v := range p {
		if o, ok := v.(params); ok {
			v = o.plain()
		}
		out[name] = v
	}
	return out
}

func (p params) str(name string) string {
	s, _ := p[name].(string)
	return s
}

func (p params) sub(name string) params {
	o, _ := p[name].(params)
	return o
}

// list returns the elements of a form's list in order.
func (p params) list(name string) []any {
	o := p.sub(name)
	type element struct {
		at int
		v  any
	}
	var all []element
	for k, v := range o {
		if i, err := strconv.Atoi(k); err == nil {
			all = append(all, element{i, v})
		}
	}
	slices.SortFunc(all, func(a, b element) int { return a.at - b.at })
	out := make([]any, len(all))
	for i, e := range all {
		out[i] = e.v
	}
	return out
}

// strings returns the texts of a form's list.
func (p params) strings(name string) []string {
	var out []string
	for _, v := range p.list(name) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
