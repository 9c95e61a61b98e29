package chaos

import (
	"net/http"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// lease is short, so that a dead process is soon noticed.
const lease = 2 * time.Second

// adapterOf is the real adapter of a provider, led to its fake.
func (b build) adapterOf(provider, url string, rt http.RoundTripper) versioned {
	a := versioned{canonicals: b.orDefault().Canonicals}
	if provider == "stripe" {
		a.Adapter = stripe.New(stripe.Config{Account: "acct_chaos", Test: true, SecretKey: "sk_test_chaos", BaseURL: url, Transport: rt})
		return a
	}
	a.Adapter = paypal.New(paypal.Config{Account: "MERCHANTCHAOS", Sandbox: true, ClientID: "chaos", Secret: "chaos", BaseURL: url, Transport: rt})
	return a
}

// maxBody holds a page of the longest list that a look-up reads.
const maxBody = 512 << 10

func (b build) newClient(a outbound.Adapter, ledger recordstore.Store) (*outbound.Client, error) {
	return outbound.New(a, ledger, &outbound.Options{
		Bodies:        b.sealer(),
		Lease:         lease,
		SettleTimeout: 2 * time.Second,
		MaxBody:       maxBody,
		// A busy machine may take a second for a claim: what is left of the lease must
		// still hold an attempt.
		Retry: outbound.Retry{MinWait: 20 * time.Millisecond, MaxWait: 200 * time.Millisecond, AttemptTimeout: 600 * time.Millisecond},
	})
}

// quick are a reconciler's settings for leases of 2 s. Nothing that can be decided
// climbs the whole ladder, however slow the machine is.
func quick() *outbound.ReconcilerOptions { return climbing(200) }

// climbing are those with a ladder of so many rungs.
func climbing(rungs int) *outbound.ReconcilerOptions {
	o := &outbound.ReconcilerOptions{Every: 700 * time.Millisecond, Concurrency: 8, Rate: 200}
	for range rungs {
		o.Ladder = append(o.Ladder, 300*time.Millisecond)
	}
	return o
}
