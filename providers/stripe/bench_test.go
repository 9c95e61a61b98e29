package stripe_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

const account = "acct_1"

// bench is a client on an empty ledger before a fake of Stripe, inside a bubble
// whose clock is the provider's and the ledger's too.
type bench struct {
	*testing.T
	fake   *providertest.Fake
	client *outbound.Client
	wire   *wire
	charge string
}

// run runs test on a bench. change may change the settings; it may be nil.
func run(t *testing.T, change func(*stripe.Config, *outbound.Options), test func(b *bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, fake: providertest.Stripe(t, &providertest.Options{
			InMemory: true, Stripe: providertest.StripeSettings{Account: account},
		})}
		b.wire = &wire{base: b.fake.Transport()}
		cfg := stripe.Config{Account: account, SecretKey: "sk_test_bench", Test: true, BaseURL: b.fake.URL, Transport: b.wire}
		opts := &outbound.Options{}
		if change != nil {
			change(&cfg, opts)
		}
		client, err := outbound.New(stripe.New(cfg), memory.New(nil), opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		b.client, b.charge = client, b.fake.Seed(providertest.Charge{Amount: 2000, Currency: "eur"})
		test(b)
	})
}

// refund is a partial refund: resent blindly past the window, it would refund again.
func (b *bench) refund(id string) outbound.Call {
	return stripe.RefundCreate(outbound.Command{ID: id}, url.Values{"charge": {b.charge}, "amount": {"500"}})
}

// reply is the answer to a call that must succeed.
func (b *bench) reply(call outbound.Call) *outbound.Reply {
	b.Helper()
	reply, err := b.client.Do(b.Context(), call)
	if err != nil {
		b.Fatal(err)
	}
	return reply
}

// failure is the error of a call that must fail.
func (b *bench) failure(call outbound.Call, code outbound.Code, effect outbound.Effect) *outbound.Error {
	b.Helper()
	_, err := b.client.Do(b.Context(), call)
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok || e.Code != code || e.Effect != effect {
		b.Fatalf("got %v, want code %s, effect %v", err, code, effect)
	}
	return e
}

func (b *bench) wantLabel(r *outbound.Reply, evidence outbound.Evidence, origin outbound.Origin) {
	b.Helper()
	if r == nil || r.Evidence != evidence || r.Label != evidence.Label() || r.Origin != origin {
		b.Fatalf("got %+v, want evidence %s from %s", r, evidence, origin)
	}
}

// wantOnce holds that an operation had one effect in so many deliveries, all
// with the same key and the same bytes (C02, C04).
func (b *bench) wantOnce(operation string, deliveries int) {
	b.Helper()
	b.wantDeliveries(operation, 1, deliveries)
}

func (b *bench) wantDeliveries(operation string, effects, deliveries int) {
	b.Helper()
	if got := b.fake.Effects(operation); got != effects {
		b.Errorf("%s had %d effects, want %d", operation, got, effects)
	}
	requests := b.fake.Requests(operation)
	if len(requests) != deliveries {
		b.Errorf("%s was delivered %d times, want %d: %+v", operation, len(requests), deliveries, requests)
	}
	for _, r := range requests {
		if r.KeyHash != requests[0].KeyHash || r.BodyHash != requests[0].BodyHash {
			b.Errorf("%s: a delivery has another key or other bytes than the first", operation)
		}
	}
}

// wire keeps what was sent.
type wire struct {
	base http.RoundTripper
	mu   sync.Mutex
	sent []sent
}

type sent struct {
	method, path, query string
	header              http.Header
	body                string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	w.mu.Lock()
	w.sent = append(w.sent, sent{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Clone(), string(body)})
	w.mu.Unlock()
	return w.base.RoundTrip(r)
}

// writes are the requests that were no look-ups.
func (w *wire) writes() (list []sent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sent {
		if s.method != http.MethodGet {
			list = append(list, s)
		}
	}
	return list
}

func (s sent) form(t *testing.T) url.Values {
	t.Helper()
	v, err := url.ParseQuery(s.body)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
