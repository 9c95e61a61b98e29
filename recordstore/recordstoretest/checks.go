package recordstoretest

import (
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// checkCases judge when a record is looked at next.
func checkCases() []testCase {
	return []testCase{
		{"claim/keeps_check", "R19: who asks again and again must not keep the reconciler from what only its checks can end", claimKeepsCheck},
		{"due/counts_anew", "a check of the reconciler that told nothing is followed by the next pause, counted from then", dueCountsAnew},
		{"due/uncounted", "a check that it did not come to must not bring the record nearer to review", dueUncounted},
		{"due/ladder", "a plan that was turned away for days, and is then sent with no answer, is looked up as often as any other record", dueLadder},
		{"due/turned_away", "R26: a plan that was turned away is sent again, since nobody else knows of it; what a caller sent is the caller's to send again", dueTurnedAway},
	}
}

// unknown is what a holder settles who learned nothing; the next check is to come
// in so long.
func unknown(dueIn time.Duration) recordstore.Result {
	return recordstore.Result{State: recordstore.Uncertain, DueIn: dueIn}
}

func (l *ledger) dueAt(what string, rec recordstore.Record, want time.Time) {
	l.Helper()
	if got := l.stored(rec.ID).DueAt; !got.Equal(want) || !rec.DueAt.Equal(want) {
		l.Errorf("%s: due at %v, stored as %v, want %v", what, rec.DueAt, got, want)
	}
}

func claimKeepsCheck(l *ledger) {
	due := start.Add(10 * time.Minute)
	l.settle(l.claim(newClaim(1), recordstore.Send), unknown(10*time.Minute))
	for _, holder := range []string{"second", "third"} {
		l.clock.advance(time.Second)
		rec := l.claim(by(newClaim(1), holder), recordstore.Send)
		l.dueAt("taken over", rec, due)
		l.renew(rec, nil)
		l.dueAt("renewed", l.stored(rec.ID), due)
		l.dueAt("settled sooner", l.settle(rec, unknown(time.Minute)), due)
	}
	l.clock.advance(10 * time.Minute)
	rec := l.claim(by(newClaim(1), "late"), recordstore.Send)
	if l.can("Queue") {
		l.takeNone()
	}
	l.dueAt("settled later", l.settle(rec, unknown(time.Hour)), due)
	if l.can("Queue") {
		l.takeOne("reconciler", rec.ID)
	}

	other := l.claim(newClaim(2), recordstore.Send) // Nothing was due before.
	l.renew(other, nil)
	l.dueAt("a first call that was renewed", l.settle(other, unknown(time.Minute)), l.clock.Now().Add(time.Minute))
	rec = l.claim(by(newClaim(2), "second"), recordstore.Send)
	if got := l.settle(rec, recordstore.Result{State: recordstore.Succeeded}); !got.DueAt.IsZero() {
		l.Errorf("a settled record is due at %v", got.DueAt)
	}
}

func dueCountsAnew(l *ledger) {
	id := l.uncertain(1).ID
	l.clock.advance(time.Minute)
	for n, pause := range []time.Duration{time.Second, lease, time.Hour} {
		rec := l.takeOne("reconciler", id)
		l.clock.advance(time.Second)
		if n == 1 {
			l.renew(rec, nil) // As before a resend.
		}
		l.dueAt("checked", l.settle(rec, unknown(pause)), l.clock.Now().Add(pause))
		l.clock.advance(pause)
	}
}

func dueUncounted(l *ledger) {
	id := l.uncertain(1).ID
	l.clock.advance(time.Minute)
	for range 2 {
		s := settlement(l.takeOne("reconciler", id), unknown(time.Minute))
		s.Uncounted = true
		for range 2 { // After an unknown commit it is asked again.
			rec, err := l.Settle(l.Context(), s)
			if err != nil {
				l.Fatalf("Settle: %v", err)
			}
			if rec.Checks != 0 || l.stored(id).Checks != 0 {
				l.Fatalf("%d checks, stored as %d, want none", rec.Checks, l.stored(id).Checks)
			}
		}
		l.clock.advance(time.Minute)
	}
	if rec := l.takeOne("reconciler", id); rec.Checks != 1 {
		l.Errorf("%d checks, want the one that is under way", rec.Checks)
	}
}

// turnedAway seeds the n-th record as a plan that was turned away and is due.
func (l *ledger) turnedAway(n int) recordstore.Record {
	l.Helper()
	rec := found(newClaim(n))
	rec.State, rec.TakenFrom, rec.FromPlan, rec.DueAt = recordstore.NotExecuted, recordstore.Planned, true, start
	l.seed(rec)
	return rec
}

func dueLadder(l *ledger) {
	rec := l.turnedAway(1)
	took := l.takeOne("reconciler", rec.ID)
	if took.Checks != rec.Checks+1 {
		l.Errorf("%d checks after %d, want one more", took.Checks, rec.Checks)
	}
	sent := l.claim(newClaim(1), recordstore.Send)
	if sent.Checks != took.Checks {
		l.Errorf("the claim changed the checks to %d: the pauses of a plan grow by them", sent.Checks)
	}
	l.settle(sent, unknown(time.Minute))
	if again := l.claim(by(newClaim(1), "other"), recordstore.Send); again.Checks != 0 {
		l.Errorf("taken over in the first doubt: %d checks, want none", again.Checks)
	}

	rec = l.uncertain(2)
	rec.Checks = 7
	l.seed(rec)
	l.clock.advance(time.Minute)
	if got := l.takeOne("reconciler", rec.ID); got.Checks != 1 {
		l.Errorf("taken in the first doubt: %d checks, want 1", got.Checks)
	}
}

func dueTurnedAway(l *ledger) {
	want := l.turnedAway(1)
	got := l.takeOne("reconciler", want.ID)
	want.DueAt, want.Checks, want.Version = start.Add(lease), want.Checks+1, want.Version+1
	l.same("the plan that was taken", got, want)
	l.takeNone()

	away := recordstore.Result{State: recordstore.NotExecuted, DueIn: time.Minute}
	rec := l.claim(newClaim(1), recordstore.Send)
	if rec.Doubt || !rec.FromPlan || !rec.DueAt.IsZero() {
		l.Errorf("the claimed plan has doubt %v, began as a plan %v, and is due at %v", rec.Doubt, rec.FromPlan, rec.DueAt)
	}
	l.dueAt("turned away again", l.settle(rec, away), start.Add(time.Minute))
	l.dueAt("a call of a caller", l.settle(l.claim(newClaim(2), recordstore.Send), away), time.Time{})
	l.clock.advance(time.Minute)
	l.takeOne("reconciler", want.ID)
	l.claim(newClaim(1), recordstore.Send)
	if rec = l.settle(l.claim(newClaim(1), recordstore.Send), result(recordstore.Succeeded)); !rec.DueAt.IsZero() {
		l.Errorf("the plan that was sent is due at %v", rec.DueAt)
	}
}
