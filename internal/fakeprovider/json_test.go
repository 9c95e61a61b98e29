package fakeprovider_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// What the dialects build is encoded as encoding/json encodes it, but for HTML.
func TestJSON(t *testing.T) {
	var none map[string]any
	var empty []any
	for _, v := range []any{
		nil, true, false, int64(-5), 7, json.Number("1.50"), json.RawMessage(`{"a":1}`), 1.5, uint8(3), none, empty, "",
		"quote \" back \\ line \n nul \x00 bell \a ümlaut 名 \u2028 emoji 🎉 broken \xff end \xed\xa0\x80",
		map[string]any{"b": 1, "a": map[string]any{}, "c": []any{nil, "x"}, "\"": "<&>"},
		[]map[string]any{{"z": "1"}, nil}, []string{"a", "b"}, []string(nil), json.RawMessage(nil),
		map[string]string{"typed": "map"}, strings.Repeat("long ", 5000),
	} {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		got := fakeprovider.JSON(v)
		var a, b any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal(want.Bytes(), &b) != nil {
			t.Errorf("%T: %q is no JSON", v, got)
			continue
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if !bytes.Equal(x, y) {
			t.Errorf("%T: got %.80q, want %.80q", v, got, want.Bytes())
		}
	}
}

// An Encoder gives what JSON gives, also for an object that lacks a member of its
// kind, has another, or has none.
func TestEncoder(t *testing.T) {
	var e fakeprovider.Encoder
	for _, o := range []map[string]any{
		{"b": 1, "a": "x"}, {"a": 2, "b": "y"}, {"a": 1, "c": 2}, {"a": 1}, {}, {}, {"b": 1, "a": map[string]any{"z": nil}}, nil,
	} {
		for range 2 {
			if got, want := e.JSON("kind", o), fakeprovider.JSON(o); !bytes.Equal(got, want) && o != nil {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}

func FuzzJSONString(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00\x1f\"\\", "\xff\xfe", "\u2028🎉"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var back map[string]string
		if err := json.Unmarshal(fakeprovider.JSON(map[string]any{s: s}), &back); err != nil {
			t.Fatal(err)
		}
		clean := strings.ToValidUTF8(s, "\ufffd")
		for k, v := range back {
			if strings.Count(k, "") < strings.Count(clean, "") || k != v {
				t.Errorf("%q came back as %q: %q", s, k, v)
			}
		}
	})
}
