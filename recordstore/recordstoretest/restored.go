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
		{"claim/lost_since", "R22: a record that a restore brought back knows nothing of what was sent after the backup: absence is a proof only from then on", claimLostSince},
		{"claim/lost_unsent", "R22: a plan that a restore brought back, and what was not executed before, may have been sent after the backup: only a look-up may speak", claimLostUnsent},
		{"due/lost", "R22: a reconciler must know of a restore too, or it takes absence for a proof while what was lost may still arrive", dueLost},
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

func claimLostSince(l *ledger) {
	c := newClaim(1)
	first := l.settle(l.claim(c, recordstore.Send), recordstore.Result{State: recordstore.Uncertain, LookOnly: true})
	l.clock.advance(2 * lease)
	restored := l.clock.Now()
	l.clock.advance(time.Second)
	rec := l.claim(lostBefore(by(c, "second"), start), recordstore.Lookup) // Nothing was lost that is later.
	if !rec.SentUntil.Equal(first.SentUntil) {
		l.Errorf("SentUntil is %v after a restore that is as old as the record, want %v", rec.SentUntil, first.SentUntil)
	}
	rec = l.settle(rec, recordstore.Result{State: recordstore.Uncertain})
	l.same("the settled record", l.stored(c.ID), rec)
	rec = l.claim(lostBefore(by(c, "third"), restored), recordstore.Lookup) // It was written since.
	if !rec.SentUntil.Equal(first.SentUntil) {
		l.Errorf("SentUntil is %v of a record that was written after the restore, want %v", rec.SentUntil, first.SentUntil)
	}

	c = newClaim(2)
	l.seed(found(c))
	rec = l.claim(lostBefore(by(c, "second"), restored), recordstore.Send) // The same key, and inside its window.
	if !rec.SentUntil.Equal(rec.LeaseEndsAt) || rec.LookOnly {
		l.Errorf("sent until %v, look only %v: want the end of the lease, since it may send", rec.SentUntil, rec.LookOnly)
	}
	c = newClaim(3)
	old := found(c)
	old.LookOnly = true
	l.seed(old)
	if rec = l.claim(lostBefore(by(c, "second"), restored), recordstore.Lookup); !rec.SentUntil.Equal(restored) {
		l.Errorf("SentUntil is %v of a record that a restore at %v brought back", rec.SentUntil, restored)
	}
}

func claimLostUnsent(l *ledger) {
	restored := start.Add(-time.Second)
	for n, state := range []recordstore.State{recordstore.Planned, recordstore.NotExecuted} {
		c := lostBefore(newClaim(n), restored)
		old := found(c)
		old.State, old.NotAfter = state, start // Nor is it too late to look.
		l.seed(old)
		got := l.claim(c, recordstore.Lookup)
		if !got.Doubt || !got.LookOnly || !got.WindowEndsAt.IsZero() || !got.SentUntil.Equal(restored) || got.Checks != 0 {
			l.Errorf("%s: doubt %v, look only %v, window until %v, sent until %v, %d checks: want doubt, a look-up only, no window, nothing sent after %v, no checks",
				state, got.Doubt, got.LookOnly, got.WindowEndsAt, got.SentUntil, got.Checks, restored)
		}
		l.same("the record of the repeated claim", l.claim(c, recordstore.Lookup), got)
		l.settle(got, recordstore.Result{State: recordstore.Uncertain})
		l.claim(lostBefore(by(newClaim(n), "other"), restored), recordstore.Lookup)

		c = lostBefore(newClaim(10+n), restored)
		written := found(c)
		written.State, written.AnsweredAt = state, restored // Not before: it tells of what was sent.
		l.seed(written)
		got = l.claim(c, recordstore.Send)
		l.settle(got, recordstore.Result{State: recordstore.NotExecuted})
		if again := l.claim(lostBefore(by(c, "other"), restored), recordstore.Send); again.Doubt || again.WindowEndsAt.IsZero() {
			l.Errorf("%s since the restore: doubt %v, window until %v", state, again.Doubt, again.WindowEndsAt)
		}
	}
}

func dueLost(l *ledger) {
	restored := start.Add(-time.Second)
	l.waiting(1, 2, "tenant-7", time.Minute)
	written := l.stored(identity(2))
	written.AnsweredAt = restored
	l.seed(written)
	q := query("reconciler", 10)
	q.LostBefore = restored
	for _, rec := range l.take(q) {
		want := restored
		if rec.ID == written.ID {
			want = written.SentUntil
		}
		if !rec.SentUntil.Equal(want) {
			l.Errorf("record %x: SentUntil is %v, want %v", rec.ID.KeyHash, rec.SentUntil, want)
		}
	}
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
