// Package providertest holds fakes of providers, for tests of services that use
// samekey, and the conformance kit, for tests of adapters. It is for tests;
// nothing in production should import it.
//
// # Fakes
//
// A fake behaves as the provider's documentation says about keys (windows,
// conflicts, replays), holds real object state, loses answers on demand, and
// counts what really happened:
//
//	fake := providertest.Stripe(t, nil)
//	charge := fake.Seed(providertest.Charge{Amount: 1250, Currency: "eur"})
//	fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"})
//	// … refund charge through the code under test, which speaks to fake.URL …
//	if got := fake.Effects("refund.create"); got != 1 {
//		t.Errorf("effects = %d, want 1", got)
//	}
//
// Operations have the names of samekey's tables: "payment_intent.capture".
// AddEndpoint delivers the provider's signed webhooks to a handler or a URL, now,
// late, repeatedly or out of order.
//
// # The conformance kit
//
// Run judges an adapter: one test, some forty cases for each operation. An author
// gives the adapter, a fake of its provider, and calls:
//
//	func TestKit(t *testing.T) {
//		providertest.Run(t, providertest.Kit{
//			New: func(_ testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter {
//				return square.New(square.Config{Merchant: "ML1", Token: "sandbox-token", Sandbox: true, BaseURL: baseURL, Transport: rt})
//			},
//			Provider: providertest.JSONDialect(providertest.JSONProvider{
//				Key: rs.JSON("/idempotency_key"), KeyMax: 45, Compare: true,
//				Operations: []providertest.JSONOperation{{Name: "payment.create", Path: "/v2/payments"}},
//			}),
//			Samples: []providertest.Sample{{
//				Call: func(cmd outbound.Command, _ string) outbound.Call {
//					return square.PaymentCreate(cmd, map[string]any{"source_id": "cnon:ok", "amount_money": money})
//				},
//			}},
//		})
//	}
//
// JSONProvider describes a provider that speaks JSON: its routes, where the key
// stands, its window, what a repeated key gives, how a replay looks, the shape of
// errors. A provider that needs more is a Dialect, written by hand. The fake is
// written from the provider's documentation, not from the adapter: where both
// share a mistake, nothing can find it.
//
// The judge is the fake's count of what happened: an answer that claims an effect,
// a proof that there was none, or a label, is compared with it. An operation
// without a key is judged too: it may never be sent again once it may have
// executed.
package providertest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// Options are a fake's settings. A nil *Options means the defaults.
type Options struct {
	// InMemory serves over an in-memory network, so that the clock of
	// testing/synctest can move; only Client and Transport reach it. Defaults to
	// a socket of the loopback interface.
	InMemory bool
	// Lenient accepts what the provider would refuse: at Stripe parameters that an
	// operation does not have, at PayPal any token or none. Defaults to refusing.
	Lenient bool
	// Strict refuses a write without a key where the operation takes one. Defaults to
	// executing it, as most providers do.
	Strict bool
	// Seed makes chances and object ids repeatable. Defaults to 1.
	Seed uint64
	// Stripe and PayPal are settings of one provider's fake.
	Stripe StripeSettings
	PayPal PayPalSettings
}

// StripeSettings answer what Stripe's documentation leaves open. Each field's
// zero value is the cautious answer; a test may try the other one.
type StripeSettings struct {
	// Account is the id of the account that the keys belong to. Defaults to
	// "acct_1FakeStripe".
	Account string
	// KeysAcrossAccounts makes one key of the same key under two accounts or
	// modes. Defaults to separate keys.
	KeysAcrossAccounts bool
	// KeepNotFound makes a v1 key remember a 404. Defaults to running again.
	KeepNotFound bool
	// V2ReplayHeader puts Idempotent-Replayed on v2 replays. Defaults to none.
	V2ReplayHeader bool
	// V2IgnoresBody makes v2 answer a repeated key whatever the parameters are.
	// Defaults to refusing other parameters.
	V2IgnoresBody bool
	// SearchLag is how old an object must be before a search finds it. Defaults
	// to one minute; negative is none.
	SearchLag time.Duration
}

