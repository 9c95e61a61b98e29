package httpadapter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// List describes a list of a provider's JSON objects, for Finders that search it
// for the mark.
type List struct {
	Target string     // "/v2/payments". Required.
	Query  url.Values // Of every page, as a filter.
	Items  string     // Where the objects are, "/payments". Required.
	Mark   string     // Where an object holds the mark, "/reference_id". Required.

	// Begin and End are the query parameters, in RFC 3339, that bound the time of
	// creation. Default to no bound.
	Begin, End string
	// Cursor is where an answer holds what the query parameter Next asks the
	// following page with. Default to one page.
	Cursor, Next string
	// Pages is how many are read at most. Defaults to 10.
	Pages int
}

// clockSkew is how far the provider's clock may be from the ledger's.
const clockSkew = time.Hour

// Find returns the object that carries the mark of l, and nil if no page has it,
// which proves nothing: lists lag, and may be longer. An answer other than 200 is
// an error.
func (list List) Find(ctx context.Context, get Get, l *outbound.Lookup) (json.RawMessage, error) {
	query := list.between(l)
	for range cmp.Or(list.Pages, 10) {
		x, err := get(ctx, list.Target, query)
		switch {
		case err != nil:
			return nil, err
		case x.Status != http.StatusOK:
			return nil, fmt.Errorf("%s: the list was answered with status %d", l.Operation.Name, x.Status)
		}
		var page any
		d := json.NewDecoder(bytes.NewReader(x.Body))
		d.UseNumber()
		if err := d.Decode(&page); err != nil {
			return nil, fmt.Errorf("%s: the list cannot be read", l.Operation.Name)
		}
		items, _ := at(page, list.Items).([]any)
		for _, item := range items {
			if l.Mark != "" && at(item, list.Mark) == l.Mark {
				return encodeTree(item)
			}
		}
		next, _ := at(page, list.Cursor).(string)
		if list.Next == "" || next == "" {
			break
		}
		query.Set(list.Next, next)
	}
	return nil, nil
}

// between is the query with the span of time in which l's effect can have been
// made.
func (list List) between(l *outbound.Lookup) url.Values {
	query := maps.Clone(list.Query)
	if query == nil {
		query = url.Values{}
	}
	bound := func(name string, at time.Time) {
		if name != "" {
			query.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	if !l.FirstSentAt.IsZero() {
		bound(list.Begin, l.FirstSentAt.Add(-clockSkew))
	}
	if !l.SentUntil.IsZero() {
		bound(list.End, l.SentUntil.Add(l.Horizon+clockSkew))
	}
	return query
}

// JSONText returns the text that stands in a JSON body at a pointer (RFC 6901, of
// objects alone), "" if there is none.
func JSONText(body []byte, pointer string) string {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return ""
	}
	s, _ := at(v, pointer).(string)
	return s
}

// at returns what stands in v at a JSON pointer, nil for nothing.
func at(v any, name string) any {
	for _, token := range pointer(name) {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[token]
	}
	return v
}
