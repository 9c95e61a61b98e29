package explain

import (
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Clock writes a time as all of samekey's output for people does: UTC, to the
// second.
func Clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// Span writes a duration in at most two units.
func Span(d time.Duration) string {
	units := []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	d = d.Round(time.Second)
	for i, u := range units {
		if d < u.size {
			continue
		}
		text := fmt.Sprintf("%d %s", d/u.size, u.name)
		if i+1 < len(units) {
			if rest := d % u.size / units[i+1].size; rest > 0 {
				text += fmt.Sprintf(" %d %s", rest, units[i+1].name)
			}
		}
		return text
	}
	return "less than a second"
}

// Ago writes how long ago something was.
func Ago(d time.Duration) string {
	if d < time.Second {
		return "just now"
	}
	return Span(d) + " ago"
}

// when writes when something is due, seen from now.
func when(t, now time.Time) string {
	if d := t.Sub(now); d >= time.Second {
		return "in " + Span(d)
	}
	return "due now"
}

// Next is what happens to an open record next, in a word or two.
func Next(rec recordstore.Record, now time.Time) string {
	switch {
	case rec.State == recordstore.ManualReview:
		return "a person"
	case rec.DueAt.IsZero() && rec.State == recordstore.Sending:
		return "the sweep"
	case rec.DueAt.IsZero():
		return "nothing"
	case now.Sub(rec.DueAt) > time.Minute:
		return "overdue " + Span(now.Sub(rec.DueAt))
	case now.Before(rec.DueAt):
		return "in " + Span(rec.DueAt.Sub(now))
	}
	return "now"
}
