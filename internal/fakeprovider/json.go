package fakeprovider

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// JSON encodes v as AppendJSON does. The result takes no more memory than it must,
// since keys and events keep it.
func JSON(v any) []byte {
	return slices.Clone(AppendJSON(make([]byte, 0, 2048), v)) // an ordinary object has about 1500 bytes
}

// Encoder encodes many objects of the same kinds. It remembers in which order the
// members of a kind stand, since sorting them is half of the work, and what it
// encodes into. It is not safe for concurrent use.
type Encoder struct {
	orders map[string][]string // names in order, by kind
	buffer []byte
}

// JSON encodes an object of a kind as the function JSON does.
func (e *Encoder) JSON(kind string, o map[string]any) []byte {
	order := e.orders[kind]
	dst, ok := appendInOrder(e.buffer[:0], o, order)
	if !ok {
		order = slices.Sorted(maps.Keys(o))
		if e.orders == nil {
			e.orders = map[string][]string{}
		}
		if len(e.orders) < maxKinds {
			e.orders[kind] = order
		}
		dst, _ = appendInOrder(dst[:0], o, order)
	}
	e.buffer = dst
	return slices.Clone(dst)
}

// maxKinds is for how many kinds an Encoder remembers the order.
const maxKinds = 200

// appendInOrder appends an object whose names are known, in order. It reports
// false if the object has others.
func appendInOrder(dst []byte, o map[string]any, order []string) ([]byte, bool) {
	if len(o) != len(order) {
		return dst, false
	}
	dst = append(dst, '{')
	for i, name := range order {
		v, ok := o[name]
		if !ok {
			return dst, false
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendJSON(append(appendString(dst, name), ':'), v)
	}
	return append(dst, '}'), true
}

// AppendJSON appends v as JSON, an object's members in the order of their names.
// It knows the types that dialects build their objects of, without reflection,
// and leaves what else there is to encoding/json. It panics on what is no JSON.
func AppendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case string:
		return appendString(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case json.Number:
		return append(dst, v...)
	case json.RawMessage:
		if v == nil {
			return append(dst, "null"...)
		}
		return append(dst, v...)
	case map[string]any:
		return appendObject(dst, v)
	case []any:
		return appendArray(dst, v)
	case []map[string]any:
		return appendArray(dst, v)
	case []string:
		return appendArray(dst, v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("fakeprovider: an object holds what is no JSON: " + err.Error())
	}
	return append(dst, b...)
}

func appendObject(dst []byte, o map[string]any) []byte {
	if o == nil {
		return append(dst, "null"...)
	}
	var few [48]string // an ordinary object's names need no memory of their own
	names := few[:0]
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	dst, _ = appendInOrder(dst, o, names)
	return dst
}

func appendArray[T any](dst []byte, items []T) []byte {
	if items == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendJSON(dst, item)
	}
	return append(dst, ']')
}

// appendString quotes s. What is no UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
			i++
		case c < 0x20:
			const digits = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r) // of a byte that is no UTF-8, utf8.RuneError
			i += n
		}
	}
	return append(dst, '"')
}
