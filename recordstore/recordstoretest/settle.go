package recordstoretest

import (
	"errors"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func settleCases() []testCase {
	return []testCase{
		{"settle/writes", "what the holder learned is all that later callers are told; a final answer clears the frozen request", settleWrites},
		{"settle/adds", "a later claim adds deliveries, and an empty reference does not erase a known one", settleAdds},
		{"settle/repeat", "after an unknown commit the same settlement is asked again and must succeed without counting twice", settleRepeat},
		{"settle/stale_holder", "C25: a holder that was overtaken cannot settle", settleStale},
		{"settle/no_undo", "C25: a takeover cannot undo a settled record", settleNoUndo},
		{"settle/late", "a lease that ended is no obstacle as long as nobody took the record: the holder's answer is the best there is", settleLate},
		{"settle/noted", "a fact that arrived during the call must not be overwritten by a holder that does not know it", settleNoted},
		{"settle/missing", "a record that was lost must not look like one that another holder took", settleMissing},
		{"settle/invalid", "no holder may end a claim in a state from which it was never meant to be sent", settleInvalid},
		{"renew/prolongs", "R20: a long call keeps its lease, and becomes due should its sender die", renewProlongs},
		{"renew/lost", "R20: a holder must learn that its lease ended or was taken, before it sends again", renewLost},
	}
}

func settleWrites(l *ledger) {
	for n, to := range []recordstore.State{
		recordstore.Succeeded, recordstore.Refused, recordstore.NotExecuted, recordstore.Uncertain, recordstore.ManualReview,
	} {
		want := l.claim(newClaim(n), recordstore.Send)
		l.clock.advance(time.Second)
		r := result(to)
		r.SealVersion, r.DueIn = 4, time.Minute
		got := l.settle(want, r)

		want.State, want.Evidence, want.Outcome, want.Deliveries = to, r.Evidence, r.Outcome, 1
		want.ResponseStatus, want.ResponseHeader, want.ResponseBody = r.ResponseStatus, r.ResponseHeader, r.ResponseBody
		want.ExternalRef, want.ObjectStatus, want.RequestID, want.ErrorCode = r.ExternalRef, r.ObjectStatus, r.RequestID, r.ErrorCode
		want.SealVersion, want.AnsweredAt, want.DueAt = 4, l.clock.Now(), l.clock.Now().Add(time.Minute)
		want.Version = 2
		if to == recordstore.NotExecuted {
			want.DueAt = time.Time{} // Its caller's to send again.
		}
		if to == recordstore.Succeeded || to == recordstore.Refused {
			want.Request = nil
		}
		l.same("the returned record, settled to "+string(to), got, want)
		l.same("the stored record, settled to "+string(to), l.stored(want.ID), want)
	}
}

func settleAdds(l *ledger) {
	c := newClaim(1)
	l.settle(l.claim(c, recordstore.Send), result(recordstore.Uncertain))
	got := l.settle(l.claim(by(c, "other"), recordstore.Send), recordstore.Result{State: recordstore.NotExecuted, Deliveries: 2, SealVersion: 1})
	r := result("")
	if got.Deliveries != 3 {
		l.Errorf("Deliveries is %d, want 1 + 2", got.Deliveries)
	}
	if got.ExternalRef != r.ExternalRef || got.ObjectStatus != r.ObjectStatus || got.RequestID != r.RequestID {
		l.Errorf("known references were erased: %q, %q, %q", got.ExternalRef, got.ObjectStatus, got.RequestID)
	}
	if got.Evidence != "" || got.Outcome != "" || got.ErrorCode != "" || got.ResponseStatus != 0 || got.ResponseBody != nil || got.ResponseHeader != nil {
		l.Errorf("the earlier answer was kept beside the later one")
	}
	if got.SealVersion != 3 {
		l.Errorf("SealVersion is %d: it was lowered while the request is still sealed with 3", got.SealVersion)
	}
}

func settleRepeat(l *ledger) {
	for n, to := range []recordstore.State{recordstore.Succeeded, recordstore.Uncertain, recordstore.NotExecuted} {
		claimed := l.claim(newClaim(n), recordstore.Send)
		want := l.settle(claimed, result(to))
		l.clock.advance(time.Second)
		l.same("the record settled again", l.settle(claimed, result(to)), want)
		l.same("the stored record", l.stored(claimed.ID), want)
	}
}

func settleStale(l *ledger) {
	c := newClaim(1)
	first := l.claim(c, recordstore.Send)
	l.clock.advance(lease)
	second := l.claim(by(c, "other"), recordstore.Send)
	l.lost(settlement(first, result(recordstore.NotExecuted)))

	mixed := settlement(second, result(recordstore.NotExecuted))
	mixed.Fence = first.Fence // The right holder with an old fence is as stale.
	l.lost(mixed)
	mixed = settlement(second, result(recordstore.NotExecuted))
	mixed.Holder = first.Holder
	l.lost(mixed)

	l.settle(second, result(recordstore.Succeeded))
	l.lost(settlement(first, result(recordstore.Succeeded)))
}

func settleNoUndo(l *ledger) {
	c := newClaim(1)
	first := l.claim(c, recordstore.Send)
	want := l.settle(first, result(recordstore.Succeeded))
	l.clock.advance(10 * lease)
	l.claim(by(c, "other"), recordstore.Replay)
	for _, to := range []recordstore.State{recordstore.Uncertain, recordstore.NotExecuted, recordstore.Refused} {
		l.lost(settlement(first, result(to)))
	}
	l.same("the stored record", l.stored(c.ID), want)
}

func settleLate(l *ledger) {
	rec := l.claim(newClaim(1), recordstore.Send)
	l.clock.advance(10 * lease)
	l.settle(rec, result(recordstore.Succeeded))
}

func settleNoted(l *ledger) {
	for n, fact := range []recordstore.State{recordstore.Succeeded, recordstore.Refused} {
		claimed := l.claim(newClaim(n), recordstore.Send)
		noted := l.report(claimed.ID, result(fact))
		l.same("the record that a settlement meets", l.lost(settlement(claimed, recordstore.Result{State: recordstore.NotExecuted})), noted)

		wrong := settlement(claimed, result(recordstore.Succeeded))
		wrong.Noted = recordstore.Uncertain
		l.lost(wrong)

		s := settlement(claimed, result(fact))
		s.Noted = fact
		got, err := l.Settle(l.Context(), s)
		if err != nil || got.State != fact || got.Noted != "" {
			l.Fatalf("Settle that knows the note: state %q, noted %q, error %v", got.State, got.Noted, err)
		}
		again, err := l.Settle(l.Context(), s)
		if err != nil {
			l.Fatalf("the same settlement again: %v", err)
		}
		l.same("the record settled again", again, got)
	}
}

func settleMissing(l *ledger) {
	rec := recordstore.Record{ID: identity(1), Holder: "claim-1", Fence: 1}
	if _, err := l.Settle(l.Context(), settlement(rec, result(recordstore.Succeeded))); !errors.Is(err, recordstore.ErrNotFound) {
		l.Errorf("Settle: error is %v, want ErrNotFound", err)
	}
	if err := l.Renew(l.Context(), rec.ID, rec.Holder, rec.Fence, lease); !errors.Is(err, recordstore.ErrNotFound) {
		l.Errorf("Renew: error is %v, want ErrNotFound", err)
	}
	if _, err := l.Report(l.Context(), rec.ID, result(recordstore.Succeeded)); !errors.Is(err, recordstore.ErrNotFound) {
		l.Errorf("Report: error is %v, want ErrNotFound", err)
	}
	l.absent(rec.ID)
}

func settleInvalid(l *ledger) {
	rec := l.claim(newClaim(1), recordstore.Send)
	for _, to := range []recordstore.State{"", recordstore.Planned, recordstore.Sending, recordstore.Abandoned, "paid"} {
		if _, err := l.Settle(l.Context(), settlement(rec, result(to))); !errors.Is(err, recordstore.ErrInvalid) {
			l.Errorf("Settle to %q: error is %v, want ErrInvalid", to, err)
		}
	}
	l.same("the stored record", l.stored(rec.ID), rec)
}

func renewProlongs(l *ledger) {
	c := newClaim(1)
	want := l.claim(c, recordstore.Send)
	l.clock.advance(lease / 2)
	l.renew(want, nil)
	want.LeaseEndsAt = l.clock.Now().Add(lease)
	want.DueAt, want.SentUntil, want.Version = want.LeaseEndsAt, want.LeaseEndsAt, 2
	l.same("the stored record", l.stored(c.ID), want)

	l.clock.advance(lease - time.Microsecond)
	l.claim(by(c, "other"), recordstore.InFlight)
	if got := l.settle(want, result(recordstore.Succeeded)); !got.DueAt.IsZero() {
		l.Errorf("a settled record is still due at %v", got.DueAt)
	}
}

func renewLost(l *ledger) {
	c := newClaim(1)
	first := l.claim(c, recordstore.Send)
	l.clock.advance(lease)
	l.renew(first, recordstore.ErrNotHeld)
	l.same("the stored record", l.stored(c.ID), first)

	second := l.claim(by(c, "other"), recordstore.Send)
	l.renew(first, recordstore.ErrNotHeld)
	settled := l.settle(second, result(recordstore.Succeeded))
	l.renew(second, recordstore.ErrNotHeld)
	l.same("the stored record", l.stored(c.ID), settled)
}

func (l *ledger) renew(rec recordstore.Record, want error) {
	l.Helper()
	if err := l.Renew(l.Context(), rec.ID, rec.Holder, rec.Fence, lease); !errors.Is(err, want) {
		l.Fatalf("Renew: error is %v, want %v", err, want)
	}
}
