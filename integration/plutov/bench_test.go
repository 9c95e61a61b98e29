package plutov_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	plutov "github.com/plutov/paypal/v4"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

const (
	clientID = "client"
	secret   = "secret"
)

// bench is plutov/paypal over the drop-in before a fake of PayPal.
type bench struct {
	*testing.T
	fake      *providertest.Fake
	client    *outbound.Client
	transport *dropin.Transport
	pp        *plutov.Client
	trips     *trips
}

type setting struct {
	retry  outbound.Retry
	dropin *dropin.Options
	// wire stands between samekey and the fake; it may be nil.
	wire func(http.RoundTripper) http.RoundTripper
}

func newBench(t *testing.T, s setting) *bench {
	t.Helper()
	b := &bench{T: t, fake: providertest.PayPal(t, nil)}
	wire := b.fake.Transport()
	if s.wire != nil {
		wire = s.wire(wire)
	}
	s.retry.MinWait, s.retry.MaxWait = time.Millisecond, 10*time.Millisecond
	var err error
	b.client, err = outbound.New(paypal.New(paypal.Config{
		Account: "7LNZBW6JPQ3TN", ClientID: clientID, Secret: secret, Sandbox: true, BaseURL: b.fake.URL, Transport: wire,
	}), memory.New(nil), &outbound.Options{Retry: s.retry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if b.transport, err = dropin.New(b.client, s.dropin); err != nil {
		t.Fatal(err)
	}
	b.trips = &trips{base: b.transport}
	hc := b.transport.Client()
	hc.Transport = b.trips
	if b.pp, err = plutov.NewClient(clientID, secret, b.fake.URL); err != nil {
		t.Fatal(err)
	}
	b.pp.SetHTTPClient(hc)
	return b
}

// trips counts how often the SDK calls its transport for a write.
type trips struct {
	base http.RoundTripper
	n    atomic.Int64
}

func (c *trips) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.URL.Path != "/v1/oauth2/token" {
		c.n.Add(1)
	}
	return c.base.RoundTrip(r)
}

func (b *bench) wantTrips(n int64) {
	b.Helper()
	if got := b.trips.n.Swap(0); got != n {
		b.Errorf("plutov/paypal called its transport for %d writes, want %d", got, n)
	}
}

// track puts a command into the test's context: plutov hands out no header of a
// success.
func (b *bench) track(id string) (context.Context, *outbound.Tracked) {
	return outbound.Track(b.Context(), outbound.Command{ID: id})
}

// wantLabel holds that a call succeeded for the SDK's caller and for samekey.
func (b *bench) wantLabel(call *outbound.Tracked, err error, evidence outbound.Evidence, origin outbound.Origin) *outbound.Reply {
	b.Helper()
	reply, failed := call.Result()
	if err != nil || failed != nil {
		b.Fatalf("got %v and %v, want a success", err, failed)
	}
	if reply.Evidence != evidence || reply.Label != evidence.Label() || reply.Origin != origin {
		b.Fatalf("got %q by %q from %q, want %q by %q from %q", reply.Label, reply.Evidence, reply.Origin, evidence.Label(), evidence, origin)
	}
	return reply
}

// wantError holds that a failure reached the SDK's caller as PayPal's own error,
// which can be printed.
func (b *bench) wantError(call *outbound.Tracked, err error, status int, code outbound.Code, effect outbound.Effect) *plutov.ErrorResponse {
	b.Helper()
	e, ok := errors.AsType[*plutov.ErrorResponse](err)
	if !ok {
		b.Fatalf("got a %T %v, want a *paypal.ErrorResponse", err, err)
	}
	if e.Error() == "" || e.Name == "" || len(e.Details) == 0 {
		b.Errorf("got %+v, want PayPal's shape", e)
	}
	_, read := dropin.Read(e.Response.Header)
	_, failed := call.Result()
	if e.Response.StatusCode != status || !errors.Is(failed, code) || !errors.Is(read, code) || outbound.EffectOf(failed) != effect || outbound.EffectOf(read) != effect {
		b.Fatalf("got %d, %v and %v, want %d, code %s, effect %v", e.Response.StatusCode, failed, read, status, code, effect)
	}
	return e
}

// wantSent holds that an operation had so many effects in so many deliveries, all
// with the same bytes (C02) and, where the operation has one, samekey's own key
// (C04).
func (b *bench) wantSent(command, operation string, effects, deliveries int, keyed bool) {
	b.Helper()
	if got := b.fake.Effects(operation); got != effects {
		b.Errorf("%s had %d effects, want %d", operation, got, effects)
	}
	requests := b.fake.Requests(operation)
	if len(requests) != deliveries {
		b.Errorf("%s was delivered %d times, want %d: %+v", operation, len(requests), deliveries, requests)
	}
	var hash [32]byte // of no key
	if keyed {
		hash = sha256.Sum256([]byte(b.key(command, operation)))
	}
	for i, r := range requests {
		if r.KeyHash != hash || r.BodyHash != requests[0].BodyHash {
			b.Errorf("delivery %d of %s has another key or other bytes", i+1, operation)
		}
	}
}

// key is the raw key that samekey derives.
func (b *bench) key(command, operation string) string {
	b.Helper()
	key, err := b.client.Key(outbound.Command{ID: command}, operation, "")
	if err != nil {
		b.Fatal(err)
	}
	return key.Raw()
}
