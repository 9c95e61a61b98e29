package stripego_test

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v86"
	"github.com/stripe/stripe-go/v86/customer"
	"github.com/stripe/stripe-go/v86/paymentintent"
	"github.com/stripe/stripe-go/v86/refund"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
)

// A key that the caller chose is refused loudly and not shown; nothing is sent.
func TestChosenKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	charge := b.charge()
	p := &stripe.RefundCreateParams{Charge: &charge}
	p.SetIdempotencyKey("order-4711")
	r, err := b.sc.V1Refunds.Create(b.named("cmd_1"), p)
	e := b.wantError(of(r.APIResource, r.ID, err), 400, outbound.ErrInvalid, outbound.EffectUnknown)
	if !strings.Contains(e.Msg, "take the key out") || strings.Contains(e.Msg, "4711") {
		t.Errorf("message %q: want what to do, and no key", e.Msg)
	}
	b.wantTrips(1)
	if n := len(b.fake.Requests("")); n != 0 {
		t.Errorf("%d requests arrived, want none", n)
	}
}

// R3: a service that began with package keyderive alone, under stripe-go's own
// transport, meets its own key again when the drop-in comes. A refund whose
// answer was lost before is never made twice. Where the service stamped the mark
// too, the bytes are the same, and Stripe gives the refund back; where it did
// not, Stripe refuses the other bytes, and the effect stays unknown.
func TestStepZeroMigration(t *testing.T) {
	t.Parallel()
	for _, marked := range []bool{true, false} {
		b := newBench(t, setting{})
		charge := b.charge()
		refund := func(ctx context.Context, sc *stripe.Client) answer {
			key, err := keyderive.Derive(keyderive.Input{
				Provider: "stripe", Account: account + "/test", Operation: "refund.create", CommandID: "refund_1",
			})
			if err != nil {
				t.Fatal(err)
			}
			p := &stripe.RefundCreateParams{Charge: &charge, Amount: count(500)}
			if marked {
				p.AddMetadata("samekey_command", key.Mark())
			}
			p.SetIdempotencyKey(key.Raw())
			r, err := sc.V1Refunds.Create(ctx, p)
			return of(r.APIResource, r.ID, err)
		}
		plain := stripe.NewClient(secretKey, stripe.WithBackends(newBackends(t, b.fake.Client(), b.fake.URL)))
		b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create", Times: 3})
		if a := refund(t.Context(), plain); a.err == nil { // stripe-go's own retries included
			t.Fatal("the answer was not lost")
		}

		a := refund(b.named("refund_1"), b.sc)
		if marked {
			b.wantLabel(a, "replay_header", outbound.FromProvider)
		} else {
			b.wantError(a, http.StatusInternalServerError, outbound.ErrUncertain, outbound.EffectUnknown)
		}
		if got := b.fake.Effects("refund.create"); got != 1 {
			t.Errorf("%d refunds, want 1", got)
		}
		for i, r := range b.fake.Requests("refund.create") {
			if r.KeyHash != sha256.Sum256([]byte(b.key("refund_1", "refund.create"))) {
				t.Errorf("delivery %d has another key", i+1)
			}
		}
	}
}

// KeysOnly sends the same keys without a ledger: Stripe's own deduplication is
// what is left.
func TestKeysOnly(t *testing.T) {
	t.Parallel()
	ledgerDown := true
	b := newBench(t, setting{
		ledger:  down{},
		options: outbound.Options{KeysOnly: func(context.Context) bool { return ledgerDown }},
	})
	charge := b.charge()
	first, second := b.refund(b.named("cmd_1"), charge), b.refund(b.named("cmd_1"), charge)
	if first.err != nil || second.err != nil || first.id != second.id {
		t.Fatalf("got %q, %v and %q, %v, want one refund", first.id, first.err, second.id, second.err)
	}
	if second.header.Get("Idempotent-Replayed") != "true" {
		t.Error("Stripe did not replay the second one")
	}
	b.wantSent("cmd_1", "refund.create", 1, 2)
}

