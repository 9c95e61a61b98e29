package outbound_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// sweep lets a reconciler do what is due.
func sweep(t *testing.T, c *outbound.Client) outbound.Swept {
	t.Helper()
	r, err := outbound.NewReconciler(&outbound.ReconcilerOptions{Rate: 1000}, c)
	if err != nil {
		t.Fatal(err)
	}
	swept, err := r.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return swept
}

func absent(*outbound.Lookup) (outbound.Finding, error) {
	return outbound.Finding{Effect: outbound.EffectNone}, nil
}

// C11: what another maker sent carries neither our key nor our mark, so that
// finding nothing proves nothing: neither Do nor the reconciler sends it again.
func TestForeignDeliveryIsNeverProvedAbsent(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(paid), find: absent}
	c := client(t, a, ledger, nil)
	shadow(c, "c1", lost)
	ledger.advance(24 * time.Hour)
	sweep(t, c)
	if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err == nil {
		t.Error("Do called the effect applied")
	}
	if n := len(a.deliveries()); n != 0 {
		t.Fatalf("%d deliveries: the shadowed call may be executed twice", n)
	}
}

// With a key of ours, absence past the horizon is a proof, and the send that
// follows it is a new execution.
func TestAbsenceIsFollowedByASend(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: inTurn(lost, paid), find: absent}
	c := client(t, a, ledger, nil)
	c.Do(t.Context(), pay("c1", "pay.stored"))
	ledger.advance(24 * time.Hour)
	if swept := sweep(t, c); swept.Sent != 1 || swept.Settled != 1 {
		t.Errorf("swept %+v, want one sent and settled", swept)
	}
	if sent := a.deliveries(); len(sent) != 2 || sent[1].Resend || sent[0].Key != sent[1].Key {
		t.Errorf("deliveries %+v, want a second one that is no resend, with the same key", sent)
	}
}

// A build that cannot read a record puts it off, and keeps what was noted.
func TestUnreadableRecordKeepsItsNote(t *testing.T) {
	ledger := newLedger()
	call := pay("c1", "pay.stored")
	a := &scripted{answer: always(lost)}
	c := client(t, a, ledger, nil)
	c.Do(t.Context(), call)
	rec := recordOf(t, c, ledger, call)
	rec.State, rec.Noted, rec.ExternalRef = recordstore.Sending, recordstore.Succeeded, "re_1"
	rec.Operation = "pay.later" // a row of a later build
	ledger.Seed(rec)
	ledger.advance(time.Hour)
	sweep(t, c)
	if rec := recordOf(t, c, ledger, call); rec.State != recordstore.Succeeded || rec.ExternalRef != "re_1" {
		t.Errorf("state %s: the noted effect is lost", rec.State)
	}
}

// R13: the window counts from when the record was taken, not from when its turn
// came.
func TestWindowCountsFromTheTaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(nil)
		a := &scripted{answer: always(lost)}
		c := client(t, a, ledger, nil)
		for _, id := range []string{"c1", "c2"} {
			c.Do(t.Context(), pay(id, "pay.stored"))
			rec := recordOf(t, c, ledger, pay(id, "pay.stored"))
			rec.DueAt, rec.WindowEndsAt = time.Now(), time.Now().Add(70*time.Second)
			ledger.Seed(rec)
		}
		a.answer = func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
			time.Sleep(60 * time.Second)
			return []outbound.Verdict{lost}
		}
		r, err := outbound.NewReconciler(&outbound.ReconcilerOptions{Concurrency: 1}, c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(a.deliveries()); n != 3 {
			t.Errorf("%d deliveries, want 3: the second record's turn came too late for another attempt inside the window", n)
		}
	})
}

// A plan that is sent is no unknown outcome that was found out; a resend that
// ends one is, and says how.
func TestMetricsOfTheReconciler(t *testing.T) {
	w := watch()
	again := paid
	again.Evidence = "replay_header"
	ledger := newLedger()
	c := client(t, &scripted{answer: inTurn(lost, again)}, ledger, &outbound.Options{Telemetry: w.opts})
	c.Do(t.Context(), pay("c1", "pay.stored"))
	ledger.advance(5 * time.Minute)
	sweep(t, c)
	want := map[string]int64{unknown: 1, first: 1, resend: 1, "became_uncertain": 1, "reconciled evidence=replay_header how=resend": 1}
	if got := w.counts(t, "pay.stored"); !maps.Equal(got, want) {
		t.Errorf("counted\n%v, want\n%v", got, want)
	}
}
