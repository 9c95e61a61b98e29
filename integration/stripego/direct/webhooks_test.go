package direct_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86/webhook"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fake "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// hooks is a service that takes webhooks.
type hooks struct{ arrived chan delivery }

type delivery struct {
	signature string
	body      []byte
}

func (h hooks) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	h.arrived <- delivery{r.Header.Get("Stripe-Signature"), body}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// A webhook passes the SDK's own check of signatures, has the specification's
// form, and names the key of the request that caused it.
func TestWebhook(t *testing.T) {
	t.Parallel()
	d := newDirect(t)
	e, err := d.fake.AddEndpoint(fakeprovider.Endpoint{URL: "http://127.0.0.1:9/hooks", Base: "http://provider.test", Events: []string{"refund.*"}})
	if err != nil {
		t.Fatal(err)
	}
	if a := d.refund(d.seed(fake.Charge{}), "key-1"); a.err != nil {
		t.Fatal(a.err)
	}
	var got delivery
	select {
	case got = <-d.hooks.arrived:
	case <-time.After(20 * time.Second):
		t.Fatal("no webhook arrived")
	}
	event, err := webhook.ConstructEventWithOptions(got.body, got.signature, e.Secret, webhook.ConstructEventOptions{IgnoreAPIVersionMismatch: true})
	if err != nil {
		t.Fatal(err)
	}
	if event.Type != "refund.created" || event.Request == nil || event.Request.IdempotencyKey != "key-1" {
		t.Errorf("got %s with the request %+v, want the refund's creation with its key", event.Type, event.Request)
	}
	if _, err := webhook.ConstructEvent(got.body, got.signature, "whsec_other"); err == nil {
		t.Error("another secret fits")
	}
	spec, err := specification()
	if err != nil {
		t.Fatal(err)
	}
	if err := spec.Check(http.MethodGet, "/v1/events/"+event.ID, http.StatusOK, got.body); err != nil {
		t.Error(err)
	}
}
