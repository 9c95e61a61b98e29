package httpadapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

const (
	maxDepth  = 100 // of nested arrays and objects in a body
	maxDigits = 15  // of a number that a 64-bit float holds exactly
)

// parseJSON reads a body whose meaning is the same for every reader: one value,
// valid UTF-8, no member twice, no number that a float would round. Errors show
// nothing of the body.
func parseJSON(b []byte) (any, error) {
	if depth(b) > maxDepth {
		return nil, fmt.Errorf("the JSON body is nested deeper than %d", maxDepth)
	}
	if _, err := jcs.Transform(b); err != nil {
		if json.Valid(b) {
			return nil, errors.New("the JSON body is ambiguous: a member stands twice, a string is no UTF-8, or a number is out of range")
		}
		return nil, errors.New("the body is not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, errors.New("the body is not JSON")
	}
	if !exact(tree) {
		return nil, fmt.Errorf("the JSON body holds a number of more than %d digits: send it as a string", maxDigits)
	}
	return tree, nil
}

// encodeTree writes a tree deterministically, numbers as they came.
func encodeTree(tree any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(tree); err != nil {
		return nil, errors.New("the body does not encode as JSON")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// depth is how deep arrays and objects are nested in b, valid or not.
func depth(b []byte) (deepest int) {
	open, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open++
			deepest = max(deepest, open)
		case c == '}' || c == ']':
			open--
		}
	}
	return deepest
}

// exact reports whether every number in v survives as a 64-bit float, which is
// what RFC 8785 makes of it.
func exact(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if !exact(member) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(element any) bool { return !exact(element) })
	case json.Number:
		mantissa, _, _ := strings.Cut(strings.ToLower(v.String()), "e")
		digits := strings.Trim(strings.Replace(strings.TrimLeft(mantissa, "-"), ".", "", 1), "0")
		f, err := v.Float64()
		return err == nil && len(digits) <= maxDigits && (f != 0) == (digits != "")
	}
	return true
}

// pointer reads a JSON pointer (RFC 6901).
func pointer(s string) []string {
	tokens := strings.Split(strings.TrimPrefix(s, "/"), "/")
	for i, t := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens
}

// elements returns which elements of array a token means.
func elements(array []any, token string) []int {
	if token == "*" {
		all := make([]int, len(array))
		for i := range all {
			all[i] = i
		}
		return all
	}
	if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(array) {
		return []int{i}
	}
	return nil
}

// filled reports whether a value stands at the place tokens, an empty one not
// counted.
func filled(v any, tokens []string) bool {
	if len(tokens) == 0 {
		return !empty(v)
	}
	switch v := v.(type) {
	case map[string]any:
		return filled(v[tokens[0]], tokens[1:])
	case []any:
		for _, i := range elements(v, tokens[0]) {
			if filled(v[i], tokens[1:]) {
				return true
			}
		}
	}
	return false
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// without returns v with what stands at the place tokens taken out.
func without(v any, tokens []string) (rest any, changed bool) {
	switch v := v.(type) {
	case map[string]any:
		member, ok := v[tokens[0]]
		if !ok {
			return v, false
		}
		if len(tokens) == 1 {
			delete(v, tokens[0])
			return v, true
		}
		v[tokens[0]], changed = without(member, tokens[1:])
		return v, changed
	case []any:
		meant := elements(v, tokens[0])
		for _, i := range slices.Backward(meant) {
			if len(tokens) == 1 {
				v, changed = slices.Delete(v, i, i+1), true
				continue
			}
			var c bool
			v[i], c = without(v[i], tokens[1:])
			changed = changed || c
		}
		return v, changed
	}
	return v, false
}

// prune takes the empty objects that lead to the place tokens out of v.
func prune(v any, tokens []string) {
	if len(tokens) < 2 {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if member, ok := v[tokens[0]].(map[string]any); ok {
			prune(member, tokens[1:])
			if len(member) == 0 {
				delete(v, tokens[0])
			}
		} else {
			prune(v[tokens[0]], tokens[1:])
		}
	case []any:
		for _, i := range elements(v, tokens[0]) {
			prune(v[i], tokens[1:])
		}
	}
}

// with returns v with s at the place tokens. Objects that lead there are made,
// arrays and their elements are not. overwrite says what happens to a value that
// stands there already. changed is false where s found no place.
func with(v any, tokens []string, s string, overwrite bool) (result any, changed bool) {
	if len(tokens) == 0 {
		if overwrite || v == nil || v == "" {
			return s, true
		}
		return v, false
	}
	switch v := v.(type) {
	case map[string]any:
		member, ok := v[tokens[0]]
		if !ok && len(tokens) > 1 && tokens[1] != "*" && !isIndex(tokens[1]) {
			member = map[string]any{}
		}
		member, changed = with(member, tokens[1:], s, overwrite)
		if changed {
			v[tokens[0]] = member
		}
		return v, changed
	case []any:
		for _, i := range elements(v, tokens[0]) {
			var c bool
			v[i], c = with(v[i], tokens[1:], s, overwrite)
			changed = changed || c
		}
		return v, changed
	}
	return v, false
}

// sortArrays sorts the arrays at the place tokens by their elements' RFC 8785
// text.
func sortArrays(v any, tokens []string) error {
	if len(tokens) == 0 {
		array, ok := v.([]any)
		if !ok {
			return nil
		}
		return sortArray(array)
	}
	switch v := v.(type) {
	case map[string]any:
		return sortArrays(v[tokens[0]], tokens[1:])
	case []any:
		for _, i := range elements(v, tokens[0]) {
			if err := sortArrays(v[i], tokens[1:]); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortArray(array []any) error {
	type element struct {
		text  string
		value any
	}
	sorted := make([]element, len(array))
	for i, v := range array {
		text, err := canonicalJSON(v)
		if err != nil {
			return err
		}
		sorted[i] = element{string(text), v}
	}
	slices.SortStableFunc(sorted, func(a, b element) int { return strings.Compare(a.text, b.text) })
	for i, e := range sorted {
		array[i] = e.value
	}
	return nil
}

// canonicalJSON is a tree's RFC 8785 text.
func canonicalJSON(tree any) ([]byte, error) {
	b, err := encodeTree(tree)
	if err != nil {
		return nil, err
	}
	text, err := jcs.Transform(b)
	if err != nil {
		return nil, errors.New("the body does not canonicalise as JSON")
	}
	return text, nil
}
