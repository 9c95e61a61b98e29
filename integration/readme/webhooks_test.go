package readme_test

import (
	"crypto/x509"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// observing answers webhooks: verify says whether one is genuine.
func observing(payments *outbound.Client, verify func(*http.Request, []byte) error, read func([]byte) (outbound.Observation, bool, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || verify(r, body) != nil {
			http.Error(w, "not signed", http.StatusBadRequest)
			return
		}
		seen, ours, err := read(body)
		if err != nil || ours && payments.Observe(r.Context(), seen) != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// wantAnswered wants that there were deliveries, and that each was taken.
func wantAnswered(t *testing.T, fake *providertest.Fake) {
	t.Helper()
	all := fake.Deliveries()
	if len(all) == 0 {
		t.Error("no webhook was delivered")
	}
	for _, d := range all {
		if d.Status != http.StatusNoContent {
			t.Errorf("a webhook was answered with %d %s", d.Status, d.Error)
		}
	}
}

func TestStripeWebhookOfThePage(t *testing.T) {
	fake := providertest.Stripe(t, nil)
	refund := stripe.RefundCreate(outbound.Command{ID: "refund_1"}, map[string][]string{"charge": {fake.Seed(providertest.Charge{Amount: 1250})}})
	api := stripe.New(stripe.Config{Account: "acct_1FakeStripe", Test: true, SecretKey: "sk_test_1", BaseURL: fake.URL})
	payments, err := outbound.New(api, memory.New(nil), &outbound.Options{Retry: outbound.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	webhooks := observing(payments, func(r *http.Request, body []byte) error {
		return stripe.Verify(body, r.Header.Get("Stripe-Signature"), 5*time.Minute, "whsec_of_the_test")
	}, stripe.Event)
	fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"})
	func() {
		fake.AddEndpoint(providertest.Endpoint{Handler: webhooks, Secret: "whsec_of_the_test", Events: []string{"refund.created"}, Hold: true})
		_, err := payments.Do(t.Context(), refund) // its answer is lost
		fake.Deliver(providertest.OldestFirst)
		fake.AwaitDeliveries(1) // your handler has answered
		if outbound.EffectOf(err) != outbound.EffectUnknown {
			t.Errorf("got %v, want an unknown effect", err)
		}
	}()
	wantAnswered(t, fake)
}

func TestPayPalWebhookOfThePage(t *testing.T) {
	fake := providertest.PayPal(t, nil)
	order := fake.Seed(providertest.ApprovedOrder{Value: "12.50", Currency: "EUR"})
	api := paypal.New(paypal.Config{Account: "M1", ClientID: "id", Secret: "s", Sandbox: true, BaseURL: fake.URL})
	pp, err := outbound.New(api, memory.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	handler := func(v *paypal.Verifier) http.Handler {
		return observing(pp, func(r *http.Request, body []byte) error { return v.Verify(r.Context(), r.Header, body) }, paypal.Event)
	}
	verifier := &paypal.Verifier{Sandbox: true, Certificate: fake.Certificate, Roots: x509.NewCertPool()}
	e := fake.AddEndpoint(providertest.Endpoint{Handler: handler(verifier)})
	verifier.WebhookID = e.ID
	verifier.Roots.AppendCertsFromPEM([]byte(e.Authority))
	if _, err := pp.Do(t.Context(), paypal.OrderCapture(outbound.Command{ID: "cap_1"}, order, nil)); err != nil {
		t.Fatal(err)
	}
	fake.AwaitDeliveries(1)
	wantAnswered(t, fake)
}
