package outbound_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// Design 6: a caller who asks again and again keeps no check from the reconciler, and
// brings none forward: the ladder ends when it would have ended.
func TestAskingAgainMovesNoCheck(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(lost), find: cannotTell}
	c := client(t, a, ledger, nil)
	r := reconciler(t, &outbound.ReconcilerOptions{Ladder: []time.Duration{time.Minute, time.Hour, time.Hour}}, c)
	lose(t, c, "c1", "pay.stored")
	due := func() time.Time { return statusOf(t, c, "c1", "pay.stored").DueAt }
	for n := range 3 {
		want := due()
		for ledger.clock().Before(want) {
			if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); !errors.Is(err, outbound.ErrUncertain) {
				t.Fatal(err)
			}
			if got := due(); !got.Equal(want) {
				t.Fatalf("after asking again at %v due at %v, want %v", ledger.clock(), got, want)
			}
			ledger.advance(20 * time.Second)
		}
		s := sweepOnce(t, r)
		if n < 2 && s.Postponed != 1 || n == 2 && s.ToReview != 1 {
			t.Fatalf("check %d: swept %+v", n+1, s)
		}
	}
}

// Options.FirstCheck is the pause before the first check.
func TestFirstCheck(t *testing.T) {
	ledger := newLedger()
	for want, opts := range map[time.Duration]*outbound.Options{time.Minute: nil, time.Second: {FirstCheck: time.Second}} {
		c := client(t, &scripted{answer: always(lost)}, ledger, opts)
		id := "c" + want.String()
		lose(t, c, id, "pay.stored")
		if due := statusOf(t, c, id, "pay.stored").DueAt.Sub(ledger.clock()).Round(time.Millisecond); due != want {
			t.Errorf("due in %v, want %v", due, want)
		}
	}
	if _, err := outbound.New(&scripted{}, memory.New(nil), &outbound.Options{FirstCheck: -1}); !errors.Is(err, outbound.ErrInvalid) {
		t.Errorf("a negative FirstCheck: %v, want ErrInvalid", err)
	}
}

// The margin defaults to how late a request may arrive: the lease and the horizon.
func TestWindowMarginCoversLateRequests(t *testing.T) {
	for want, opts := range map[time.Duration]*outbound.Options{
		17 * time.Minute:        nil,
		time.Hour + time.Minute: {Lease: time.Minute, Horizon: time.Hour},
		time.Second:             {WindowMargin: time.Second},
	} {
		ledger := memory.New(nil)
		c := client(t, &scripted{answer: always(paid)}, ledger, opts)
		if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
			t.Fatal(err)
		}
		rec := recordOf(t, c, ledger, pay("c1", "pay.stored"))
		if got := 24*time.Hour - rec.WindowEndsAt.Sub(rec.ClaimedAt); got != want {
			t.Errorf("the margin is %v, want %v", got, want)
		}
	}
}

// turnedAway is the answer to credentials that the provider does not take.
var turnedAway = outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrAuth, Deliveries: 1}

// planFor plans a payment that is wanted until notAfter.
func planFor(t *testing.T, c *outbound.Client, ledger *ledgerAt, id string, notAfter time.Time) {
	t.Helper()
	call := pay(id, "pay.stored")
	call.Command.NotAfter = notAfter
	if err := c.Plan(t.Context(), ledger, call); err != nil {
		t.Fatal(err)
	}
}

// Plans: a plan that the provider turns away is sent again along the ladder, then by
// its last pause, for as long as it is wanted; each time is in its trail.
func TestPlanIsSentUntilItIsTaken(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(turnedAway)}
	c := client(t, a, ledger, nil)
	r := reconciler(t, &outbound.ReconcilerOptions{Ladder: []time.Duration{time.Minute, time.Hour}}, c)
	planFor(t, c, ledger, "p1", outbound.Forever)
	for n, pause := range []time.Duration{time.Minute, time.Hour, time.Hour, time.Hour} {
		if s := sweepOnce(t, r); s.Sent != 1 || s.Postponed != 1 || s.Settled != 0 {
			t.Fatalf("send %d: swept %+v, want one sent and postponed", n+1, s)
		}
		s := statusOf(t, c, "p1", "pay.stored")
		if due := s.DueAt.Sub(ledger.clock()); s.State != recordstore.NotExecuted || due < pause*9/10 || due > pause*11/10 {
			t.Fatalf("send %d: state %s, due in %v, want about %v", n+1, s.State, due, pause)
		}
		ledger.advance(2 * pause)
	}
	a.answer = always(lost)
	if s := sweepOnce(t, r); s.Sent != 1 || s.Postponed != 1 {
		t.Fatalf("the answer was lost: swept %+v", s)
	}
	ledger.advance(2 * time.Minute) // a first check, though the ladder was over before
	a.answer = always(paid)
	if s := sweepOnce(t, r); s.Settled != 1 {
		t.Errorf("swept %+v, want it settled", s)
	}
	trail, err := c.Trail(t.Context(), outbound.Command{ID: "p1"}, "pay.stored")
	if err != nil || len(trail) != 5 || trail[0].Kind != "plan" || trail[0].To != recordstore.NotExecuted {
		t.Errorf("the trail is %+v, %v; want four times turned away and a resend", trail, err)
	}
}