// PayPalSettings are the credentials and times of the PayPal fake, and answers to
// what PayPal's documentation leaves open.
type PayPalSettings struct {
	// ClientID and Secret are the only credentials that get a token. Defaults to
	// any that are not empty.
	ClientID, Secret string
	// TokenLifetime is how long a token lasts on the provider's clock. Defaults to
	// 9 hours.
	TokenLifetime time.Duration
	// OrderWindow is how long Orders v2 remembers a request id. Defaults to 6
	// hours; PayPal gives up to 72 by arrangement.
	OrderWindow time.Duration
	// KeepRefusals makes a request id remember a 422. Defaults to running again.
	KeepRefusals bool
	// CompareBodies refuses a known request id with another body on Orders and
	// Payments too. Defaults to giving the first result back.
	CompareBodies bool
	// MerchantKeys makes the apps of a merchant share their request ids. Defaults
	// to separate ones for each client id.
	MerchantKeys bool
	// Replay200 makes every replay of a creation answer 200. Defaults to 201 where
	// PayPal's guide shows it or names no signal.
	Replay200 bool
}

// Fake is a provider. It is safe for concurrent use and closed with the test.
type Fake struct {
	// URL is the base URL, without a slash at the end.
	URL string

	tb     testing.TB
	engine *fakeprovider.Fake
	server *fakeprovider.Server
	limit  time.Duration
	base   string // what webhooks call the provider
}

// Stripe starts a fake of Stripe's API v1 and v2. It accepts every secret or
// restricted key ("sk_test_…", "rk_live_…").
func Stripe(tb testing.TB, opts *Options) *Fake {
	tb.Helper()
	return start(tb, valueOf(opts), StripeDialect(opts))
}

// StripeDialect is the dialect of the Stripe fake, for Kit.Provider. InMemory and
// Seed are not for it.
func StripeDialect(opts *Options) func() Dialect {
	o := valueOf(opts)
	return stripe.New(stripe.Config{
		Account:            o.Stripe.Account,
		Lenient:            o.Lenient,
		KeysAcrossAccounts: o.Stripe.KeysAcrossAccounts,
		KeepNotFound:       o.Stripe.KeepNotFound,
		V2ReplayHeader:     o.Stripe.V2ReplayHeader,
		V2IgnoresBody:      o.Stripe.V2IgnoresBody,
		SearchLag:          o.Stripe.SearchLag,
	})
}

// PayPal starts a fake of PayPal's REST APIs, with its token endpoint.
func PayPal(tb testing.TB, opts *Options) *Fake {
	tb.Helper()
	f := start(tb, valueOf(opts), PayPalDialect(opts))
	f.base = payPalSandbox
	return f
}

// PayPalDialect is the dialect of the PayPal fake, for Kit.Provider. InMemory and
// Seed are not for it.
func PayPalDialect(opts *Options) func() Dialect {
	o := valueOf(opts)
	return paypal.New(paypal.Config{
		ClientID:      o.PayPal.ClientID,
		Secret:        o.PayPal.Secret,
		TokenLifetime: o.PayPal.TokenLifetime,
		OrderWindow:   o.PayPal.OrderWindow,
		KeepRefusals:  o.PayPal.KeepRefusals,
		CompareBodies: o.PayPal.CompareBodies,
		MerchantKeys:  o.PayPal.MerchantKeys,
		Replay200:     o.PayPal.Replay200,
		Lenient:       o.Lenient,
	})
}

func valueOf(opts *Options) Options {
	if opts == nil {
		return Options{}
	}
	return *opts
}

func start(tb testing.TB, o Options, dialect func() fakeprovider.Dialect) *Fake {
	tb.Helper()
	engine := fakeprovider.New(dialect, &fakeprovider.Options{Seed: o.Seed, Strict: o.Strict})
	f := &Fake{tb: tb, engine: engine, limit: socketLimit}
	if o.InMemory {
		f.limit = memoryLimit
		f.server = fakeprovider.InMemory(engine)
	} else {
		server, err := fakeprovider.Listen(engine)
		if err != nil {
			tb.Fatalf("providertest: cannot listen on the loopback interface: %v", err)
		}
		f.server = server
	}
	f.URL, f.base = f.server.URL, f.server.URL
	tb.Cleanup(f.server.Close)
	return f
}

// Transport returns a new transport that reaches the fake over connections of
// its own. They are closed with the test.
func (f *Fake) Transport() http.RoundTripper { return f.server.Transport() }

// Client returns a new client over a Transport. It has no timeout.
func (f *Fake) Client() *http.Client { return &http.Client{Transport: f.Transport()} }

// Handler returns the fake as a handler, for a server of the test's own. There
// ResetReused never strikes.
func (f *Fake) Handler() http.Handler { return f.engine }

