package reprocess_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	"github.com/seed-6b5e302b/samekey/reprocess"
)

// atStripe is a fake behind a server that may answer in its place, and an adapter.
func atStripe(t *testing.T, instead func(w http.ResponseWriter, nth int) bool) (*fakeprovider.Fake, outbound.Adapter) {
	t.Helper()
	fake := fakeprovider.New(fakestripe.New(fakestripe.Config{Account: shop}), nil)
	t.Cleanup(fake.Close)
	var mu sync.Mutex
	var n int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		nth := n
		mu.Unlock()
		if instead == nil || !instead(w, nth) {
			fake.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return fake, stripe.New(stripe.Config{Account: shop, Test: true, SecretKey: "sk_test_1", BaseURL: server.URL})
}

// answer writes an error of Stripe's.
func answer(w http.ResponseWriter, status int, retryAfter, body string) {
	w.Header().Set("Content-Type", "application/json")
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// consumed makes the effect of customers' events at a version, as a service would.
func consumed(t *testing.T, a outbound.Adapter, s recordstore.Store, version, n int) (failed int) {
	t.Helper()
	c := client(t, a, s, outbound.Options{EffectVersions: map[string]int{"welcome": version}})
	for i := range n {
		cmd, err := outbound.EventCommand(keyderive.Event{Consumer: "welcome", ID: fmt.Sprintf("evt_%d", i), Version: version}, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do(t.Context(), stripe.CustomerCreate(cmd, url.Values{"description": {fmt.Sprintf("no. %d", i)}})); err != nil {
			failed++
		}
	}
	return failed
}

// R25: a manifest below the version that the ledger has would repeat every effect:
// refused, also from far below.
func TestVersionBelowTheLedgers(t *testing.T) {
	for _, version := range []int{2, 40} {
		fake, adapter := atStripe(t, nil)
		store := memory.New(nil)
		if failed := consumed(t, adapter, store, version, 5); failed != 0 {
			t.Fatalf("%d failed", failed)
		}
		_, runner := load(t, write(t, customersManifest(5), customers(5)...), adapter, store)
		plan, err := runner.Plan(t.Context(), nil)
		if err != nil || plan.Higher != 5 || len(plan.Differs) != 1 {
			t.Errorf("version %d: %+v, %v", version, plan, err)
		}
		want := fmt.Sprintf("the ledger has effects of version %d for 5 targets", version)
		if _, err := runner.Run(t.Context(), reprocess.RunOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if n := fake.Effects("customer.create"); n != 5 {
			t.Errorf("%d effects, want 5", n)
		}
	}
}

// R25: what version 1 applied counts, though version 2 failed after it.
func TestAppliedBehindAFailedVersion(t *testing.T) {
	refuses := false
	fake, adapter := atStripe(t, func(w http.ResponseWriter, _ int) bool {
		if refuses {
			answer(w, http.StatusUnauthorized, "", `{"error":{"type":"invalid_request_error"}}`)
		}
		return refuses
	})
	store := memory.New(nil)
	consumed(t, adapter, store, 1, 5)
	refuses = true
	if failed := consumed(t, adapter, store, 2, 5); failed != 5 {
		t.Fatalf("%d failed, want 5", failed)
	}
	refuses = false
	m := customersManifest(5)
	m.EffectVersion = 3
	_, runner := load(t, write(t, m, customers(5)...), adapter, store)
	if _, err := runner.Run(t.Context(), reprocess.RunOptions{}); err == nil || !strings.Contains(err.Error(), "an earlier version applied 5 of 5") {
		t.Errorf("%v", err)
	}
	shadow, err := runner.Shadow(t.Context(), nil)
	if err != nil || shadow.Twice != 5 || shadow.Sample[0].Earlier != 1 || fake.Effects("customer.create") != 5 {
		t.Errorf("%+v, %v, %d effects", shadow, err, fake.Effects("customer.create"))
	}
}

// A call that was sent when the run was interrupted is reported as what it ended
// with, never as not tried.
func TestInterruptedCallsAreReported(t *testing.T) {
	for name, test := range map[string]struct {
		status          int
		failed, unknown int
	}{"uncertain": {http.StatusInternalServerError, 0, 1}, "declined": {http.StatusPaymentRequired, 1, 0}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, adapter := atStripe(t, func(w http.ResponseWriter, _ int) bool {
				cancel() // while the call is under way
				answer(w, test.status, "", `{"error":{"type":"card_error","code":"card_declined"}}`)
				return true
			})
			_, runner := load(t, write(t, customersManifest(3), customers(3)...), adapter, memory.New(nil))
			report, err := runner.Run(ctx, reprocess.RunOptions{Rate: 1000, Parallel: 1})
			if err != nil || report.Failed != test.failed || report.Unknown != test.unknown || report.Skipped != 2 || len(report.Failures) != 1 || !strings.Contains(report.Stopped, "interrupted") {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}

// The run repeats a call by itself, at its rate, and not Do: each request takes a
// turn of its own. Whatever is repeated has one effect.
func TestRepetitionsKeepToTheRate(t *testing.T) {
	const every = 100 * time.Millisecond
	var mu sync.Mutex
	var last time.Time
	var requests int
	fake, adapter := atStripe(t, func(w http.ResponseWriter, nth int) bool {
		mu.Lock()
		last, requests = time.Now(), nth
		mu.Unlock()
		if nth <= 3 {
			answer(w, http.StatusTooManyRequests, "", `{"error":{"type":"invalid_request_error","code":"rate_limit"}}`)
		}
		return nth <= 3
	})
	_, runner := load(t, write(t, customersManifest(6), customers(6)...), adapter, memory.New(nil))
	start := time.Now()
	report, err := runner.Run(t.Context(), reprocess.RunOptions{Rate: float64(time.Second / every), Parallel: 4})
	if err != nil || report.Executed != 6 || len(report.Failures) != 0 || fake.Effects("customer.create") != 6 || requests != 9 {
		t.Fatalf("%+v, %v, %d requests", report, err, requests)
	}
	if took := last.Sub(start); took < 8*every {
		t.Errorf("9 requests within %v", took)
	}
}

// A provider that asks to wait for longer than the run is patient stops it.
func TestRetryAfterBeyondPatience(t *testing.T) {
	_, adapter := atStripe(t, func(w http.ResponseWriter, _ int) bool {
		answer(w, http.StatusTooManyRequests, "600", `{"error":{"type":"invalid_request_error","code":"rate_limit"}}`)
		return true
	})
	_, runner := load(t, write(t, customersManifest(3), customers(3)...), adapter, memory.New(nil))
	report, err := runner.Run(t.Context(), reprocess.RunOptions{Rate: 1000, Parallel: 1, Patience: time.Second})
	if err != nil || !strings.Contains(report.Stopped, "asks to wait 10m0s") || report.Failed != 1 || report.Skipped != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}

// An answer that asks for patience holds all calls, and its target is tried again.
func TestRetryAfterHoldsTheRun(t *testing.T) {
	fake := fakeprovider.New(fakestripe.New(fakestripe.Config{Account: shop}), nil)
	t.Cleanup(fake.Close)
	var mu sync.Mutex
	var at []time.Time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		at = append(at, time.Now())
		first := len(at) == 1
		mu.Unlock()
		if !first {
			fake.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"error":{"type":"invalid_request_error","code":"rate_limit"}}`))
	}))
	t.Cleanup(server.Close)
	adapter := stripe.New(stripe.Config{Account: shop, Test: true, SecretKey: "sk_test_1", BaseURL: server.URL})
	_, runner := load(t, write(t, customersManifest(3), customers(3)...), adapter, memory.New(nil))
	report, err := runner.Run(t.Context(), reprocess.RunOptions{Rate: 1000, Parallel: 1})
	if err != nil || report.Executed != 3 || len(report.Failures) != 0 || fake.Effects("customer.create") != 3 {
		t.Fatalf("%+v, %v", report, err)
	}
	if len(at) != 4 || at[1].Sub(at[0]) < 900*time.Millisecond {
		t.Errorf("%d requests, the second %v after the first", len(at), at[1].Sub(at[0]))
	}
}
