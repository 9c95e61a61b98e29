package audit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

const (
	day    = 20_788 // of now
	refund = "refund.create"
)

// ledger is one that stands still.
type ledger []recordstore.Record

func (l ledger) List(_ context.Context, q recordstore.ListQuery) (recordstore.Listing, error) {
	q.Limit = min(q.Limit, 2) // so that several pages are read
	return recordstore.ListingOf(l, q, now), q.Check()
}

func (l ledger) Get(_ context.Context, id recordstore.ID) (recordstore.Record, time.Time, error) {
	for _, rec := range l {
		if rec.ID == id {
			return rec, now, nil
		}
	}
	return recordstore.Record{}, now, recordstore.ErrNotFound
}

// provider lists what it holds.
type provider struct {
	effects  []httpadapter.ListedEffect
	coverage httpadapter.Coverage
	asked    httpadapter.EffectQuery
	skewed   bool // It lists what is asked for only, by its own clock.
}

func (p *provider) ListEffects(_ context.Context, q httpadapter.EffectQuery, show func(httpadapter.ListedEffect) error) ([]httpadapter.Coverage, error) {
	p.asked = q
	for _, e := range p.effects {
		if p.skewed && (e.At.Before(q.From) || e.At.After(q.Until)) {
			continue
		}
		if err := show(e); err != nil {
			return nil, err
		}
	}
	c := p.coverage
	c.List, c.Operations = "/refunds", []string{refund}
	if c.UpTo.IsZero() {
		c.UpTo = q.Until
	}
	return []httpadapter.Coverage{c}, nil
}

func id(n byte) recordstore.ID { return recordstore.ID{Day: day, KeyHash: [16]byte{n}} }

// claimed is a record of a refund, claimed an hour ago.
func claimed(n byte, state recordstore.State, ref string) recordstore.Record {
	at := now.Add(-time.Hour)
	return recordstore.Record{
		ID: id(n), Provider: "acme", Account: "m/live", Operation: refund, CommandID: "refund-" + string('0'+rune(n)), Class: "money",
		State: state, ExternalRef: ref, ClaimedAt: at, CreatedAt: at, AnsweredAt: at, LeaseEndsAt: at.Add(2 * time.Minute),
		Evidence: string(rs.ByNoReplayHeader),
	}
}

// listed is a refund that the provider lists, made an hour ago.
func listed(ref, mark string) httpadapter.ListedEffect {
	return httpadapter.ListedEffect{Operations: []string{refund}, Ref: ref, Creates: true, Mark: mark, At: now.Add(-time.Hour)}
}

