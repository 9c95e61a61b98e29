package stripe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	// effectPages bounds one list that is read for a report.
	effectPages = 5_000

	// maxTypes is how many types one list of events can be narrowed to. Source:
	// https://docs.stripe.com/api/events/list.
	maxTypes = 20
)

const tooManyPages = "it has more than 500000 entries: ask for a shorter time"

// lister reads lists for a report that compares a ledger with them.
type lister struct {
	*batch
	httpadapter.EffectQuery
	show func(httpadapter.ListedEffect) error

	ops     map[string]rs.Operation
	stopped error // that show returned: nothing more is read
}

// ListEffects implements httpadapter.EffectLister: each top-level list of what API
// v1 creates, and the events, which state the key of the request that caused them.
// What stands below other objects, and API v2, is in no list by time.
func (c codec) ListEffects(ctx context.Context, get httpadapter.Get, q httpadapter.EffectQuery, show func(httpadapter.ListedEffect) error) ([]httpadapter.Coverage, error) {
	lookup := &outbound.Lookup{Account: q.Account}
	used, err := c.owners.credential(ctx, lookup)
	if err != nil {
		return nil, err
	}
	if err := c.owners.check(ctx, get, lookup, used); err != nil {
		return nil, err
	}
	l := &lister{batch: &batch{get: get, owners: c.owners, searches: []*search{{Lookup: lookup}}}, EffectQuery: q, show: show, ops: map[string]rs.Operation{}}
	for _, op := range Operations() {
		l.ops[op.Name] = op
	}
	var all []httpadapter.Coverage
	for _, r := range formRows {
		if _, listed := collections[r.name]; listed && r.collection() == r.path && !strings.Contains(r.path, "{id}") {
			all = append(all, l.created(ctx, r))
		}
	}
	all = append(all, l.stated(ctx)...)
	if l.stopped != nil {
		return nil, l.stopped
	}
	return all, c.owners.check(ctx, get, lookup, used)
}

// period narrows a list to the query's.
func (l *lister) period() url.Values {
	return url.Values{
		"limit":        {strconv.Itoa(pageSize)},
		"created[gte]": {strconv.FormatInt(l.From.Unix(), 10)},
		"created[lte]": {strconv.FormatInt(l.Until.Unix(), 10)},
	}
}

// walk reads a list to its end and notes in c what it covered.
func (l *lister) walk(ctx context.Context, at string, query url.Values, c *httpadapter.Coverage, read func(json.RawMessage) (id string, effects []httpadapter.ListedEffect, err error)) {
	if l.stopped != nil {
		return
	}
	seen := 0
	ended, err := l.pages(ctx, at, query, effectPages, func(_ *httpadapter.Exchange, raw json.RawMessage) (string, bool, error) {
		seen++
		id, effects, err := read(raw)
		if err != nil {
			return "", false, err
		}
		for _, e := range effects {
			if l.stopped = l.show(e); l.stopped != nil {
				return "", false, l.stopped
			}
			c.Effects++
		}
		return id, true, nil
	})
	switch {
	case err != nil:
		c.Incomplete = err.Error()
	case !ended && seen >= effectPages*pageSize:
		c.Incomplete = tooManyPages
	case !ended:
		c.Incomplete = fmt.Sprintf("Stripe's clock and this machine's are more than %s apart: what the list holds of the period is not known", clockSkew)
	}
}

// created reads the list of what one operation creates, and the marks of those that
// change it later.
func (l *lister) created(ctx context.Context, r row) httpadapter.Coverage {
	makers := []string{r.name}
	if r.name == "payout.create" {
		makers = append(makers, "payout.reverse")
	}
	c := httpadapter.Coverage{List: r.path, Operations: makers, Doubt: collections[r.name].doubt, UpTo: l.Until}
	query := l.period()
	if r.name == "subscription.create" {
		query.Set("status", "all")
	}
	l.walk(ctx, r.path, query, &c, func(raw json.RawMessage) (string, []httpadapter.ListedEffect, error) {
		var o object
		var a answer
		var more struct {
			Created  int64 `json:"created"`
			Date     int64 `json:"date"` // of an invoice item
			Original *ID   `json:"original_payout"`
		}
		if json.Unmarshal(raw, &o) != nil || json.Unmarshal(raw, &a) != nil || json.Unmarshal(raw, &more) != nil || o.ID == "" {
			return "", nil, errUnreadable
		}
		by := r.name
		if more.Original != nil && *more.Original != "" {
			by = "payout.reverse"
		}
		at := time.Unix(max(more.Created, more.Date), 0).UTC()
		return o.ID, slices.Concat([]httpadapter.ListedEffect{{
			Operations: []string{by}, Ref: o.ID, Creates: true, Mark: markIn(o, onCreated), At: at,
			Refused: a.unpaid() || judgeObject(by, &a).Effect == outbound.EffectNone,
		}}, changes(r.path, o, at)), nil
	})
	return c
}

