package stripego_test

import (
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v86"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	skstripe "github.com/seed-6b5e302b/samekey/providers/stripe"
)

// The table of this test names every operation that samekey's has.
func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, op := range operations() {
		names[op.name] = true
	}
	for _, op := range skstripe.Operations() {
		if !names[op.Name] {
			t.Errorf("no test calls %s through stripe-go", op.Name)
		}
		delete(names, op.Name)
	}
	for name := range names {
		t.Errorf("%s is no operation", name)
	}
}

// subject returns what an operation is called with.
func (o operation) subject(f *providertest.Fake) string {
	if o.ready == nil {
		return ""
	}
	return o.ready(f)
}

// Every operation succeeds, is labelled, and is replayed from the ledger.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, setting{})
			id := op.subject(b.fake)
			fresh, replay := outbound.Evidence("no_replay_header"), outbound.Evidence("own_record")
			if strings.HasPrefix(op.name, "v2.") || op.name == "subscription.cancel" {
				fresh = "first_delivery" // no header tells a replay there
			}
			first := op.call(b.named("cmd_1"), b, id)
			b.wantLabel(first, fresh, outbound.FromProvider)
			again := op.call(b.named("cmd_1"), b, id)
			b.wantLabel(again, replay, outbound.FromLedger)
			if first.id == "" || again.id != first.id {
				t.Errorf("got %q and then %q, want one object", first.id, again.id)
			}
			b.wantTrips(2)
			b.wantSent("cmd_1", op.name, 1, 1)
		})
	}
}

// After a lost answer every operation is resent with the same key and bytes, and
// has one effect (C02, C04, R1, R8). stripe-go's own retries see nothing of it.
func TestEveryOperationLost(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, setting{})
			id := op.subject(b.fake)
			b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: op.name})
			a := op.call(b.named("cmd_1"), b, id)
			b.wantTrips(1)
			switch {
			case op.name == "subscription.cancel": // Stripe takes no key for a DELETE: never resent, found by its state
				b.wantError(a, 500, outbound.ErrUncertain, outbound.EffectUnknown)
				b.wantLabel(op.call(b.named("cmd_1"), b, id), "state_guard", outbound.FromProvider)
				b.wantSent("cmd_1", op.name, 1, 1)
				return
			case strings.HasPrefix(op.name, "v2."):
				b.wantLabel(a, "status_code", outbound.FromProvider)
			default:
				b.wantLabel(a, "replay_header", outbound.FromProvider)
			}
			b.wantSent("cmd_1", op.name, 1, 2)
			b.wantLabel(op.call(b.named("cmd_1"), b, id), a.ledgerEvidence(), outbound.FromLedger)
			b.wantSent("cmd_1", op.name, 1, 2)
		})
	}
}

// stripe-go writes extra parameters in random order: they are one request all
// the same, and the mark stands beside the caller's metadata (C12).
func TestOrderOfParameters(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	charge := b.charge()
	for i := range 8 {
		p := &stripe.RefundCreateParams{Charge: &charge, Amount: count(500), Metadata: map[string]string{"a": "1", "b": "2", "c": "3"}}
		p.AddExtra("reason", "duplicate")
		p.AddExtra("refund_application_fee", "false")
		p.AddExtra("reverse_transfer", "false")
		r, err := b.sc.V1Refunds.Create(b.named("cmd_1"), p)
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		if r.Metadata["samekey_command"] == "" || r.Metadata["b"] != "2" {
			t.Errorf("the refund's metadata is %v, want the caller's and the mark", r.Metadata)
		}
	}
	b.wantSent("cmd_1", "refund.create", 1, 1)
}