func run(t *testing.T, l ledger, p *provider, change func(*Options)) *Report {
	t.Helper()
	o := Options{Provider: "acme", Account: "m", Mode: "live", Since: now.Add(-24 * time.Hour), Until: now, About: recordstore.About{Now: now}}
	if change != nil {
		change(&o)
	}
	r, err := Run(t.Context(), l, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is found of one effect and its record, by whatever connects them.
func TestClasses(t *testing.T) {
	t.Parallel()
	mark := markOf(id(1))
	with := func(e httpadapter.ListedEffect, change func(*httpadapter.ListedEffect)) httpadapter.ListedEffect {
		change(&e)
		return e
	}
	rec := func(state recordstore.State, ref string, changes ...func(*recordstore.Record)) ledger {
		r := claimed(1, state, ref)
		for _, change := range changes {
			change(&r)
		}
		return ledger{r}
	}
	later := func(r *recordstore.Record) { r.LeaseEndsAt = now.Add(time.Minute) }
	asked := func(r *recordstore.Record) { r.RequestID = "req_1" }
	byPerson := func(r *recordstore.Record) { r.Evidence = string(rs.ByOperator) }
	refused := func(e *httpadapter.ListedEffect) { e.Refused = true }
	for name, c := range map[string]struct {
		ledger ledger
		effect httpadapter.ListedEffect
		want   Class
	}{
		"by its mark":                     {rec(recordstore.Succeeded, ""), listed("re_1", mark), ""},
		"by its id":                       {rec(recordstore.Succeeded, "re_1"), listed("re_1", ""), ""},
		"by its request":                  {rec(recordstore.Succeeded, "", asked), with(listed("re_1", ""), func(e *httpadapter.ListedEffect) { e.RequestID = "req_1" }), ""},
		"by a claim of long ago":          {rec(recordstore.Succeeded, "", func(r *recordstore.Record) { r.ClaimedAt = now.AddDate(0, 0, -9) }), listed("re_1", mark), ""},
		"of the id of another operation":  {rec(recordstore.Succeeded, "re_1", func(r *recordstore.Record) { r.Operation = "refund.cancel" }), listed("re_1", ""), Outside},
		"made by others":                  {nil, listed("re_1", ""), Outside},
		"declined of others":              {nil, with(listed("re_1", ""), refused), ""},
		"marked, no record":               {nil, listed("re_1", mark), Unrecorded},
		"uncertain":                       {rec(recordstore.Uncertain, ""), listed("re_1", mark), Unsettled},
		"in review":                       {rec(recordstore.ManualReview, ""), listed("re_1", mark), Unsettled},
		"its sender died":                 {rec(recordstore.Sending, ""), listed("re_1", mark), Unsettled},
		"its sender is at work":           {rec(recordstore.Sending, "", later), listed("re_1", mark), ""},
		"not executed":                    {rec(recordstore.NotExecuted, ""), listed("re_1", mark), Contradicted},
		"abandoned":                       {rec(recordstore.Abandoned, ""), listed("re_1", mark), Contradicted},
		"planned":                         {rec(recordstore.Planned, ""), listed("re_1", mark), Contradicted},
		"refused":                         {rec(recordstore.Refused, ""), listed("re_1", mark), Contradicted},
		"refused by a person":             {rec(recordstore.Refused, "re_1", byPerson), listed("re_1", mark), Contradicted},
		"refused, and the object remains": {rec(recordstore.Refused, "re_1"), listed("re_1", mark), ""},
		"refused, as the object says":     {rec(recordstore.Refused, ""), with(listed("re_1", mark), refused), ""},
		"gone":                            {rec(recordstore.Succeeded, "re_2"), httpadapter.ListedEffect{}, Missing},
		"before the period":               {nil, with(listed("re_1", mark), func(e *httpadapter.ListedEffect) { e.At = now.Add(-25 * time.Hour) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &provider{}
			if c.effect.Ref != "" {
				p.effects = []httpadapter.ListedEffect{c.effect, c.effect} // a list and an event show it
			}
			r := run(t, c.ledger, p, nil)
			switch {
			case c.want == "" && len(r.Counts) > 0, c.want != "" && (len(r.Counts) != 1 || r.Counts[c.want] != 1):
				t.Errorf("found %v, want %q: %+v", r.Counts, c.want, r.Findings)
			case c.want == "" && !strings.Contains(name, "others") && !strings.Contains(name, "before") && r.Matched+r.InFlight != 1:
				t.Errorf("it is not matched: %+v", r)
			case !r.Complete:
				t.Error("it is called incomplete")
			}
		})
	}
}

// The absence of an effect is asserted only where the list is complete, caught up and
// cannot lose it, and the command began within the period.
func TestMissingIsProved(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		coverage httpadapter.Coverage
		change   func(*recordstore.Record)
	}{
		"was not read to its end":  {coverage: httpadapter.Coverage{Incomplete: "answered 429"}},
		"a refund can be deleted":  {coverage: httpadapter.Coverage{Doubt: "a refund can be deleted"}},
		"may not show it yet":      {coverage: httpadapter.Coverage{UpTo: now.Add(-3 * time.Hour)}},
		"the provider's lists lag": {change: func(r *recordstore.Record) { r.AnsweredAt = now.Add(time.Second) }}, // while the list was read
		"older than the period":    {change: func(r *recordstore.Record) { r.CreatedAt = now.AddDate(0, 0, -2) }},
		"replayed an older run":    {change: func(r *recordstore.Record) { r.Evidence = string(rs.ByReplayHeader) }},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			rec := claimed(1, recordstore.Succeeded, "re_1")
			if c.change != nil {
				c.change(&rec)
			}
			r := run(t, ledger{rec}, &provider{coverage: c.coverage}, nil)
			if len(r.Counts) != 0 || len(r.NotYetKnown) != 1 || r.Complete != (c.coverage.Incomplete == "") {
				t.Fatalf("the report is %+v", r)
			}
			for got := range r.NotYetKnown {
				if !strings.Contains(got, why) {
					t.Errorf("it says %q, want %q", got, why)
				}
			}
		})
	}
	other := claimed(1, recordstore.Succeeded, "cus_1")
	other.Operation = "customer.update"
	foreign := claimed(2, recordstore.Succeeded, "re_2")
	foreign.Account = "n/live"
	if r := run(t, ledger{other, foreign}, &provider{}, nil); len(r.Counts) != 0 || r.NotCompared["customer.update"] != 1 || r.Accounts["n/live"] != 1 {
		t.Errorf("what is in no list: %+v", r)
	}
}

