package stripe_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// webhook is a delivery as it arrived.
type webhook struct {
	header http.Header
	body   []byte
}

// hooks starts a service that takes webhooks, and the fake that sends them.
func hooks(t *testing.T) (*api, fakeprovider.Endpoint, <-chan webhook) {
	t.Helper()
	arrived := make(chan webhook, 10)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived <- webhook{r.Header, body}
	}))
	t.Cleanup(service.Close)
	a := newAPI(t, fakestripe.Config{})
	t.Cleanup(a.fake.Close)
	e, err := a.fake.AddEndpoint(fakeprovider.Endpoint{URL: service.URL, Base: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	return a, e, arrived
}

func next(t *testing.T, arrived <-chan webhook) webhook {
	t.Helper()
	select {
	case w := <-arrived:
		return w
	case <-time.After(20 * time.Second):
		t.Fatal("no webhook arrived")
		return webhook{}
	}
}

// A webhook carries the signature that a verifier of Stripe's scheme accepts,
// and what the request did, with its key.
func TestWebhookIsSigned(t *testing.T) {
	a, e, arrived := hooks(t)
	made := a.call("POST", "/v1/customers", "email=a%40example.com&description=a%3C%26%22", key("k1"))
	w := next(t, arrived)
	signature := w.header.Get("Stripe-Signature")
	if err := stripe.Verify(w.body, signature, time.Minute, e.Secret); err != nil {
		t.Errorf("%v: %q", err, signature)
	}
	if stripe.Verify(w.body, signature, time.Minute, "whsec_other") == nil || stripe.Verify(append(w.body, ' '), signature, time.Minute, e.Secret) == nil {
		t.Error("another secret or body is accepted too")
	}
	var event struct {
		ID, Object, Type string
		Data             struct {
			Object struct{ ID, Description string }
		}
		Request struct {
			ID  string
			Key string `json:"idempotency_key"`
		}
	}
	if err := json.Unmarshal(w.body, &event); err != nil {
		t.Fatal(err)
	}
	if event.Object != "event" || event.Type != "customer.created" || event.Request.Key != "k1" ||
		event.Data.Object.ID != made.json["id"] || event.Data.Object.Description != `a<&"` {
		t.Errorf("the event is %+v", event)
	}
	if got := a.call("GET", "/v1/events/"+event.ID, ""); got.status != 200 {
		t.Errorf("the event cannot be read: %d", got.status)
	}
}

// Events of a connected account name it; a chosen secret is used.
func TestWebhookOfConnectedAccount(t *testing.T) {
	a, _, arrived := hooks(t)
	a.call("POST", "/v1/customers", "email=a%40example.com", header("Stripe-Account", "acct_2"))
	var event struct{ Account string }
	if err := json.Unmarshal(next(t, arrived).body, &event); err != nil || event.Account != "acct_2" {
		t.Errorf("account %q, %v", event.Account, err)
	}
	for secret, want := range map[string]bool{"whsec_mine": true, "mine": false} {
		e, err := a.fake.AddEndpoint(fakeprovider.Endpoint{URL: "http://127.0.0.1:1/", Base: "http://127.0.0.1:1", Secret: secret})
		if (err == nil) != want || want && e.Secret != secret {
			t.Errorf("secret %q gives %q, %v", secret, e.Secret, err)
		}
	}
}
