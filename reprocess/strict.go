package reprocess

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// decode reads one JSON object whose fields are those of v's struct, letter by
// letter. A key that is there twice, anywhere, is refused: which value was meant is
// not known.
func decode(content []byte, v any) error {
	const not = "it is not the JSON object that docs/reprocessing.md shows"
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf(not+": %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind the JSON object")
	}
	if !bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		return errors.New(not)
	}
	return checkKeys(content, fieldNames(v))
}

// fieldNames are the keys of the object that v, a pointer to a struct, is read from.
func fieldNames(v any) map[string]bool {
	names := make(map[string]bool)
	for field := range reflect.TypeOf(v).Elem().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names[name] = true
		}
	}
	return names
}

// checkKeys refuses keys that are there twice in one object, and keys of the
// outermost one that are no known name. content is one JSON value.
func checkKeys(content []byte, known map[string]bool) error {
	type level struct {
		keys  map[string]bool // nil: an array
		value bool            // The next token of an object is a value.
	}
	var open []level
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		delim, _ := token.(json.Delim)
		if delim == '}' || delim == ']' {
			open = open[:len(open)-1]
			continue
		}
		if n := len(open); n > 0 && open[n-1].keys != nil {
			in := &open[n-1]
			if key, is := token.(string); is && !in.value {
				switch {
				case in.keys[key]:
					return fmt.Errorf("the key %q is there twice: leave one", key)
				case n == 1 && !known[key]:
					return fmt.Errorf("the field %q is not known: write it letter by letter as docs/reprocessing.md does", key)
				}
				in.keys[key], in.value = true, true
				continue
			}
			in.value = false
		}
		switch delim {
		case '{':
			open = append(open, level{keys: make(map[string]bool)})
		case '[':
			open = append(open, level{})
		}
	}
}