// markIn returns the mark in an entry of the object's metadata; "" for none.
func markIn(o object, entry string) string {
	if mark := o.Metadata[entry]; isMark(mark) {
		return mark
	}
	return ""
}

// changes are the effects on an existing object whose marks it bears.
func changes(path string, o object, at time.Time) (effects []httpadapter.ListedEffect) {
	for _, r := range formRows {
		if r.mark == noMark || r.mark == onCreated || !strings.HasPrefix(r.path, path+"/{id}") {
			continue
		}
		if mark := markIn(o, r.mark); mark != "" {
			effects = append(effects, httpadapter.ListedEffect{Operations: []string{r.name}, Ref: o.ID, Mark: mark, At: at})
		}
	}
	return effects
}

// stated reads the events that the operations leave. The lack of one proves
// nothing, so that they cover no operation.
func (l *lister) stated(ctx context.Context) (all []httpadapter.Coverage) {
	causes := map[string][]string{} // by type, the operations that leave it
	for _, r := range slices.Concat(formRows, deleteRows) {
		for _, typ := range slices.Concat(traces[r.name].applied, traces[r.name].beside) {
			causes[typ] = append(causes[typ], r.name)
		}
	}
	var types []string
	for typ := range causes {
		types = append(types, typ)
	}
	slices.Sort(types)
	for part := range slices.Chunk(types, maxTypes) {
		c := httpadapter.Coverage{List: "/v1/events", UpTo: l.Until}
		query := l.period()
		query["types[]"] = part
		l.walk(ctx, "/v1/events", query, &c, func(raw json.RawMessage) (string, []httpadapter.ListedEffect, error) {
			var e event
			if json.Unmarshal(raw, &e) != nil || e.ID == "" {
				return "", nil, errUnreadable
			}
			return e.ID, l.statement(&e, causes[e.Type]), nil
		})
		if oldest := l.searches[0].Now().Add(-eventsKept); c.Incomplete == "" && l.From.Before(oldest) {
			c.Incomplete = "Stripe keeps events for 30 days, and the time asked for begins before"
		}
		if len(all) > 0 && all[0].Incomplete == "" {
			all[0].Incomplete = c.Incomplete
		}
		if len(all) > 0 {
			all[0].Effects += c.Effects
			continue
		}
		all = append(all, c)
	}
	return all
}

// statement is what an event says of the request that caused it; none where it
// names neither request nor object.
func (l *lister) statement(e *event, causes []string) []httpadapter.ListedEffect {
	if len(causes) == 0 {
		return nil
	}
	op := causes[0]
	effect := httpadapter.ListedEffect{
		Operations: causes, Ref: e.idOf(traces[op].object), Key: e.key(), RequestID: e.requestID(), At: time.Unix(e.Created, 0).UTC(),
	}
	if slices.Contains(traces[op].beside, e.Type) {
		effect.Ref = "" // of the parent at most
	}
	effect.Creates = effect.Ref != "" && creates(l.ops[op])
	var o object
	if effect.Creates && json.Unmarshal(e.Data.Object, &o) == nil && o.ID == effect.Ref {
		effect.Mark = markIn(o, onCreated)
	}
	if effect.Ref == "" && effect.Key.IsZero() {
		return nil
	}
	return []httpadapter.ListedEffect{effect}
}

// requestID is Stripe's id of the request that caused the event; "" where Stripe
// itself did.
func (e *event) requestID() string {
	var request struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(e.Request, &request) != nil {
		return ""
	}
	return request.ID
}
