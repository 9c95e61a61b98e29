package endtoend

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

const (
	stripeAccount = "acct_1"
	stripeSecret  = "sk_test_endtoend"
	paypalAccount = "MERCHANT1"
	paypalClient  = "client-endtoend"
	paypalSecret  = "secret-endtoend"
)

// door is the way a service reaches the client.
type door string

const (
	native door = "do"     // outbound.Client.Do
	sdk    door = "dropin" // an SDK's http.Client over package dropin
)

// bench is a service before one fake: its client, its ledger and its SDK.
type bench struct {
	*testing.T
	provider string
	door     door
	fake     *providertest.Fake
	path     string // of the ledger's file
	store    *sqlite.Store
	wire     *wire // what was sent
	seen     *seen // what was logged, traced and measured
	client   *outbound.Client
	caller   *caller // the SDK over the client
	charge   string  // at Stripe, to refund
}

// onStripe runs test once through each door, in a bubble whose clock is the
// provider's and the ledger's too. change may be nil.
func onStripe(t *testing.T, change func(*outbound.Options), test func(b *bench)) {
	t.Helper()
	inBubble(t, "stripe", change, test)
}

// onPayPal is onStripe before a fake of PayPal.
func onPayPal(t *testing.T, change func(*outbound.Options), test func(b *bench)) {
	t.Helper()
	inBubble(t, "paypal", change, test)
}

func inBubble(t *testing.T, provider string, change func(*outbound.Options), test func(b *bench)) {
	t.Helper()
	for _, d := range []door{native, sdk} {
		t.Run(provider+" by "+string(d), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(newBench(t, provider, d, true, change)) })
		})
	}
}

func newBench(t *testing.T, provider string, d door, inMemory bool, change func(*outbound.Options)) *bench {
	t.Helper()
	b := &bench{T: t, provider: provider, door: d, path: filepath.Join(t.TempDir(), "ledger.db")}
	opts := &providertest.Options{InMemory: inMemory}
	if provider == "stripe" {
		b.fake = providertest.Stripe(t, opts)
		b.charge = b.fake.Seed(providertest.Charge{Amount: 100_000, Currency: "eur"})
	} else {
		b.fake = providertest.PayPal(t, opts)
	}
	b.connect(nil, nil, change)
	return b
}

// restart is the service in another process: another client and other
// connections over the same ledger, before the same provider.
func (b *bench) restart(change func(*outbound.Options)) *bench {
	b.Helper()
	return b.rebuilt(nil, nil, change)
}

// rebuilt is restart with another clock of the ledger, and with something
// between client and ledger. Each may be nil.
func (b *bench) rebuilt(now func() time.Time, between func(recordstore.Store) recordstore.Store, change func(*outbound.Options)) *bench {
	b.Helper()
	other := *b
	other.connect(now, between, change)
	return &other
}

