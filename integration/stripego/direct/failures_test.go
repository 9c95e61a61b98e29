package direct_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fake "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

func (d *direct) refund(charge, key string) answer {
	r, err := d.sc.V1Refunds.Create(d.Context(), &stripe.RefundCreateParams{Params: keyed(key), Charge: &charge, Amount: count(300)})
	a := of(r.APIResource, r.ID, err)
	if e, ok := errors.AsType[*stripe.Error](err); ok && e.LastResponse != nil {
		a.header = e.LastResponse.Header
	}
	return a
}

// A decline is the SDK's card error, and its key keeps it.
func TestDecline(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	for _, replayed := range []string{"", "true"} {
		_, err := d.sc.V1PaymentIntents.Create(t.Context(), &stripe.PaymentIntentCreateParams{
			Params: keyed("key-1"), Amount: count(1250), Currency: text("eur"), Confirm: stripe.Bool(true),
			PaymentMethod: text("pm_card_chargeDeclinedInsufficientFunds"), ReturnURL: text("https://example.com"),
		})
		d.wantRefusal(err, http.StatusPaymentRequired, stripe.ErrorTypeCard, stripe.ErrorCodeCardDeclined)
		card, _ := errors.AsType[*stripe.CardError](err)
		e, _ := errors.AsType[*stripe.Error](err)
		if card == nil || card.DeclineCode != "insufficient_funds" || e.PaymentIntent == nil || e.LastResponse.Header.Get("Idempotent-Replayed") != replayed {
			t.Errorf("got %+v, want a card error with its payment intent, replayed %q", e, replayed)
		}
	}
	if got := len(d.fake.Requests("payment_intent.create")); got != 2 {
		t.Errorf("%d requests arrived, want 2", got)
	}
}

// A guard and a bad parameter are the SDK's invalid request errors. A parameter
// that is refused leaves its key free.
func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	done := d.seed(fake.PaymentIntent{Status: "succeeded"})
	_, err := d.sc.V1PaymentIntents.Cancel(t.Context(), done, nil)
	d.wantRefusal(err, http.StatusBadRequest, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodePaymentIntentUnexpectedState)
	charge := d.seed(fake.Charge{})
	p := &stripe.RefundCreateParams{Params: keyed("key-1"), Charge: &charge}
	p.AddExtra("colour", "red")
	_, err = d.sc.V1Refunds.Create(t.Context(), p)
	d.wantRefusal(err, http.StatusBadRequest, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeParameterUnknown)
	if a := d.refund(charge, "key-1"); a.err != nil || a.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("got %v with %v, want a first answer under the same key", a.err, a.header)
	}
}

// A lost answer is sent again by the SDK itself, and replayed.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	charge := d.seed(fake.Charge{})
	d.inject(fakeprovider.Fault{Kind: fakeprovider.DropAfterApply, Operation: "refund.create"})
	if a := d.refund(charge, "key-1"); a.err != nil || a.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %v with %v, want a replay", a.err, a.header)
	}
	d.wantEffects("refund.create", 1)
}

// While the key's request runs, the same key is a conflict; after it, a replay.
func TestKeyInUse(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	charge, release, first := d.seed(fake.Charge{}), make(chan struct{}), make(chan answer)
	d.inject(fakeprovider.Fault{Kind: fakeprovider.SlowApply, Operation: "refund.create", Until: release})
	go func() { first <- d.refund(charge, "key-1") }()
	if err := d.fake.Await(t.Context(), "refund.create", func(s fakeprovider.Snapshot) bool { return s.Held == 1 }); err != nil {
		t.Fatal(err)
	}
	d.wantRefusal(d.refund(charge, "key-1").err, http.StatusConflict, stripe.ErrorTypeInvalidRequest, "idempotency_key_in_use")
	close(release)
	if a := <-first; a.err != nil {
		t.Error(a.err)
	}
	if a := d.refund(charge, "key-1"); a.err != nil || a.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %v with %v, want a replay", a.err, a.header)
	}
	d.wantEffects("refund.create", 1)
}

// After a day the key is forgotten: the same request refunds again. The event
// tells which key it was.
func TestForgottenKey(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	charge := d.seed(fake.Charge{Amount: 2000})
	for n := range 2 {
		if a := d.refund(charge, "key-1"); a.err != nil || a.header.Get("Idempotent-Replayed") != "" {
			t.Fatalf("got %v with %v, want an execution", a.err, a.header)
		}
		d.wantEffects("refund.create", n+1)
		d.fake.Advance(25 * time.Hour)
	}
	told := 0
	for e, err := range d.sc.V1Events.List(t.Context(), &stripe.EventListParams{Type: text("refund.created")}).All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Request == nil || e.Request.IdempotencyKey != "key-1" {
			t.Errorf("event %s has the request %+v, want the key", e.ID, e.Request)
		}
		told++
	}
	if told != 2 {
		t.Errorf("%d events, want 2", told)
	}
}

// API v2 gives the object as it is now, and runs again what failed.
func TestV2Resend(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	create := func() (*stripe.V2CoreAccount, error) {
		return d.sc.V2CoreAccounts.Create(t.Context(), &stripe.V2CoreAccountCreateParams{Params: keyed("key-1"), DisplayName: text("Shop")})
	}
	d.inject(fakeprovider.Fault{Kind: fakeprovider.Status500, Operation: "v2.account.create", Stored: true})
	if _, err := create(); err == nil {
		t.Fatal("the first call succeeded, want a 500")
	}
	made, err := create()
	if err != nil {
		t.Fatalf("after a failure: %v, want an execution", err)
	}
	if _, err := d.sc.V2CoreAccounts.Update(t.Context(), made.ID, &stripe.V2CoreAccountUpdateParams{DisplayName: text("Other")}); err != nil {
		t.Fatal(err)
	}
	again, err := create()
	if err != nil || again.ID != made.ID || again.DisplayName != "Other" {
		t.Errorf("got %+v and %v, want the account with its new name", again, err)
	}
	d.wantEffects("v2.account.create", 1)
}
