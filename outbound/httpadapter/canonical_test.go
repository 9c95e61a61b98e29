package httpadapter

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

func canonicalOf(t testing.TB, a *Adapter, op rs.Operation, m outbound.Message, sensitive bool) string {
	t.Helper()
	var b strings.Builder
	if err := a.Canonical(&b, 1, op, m, sensitive); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func message(op rs.Operation, contentType, body string, header ...string) outbound.Message {
	return outbound.Message{Method: op.Method, Target: op.Path, Header: fields(append(header, "Content-Type", contentType)...), Body: []byte(body)}
}

// R23: a version's output never changes. A vector that fails here is a mistake
// in the code: records in ledgers hold its hash.
func TestCanonicalGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/canonical_v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name, Operation, Target, Body string
		Header                        [][2]string
		Sensitive                     bool
		Canonical                     string
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	a := adapter(t, config("https://api.test"))
	for _, v := range vectors {
		op, ok := rs.Find(a.cfg.Operations, v.Operation)
		if !ok {
			t.Fatalf("%s: no operation %q", v.Name, v.Operation)
		}
		m := outbound.Message{Method: op.Method, Target: v.Target, Body: []byte(v.Body)}
		for _, h := range v.Header {
			m.Header = append(m.Header, outbound.Field{Name: h[0], Value: h[1]})
		}
		if got := canonicalOf(t, a, op, m, v.Sensitive); got != v.Canonical {
			t.Errorf("%s:\n got %q\nwant %q", v.Name, got, v.Canonical)
		}
	}
	if len(vectors) < 10 {
		t.Errorf("%d vectors, want the whole file", len(vectors))
	}
	if err := a.Canonical(&strings.Builder{}, 2, charge, chargeCall().Message, true); err == nil {
		t.Error("an unknown version was written")
	}
}

// Equal meanings have equal bytes.
func TestCanonicalEqual(t *testing.T) {
	a := adapter(t, config("https://api.test/base"))
	multi := func(boundary string, names ...string) string {
		var b strings.Builder
		for _, n := range names {
			fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data; name=%q\r\n\r\nvalue of %s\r\n", boundary, n, n)
		}
		return b.String() + "--" + boundary + "--\r\n"
	}
	for name, tt := range map[string]struct {
		op   rs.Operation
		x, y outbound.Message
	}{
		"form order and escapes": {charge, message(charge, formType, "a=1&b=x+y"), message(charge, formType, "b=x%20y&%61=1&")},
		"key, trace, version, preference": {charge, message(charge, formType, "a=1"),
			message(charge, formType+"; charset=utf-8", "a=1", "Idempotency-Key", "k", "traceparent", "t", "Api-Version", "8", "Prefer", "x", "Authorization", "y")},
		"volatile field":          {charge, message(charge, formType, "a=1&trace=2"), message(charge, formType, "a=1&trace[x]=3")},
		"security code":           {charge, message(charge, formType, "a=1&card[cvc]=111"), message(charge, formType, "a=1&card[cvc]=222")},
		"unordered list":          {charge, message(charge, formType, "expand[0]=a&expand[1]=b"), message(charge, formType, "expand[0]=b&expand[1]=a")},
		"list spelled apart":      {charge, message(charge, formType, "expand[]=a&expand[]=b"), message(charge, formType, "expand[0]=b&expand[1]=a")},
		"no body":                 {charge, message(charge, formType, ""), outbound.Message{Method: "POST", Target: charge.Path}},
		"target":                  {charge, message(charge, formType, "a=1"), outbound.Message{Method: "POST", Target: "https://api.test/base/v1/%63harges", Header: fields("Content-Type", formType), Body: []byte("a=1")}},
		"JSON":                    {order, message(order, jsonType, `{"a":1.0,"b":"é"}`), message(order, jsonType+"; charset=utf-8", " {\"b\":\"\\u00e9\",\n\"a\":1} ")},
		"JSON key, volatile":      {order, message(order, jsonType, `{"a":1,"at":5}`), message(order, jsonType, `{"a":1,"at":[7]}`)},
		"JSON, an emptied object": {order, message(order, jsonType, `{"request":{"id":"k"},"a":1}`), message(order, jsonType, `{"a":1}`)},
		"JSON unordered":          {order, message(order, jsonType, `{"tags":["x",{"a":1,"b":2}],"units":[{"items":[1,2]}]}`), message(order, jsonType, `{"tags":[{"b":2,"a":1},"x"],"units":[{"items":[2,1]}]}`)},
		"JSON, nothing in it":     {order, message(order, jsonType, `{}`), message(order, jsonType, ` `)},
		"multipart": {charge, message(charge, "multipart/form-data; boundary=X", multi("X", "a", "b")),
			message(charge, "multipart/form-data; boundary=Y", multi("Y", "b", "a", "trace"))},
	} {
		if x, y := canonicalOf(t, a, tt.op, tt.x, true), canonicalOf(t, a, tt.op, tt.y, true); x != y {
			t.Errorf("%s:\n%s\n%s", name, x, y)
		}
	}
}

