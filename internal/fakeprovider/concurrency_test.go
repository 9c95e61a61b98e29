package fakeprovider_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// Many clients with the same few keys at the same moment, while answers are lost
// and come late: each key has exactly one effect. With the race detector this
// also shows that nothing is shared without the lock.
func TestSameKeysAtOnceHaveOneEffect(t *testing.T) {
	t.Parallel()
	const clients, keys, rounds = 16, 5, 6
	for _, c := range []struct {
		name, path, kind, header, body, operation string
		dialect                                   func() fakeprovider.Dialect
	}{
		{"stripe v1", "/v1/payment_intents", "application/x-www-form-urlencoded", "Idempotency-Key",
			"amount=100&currency=eur&payment_method=pm_card_visa&confirm=true", "payment_intent.create", stripe.New(stripe.Config{})},
		{"paypal", "/v2/checkout/orders", "application/json", "PayPal-Request-Id",
			`{"intent":"CAPTURE","purchase_units":[{"amount":{"currency_code":"EUR","value":"12.50"}}]}`,
			"order.create", paypal.New(paypal.Config{Lenient: true})},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := fakeprovider.New(c.dialect, &fakeprovider.Options{Strict: true})
			s, err := fakeprovider.Listen(f)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			for _, kind := range []fakeprovider.Kind{fakeprovider.DropAfterApply, fakeprovider.DropBeforeApply, fakeprovider.Truncate, fakeprovider.Status503} {
				inject(t, f, fakeprovider.Fault{Kind: kind, Chance: 0.2, Times: -1})
			}
			inject(t, f, fakeprovider.Fault{Kind: fakeprovider.LateApply, Running: true, Chance: 0.2, Times: 10})
			var running sync.WaitGroup
			for range clients {
				hc := &http.Client{Transport: s.Transport()}
				running.Go(func() {
					for n := range keys * rounds {
						if n == keys*rounds/2 {
							f.Release() // what is late happens now, among the others
						}
						req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+c.path, strings.NewReader(c.body))
						if err != nil {
							t.Error(err)
							return
						}
						req.Header.Set("Authorization", "Bearer sk_test_1")
						req.Header.Set("Content-Type", c.kind)
						req.Header.Set(c.header, fmt.Sprint("key-", n%keys))
						if resp, err := hc.Do(req); err == nil {
							_, _ = io.Copy(io.Discard, resp.Body) // may be cut short, as the fault says
							_ = resp.Body.Close()
						}
					}
				})
			}
			running.Wait()
			f.Release()
			await(t, f, func(s fakeprovider.Snapshot) bool { return s.Held == 0 && s.Effects >= keys })
			if r := f.Report(); r.Effects[c.operation] != keys || r.Total != keys || r.Duplicates != 0 || r.Requests < clients*keys*rounds {
				t.Errorf("%+v for %d keys", r, keys)
			}
		})
	}
}