// C30: net/http sends a POST without a body again by itself when a reused
// connection dies. It is counted, and has one effect.
func TestHiddenResend(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	warm := b.fake.Seed(providertest.PaymentIntent{Status: "requires_capture"})
	id := b.fake.Seed(providertest.PaymentIntent{Status: "requires_capture"})
	if _, err := b.sc.V1PaymentIntents.Retrieve(t.Context(), warm, nil); err != nil { // leaves a connection to reuse
		t.Fatal(err)
	}
	b.wantTrips(1)
	b.fake.Inject(providertest.Fault{Kind: providertest.ResetReused, Operation: "payment_intent.capture"})
	ctx, call := outbound.Track(t.Context(), outbound.Command{ID: "cmd_1"})
	r, err := b.sc.V1PaymentIntents.Capture(ctx, id, nil)
	b.wantTrips(1)
	reply, failed := call.Result()
	if err != nil || failed != nil || r.Status != stripe.PaymentIntentStatusSucceeded || reply.Deliveries != 2 {
		t.Fatalf("got %+v, %v, %v, want 2 deliveries", reply, err, failed)
	}
	if b.fake.Armed() != 0 {
		t.Error("no connection was reset")
	}
	if got := b.fake.Effects("payment_intent.capture"); got != 1 {
		t.Errorf("%d captures, want 1", got)
	}
}

// The connected account of the SDK's request is on the wire, and is part of the
// key.
func TestStripeAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	create := func(connected string) answer {
		p := &stripe.CustomerCreateParams{Email: text("a@example.com")}
		if connected != "" {
			p.SetStripeAccount(connected)
		}
		r, err := b.sc.V1Customers.Create(b.named("cmd_1"), p)
		return of(r.APIResource, r.ID, err)
	}
	ours, theirs := create(""), create("acct_seller")
	b.wantLabel(ours, "no_replay_header", outbound.FromProvider)
	b.wantLabel(theirs, "no_replay_header", outbound.FromProvider)
	b.wantLabel(create("acct_seller"), "own_record", outbound.FromLedger)
	if got := b.fake.Effects("customer.create"); got != 2 {
		t.Errorf("%d customers, want one for each account", got)
	}
	of := func(connected string) [32]byte {
		key, err := b.client.Key(outbound.Command{ID: "cmd_1"}, "customer.create", connected)
		if err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256([]byte(key.Raw()))
	}
	if r := b.fake.Requests("customer.create"); r[0].KeyHash != of(account) || r[1].KeyHash != of("acct_seller") {
		t.Error("the account is not in the key")
	}
	get := &stripe.CustomerRetrieveParams{}
	get.SetStripeAccount("acct_seller")
	if c, err := b.sc.V1Customers.Retrieve(t.Context(), theirs.id, get); err != nil || c.ID != theirs.id {
		t.Errorf("the customer is not in the connected account: %v", err)
	}
}

// The global API of old: params carry the context. Without params there is no
// context, hence no command, and stripe-go sends no key: what moves money is
// refused, other things pass. This test alone sets stripe-go's global backend.
func TestLegacyGlobalAPI(t *testing.T) {
	b := newBench(t, setting{})
	charge := b.charge()
	capturable := b.fake.Seed(providertest.PaymentIntent{Status: "requires_capture"})
	key, backend := stripe.Key, stripe.GetBackend(stripe.APIBackend)
	stripe.Key = secretKey
	stripe.SetBackend(stripe.APIBackend, b.backends.API)
	t.Cleanup(func() {
		stripe.Key = key
		stripe.SetBackend(stripe.APIBackend, backend)
	})
	b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"})
	p := &stripe.RefundParams{Charge: &charge, Amount: count(500)}
	p.Context = b.named("cmd_1")
	r, err := refund.New(p)
	b.wantLabel(of(r.APIResource, r.ID, err), "replay_header", outbound.FromProvider)
	b.wantTrips(1)
	b.wantSent("cmd_1", "refund.create", 1, 2)

	pi, err := paymentintent.Capture(capturable, nil)
	b.wantError(of(pi.APIResource, pi.ID, err), http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
	b.wantTrips(1)
	if n := len(b.fake.Requests("payment_intent.capture")); n != 0 {
		t.Errorf("%d captures were sent, want none", n)
	}
	c, err := customer.New(nil)
	if err != nil || c.ID == "" || b.transport.Unnamed() != 1 {
		t.Errorf("got %v and %d unnamed writes, want a customer and 1", err, b.transport.Unnamed())
	}
	if got := b.fake.Requests("customer.create"); len(got) != 1 || got[0].KeyHash != ([32]byte{}) {
		t.Errorf("got %+v, want one request without a key", got)
	}
}
