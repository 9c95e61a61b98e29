package providertest_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// A service hears of a refund whose answer was lost.
func ExampleFake_AddEndpoint() {
	_ = func(t *testing.T) {
		fake := providertest.Stripe(t, nil)
		charge := fake.Seed(providertest.Charge{Amount: 1250})
		api := stripe.New(stripe.Config{Account: "acct_1FakeStripe", Test: true, SecretKey: "sk_test_1", BaseURL: fake.URL})
		payments, err := outbound.New(api, memory.New(nil), &outbound.Options{Retry: outbound.Retry{Attempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		fake.AddEndpoint(providertest.Endpoint{
			Handler: stripeWebhooks(payments, "whsec_of_the_test"), Secret: "whsec_of_the_test",
			Events: []string{"refund.created"}, Hold: true,
		})
		fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"})
		refund := stripe.RefundCreate(outbound.Command{ID: "refund_1"}, map[string][]string{"charge": {charge}})
		if _, err := payments.Do(t.Context(), refund); outbound.EffectOf(err) != outbound.EffectUnknown {
			t.Fatalf("got %v, want an unknown effect", err)
		}

		fake.Deliver(providertest.OldestFirst) // the webhook comes now
		fake.AwaitDeliveries(1)
		status, err := payments.Status(t.Context(), refund.Command, refund.Operation)
		if err != nil || status.DueAt.After(time.Now()) {
			t.Errorf("%+v, %v: want that the webhook made the look-up due", status, err)
		}
		for _, d := range fake.Deliveries() {
			if d.Status != http.StatusNoContent {
				t.Errorf("a webhook was answered with %d %s", d.Status, d.Error)
			}
		}
	}
}

// stripeWebhooks is the handler of the service.
func stripeWebhooks(payments *outbound.Client, secret string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || stripe.Verify(body, r.Header.Get("Stripe-Signature"), 5*time.Minute, secret) != nil {
			http.Error(w, "not signed by Stripe", http.StatusBadRequest)
			return
		}
		seen, ours, err := stripe.Event(body)
		observe(w, r, payments, seen, ours, err)
	}
}

// observe answers a webhook: other than 2xx means that it is to come again.
func observe(w http.ResponseWriter, r *http.Request, payments *outbound.Client, seen outbound.Observation, ours bool, err error) {
	switch {
	case err != nil:
		http.Error(w, "no event", http.StatusBadRequest)
	case ours && payments.Observe(r.Context(), seen) != nil:
		http.Error(w, "try again", http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// An adapter's author lets the fake sign as the provider's pages say.
func ExampleJSONProvider_webhooks() {
	_ = func(t *testing.T) {
		fake := providertest.New(t, bank(), nil) // whose JSONProvider has Webhook: bankWebhook
		payments, err := outbound.New(newBank(fake.URL, nil), memory.New(nil), &outbound.Options{Retry: outbound.Retry{Attempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		fake.AddEndpoint(providertest.Endpoint{Handler: bankWebhooks(payments, "secret-of-the-test"), Secret: "secret-of-the-test", Repeat: 2})
		fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply})
		call := transfer("x", 100)(outbound.Command{ID: "transfer_1"}, "")
		if _, err := payments.Do(t.Context(), call); outbound.EffectOf(err) == outbound.EffectNone {
			t.Fatalf("got %v, want an effect or an unknown one", err)
		}

		fake.AwaitDeliveries(2)
		status, err := payments.Status(t.Context(), call.Command, call.Operation)
		if err != nil || status.State != recordstore.Succeeded {
			t.Errorf("%+v, %v: want that the webhook settled the command", status, err)
		}
	}
}

// bankWebhook is a JSONProvider.Webhook: the bank signs the body.
func bankWebhook(e providertest.Event, to providertest.Endpoint, _ time.Time) (providertest.Webhook, error) {
	body, err := json.Marshal(map[string]any{"id": e.ID, "type": e.Type, "key": e.Key, "transfer": e.Object})
	return providertest.Webhook{
		Header: http.Header{"Content-Type": {"application/json"}, "Bank-Signature": {bankSignature(to.Secret, body)}}, Body: body,
	}, err
}

func bankSignature(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// bankWebhooks is the handler of the service.
func bankWebhooks(payments *outbound.Client, secret string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || !hmac.Equal([]byte(r.Header.Get("Bank-Signature")), []byte(bankSignature(secret, body))) {
			http.Error(w, "not signed by the bank", http.StatusBadRequest)
			return
		}
		var e struct {
			ID, Type, Key string
			Transfer      struct{ ID, Status string }
		}
		err = json.Unmarshal(body, &e)
		key, foreign := keyderive.Parse(e.Key)
		observe(w, r, payments, outbound.Observation{
			Provider: "bank", Key: key, Operations: []string{"transfer.create"}, Effect: outbound.EffectApplied,
			EventID: e.ID, EventType: e.Type, ExternalRef: e.Transfer.ID, ObjectStatus: e.Transfer.Status,
		}, foreign == nil, err)
	}
}