// Two objects with one mark or one key are a duplicate, and so are two records that
// name one object; what a command caused on the way, or was declined, is none.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	key, err := keyderive.Derive(keyderive.Input{Provider: "acme", Account: "m/live", Operation: refund, CommandID: "refund-1"})
	if err != nil {
		t.Fatal(err)
	}
	keyed := func(ref string) httpadapter.ListedEffect {
		e := listed(ref, "")
		e.Key = key
		return e
	}
	byKey := claimed(1, recordstore.Succeeded, "re_1")
	byKey.ID = recordstore.ID{Day: key.Day(), KeyHash: key.Hash()}
	payment := listed("pi_1", markOf(id(1)))
	payment.Operations = []string{"payment.create"}
	declined := listed("re_2", markOf(id(1)))
	declined.Refused = true
	for name, c := range map[string]struct {
		ledger  ledger
		effects []httpadapter.ListedEffect
		want    int
	}{
		"one mark":            {ledger{claimed(1, recordstore.Succeeded, "re_1")}, []httpadapter.ListedEffect{listed("re_1", markOf(id(1))), listed("re_2", markOf(id(1)))}, 1},
		"one key":             {ledger{byKey}, []httpadapter.ListedEffect{keyed("re_1"), keyed("re_2")}, 1},
		"one mark, no record": {nil, []httpadapter.ListedEffect{listed("re_1", markOf(id(1))), listed("re_2", markOf(id(1)))}, 1},
		"two records": {
			ledger{claimed(1, recordstore.Succeeded, "re_1"), claimed(2, recordstore.Succeeded, "re_1")},
			[]httpadapter.ListedEffect{listed("re_1", markOf(id(1)))}, 1,
		},
		"caused on the way": {ledger{claimed(1, recordstore.Succeeded, "re_1")}, []httpadapter.ListedEffect{listed("re_1", markOf(id(1))), payment}, 0},
		"one was declined":  {ledger{claimed(1, recordstore.Succeeded, "re_1")}, []httpadapter.ListedEffect{listed("re_1", markOf(id(1))), declined}, 0},
		"list and event":    {ledger{byKey}, []httpadapter.ListedEffect{listed("re_1", ""), keyed("re_1")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := run(t, c.ledger, &provider{effects: c.effects}, nil); r.Counts[Duplicate] != c.want {
				t.Errorf("%d duplicates: %+v", r.Counts[Duplicate], r.Findings)
			}
		})
	}
}

// Why there is no record is told by what the ledger says of itself.
func TestWhyUnrecorded(t *testing.T) {
	t.Parallel()
	for want, about := range map[string]recordstore.About{
		"not purged here":  {Now: now, Frontier: map[string]int32{"money": day - 1}},
		"may be purged":    {Now: now, Frontier: map[string]int32{"money": day}},
		"from a backup":    {Now: now, Restored: now},
		"without one (Key": {Now: now},
	} {
		r := run(t, nil, &provider{effects: []httpadapter.ListedEffect{listed("re_1", markOf(id(1)))}}, func(o *Options) { o.About = about })
		if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Why, want) {
			t.Errorf("want %q: %+v", want, r.Findings)
		}
	}
}