// Plans: a plan that was turned away ends with its NotAfter; Do may send it sooner,
// and what a caller sent without a plan is the caller's to send again.
func TestPlanThatWasTurnedAway(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(turnedAway)}
	c := client(t, a, ledger, nil)
	r := reconciler(t, nil, c)
	planFor(t, c, ledger, "late", ledger.clock().Add(90*time.Second))
	planFor(t, c, ledger, "sooner", outbound.Forever)
	_, err := c.Do(t.Context(), pay("sooner", "pay.stored"))
	wantError(t, err, outbound.ErrAuth, outbound.EffectNone, true)
	if s := statusOf(t, c, "sooner", "pay.stored"); s.DueAt.Sub(ledger.clock()).Round(time.Millisecond) != time.Minute {
		t.Errorf("a plan that Do could not place is due at %v, want in a minute", s.DueAt)
	}
	_, err = c.Do(t.Context(), pay("call", "pay.stored"))
	wantError(t, err, outbound.ErrAuth, outbound.EffectNone, true)
	if s := statusOf(t, c, "call", "pay.stored"); !s.DueAt.IsZero() {
		t.Errorf("a call without a plan is due at %v", s.DueAt)
	}
	sweepOnce(t, r)
	ledger.advance(2 * time.Minute)
	a.answer = always(paid)
	if s := sweepOnce(t, r); s.Sent != 1 || s.Settled != 2 {
		t.Errorf("swept %+v, want one sent and the other ended", s)
	}
	for id, want := range map[string]recordstore.State{
		"late": recordstore.Abandoned, "sooner": recordstore.Succeeded, "call": recordstore.NotExecuted,
	} {
		if s := statusOf(t, c, id, "pay.stored"); s.State != want {
			t.Errorf("%s is %s, want %s", id, s.State, want)
		}
	}
}

// Plans: one whose bytes were erased waits for a caller who brings them, and ends
// with its NotAfter all the same.
func TestErasedPlanEnds(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(paid)}
	c := client(t, a, ledger, nil)
	r := reconciler(t, nil, c)
	planFor(t, c, ledger, "p1", ledger.clock().Add(time.Minute))
	if err := c.Erase(t.Context(), outbound.Command{ID: "p1"}); err != nil {
		t.Fatal(err)
	}
	if s := sweepOnce(t, r); s.Sent != 0 || s.Postponed != 1 {
		t.Errorf("swept %+v, want it to wait", s)
	}
	ledger.advance(time.Hour)
	if s := sweepOnce(t, r); s.Sent != 0 || s.Settled != 1 {
		t.Errorf("swept %+v, want it ended", s)
	}
	if s := statusOf(t, c, "p1", "pay.stored"); s.State != recordstore.Abandoned {
		t.Errorf("it is %s, want abandoned", s.State)
	}
}

// R21: a verdict that lets a plan be sent again is enough: the reconciler does.
func TestVerdictSendsAPlanAgain(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: inTurn(lost, paid)}
	c := client(t, a, ledger, nil)
	r := reconciler(t, nil, c)
	planFor(t, c, ledger, "p1", outbound.Forever)
	sweepOnce(t, r)
	err := c.Resolve(t.Context(), outbound.Resolution{
		Command: outbound.Command{ID: "p1"}, Operation: "pay.stored", Version: statusOf(t, c, "p1", "pay.stored").Version,
		Effect: outbound.EffectNone, SendAgain: true, Reason: "not in the bank's list", Operator: "ada",
	})
	if err != nil {
		t.Fatal(err)
	}
	ledger.advance(2 * time.Minute)
	if s := sweepOnce(t, r); s.Sent != 1 || s.Settled != 1 {
		t.Errorf("swept %+v, want it sent and settled", s)
	}
}

// noRenewal is a ledger on which no lease can be renewed.
type noRenewal struct{ *ledgerAt }

func (noRenewal) Renew(context.Context, recordstore.ID, string, int64, time.Duration) error {
	return errCut
}

// Design 6: a check that it did not come to, since the lease could not be renewed,
// brings the record no nearer to review.
func TestFailedRenewalIsNoCheck(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(lost), find: cannotTell}
	c := client(t, a, ledger, nil)
	lose(t, c, "c1", "pay.stored")
	away := &noRenewal{ledger}
	r := reconciler(t, &outbound.ReconcilerOptions{Ladder: []time.Duration{time.Minute, time.Minute}}, client(t, a, away, nil))
	for n := range 5 {
		ledger.advance(2 * time.Minute)
		if s := sweepOnce(t, r); s.Postponed != 1 {
			t.Fatalf("sweep %d: %+v, want the record postponed", n+1, s)
		}
		if rec := recordOf(t, c, ledger, pay("c1", "pay.stored")); rec.Checks != 0 || rec.State != recordstore.Uncertain {
			t.Fatalf("sweep %d: state %s after %d checks, want none", n+1, rec.State, rec.Checks)
		}
	}
	wantDeliveries(t, a, 1)
}
