package recordstore_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// R22: what may be deleted is forgotten once its frontier is raised, and the
// commands of today are not; what is there is never forgotten.
func TestWhatIsDeletedIsForgotten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rec, c := drawRecord(rt), drawClaim(rt)
		c.ID, c.NotAfter, c.LostBefore = rec.ID, time.Time{}, time.Time{}
		rec.State = rapid.SampledFrom([]recordstore.State{
			recordstore.Succeeded, recordstore.Refused, recordstore.NotExecuted, recordstore.Abandoned,
		}).Draw(rt, "settled")
		rec.Request, rec.ResponseBody, rec.Noted, rec.DueAt = nil, nil, "", time.Time{}
		rec.EvidenceUntil = start.Add(-time.Duration(rapid.IntRange(0, 1).Draw(rt, "over since")) * time.Hour)
		over := rec.ID.Day > 0 && rec.ID.Day < startDay-1
		if recordstore.Purgeable(rec, start) != over {
			rt.Fatalf("a record of day %d may go: %v", rec.ID.Day-startDay, !over)
		}
		if !over {
			return
		}
		frontier := rec.ID.Day
		if _, d := recordstore.Take(c, nil, frontier, start); d != recordstore.Forgotten {
			rt.Fatalf("the command of a deleted record: %q", d)
		}
		if _, d := recordstore.Plan(c, nil, frontier, start); d != recordstore.Forgotten {
			rt.Fatalf("the plan of a deleted record: %q", d)
		}
		if _, d := recordstore.Take(c, &rec, frontier, start); d == recordstore.Forgotten {
			rt.Fatalf("a record that is there was forgotten")
		}
		for _, day := range []int32{startDay - 1, startDay, startDay + 1, 0} {
			c.ID.Day = day
			if _, d := recordstore.Take(c, nil, frontier, start); d != recordstore.Send {
				rt.Fatalf("a new command of day %d: %q", day-startDay, d)
			}
		}
	})
}

// R18, R21: retention takes nothing from a record that nobody resolved, and a
// tombstone answers every claim as the record did.
func TestWhatRetentionLeaves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rec, c := drawRecord(rt), drawClaim(rt)
		emptied, bodies := recordstore.Emptied(rec, start)
		tombstone, shrunk := recordstore.Tombstone(rec, start)
		gone := recordstore.Purgeable(rec, start)
		switch rec.State {
		case recordstore.Planned, recordstore.Sending, recordstore.Uncertain, recordstore.ManualReview:
			if bodies || shrunk || gone {
				rt.Fatalf("retention touches a record in state %q", rec.State)
			}
		case recordstore.NotExecuted:
			if !rec.DueAt.IsZero() && (bodies || shrunk || gone) {
				rt.Fatalf("retention touches a plan that is to be sent again")
			}
		}
		if gone && (bodies || shrunk) {
			rt.Fatalf("a record may go while there is still something to remove of it")
		}
		if _, again := recordstore.Emptied(emptied, start); again {
			rt.Fatalf("the bodies go twice")
		}
		if _, again := recordstore.Tombstone(tombstone, start.Add(2*time.Hour)); again && shrunk {
			rt.Fatalf("a tombstone shrinks again")
		}
		_, before := recordstore.Take(c, &rec, 0, start)
		if _, after := recordstore.Take(c, &tombstone, 0, start); after != before {
			rt.Fatalf("the record decides %q, its tombstone %q", before, after)
		}
		kept := tombstone
		kept.ObjectStatus, kept.RequestID, kept.EvidenceUntil, kept.Version = rec.ObjectStatus, rec.RequestID, rec.EvidenceUntil, rec.Version
		if !reflect.DeepEqual(kept, rec) {
			rt.Fatalf("the tombstone lost more than the provider's words")
		}
	})
}