func (b *bench) connect(now func() time.Time, between func(recordstore.Store) recordstore.Store, change func(*outbound.Options)) {
	b.Helper()
	var err error
	if b.store, err = sqlite.Open(b.path, &sqlite.Options{Now: now}); err != nil {
		b.Fatal(err)
	}
	store := b.store
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	var ledger recordstore.Store = store
	if between != nil {
		ledger = between(ledger)
	}
	b.wire, b.seen = &wire{base: b.fake.Transport()}, newSeen(b.T)
	opts := &outbound.Options{Bodies: sealed(), Telemetry: b.seen.telemetry()}
	if change != nil {
		change(opts)
	}
	b.client = newClient(b.T, b.adapter(), ledger, opts)
	transport, err := dropin.New(b.client, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.caller = &caller{provider: b.provider, base: b.fake.URL, http: transport.Client()}
}

func (b *bench) adapter() *httpadapter.Adapter { return adapterOf(b.provider, b.fake.URL, b.wire) }

func adapterOf(provider, base string, rt http.RoundTripper) *httpadapter.Adapter {
	if provider == "stripe" {
		return stripe.New(stripe.Config{
			Account: stripeAccount, Test: true, SecretKey: stripeSecret,
			Version: "2025-09-30.clover", BaseURL: base, Transport: rt,
		})
	}
	return paypal.New(paypal.Config{
		Account: paypalAccount, Sandbox: true, ClientID: paypalClient, Secret: paypalSecret,
		BaseURL: base, Transport: rt,
	})
}

func sealed() outbound.Sealer {
	return outbound.Seal(outbound.SealKey{ID: "test", Bytes: []byte("0123456789abcdef0123456789abcdef")})
}

// newClient is outbound.New, closed with the test.
func newClient(t *testing.T, a outbound.Adapter, ledger recordstore.Store, opts *outbound.Options) *outbound.Client {
	t.Helper()
	client, err := outbound.New(a, ledger, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return client
}

func cmd(id string) outbound.Command { return outbound.Command{ID: id} }

// refund is a partial refund at Stripe: sent twice under two keys it would refund
// twice.
func (b *bench) refund(id string) outbound.Call {
	return stripe.RefundCreate(cmd(id), url.Values{"charge": {b.charge}, "amount": {"500"}})
}

// capture captures a new order at PayPal.
func (b *bench) capture(id string) outbound.Call {
	return paypal.OrderCapture(cmd(id), b.fake.Seed(providertest.ApprovedOrder{Value: "12.50", Currency: "EUR"}), nil)
}

// call makes a call through the bench's door. It may be called by many
// goroutines.
func (b *bench) call(ctx context.Context, call outbound.Call) (*outbound.Reply, error) {
	if b.door == native {
		return b.client.Do(ctx, call)
	}
	a, err := b.caller.send(ctx, call)
	if err != nil {
		return nil, err
	}
	if err := a.consistent(); err != nil {
		return nil, err
	}
	return a.reply, a.err
}

// must is the reply to a call that must succeed.
func (b *bench) must(call outbound.Call) *outbound.Reply {
	b.Helper()
	reply, err := b.call(b.Context(), call)
	if err != nil {
		b.Fatalf("%s: %v", call.Operation, err)
	}
	return reply
}

// fails is the error of a call that must fail.
func (b *bench) fails(call outbound.Call, code outbound.Code, effect outbound.Effect) *outbound.Error {
	b.Helper()
	_, err := b.call(b.Context(), call)
	return wantError(b.T, err, code, effect)
}

func wantError(t *testing.T, err error, code outbound.Code, effect outbound.Effect) *outbound.Error {
	t.Helper()
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok || e.Code != code || e.Effect != effect {
		t.Fatalf("got %v; want %s with the effect %v", err, code, effect)
	}
	return e
}

// labelled holds what a reply says about itself.
func (b *bench) labelled(r *outbound.Reply, evidence outbound.Evidence, origin outbound.Origin) {
	b.Helper()
	if r == nil || r.Evidence != evidence || r.Label != evidence.Label() || r.Origin != origin {
		b.Fatalf("got %+v; want %s by %s from %s", r, evidence.Label(), evidence, origin)
	}
}

// count holds the fake's own count of an operation: effects, requests, and that
// no key had two effects.
func (b *bench) count(operation string, effects, requests int) {
	b.Helper()
	if got := b.fake.Effects(operation); got != effects {
		b.Errorf("%s had %d effects, want %d", operation, got, effects)
	}
	if got := len(b.fake.Requests(operation)); got != requests {
		b.Errorf("%s was delivered %d times, want %d", operation, got, requests)
	}
	if got := b.fake.Duplicates(); got != 0 {
		b.Errorf("%d effects are duplicates", got)
	}
}

// same holds that all deliveries of an operation carried one key and the same
// bytes.
func (b *bench) same(operation string) {
	b.Helper()
	requests := b.fake.Requests(operation)
	for i, r := range requests {
		if r.KeyHash == [32]byte{} || r.KeyHash != requests[0].KeyHash || r.BodyHash != requests[0].BodyHash {
			b.Errorf("%s: delivery %d has another key or other bytes than the first, or no key", operation, i+1)
		}
	}
}

func (b *bench) inject(f ...providertest.Fault) { b.fake.Inject(f...) }

// record is the ledger's row of a call.
func (b *bench) record(call outbound.Call) recordstore.Record {
	b.Helper()
	key, err := b.client.Key(call.Command, call.Operation, call.Account)
	if err != nil {
		b.Fatal(err)
	}
	rec, _, err := b.store.Get(b.Context(), recordstore.ID{Day: key.Day(), KeyHash: key.Hash()})
	if err != nil {
		b.Fatal(err)
	}
	return rec
}

// attempts bounds a call to n attempts of one second each.
func attempts(n int) func(*outbound.Options) {
	return func(o *outbound.Options) {
		o.Retry = outbound.Retry{Attempts: n, AttemptTimeout: time.Second, MaxWait: 2 * time.Second}
	}
}
