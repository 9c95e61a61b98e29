package recordstoretest

import (
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// restoredCases judge what follows a restore from a backup: what claims make of it
// and, where the store is able to, that the ledger remembers it.
func restoredCases() []testCase {
	return []testCase{
		{"claim/lost", "R22: after a restore a command without a record may have been sent: only a look-up may speak, however often it is asked", claimLost},
		{"claim/lost_found", "a record that the restore brought back says itself what was sent", claimLostFound},
		{"restored/mark", "every process must know that records may be lost, until a person says that it is over", restoredMark},
		{"restored/fresh", "a ledger that nobody restored sends new commands without looking them up", restoredFresh},
	}
}

// lostBefore returns c as it is asked of a ledger that was restored at t.
func lostBefore(c recordstore.Claim, t time.Time) recordstore.Claim {
	c.LostBefore = t
	return c
}

func claimLost(l *ledger) {
	restored := start.Add(-time.Hour)
	c := lostBefore(newClaim(1), restored)
	got := l.claim(c, recordstore.Lookup)
	want, _ := recordstore.Take(c, nil, 0, start)
	l.same("the returned record", got, want)
	l.same("the stored record", l.stored(c.ID), want)
	if !got.Doubt || !got.LookOnly || !got.WindowEndsAt.IsZero() || !got.SentUntil.Equal(restored) {
		l.Errorf("doubt %v, look only %v, window until %v, sent until %v: want doubt, a look-up only, no window, and nothing sent after %v",
			got.Doubt, got.LookOnly, got.WindowEndsAt, got.SentUntil, restored)
	}
	l.same("the record of the repeated claim", l.claim(c, recordstore.Lookup), want)
	l.claim(by(c, "other"), recordstore.InFlight)

	l.clock.advance(lease)
	l.claim(by(newClaim(1), "third"), recordstore.Lookup)
	rec := l.settle(l.claim(by(newClaim(1), "third"), recordstore.Lookup), recordstore.Result{State: recordstore.Uncertain})
	if !rec.Doubt || !rec.LookOnly {
		l.Errorf("after an answer that told nothing: doubt %v, look only %v, want both", rec.Doubt, rec.LookOnly)
	}
	l.claim(by(c, "fourth"), recordstore.Lookup)
}

func claimLostFound(l *ledger) {
	c := newClaim(1)
	l.claim(c, recordstore.Send)
	l.clock.advance(lease)
	now := l.clock.Now()
	again := lostBefore(by(c, "other"), now)
	before := l.stored(c.ID)
	want, decision := recordstore.Take(again, &before, 0, now)
	l.same("the record taken over", l.claim(again, decision), want)
	rec := l.settle(want, recordstore.Result{State: recordstore.NotExecuted})

	again.Holder = "third"
	want, decision = recordstore.Take(again, &rec, 0, now)
	l.same("the record of what did not happen", l.claim(again, decision), want)
	want = l.settle(want, result(recordstore.Succeeded))
	l.same("the replayed record", l.claim(lostBefore(by(c, "fourth"), now), recordstore.Replay), want)
}

func restoredMark(l *ledger) {
	other := *l
	other.Store = l.harness.Reopen(l.TB)
	for _, t := range []time.Time{
		start.Add(999).In(time.FixedZone("elsewhere", 3*60*60)), // Cut off, not rounded.
		start.Add(-time.Hour), {},
		start.Add(time.Microsecond), {}, {},
	} {
		l.markRestored(t)
		l.restoredAt(t)
		other.restoredAt(t)
	}
	other.markRestored(start)
	l.restoredAt(start)
}

func restoredFresh(l *ledger) {
	l.restoredAt(time.Time{})
	l.attach(l.Store, recordstore.Pins{Derivation: "k1", Secret: "none"}, nil)
	l.claim(newClaim(1), recordstore.Send)
	l.restoredAt(time.Time{})
}

func (l *ledger) markRestored(t time.Time) {
	l.Helper()
	if err := l.Store.(recordstore.Restorer).MarkRestored(l.Context(), t); err != nil {
		l.Fatalf("MarkRestored at %v: %v", t, err)
	}
}

// restoredAt expects that the ledger remembers a restore at t, whole microseconds
// of it, or none.
func (l *ledger) restoredAt(t time.Time) {
	l.Helper()
	want := t
	if !t.IsZero() {
		want = t.Truncate(time.Microsecond)
	}
	got, err := l.Store.(recordstore.Restorer).Restored(l.Context())
	if err != nil {
		l.Fatalf("Restored: %v", err)
	}
	if !got.Equal(want) || got.Location() != time.UTC {
		l.Errorf("Restored is %v, want %v in UTC", got, want)
	}
}
