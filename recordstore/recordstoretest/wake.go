package recordstoretest

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func wakeCases() []testCase {
	return []testCase{
		{"wake/due", "C26: a webhook makes the record due and decides nothing", wakeDue},
		{"wake/keeps_turn", "an event that is repeated for ever must not put its record at the end of the queue", wakeKeepsTurn},
		{"wake/missing", "an event about a record that is not there must not make one", wakeMissing},
		{"wake/grid", "a store that wakes in SQL must write what Woken does", wakeGrid},
	}
}

func (l *ledger) wake(id recordstore.ID, ref string) recordstore.Record {
	l.Helper()
	got, err := l.Store.(recordstore.Queue).Wake(l.Context(), id, ref)
	if err != nil {
		l.Fatalf("Wake: %v", err)
	}
	l.same("the record that Wake returned, against the stored one", got, l.stored(id))
	return got
}

func wakeDue(l *ledger) {
	r := result(recordstore.Uncertain)
	r.DueIn, r.ExternalRef = time.Hour, ""
	rec := l.settle(l.claim(newClaim(1), recordstore.Send), r)
	got := l.wake(rec.ID, "re_event")
	if got.State != recordstore.Uncertain || !got.DueAt.Equal(start) || got.ExternalRef != "re_event" {
		l.Errorf("state %q, due at %v, external reference %q", got.State, got.DueAt, got.ExternalRef)
	}
	l.takeOne("reconciler", rec.ID)

	live := l.claim(newClaim(2), recordstore.Send)
	if got = l.wake(live.ID, ""); !got.DueAt.IsZero() {
		l.Errorf("an event made a record due that is being sent, at %v", got.DueAt)
	}
	l.clock.advance(lease)
	l.wake(live.ID, "")
	if n := len(l.take(query("other", 10))); n != 2 { // And the first one, whose reconciler died.
		l.Errorf("%d records are due, want the one with a dead lease too", n)
	}
}

func wakeKeepsTurn(l *ledger) {
	l.waiting(1, 2, "tenant-7", time.Hour)
	want := l.stored(identity(1))
	l.clock.advance(time.Minute)
	l.same("the record that was due before the event", l.wake(want.ID, want.ExternalRef), want)
	if got := l.take(query("reconciler", 1)); len(got) != 1 || got[0].ID != want.ID {
		l.Errorf("the event cost the record its turn")
	}
}

func wakeMissing(l *ledger) {
	if _, err := l.Store.(recordstore.Queue).Wake(l.Context(), identity(1), "re_1"); !errors.Is(err, recordstore.ErrNotFound) {
		l.Errorf("Wake: error is %v, want ErrNotFound", err)
	}
	l.absent(identity(1))
}

func wakeGrid(l *ledger) {
	l.gridMoves(func(rec *recordstore.Record, pick []int) move {
		rec.LeaseEndsAt = start.Add(time.Duration(pick[0]) * time.Microsecond)
		rec.DueAt = []time.Time{{}, start.Add(-time.Second), start, start.Add(time.Microsecond)}[pick[1]]
		rec.ExternalRef = []string{"", "re_known"}[pick[2]]
		ref := []string{"", "re_event"}[pick[3]]
		return move{
			about: fmt.Sprintf("%s, lease %d, due %d, knows %q, woken with %q", rec.State, pick[0], pick[1], rec.ExternalRef, ref),
			want:  recordstore.Woken(*rec, ref, start),
			do: func() (recordstore.Record, error) {
				return l.Store.(recordstore.Queue).Wake(l.Context(), rec.ID, ref)
			},
		}
	}, 2, 4, 2, 2)
}
