package outbound_test

import (
	"context"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// shadow runs one shadowed call whose own sending ends in v, and returns how often
// it was sent.
func shadow(c *outbound.Client, id string, v outbound.Verdict) (sent int) {
	c.Shadow(context.Background(), pay(id, "pay.stored"), func(context.Context) outbound.Verdict {
		sent++
		return v
	})
	return sent
}

// A shadowed call is sent once whatever happens, recorded under a foreign key,
// and later replayed or looked up, never resent.
func TestShadow(t *testing.T) {
	ledger := &counting{Store: memory.New(nil)}
	a := &scripted{answer: always(paid)}
	c := client(t, a, ledger, nil)

	if n := shadow(c, "c1", paid); n != 1 {
		t.Fatalf("sent %d times, want once", n)
	}
	r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, r, err, outbound.OriginalReplay, outbound.FromLedger)

	shadow(c, "c2", lost)
	_, err = c.Do(t.Context(), pay("c2", "pay.stored"))
	wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, false)

	ledger.cut("Claim")
	if n := shadow(c, "c3", paid); n != 1 {
		t.Errorf("without the ledger sent %d times, want once", n)
	}
	if n := len(a.deliveries()); n != 0 {
		t.Errorf("Do delivered %d times: a foreign key's effect may be executed twice", n)
	}
}

// A refusal under the SDK's next key says nothing of its earlier one, even where
// failures are stored.
func TestShadowedRefusalUnderDoubtIsNotFinal(t *testing.T) {
	c := client(t, &scripted{}, memory.New(nil), nil)
	replayed := declined
	replayed.Evidence = "replay_header"
	for _, v := range []outbound.Verdict{declined, replayed} {
		shadow(c, "c1", lost)
		shadow(c, "c1", v)
		s, err := c.Status(t.Context(), outbound.Command{ID: "c1"}, "pay.stored")
		if err != nil || s.State != recordstore.Uncertain || s.Effect != outbound.EffectUnknown {
			t.Errorf("after a lost answer and a refusal: %+v, %v; want uncertain, unknown", s, err)
		}
	}
}

// A lost answer of a shadowed call under a record that Do made: resending Do's key
// could execute it twice, so that only a person goes on.
func TestShadowUnderARecordOfDo(t *testing.T) {
	a := &scripted{answer: inTurn(limited, paid)}
	c := client(t, a, memory.New(nil), nil)
	_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrRateLimited, outbound.EffectNone, true)
	shadow(c, "c1", lost)
	_, err = c.Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrManualReview, outbound.EffectUnknown, false)
	if n := len(a.deliveries()); n != 1 {
		t.Errorf("%d deliveries under Do's key, want 1", n)
	}
}

// A note that arrives while the shadowed call is on its way is merged.
func TestShadowMergesANote(t *testing.T) {
	ledger := &between{Store: memory.New(nil)}
	ledger.before = func(n int, s recordstore.Settlement) {
		if n > 1 {
			return
		}
		if _, err := ledger.Report(context.Background(), s.ID, recordstore.Result{State: recordstore.Succeeded, Evidence: "webhook"}); err != nil {
			t.Error(err)
		}
	}
	c := client(t, &scripted{}, ledger, nil)
	shadow(c, "c1", lost)
	if rec := recordOf(t, c, ledger, pay("c1", "pay.stored")); rec.State != recordstore.Succeeded {
		t.Errorf("state %s, want succeeded", rec.State)
	}
}

// A closed client does not stop what it only watches, and touches no ledger.
func TestShadowOfAClosedClient(t *testing.T) {
	ledger := &counting{Store: memory.New(nil)}
	c := client(t, &scripted{}, ledger, nil)
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := shadow(c, "c1", paid); n != 1 || ledger.count("Claim") != 0 {
		t.Errorf("sent %d times with %d claims, want once and none", n, ledger.count("Claim"))
	}
}

// While KeysOnly is on the ledger is not asked by Shadow either.
func TestShadowWithKeysOnly(t *testing.T) {
	ledger := &counting{Store: memory.New(nil)}
	c := client(t, &scripted{}, ledger, &outbound.Options{KeysOnly: func(context.Context) bool { return true }})
	if n := shadow(c, "c1", paid); n != 1 || ledger.count("Claim") != 0 {
		t.Errorf("sent %d times with %d claims, want once and none", n, ledger.count("Claim"))
	}
}
