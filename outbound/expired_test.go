package outbound_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Who is told that a command expired, and that nothing happened, may make a new
// intent of it: the plan that has more time is not sent any more then.
func TestExpiredCallEndsThePlan(t *testing.T) {
	for _, name := range []string{"planned", "turned away"} {
		t.Run(name, func(t *testing.T) {
			ledger := newLedger()
			a := &scripted{answer: always(turnedAway)}
			c := client(t, a, ledger, nil)
			r := reconciler(t, nil, c)
			planFor(t, c, ledger, "p1", outbound.Forever)
			if name == "turned away" {
				sweepOnce(t, r)
			}
			before := len(a.deliveries())
			late := pay("p1", "pay.stored")
			late.Command.NotAfter = ledger.clock().Add(-time.Minute)
			if _, err := c.Do(t.Context(), late); !errors.Is(err, outbound.ErrExpired) || outbound.EffectOf(err) != outbound.EffectNone {
				t.Errorf("a call after its NotAfter: %v, effect %s", err, outbound.EffectOf(err))
			}
			a.answer = always(paid)
			ledger.advance(24 * time.Hour)
			sweepOnce(t, r)
			s := statusOf(t, c, "p1", "pay.stored")
			if s.State != recordstore.Abandoned || len(a.deliveries()) != before {
				t.Errorf("the record is %s, and %d more deliveries were made", s.State, len(a.deliveries())-before)
			}
		})
	}
}

// C26: what recordstore takes for a person's word is what a verdict writes; a
// success that the provider stated is contradicted by nothing.
func TestPersonsWordIsContradicted(t *testing.T) {
	now := time.Now()
	for evidence, want := range map[replaysemantics.Evidence]recordstore.State{
		replaysemantics.ByOperator: recordstore.ManualReview, replaysemantics.ByLookup: "", replaysemantics.ByStatusCode: "",
	} {
		rec := recordstore.Record{State: recordstore.Succeeded, Evidence: string(evidence)}
		if to, _ := recordstore.ReportMove(rec, recordstore.Refused, now); to != want {
			t.Errorf("a refusal of what is known by %s leads to %q, want %q", evidence, to, want)
		}
	}
}
