package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// window is a span of time that rates can be shown for.
type window struct {
	Name  string
	Words string
	parts int
	part  time.Duration
}

var windows = []window{
	{"1h", "the last hour", 12, 5 * time.Minute},
	{"24h", "the last 24 hours", 24, time.Hour},
	{"7d", "the last 7 days", 14, 12 * time.Hour},
	{"30d", "the last 30 days", 30, 24 * time.Hour},
}

// maxSample is how many records of a busy part of a window are read: its newest.
const maxSample = 400

// bucket counts the records whose last claim began in one part of a window.
type bucket struct {
	From, To                              time.Time
	Records                               int
	Full                                  bool // It has more records than were read.
	Replayed, Resent, Uncertain, Person   int
	Refused, NotExecuted                  int
	ReplayedPct, UncertainPct, RefusedPct string
}

// ratesPage is the body of the page of rates.
type ratesPage struct {
	Windows  []window
	Window   window
	Provider string
	Buckets  []bucket // The newest first.
	Charts   []chart
	Records  int
	Full     bool
}

// rates shows shares over time, as far as records tell them.
func (c *console) rates(r *http.Request, _ *session) (view, error) {
	name := r.FormValue("window")
	if name == "" {
		name = "24h"
	}
	i := slices.IndexFunc(windows, func(w window) bool { return w.Name == name })
	if i < 0 {
		return view{}, fmt.Errorf("%w: there is no window %q", recordstore.ErrInvalid, name)
	}
	about, err := c.ledger.About(r.Context())
	if err != nil {
		return view{}, err
	}
	body := ratesPage{Windows: windows, Window: windows[i], Provider: bounded(r.FormValue("provider"))}
	if body.Buckets, err = c.buckets(r.Context(), body.Provider, about.Now, body.Window); err != nil {
		return view{}, err
	}
	for _, b := range body.Buckets {
		body.Records += b.Records
		body.Full = body.Full || b.Full
	}
	body.Charts = []chart{
		chartOf("Replayed", "share of commands whose recorded answer is a replay by the provider", body.Buckets, func(b bucket) int { return b.Replayed }),
		chartOf("Uncertain", "share of commands whose outcome was open for a time, or still is", body.Buckets, func(b bucket) int { return b.Uncertain }),
		chartOf("Refused", "share of commands that the provider refused", body.Buckets, func(b bucket) int { return b.Refused }),
	}
	return view{name: "rates", title: "Rates", now: about.Now, body: body}, nil
}

// widen is by how much more time is read at once after a time with few records.
const widen = 4

// buckets reads the newest records that were claimed in each part of a window, the
// newest part first. Parts with few records are read several at once: each question
// may cost the store a look at all that was claimed of late.
func (c *console) buckets(ctx context.Context, provider string, now time.Time, w window) ([]bucket, error) {
	all := make([]bucket, w.parts)
	for i := range all {
		all[i].To = now.Add(-time.Duration(i) * w.part)
		all[i].From = all[i].To.Add(-w.part)
	}
	for read, width := 0, 1; read < len(all); {
		width = min(width, len(all)-read)
		q := recordstore.ListQuery{
			Filter: recordstore.Filter{Provider: provider, After: all[read+width-1].From, Before: all[read].To},
			Order:  recordstore.NewestFirst, Limit: maxSample,
		}
		if width > 1 {
			q.Limit = recordstore.MaxList
		}
		page, err := c.ledger.List(ctx, q)
		if err != nil {
			return nil, err
		}
		known := read + width // buckets before it are known
		if more := page.Next != nil; more && width > 1 {
			known = partOf(page.Next.Since, now, w) // it was cut off and is read again, alone
		} else {
			all[read].Full = more
		}
		for _, rec := range page.Records {
			if i := partOf(recordstore.Since(rec.Record), now, w); i < known {
				all[i].count(rec.Record, page.Now)
			}
		}
		if read, width = known, width*widen; page.Next != nil {
			width = 1
		}
	}
	for i := range all {
		b := &all[i]
		b.ReplayedPct, b.UncertainPct, b.RefusedPct = b.percent(b.Replayed), b.percent(b.Uncertain), b.percent(b.Refused)
	}
	return all, nil
}