// A key that the provider states for a change of an object settles or accuses as an
// object does, and one of an older claim is found in the ledger.
func TestStatements(t *testing.T) {
	t.Parallel()
	change := httpadapter.ListedEffect{Operations: []string{"payment.capture"}, Ref: "pi_1", Mark: markOf(id(1)), At: now.Add(-time.Hour)}
	rec := claimed(1, recordstore.Uncertain, "")
	rec.Operation = "payment.capture"
	if r := run(t, ledger{rec}, &provider{effects: []httpadapter.ListedEffect{change, change}}, nil); r.Counts[Unsettled] != 1 || r.Effects != 0 {
		t.Errorf("of an open capture: %+v", r)
	}
	rec.State, rec.ClaimedAt = recordstore.Succeeded, now.AddDate(0, 0, -3)
	if r := run(t, ledger{rec}, &provider{effects: []httpadapter.ListedEffect{change}}, nil); len(r.Counts) != 0 {
		t.Errorf("of one that is settled: %+v", r.Findings)
	}
	if r := run(t, nil, &provider{effects: []httpadapter.ListedEffect{change, change}}, nil); r.Counts[Unrecorded] != 1 {
		t.Errorf("without a record: %+v", r.Findings)
	}
}

// A payment that bears the mark of its order belongs to the capture that names it.
func TestCausedOnTheWay(t *testing.T) {
	t.Parallel()
	order, capture := claimed(1, recordstore.Succeeded, "order_1"), claimed(2, recordstore.Succeeded, "pay_1")
	order.Operation = "order.create"
	if r := run(t, ledger{order, capture}, &provider{effects: []httpadapter.ListedEffect{listed("pay_1", markOf(id(1)))}}, nil); len(r.Counts) != 0 || r.Matched != 1 {
		t.Errorf("found %+v", r)
	}
	capture.State = recordstore.Uncertain
	if r := run(t, ledger{order, capture}, &provider{effects: []httpadapter.ListedEffect{listed("pay_1", markOf(id(1)))}}, nil); r.Counts[Unsettled] != 1 {
		t.Errorf("found %+v", r)
	}
}

// Both sides are bounded, and an empty period is refused.
func TestBounds(t *testing.T) {
	t.Parallel()
	o := Options{Provider: "acme", Account: "m", Mode: "live", Since: now.Add(-time.Hour), Until: now, About: recordstore.About{Now: now}, Limit: 2}
	three := []httpadapter.ListedEffect{listed("re_1", ""), listed("re_2", ""), listed("re_3", "")}
	if _, err := Run(t.Context(), ledger{}, &provider{effects: three}, o); !errors.Is(err, ErrTooMany) {
		t.Errorf("three effects: %v", err)
	}
	full := ledger{claimed(1, recordstore.Succeeded, "a"), claimed(2, recordstore.Succeeded, "b"), claimed(3, recordstore.Succeeded, "c")}
	if _, err := Run(t.Context(), full, &provider{}, o); !errors.Is(err, ErrTooMany) {
		t.Errorf("three records: %v", err)
	}
	p := &provider{}
	if _, err := Run(t.Context(), ledger{}, p, o); err != nil || !p.asked.Until.Equal(now.Add(margin)) || !p.asked.From.Equal(o.Since.Add(-margin)) {
		t.Errorf("asked about %+v: %v", p.asked, err)
	}
	o.Since = now
	if _, err := Run(t.Context(), ledger{}, &provider{}, o); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty period: %v", err)
	}
	many := make([]httpadapter.ListedEffect, maxFindings+5)
	for i := range many {
		many[i] = listed(strings.Repeat("r", i+1), "")
	}
	if r := run(t, nil, &provider{effects: many}, nil); len(r.Findings) != maxFindings || r.Counts[Outside] != len(many) {
		t.Errorf("%d are named, %d counted", len(r.Findings), r.Counts[Outside])
	}
}
