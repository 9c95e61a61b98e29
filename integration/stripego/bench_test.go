package stripego_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	skstripe "github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

const (
	account   = "acct_1Nv0FG"
	secretKey = "sk_test_integration"
)

// setting is what a bench differs in. The zero value is samekey's defaults under
// stripe-go's own, its retries on.
type setting struct {
	options outbound.Options
	dropin  *dropin.Options
	ledger  recordstore.Store
	baseURL string                                    // where Stripe is thought to be; defaults to the fake
	wire    func(http.RoundTripper) http.RoundTripper // put before the fake; defaults to nothing
}

// bench is stripe-go over the drop-in before a fake of Stripe.
type bench struct {
	*testing.T
	fake      *providertest.Fake
	client    *outbound.Client
	transport *dropin.Transport
	backends  *stripe.Backends
	sc        *stripe.Client
	trips     *trips
	logs      *logs
}

func newBench(t *testing.T, s setting) *bench {
	t.Helper()
	b := &bench{T: t, logs: &logs{}}
	b.fake = providertest.Stripe(t, &providertest.Options{Stripe: providertest.StripeSettings{Account: account}})
	if s.baseURL == "" {
		s.baseURL = b.fake.URL
	}
	if s.ledger == nil {
		s.ledger = memory.New(nil)
	}
	if s.options.Retry.MinWait == 0 {
		s.options.Retry.MinWait, s.options.Retry.MaxWait = time.Millisecond, 10*time.Millisecond
	}
	s.options.Telemetry.Logger = slog.New(slog.NewTextHandler(b.logs, nil))
	wire := b.fake.Transport()
	if s.wire != nil {
		wire = s.wire(wire)
	}
	api := skstripe.New(skstripe.Config{Account: account, SecretKey: secretKey, Test: true, BaseURL: s.baseURL, Transport: wire})
	var err error
	if b.client, err = outbound.New(api, s.ledger, &s.options); err != nil {
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
	b.backends = newBackends(t, hc, s.baseURL)
	b.sc = stripe.NewClient(secretKey, stripe.WithBackends(b.backends))
	return b
}

// newBackends is stripe-go's own set-up, its retries on. Only their pauses are
// left out.
func newBackends(t *testing.T, hc *http.Client, url string) *stripe.Backends {
	t.Helper()
	backends := stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		HTTPClient: hc, URL: stripe.String(url), LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	api, ok := backends.API.(*stripe.BackendImplementation)
	if !ok {
		t.Fatalf("the backend is a %T", backends.API)
	}
	api.SetNetworkRetriesSleep(false)
	return backends
}

// trips counts how often the SDK calls its transport.
type trips struct {
	base http.RoundTripper
	n    atomic.Int64
}

func (c *trips) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.base.RoundTrip(r)
}

// logs keeps samekey's log lines.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// answer is what the SDK gave to its caller.
type answer struct {
	id     string
	header http.Header // as LastResponse has it, of an error too where the SDK keeps it
	err    error
}

func of(r stripe.APIResource, id string, err error) answer {
	a := answer{id: id, err: err}
	if e, ok := errors.AsType[*stripe.Error](err); ok {
		r = e.APIResource
	}
	if r.LastResponse != nil {
		a.header = r.LastResponse.Header
	}
	return a
}

// named puts a command into the test's context.
func (b *bench) named(id string) context.Context {
	return outbound.WithCommand(b.Context(), outbound.Command{ID: id})
}

// refund is a partial refund: sent again under another key, it refunds again.
func (b *bench) refund(ctx context.Context, charge string) answer {
	return b.refundOf(ctx, charge, 500)
}

func (b *bench) refundOf(ctx context.Context, charge string, amount int64) answer {
	r, err := b.sc.V1Refunds.Create(ctx, &stripe.RefundCreateParams{Charge: &charge, Amount: &amount})
	return of(r.APIResource, r.ID, err)
}

func (b *bench) charge() string {
	return b.fake.Seed(providertest.Charge{Amount: 2000, Currency: "eur"})
}

// wantLabel holds that an answer reached the SDK's caller as a success that says
// what it is.
func (b *bench) wantLabel(a answer, evidence outbound.Evidence, origin outbound.Origin) {
	b.Helper()
	label, err := dropin.Read(a.header)
	h := a.header.Get
	if a.err != nil || err != nil || label != evidence.Label() || h(dropin.HeaderEvidence) != string(evidence) ||
		h(dropin.HeaderOrigin) != string(origin) || h(dropin.HeaderEffect) != "applied" {
		b.Fatalf("got %v with %q by %q from %q, effect %q (%v); want %q by %q from %q", a.err, label,
			h(dropin.HeaderEvidence), h(dropin.HeaderOrigin), h(dropin.HeaderEffect), err, evidence.Label(), evidence, origin)
	}
}

// wantError holds that a failure reached the SDK's caller as Stripe's own error,
// with what samekey knows beside it.
func (b *bench) wantError(a answer, status int, code outbound.Code, effect outbound.Effect) *stripe.Error {
	b.Helper()
	e, ok := errors.AsType[*stripe.Error](a.err)
	if !ok {
		b.Fatalf("got a %T %v, want a *stripe.Error", a.err, a.err)
	}
	_, err := dropin.Read(a.header)
	if e.HTTPStatusCode != status || !errors.Is(err, code) || outbound.EffectOf(err) != effect {
		b.Fatalf("got %d %v (%v, effect %v), want %d, code %s, effect %v", e.HTTPStatusCode, e, err, outbound.EffectOf(err), status, code, effect)
	}
	return e
}

func (b *bench) wantTrips(n int64) {
	b.Helper()
	if got := b.trips.n.Swap(0); got != n {
		b.Errorf("stripe-go called its transport %d times, want %d", got, n)
	}
}

// wantSent holds that an operation had so many effects in so many deliveries,
// all with the same bytes (C02) and the key that samekey derives for the command
// (C04, R3).
func (b *bench) wantSent(command, operation string, effects, deliveries int) {
	b.Helper()
	if got := b.fake.Effects(operation); got != effects {
		b.Errorf("%s had %d effects, want %d", operation, got, effects)
	}
	requests := b.fake.Requests(operation)
	if len(requests) != deliveries {
		b.Errorf("%s was delivered %d times, want %d: %+v", operation, len(requests), deliveries, requests)
	}
	var hash [32]byte // of no key
	if operation != "subscription.cancel" {
		hash = sha256.Sum256([]byte(b.key(command, operation)))
	}
	for i, r := range requests {
		if r.KeyHash != hash || r.BodyHash != requests[0].BodyHash {
			b.Errorf("delivery %d of %s has another key or other bytes", i+1, operation)
		}
	}
}

// ledgerEvidence is what the ledger's copy of an answer says: that of a latest
// status stays one.
func (a answer) ledgerEvidence() outbound.Evidence {
	if e := outbound.Evidence(a.header.Get(dropin.HeaderEvidence)); e.Label() == outbound.LatestStatus {
		return e
	}
	return "own_record"
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
