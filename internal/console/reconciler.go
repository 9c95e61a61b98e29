package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// waiting is how much waits of one provider.
type waiting struct {
	Provider string
	recordstore.Backlog
}

// did is one thing that a reconciler did.
type did struct {
	recordstore.Entry
	Row row
}

// reconcilerPage is the body of the page about what reconcilers do.
type reconcilerPage struct {
	Verdict  string // Whether one seems to run, in a sentence.
	Stalled  bool
	SweptTo  time.Time
	SweptAge time.Duration
	Waiting  []waiting
	Working  []row // Records that a reconciler holds now.
	Soon     []row // What is due next, or overdue.
	Did      []did
	Span     time.Duration // How far back Did was looked for.
	Partial  bool          // There is more open than was looked through.
}

const (
	maxSoon    = 10
	maxTrails  = 15 // Records whose trail is read for Did.
	didSpan    = 24 * time.Hour
	maxClaimed = 500 // Records that are looked through for them.
)

// reconciler shows what waits for reconcilers and what they did.
func (c *console) reconciler(r *http.Request, _ *session) (view, error) {
	ctx := r.Context()
	about, err := c.ledger.About(ctx)
	if err != nil {
		return view{}, err
	}
	body := reconcilerPage{SweptTo: about.SweptTo, Span: didSpan}
	if !about.SweptTo.IsZero() {
		body.SweptAge = about.Now.Sub(about.SweptTo)
	}
	open, err := c.ledger.List(ctx, recordstore.ListQuery{Filter: recordstore.Filter{Open: true}, Limit: recordstore.MaxList})
	if err != nil {
		return view{}, err
	}
	held, err := c.ledger.List(ctx, recordstore.ListQuery{
		Filter: recordstore.Filter{States: []recordstore.State{recordstore.Sending}}, Order: recordstore.NewestFirst, Limit: pageSize,
	})
	if err != nil {
		return view{}, err
	}
	body.Partial = open.Next != nil
	body.Soon = soonest(open)
	for _, rec := range held.Records {
		if rec.Checks > 0 && held.Now.Before(rec.LeaseEndsAt) {
			body.Working = append(body.Working, rowOf(rec.Record, held.Now))
		}
	}
	if body.Waiting, err = c.waiting(ctx, open); err != nil {
		return view{}, err
	}
	if body.Did, err = c.did(ctx, about.Now); err != nil {
		return view{}, err
	}
	body.judge(about.Now)
	return view{name: "reconciler", title: "Reconciler", now: about.Now, body: body}, nil
}

// soonest returns what is due first among open records.
func soonest(open recordstore.Listing) []row {
	var due []recordstore.Listed
	for _, rec := range open.Records {
		if !rec.DueAt.IsZero() && rec.State != recordstore.ManualReview {
			due = append(due, rec)
		}
	}
	slices.SortStableFunc(due, func(a, b recordstore.Listed) int { return a.DueAt.Compare(b.DueAt) })
	return rowsOf(due[:min(len(due), maxSoon)], open.Now)
}

// waiting counts what waits, of each provider that has something open.
func (c *console) waiting(ctx context.Context, open recordstore.Listing) (all []waiting, err error) {
	var names []string
	for _, rec := range open.Records {
		if !slices.Contains(names, rec.Provider) {
			names = append(names, rec.Provider)
		}
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), maxSoon)] {
		b, err := c.ledger.Backlog(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, waiting{name, b})
	}
	return all, nil
}

// did returns what reconcilers did last, the newest first: a check claims its
// record, so that those claimed last are those checked last.
func (c *console) did(ctx context.Context, now time.Time) (all []did, err error) {
	claimed, err := c.ledger.List(ctx, recordstore.ListQuery{
		Filter: recordstore.Filter{After: now.Add(-didSpan)}, Order: recordstore.NewestFirst, Limit: maxClaimed,
	})
	read := 0
	for _, rec := range claimed.Records {
		if rec.Checks == 0 || read == maxTrails {
			continue
		}
		read++
		trail, err := c.ledger.Trail(ctx, rec.ID)
		if errors.Is(err, recordstore.ErrNotFound) { // purged since
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range trail {
			if e.Actor == "reconciler" && e.At.After(now.Add(-didSpan)) {
				all = append(all, did{e, rowOf(rec.Record, now)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b did) int { return b.At.Compare(a.At) })
	return all[:min(len(all), 2*maxSoon)], err
}

// judge says whether a reconciler seems to run.
func (p *reconcilerPage) judge(now time.Time) {
	last := "no check of the last day is in the records that were claimed last"
	if len(p.Did) > 0 {
		last = "the last check was " + explain.Ago(now.Sub(p.Did[0].At))
	}
	switch overdue := slices.ContainsFunc(p.Soon, func(r row) bool { return r.Late }); {
	case overdue:
		p.Stalled = true
		p.Verdict = "Checks are overdue by more than a minute, and " + last + ". No reconciler runs, none has the credentials for them, or the provider's rate limits it. Start one, or `samekey reconcile --once`."
	case len(p.Soon) > 0:
		p.Verdict = "Nothing is overdue: what is open waits for its time, and " + last + "."
	default:
		p.Verdict = "Nothing waits for a reconciler; " + last + "."
	}
}
