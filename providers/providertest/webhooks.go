package providertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

type (
	// Endpoint is where a fake delivers its webhooks:
	//
	//	URL       string       // on this machine; for a Handler it may be "": then http://127.0.0.1/webhooks
	//	Handler   http.Handler // takes the webhooks in this process, in memory too; nil: what listens at URL
	//	Base      string       // the provider's URL as webhooks name it; "": the sandbox at PayPal, else Fake.URL
	//	Events    []string     // the types to deliver; "charge.*" is a family; none: all
	//	Secret    string       // signs, where the provider signs with a secret; "": the fake makes one
	//	Hold      bool         // keeps new events back until Deliver
	//	Repeat    int          // how often each event is delivered; 0: once
	//	Attempts  int          // how often a delivery is tried that gets no 2xx; 0: 8 times, in 3 days of the provider's clock
	//	ID        string       // the provider's own, filled in by AddEndpoint: paypal.Verifier.WebhookID
	//	Authority string       // PEM of what PayPal's certificate is of, filled in by AddEndpoint: for paypal.Verifier.Roots
	Endpoint = fakeprovider.Endpoint

	// Webhook is one delivery as it is sent: Header http.Header and Body []byte.
	Webhook = fakeprovider.Webhook

	// DeliveryLog is one attempt to deliver a webhook: At (on the provider's clock),
	// Endpoint and Event (their ids), Type, Attempt (from 1), Status of the answer
	// (0 for none) and Error (why there was none).
	DeliveryLog = fakeprovider.DeliveryLog

	// Order is how Deliver sorts the webhooks that wait.
	Order = fakeprovider.Order
)

// The orders.
const (
	OldestFirst = fakeprovider.OldestFirst // As they happened.
	NewestFirst = fakeprovider.NewestFirst // The other way round.
	Shuffled    = fakeprovider.Shuffled    // By Options.Seed.
)

// payPalSandbox is what PayPal's webhooks call their provider: a paypal.Verifier
// takes certificates from PayPal's own hosts only.
const payPalSandbox = "https://api-m.sandbox.paypal.com"

// AddEndpoint starts to deliver webhooks of the events to come, one after the
// other, signed as the provider signs, at the test's own clock. It returns the
// endpoint with what the fake filled in. An endpoint that cannot be, and a fake
// without webhooks, fail the test. It ends with the test; a Handler's last request
// is waited for.
func (f *Fake) AddEndpoint(e Endpoint) Endpoint {
	f.tb.Helper()
	if e.Base == "" {
		e.Base = f.base
	}
	e, err := f.engine.AddEndpoint(e)
	if err != nil {
		f.tb.Fatalf("providertest: %v", err)
	}
	return e
}

// RemoveEndpoints ends all deliveries and forgets what waits.
func (f *Fake) RemoveEndpoints() { f.engine.RemoveEndpoints() }

// Deliver makes every webhook due that waits, held back or after a failure, in an
// order, and returns how many there are. AwaitDeliveries waits for them.
func (f *Fake) Deliver(order Order) int { return f.engine.Deliver(order) }

// DeliverAgain delivers one event times more to every endpoint; Deliveries names
// its id. An event that the fake does not know fails the test.
func (f *Fake) DeliverAgain(event string, times int) {
	f.tb.Helper()
	if _, err := f.engine.DeliverAgain(event, times); err != nil {
		f.tb.Fatalf("providertest: %v", err)
	}
}

// Deliveries returns the attempts to deliver webhooks, oldest first. The last
// 20,000 are kept.
func (f *Fake) Deliveries() []DeliveryLog { return f.engine.Deliveries() }

// AwaitDeliveries blocks until n webhooks have been answered, or failed, since the
// fake started. Otherwise like AwaitRequests.
func (f *Fake) AwaitDeliveries(n int) {
	f.tb.Helper()
	f.await("", "deliveries", func(s fakeprovider.Snapshot) bool { return s.Delivered >= n })
}

// Certificate returns the chain (PEM) that a webhook's certificate URL names: it is
// a paypal.Verifier.Certificate that asks the fake instead of PayPal.
func (f *Fake) Certificate(ctx context.Context, certURL string) ([]byte, error) {
	u, err := url.Parse(certURL)
	if err != nil {
		return nil, errors.New("providertest: the certificate's URL is none")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+u.EscapedPath(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := f.Client().Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("providertest: the fake has no such certificate: status %d", resp.StatusCode)
	}
	return io.ReadAll(resp.Body)
}

// Register implements Notifier.
func (d *jsonDialect) Register(e *Endpoint, random func(int, string) string) error {
	if d.provider.Webhook == nil {
		return errors.New("this provider sends no webhooks: set JSONProvider.Webhook, and JSONOperation.Event")
	}
	e.ID = "wh_" + random(16, lowerDigits)
	if e.Secret == "" {
		e.Secret = random(32, lowerDigits)
	}
	return nil
}

// Webhook implements Notifier.
func (d *jsonDialect) Webhook(e Event, to Endpoint, at time.Time) (Webhook, error) {
	return d.provider.Webhook(e, to, at)
}