// Advance moves the provider's clock forward: keys run out, and waits whose
// Delay has passed end.
func (f *Fake) Advance(d time.Duration) { f.engine.Advance(d) }

// Now is the provider's clock.
func (f *Fake) Now() time.Time { return f.engine.Now() }

// Reset forgets objects, keys, faults, effects, requests and the clock's offset.
func (f *Fake) Reset() { f.engine.Reset() }

// Effects returns how many effects operation really had; "" counts all. A
// decline or a refusal has none, whatever object remains. An operation that the
// provider does not have fails the test.
func (f *Fake) Effects(operation string) int {
	f.tb.Helper()
	if operation != "" && !f.engine.Knows(operation) {
		f.tb.Errorf("providertest: the provider has no operation %q", operation)
	}
	return f.engine.Effects(operation)
}

// EffectsOfKey returns how many effects a raw key had.
func (f *Fake) EffectsOfKey(key string) int { return f.engine.EffectsOfKey(key) }

// Duplicates returns how many effects there were beyond the first of one
// operation under one key.
func (f *Fake) Duplicates() int { return f.engine.Report().Duplicates }

// Request is a request as the provider saw it. It holds no key and no body.
type Request struct {
	At        time.Time // on the provider's clock
	Method    string
	Path      string
	Operation string   // "" for an unknown route
	KeyHash   [32]byte // SHA-256 of the raw key; zero for none
	BodyHash  [32]byte // SHA-256 of the body's bytes
	Delivery  int      // 1 for the first request with this key; 0 without a key
	RequestID string   // the provider's own id, as in its answer
	Status    int      // of the answer; 0 for a dropped connection, or not yet
	Replayed  bool     // the answer came from the key, not from an execution
	Fault     Kind     // what went wrong, "" for nothing
}

// Requests returns the last requests of operation, oldest first; "" returns
// all. The last 20,000 are kept.
func (f *Fake) Requests(operation string) []Request {
	log := f.engine.Requests(operation)
	out := make([]Request, len(log))
	for i, e := range log {
		out[i] = Request{At: e.At, Method: e.Method, Path: e.Path, Operation: e.Operation, KeyHash: e.KeyHash,
			BodyHash: e.BodyHash, Delivery: e.Delivery, RequestID: e.RequestID, Status: e.Status,
			Replayed: e.Replayed, Fault: Kind(e.Fault)}
	}
	return out
}

// Seed puts object in place and returns its id. It has no effect in the ledger.
// The types of this package that say "seeds" can be given, each to its provider.
func (f *Fake) Seed(object any) string {
	f.tb.Helper()
	id, err := f.engine.Seed(engineSeed(object))
	if err != nil {
		f.tb.Fatalf("providertest: %v", err)
	}
	return id
}

// How long a test waits for what never comes. In memory the time is the bubble's
// own, which costs nothing.
const (
	socketLimit = 30 * time.Second
	memoryLimit = 30 * 24 * time.Hour
)

// AwaitRequests blocks until n requests of operation ("" for all) have arrived
// since the fake started. It fails the test after 30 s, in memory after 30 days;
// call it from the test's goroutine.
func (f *Fake) AwaitRequests(operation string, n int) {
	f.tb.Helper()
	f.await(operation, "requests", func(s fakeprovider.Snapshot) bool { return s.Arrived >= n })
}

// AwaitEffects blocks until operation ("" for all) has had n effects, as a late
// one may be on its way. Otherwise like AwaitRequests.
func (f *Fake) AwaitEffects(operation string, n int) {
	f.tb.Helper()
	f.await(operation, "effects", func(s fakeprovider.Snapshot) bool { return s.Effects >= n })
}

// AwaitHeld blocks until n requests and late effects are being held by Hang,
// SlowApply or LateApply. Otherwise like AwaitRequests.
func (f *Fake) AwaitHeld(n int) {
	f.tb.Helper()
	f.await("", "held requests", func(s fakeprovider.Snapshot) bool { return s.Held >= n })
}

func (f *Fake) await(operation, what string, done func(fakeprovider.Snapshot) bool) {
	f.tb.Helper()
	ctx, cancel := context.WithTimeout(f.tb.Context(), f.limit)
	defer cancel()
	if err := f.engine.Await(ctx, operation, done); err != nil {
		f.tb.Fatalf("providertest: waiting for %s of %q: %v", what, operation, err)
	}
}