// Different meanings have different bytes.
func TestCanonicalDiffers(t *testing.T) {
	cfg := config("https://api.test")
	cfg.Hosts = []string{"files.test"}
	a := adapter(t, cfg)
	on := func(op rs.Operation, target string) outbound.Message {
		return outbound.Message{Method: op.Method, Target: target}
	}
	for name, tt := range map[string]struct {
		op   rs.Operation
		x, y outbound.Message
	}{
		"value":              {charge, message(charge, formType, "a=1"), message(charge, formType, "a=2")},
		"value order":        {charge, message(charge, formType, "a=1&a=2"), message(charge, formType, "a=2&a=1")},
		"another pair":       {charge, message(charge, formType, "a=1"), message(charge, formType, "a=1&b=")},
		"glued pairs":        {charge, message(charge, formType, "a=1%26b%3D2"), message(charge, formType, "a=1&b=2")},
		"query or form":      {charge, message(charge, formType, "a=1"), on(charge, "/v1/charges?a=1")},
		"id":                 {capture, on(capture, "/v1/charges/ch_1/capture"), on(capture, "/v1/charges/ch_2/capture")},
		"host":               {charge, on(charge, "/v1/charges"), on(charge, "https://files.test/v1/charges")},
		"condition":          {charge, message(charge, formType, "a=1"), message(charge, formType, "a=1", "If-Match", "v1")},
		"card":               {charge, message(charge, formType, "card[number]=1"), message(charge, formType, "card[number]=2")},
		"array order":        {order, message(order, jsonType, `{"a":[1,2]}`), message(order, jsonType, `{"a":[2,1]}`)},
		"number or text":     {order, message(order, jsonType, `{"a":1}`), message(order, jsonType, `{"a":"1"}`)},
		"null or nothing":    {order, message(order, jsonType, `{"a":null}`), message(order, jsonType, `{}`)},
		"media type":         {charge, message(charge, "text/plain", "x"), message(charge, "text/csv", "x")},
		"empty JSON array":   {order, message(order, jsonType, `[]`), message(order, jsonType, `{}`)},
		"mark of the caller": {charge, message(charge, formType, "metadata[mark]=x"), message(charge, formType, "")},
	} {
		if x, y := canonicalOf(t, a, tt.op, tt.x, true), canonicalOf(t, a, tt.op, tt.y, true); x == y {
			t.Errorf("%s: both are %q", name, x)
		}
	}
	x, y := message(charge, formType, "card[number]=1"), message(charge, formType, "card[number]=2")
	if canonicalOf(t, a, charge, x, false) != canonicalOf(t, a, charge, y, false) {
		t.Error("a sensitive field counts without a secret")
	}
}

// Whatever the form, the order of its fields does not count, and its content does.
func TestCanonicalFormProperty(t *testing.T) {
	a := adapter(t, config("https://api.test"))
	rapid.Check(t, func(rt *rapid.T) {
		form := url.Values{}
		for name, value := range rapid.MapOf(rapid.StringMatching(`[a-z]{1,3}(\[[a-z0-9]{0,2}\])?`), rapid.String()).Draw(rt, "form") {
			form.Set(name, value)
		}
		pairs := strings.Split(form.Encode(), "&")
		shuffled := append([]string(nil), pairs...)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		x := canonicalOf(t, a, charge, message(charge, formType, strings.Join(pairs, "&")), true)
		y := canonicalOf(t, a, charge, message(charge, formType, strings.Join(shuffled, "&")), true)
		if x != y {
			rt.Fatalf("order counts:\n%s\n%s", x, y)
		}
		form.Set("zzzz", "more")
		if canonicalOf(t, a, charge, message(charge, formType, form.Encode()), true) == x {
			rt.Fatal("another field does not count")
		}
	})
}

// Nothing that a caller may send makes Freeze or Canonical panic. What freezes
// has a canonical form that equal spellings share; freezing what is frozen keeps
// it.
func FuzzFreeze(f *testing.F) {
	for _, seed := range []struct{ target, contentType, body string }{
		{"/v1/charges", formType, "a=1&metadata[mark]=&card[number]=4"},
		{"/v1/charges?expand[]=x", formType, "expand[0]=b&expand[1]=a"},
		{"/v2/orders", jsonType, `{"units":[{"mark":null}],"request":{"id":"x"},"tags":[3,1]}`},
		{"/v2/orders", jsonType, `[[[1e5,-0,0.10]]]`},
		{"/v1/charges", "multipart/form-data; boundary=B", "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B--\r\n"},
		{"https://api.test/v1/charges", "text/plain", "\xff"},
	} {
		f.Add(seed.target, seed.contentType, []byte(seed.body))
	}
	a := adapter(f, config("https://api.test"))
	f.Fuzz(func(t *testing.T, target, contentType string, body []byte) {
		for _, op := range a.cfg.Operations {
			m := outbound.Message{Method: op.Method, Target: target, Header: fields("Content-Type", contentType), Body: body}
			frozen, err := a.Freeze(op, m, "M")
			if err != nil {
				continue
			}
			plain := canonicalOf(t, a, op, m, true)
			again, err := a.Freeze(op, frozen.Message, "M")
			if err != nil || string(again.Message.Body) != string(frozen.Message.Body) || again.Message.Target != frozen.Message.Target {
				t.Fatalf("%s: frozen twice: %+v, %v, once: %+v", op.Name, again, err, frozen)
			}
			if turned, ok := turn(contentType, body); ok {
				m.Body = turned
				if got := canonicalOf(t, a, op, m, true); got != plain {
					t.Fatalf("%s: %q and %q differ:\n%s\n%s", op.Name, body, turned, plain, got)
				}
			}
		}
	})
}

// turn spells a body in another way.
func turn(contentType string, body []byte) ([]byte, bool) {
	switch contentType {
	case jsonType:
		tree, err := parseJSON(body)
		if err != nil {
			return nil, false
		}
		turned, err := json.MarshalIndent(tree, "", "  ")
		return turned, err == nil
	case formType:
		values, err := url.ParseQuery(string(body))
		return []byte(values.Encode()), err == nil
	}
	return nil, false
}
