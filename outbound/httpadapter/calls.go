package httpadapter

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"unicode"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

// JSONCall makes the Call that a provider's constructor returns. ids fill the
// {…} of the row's path, in order. body is what encoding/json encodes; nil, or
// what encodes to null, is no body. An empty id, a body that does not encode and
// a float are the Call's Err: amounts are integers or decimal strings. Numbers
// that only look like floats (json.Number, json.RawMessage, a Marshaler's) are
// refused where the field's name says that it is an amount.
func JSONCall(op replaysemantics.Operation, cmd outbound.Command, ids []string, body any) outbound.Call {
	call := newCall(op, cmd, ids, jsonType)
	if call.Err == nil {
		call.Message.Body, call.Err = encodeJSON(op, body)
	}
	return call
}

// FormCall makes the Call that a provider's constructor returns, as JSONCall
// does; form is the body, sorted by field.
func FormCall(op replaysemantics.Operation, cmd outbound.Command, ids []string, form url.Values) outbound.Call {
	call := newCall(op, cmd, ids, formType)
	if encoded := form.Encode(); encoded != "" {
		call.Message.Body = []byte(encoded)
	}
	return call
}

func newCall(op replaysemantics.Operation, cmd outbound.Command, ids []string, contentType string) outbound.Call {
	target, err := fill(op, ids)
	return outbound.Call{
		Command:   cmd,
		Operation: op.Name,
		Message: outbound.Message{
			Method: op.Method,
			Target: target,
			Header: []outbound.Field{{Name: "Content-Type", Value: contentType}},
		},
		Err: err,
	}
}

// fill puts ids into the {…} of the row's path.
func fill(op replaysemantics.Operation, ids []string) (string, error) {
	if len(ids) == 0 && !strings.Contains(op.Path, "{") {
		return op.Path, nil
	}
	segments, next := strings.Split(op.Path, "/"), 0
	for i, s := range segments {
		if !isParameter(s) {
			continue
		}
		if next == len(ids) {
			return "", fmt.Errorf("%s needs an id for %s", op.Name, s)
		}
		if err := checkID(ids[next]); err != nil {
			return "", fmt.Errorf("%s: %s: %w", op.Name, s, err)
		}
		segments[i] = url.PathEscape(ids[next])
		next++
	}
	if next < len(ids) {
		return "", fmt.Errorf("%s takes %d ids, not %d", op.Name, next, len(ids))
	}
	return strings.Join(segments, "/"), nil
}

// checkID refuses what could lead a path somewhere else.
func checkID(id string) error {
	if id == "" {
		return errors.New("the id is empty")
	}
	for piece := range strings.FieldsFuncSeq(id, func(r rune) bool { return r == '/' || r == '\\' }) {
		if piece == "." || piece == ".." {
			return errors.New("the id may not hold dots as a path does")
		}
	}
	if strings.ContainsFunc(id, unicode.IsControl) {
		return errors.New("the id holds a control character")
	}
	return nil
}

var errFloat = errors.New("amounts are integers or decimal strings, never floats")

func encodeJSON(op replaysemantics.Operation, body any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		return nil, fmt.Errorf("%s: the body does not encode as JSON (%T)", op.Name, body)
	}
	if holdsFloat(reflect.ValueOf(body)) {
		return nil, fmt.Errorf("%s: %w", op.Name, errFloat)
	}
	encoded := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if string(encoded) == "null" {
		return nil, nil
	}
	tree, err := parseJSON(encoded)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op.Name, err)
	}
	if fractionalAmount("", tree) {
		return nil, fmt.Errorf("%s: %w", op.Name, errFloat)
	}
	return encoded, nil
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	jsonNumber    = reflect.TypeFor[json.Number]()
)

// holdsFloat reports whether v has a float anywhere that is encoded. v was
// encoded before, so it holds no cycles.
func holdsFloat(v reflect.Value) bool {
	if !v.IsValid() || v.Type() == jsonNumber || v.Type().Implements(jsonMarshaler) || v.Type().Implements(textMarshaler) {
		return false
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		return true
	case reflect.Pointer, reflect.Interface:
		return holdsFloat(v.Elem())
	case reflect.Slice, reflect.Array:
		return elementsHoldFloat(v)
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if holdsFloat(v.MapIndex(key)) {
				return true
			}
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			encoded := (field.IsExported() || field.Anonymous) && field.Tag.Get("json") != "-"
			if encoded && holdsFloat(value) {
				return true
			}
		}
	}
	return false
}

func elementsHoldFloat(v reflect.Value) bool {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return false
	}
	for i := range v.Len() {
		if holdsFloat(v.Index(i)) {
			return true
		}
	}
	return false
}

// fractionalAmount reports whether a number with a fraction or an exponent
// stands under a name that says that it is an amount.
func fractionalAmount(name string, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if fractionalAmount(name, member) {
				return true
			}
		}
	case []any:
		for _, element := range v {
			if fractionalAmount(name, element) {
				return true
			}
		}
	case json.Number:
		return amountLike(name) && strings.ContainsAny(v.String(), ".eE")
	}
	return false
}

func amountLike(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "value", "total", "subtotal", "price", "balance", "fee", "tax", "discount", "shipping":
		return true
	}
	return strings.Contains(name, "amount")
}
