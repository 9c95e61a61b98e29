package httpadapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
)

var charges = List{
	Target: "/v1/charges", Query: url.Values{"limit": {"2"}}, Items: "/data/charges", Mark: "/meta/mark",
	Begin: "from", End: "to", Cursor: "/next", Next: "cursor", Pages: 3,
}

// pages answers with one page after the other, and notes what it is asked.
type pages struct {
	status int
	bodies []string
	asked  []url.Values
	err    error
}

func (p *pages) get(_ context.Context, target string, query url.Values) (*Exchange, error) {
	n := len(p.asked)
	again := url.Values{}
	for name, values := range query {
		again[name] = values
	}
	p.asked = append(p.asked, again)
	if p.err != nil || target != charges.Target {
		return nil, errors.Join(p.err, errors.New("asked for "+target))
	}
	return &Exchange{Status: p.status, Body: []byte(p.bodies[min(n, len(p.bodies)-1)])}, nil
}

func page(next string, marks ...string) string {
	items := []any{}
	for i, mark := range marks {
		items = append(items, map[string]any{"id": i, "meta": map[string]any{"mark": mark}, "big": json.Number("12345678901234567890")})
	}
	b, _ := json.Marshal(map[string]any{"next": next, "data": map[string]any{"charges": items}})
	return string(b)
}

func TestListFind(t *testing.T) {
	sent := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	look := &outbound.Lookup{Operation: charge, Mark: "m1", FirstSentAt: sent, SentUntil: sent.Add(time.Minute), Horizon: 15 * time.Minute}
	for name, c := range map[string]struct {
		pages pages
		look  *outbound.Lookup
		asked int
		found bool
		fails bool
	}{
		"on the first page":    {pages{200, []string{page("c2", "m0", "m1")}, nil, nil}, look, 1, true, false},
		"on the second":        {pages{200, []string{page("c2", "m0"), page("", "m1")}, nil, nil}, look, 2, true, false},
		"nowhere":              {pages{200, []string{page("c2", "m0"), page("", "m10")}, nil, nil}, look, 2, false, false},
		"beyond the last page": {pages{200, []string{page("more", "m0")}, nil, nil}, look, 3, false, false},
		"without a mark":       {pages{200, []string{page("", "")}, nil, nil}, &outbound.Lookup{Operation: charge}, 1, false, false},
		"of another shape":     {pages{200, []string{`[{"meta":{"mark":"m1"}}]`}, nil, nil}, look, 1, false, false},
		"refused":              {pages{403, []string{`{}`}, nil, nil}, look, 1, false, true},
		"unreadable":           {pages{200, []string{`<html>`}, nil, nil}, look, 1, false, true},
		"lost":                 {pages{200, []string{``}, nil, errors.New("lost")}, look, 1, false, true},
	} {
		item, err := charges.Find(t.Context(), c.pages.get, c.look)
		if (item != nil) != c.found || (err != nil) != c.fails || len(c.pages.asked) != c.asked {
			t.Errorf("%s: %s, %v after %d pages", name, item, err, len(c.pages.asked))
		}
		if c.found && JSONText(item, "/meta/mark") != "m1" {
			t.Errorf("%s: found %s", name, item)
		}
	}
	if len(charges.Query) != 1 {
		t.Errorf("the description was changed: %v", charges.Query)
	}
}

// The span is wider than what was sent by the horizon and an hour of clocks.
func TestListBounds(t *testing.T) {
	sent := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	p := pages{status: 200, bodies: []string{page("c2", "m0"), page("")}}
	if _, err := charges.Find(t.Context(), p.get, &outbound.Lookup{Mark: "m1", FirstSentAt: sent, SentUntil: sent.Add(time.Minute), Horizon: 15 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	want := "[map[from:[2026-11-30T11:00:00Z] limit:[2] to:[2026-11-30T13:16:00Z]] map[cursor:[c2] from:[2026-11-30T11:00:00Z] limit:[2] to:[2026-11-30T13:16:00Z]]]"
	if got := fmt.Sprint(p.asked); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	p = pages{status: 200, bodies: []string{page("")}}
	if _, err := charges.Find(t.Context(), p.get, &outbound.Lookup{Mark: "m1"}); err != nil || fmt.Sprint(p.asked) != "[map[limit:[2]]]" {
		t.Errorf("without times: asked %v, %v", p.asked, err)
	}
}

func TestJSONText(t *testing.T) {
	body := []byte(`{"a":{"b/c":"x","n":1}}`)
	for pointer, want := range map[string]string{"/a/b~1c": "x", "/a/n": "", "/a": "", "/z/y": ""} {
		if got := JSONText(body, pointer); got != want {
			t.Errorf("%s: %q", pointer, got)
		}
	}
	if JSONText([]byte("no"), "/a") != "" {
		t.Error("what is no JSON has a text")
	}
}