// partOf returns in which part of a window that ends now a time before now lies.
func partOf(at, now time.Time, w window) int { return int((now.Sub(at) - 1) / w.part) }

func (b *bucket) count(rec recordstore.Record, now time.Time) {
	b.Records++
	if replaysemantics.Evidence(rec.Evidence).Label() == replaysemantics.OriginalReplay {
		b.Replayed++
	}
	if rec.Deliveries > 1 {
		b.Resent++
	}
	if wasUncertain(rec, now) {
		b.Uncertain++
	}
	switch rec.State {
	case recordstore.ManualReview:
		b.Person++
	case recordstore.Refused:
		b.Refused++
	case recordstore.NotExecuted:
		b.NotExecuted++
	}
}

// wasUncertain reports whether nobody knew the outcome of rec for a time, as far as
// it tells: it is open after a delivery, a check was made of it, an earlier claim left
// doubt, or the answer came by another way than the call's own.
func wasUncertain(rec recordstore.Record, now time.Time) bool {
	switch rec.State {
	case recordstore.Planned:
		return false
	case recordstore.Uncertain, recordstore.ManualReview:
		return true
	case recordstore.Sending:
		return rec.Doubt || !now.Before(rec.LeaseEndsAt)
	}
	switch replaysemantics.Evidence(rec.Evidence) {
	case replaysemantics.ByLookup, replaysemantics.ByWebhook, replaysemantics.ByStateGuard, replaysemantics.ByOperator:
		return true
	}
	return rec.Doubt || rec.TakenFrom == recordstore.Uncertain || rec.TakenFrom == recordstore.Sending || rec.TakenFrom == recordstore.ManualReview
}

func (b *bucket) percent(n int) string {
	if b.Records == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(b.Records))
}

// chart is one share over time, as bars.
type chart struct {
	Title, About  string
	Bars          []bar
	Top           string // What the highest line stands for.
	Width, Height int
	Base          int
	From, To      string
}

type bar struct {
	X, Y, Width, Height int
	Title               string
}

// What a chart measures, in pixels.
const (
	chartWidth  = 720
	chartHeight = 150
	chartLeft   = 56
	chartTop    = 14
	chartBase   = 120
)

// chartOf draws a share of buckets that stand the newest first.
func chartOf(title, about string, buckets []bucket, of func(bucket) int) chart {
	c := chart{Title: title, About: about, Width: chartWidth, Height: chartHeight, Base: chartBase}
	highest := 0.0
	for _, b := range buckets {
		highest = max(highest, share(b, of))
	}
	scale := 1.0
	for _, s := range []float64{0.5, 0.25, 0.1, 0.05, 0.01} {
		if highest <= s {
			scale = s
		}
	}
	c.Top = fmt.Sprintf("%.0f %%", 100*scale)
	each := (chartWidth - chartLeft - 8) / len(buckets)
	for i, b := range slices.Backward(buckets) {
		height := int(share(b, of) / scale * (chartBase - chartTop))
		c.Bars = append(c.Bars, bar{
			X: chartLeft + (len(buckets)-1-i)*each + 1, Y: chartBase - height, Width: each - 2, Height: height,
			Title: fmt.Sprintf("%s: %d of %d", b.From.UTC().Format("01-02 15:04"), of(b), b.Records),
		})
	}
	c.From, c.To = buckets[len(buckets)-1].From.UTC().Format("01-02 15:04"), "now"
	return c
}

func share(b bucket, of func(bucket) int) float64 {
	if b.Records == 0 {
		return 0
	}
	return float64(of(b)) / float64(b.Records)
}
