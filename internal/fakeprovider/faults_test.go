package fakeprovider_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// Each fault over a real socket: what the client sees, whether the effect
// happened, and that the same key then ends in exactly one effect.
func TestFaults(t *testing.T) {
	const dropped = 0
	for _, c := range []struct {
		name    string
		fault   fakeprovider.Fault
		status  int // what the client sees; dropped for an error before an answer
		effects int // after the first delivery
		replay  bool
	}{
		{"drop before", fakeprovider.Fault{Kind: fakeprovider.DropBeforeApply}, dropped, 0, false},
		{"drop after", fakeprovider.Fault{Kind: fakeprovider.DropAfterApply}, dropped, 1, true},
		{"hang for a while", fakeprovider.Fault{Kind: fakeprovider.Hang, Delay: time.Millisecond}, dropped, 0, false},
		{"hang applied", fakeprovider.Fault{Kind: fakeprovider.Hang, Delay: time.Millisecond, Applied: true}, dropped, 1, true},
		{"slow", fakeprovider.Fault{Kind: fakeprovider.SlowApply, Delay: time.Millisecond}, 201, 1, true},
		{"500", fakeprovider.Fault{Kind: fakeprovider.Status500}, 500, 0, false},
		{"500 applied", fakeprovider.Fault{Kind: fakeprovider.Status500, Applied: true}, 500, 1, true},
		{"502", fakeprovider.Fault{Kind: fakeprovider.HTML502}, 502, 0, false},
		{"502 applied", fakeprovider.Fault{Kind: fakeprovider.HTML502, Applied: true}, 502, 1, true},
		{"503", fakeprovider.Fault{Kind: fakeprovider.Status503}, 503, 0, false},
		{"424 applied", fakeprovider.Fault{Kind: fakeprovider.Status424, Applied: true}, 424, 1, true},
		{"rate limit", fakeprovider.Fault{Kind: fakeprovider.RateLimit}, 429, 0, false},
		{"lock timeout", fakeprovider.Fault{Kind: fakeprovider.LockTimeout}, 429, 0, false},
		{"401", fakeprovider.Fault{Kind: fakeprovider.Unauthorized}, 401, 0, false},
		{"in flight", fakeprovider.Fault{Kind: fakeprovider.InFlight}, 409, 0, false},
		{"redirect", fakeprovider.Fault{Kind: fakeprovider.Redirect}, 302, 0, false},
		{"empty", fakeprovider.Fault{Kind: fakeprovider.Empty}, 201, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, cl := serve(t, nil)
			inject(t, f, c.fault)
			r := cl.post(t.Context(), "k", "a")
			if c.status == dropped && r.err == nil {
				t.Errorf("got status %d, want a lost connection", r.status)
			}
			if c.status != dropped {
				r.want(t, c.status, false)
			}
			wantEffects(t, f, c.effects)
			if got := f.Requests("")[0]; got.Fault != c.fault.Kind || got.Status != c.status {
				t.Errorf("log has fault %q and status %d, want %q and %d", got.Fault, got.Status, c.fault.Kind, c.status)
			}
			cl.post(t.Context(), "k", "a").want(t, 201, c.replay)
			wantEffects(t, f, 1)
		})
	}
}

func TestStoredFailureIsReplayedForEver(t *testing.T) {
	for _, applied := range []bool{false, true} {
		f, c := serve(t, nil)
		inject(t, f, fakeprovider.Fault{Kind: fakeprovider.Status500, Applied: applied, Stored: true})
		c.post(t.Context(), "k", "a").want(t, 500, false)
		c.post(t.Context(), "k", "a").want(t, 500, true)
		c.post(t.Context(), "k", "a").want(t, 500, true)
		want := 0
		if applied {
			want = 1
		}
		wantEffects(t, f, want)
	}
}

func TestBodiesThatDoNotArriveWhole(t *testing.T) {
	f, c := serve(t, nil)
	inject(t, f, fakeprovider.Fault{Kind: fakeprovider.Truncate},
		fakeprovider.Fault{Kind: fakeprovider.Oversized, Size: 100_000},
		fakeprovider.Fault{Kind: fakeprovider.Empty})
	if r := c.post(t.Context(), "k1", "a"); !errors.Is(r.err, io.ErrUnexpectedEOF) || len(r.body) == 0 {
		t.Errorf("truncated: %d bytes, error %v; want some bytes and an unexpected EOF", len(r.body), r.err)
	}
	if r := c.post(t.Context(), "k2", "a"); len(r.body) != 100_000 || !strings.HasPrefix(r.body, `{"id"`) {
		t.Errorf("oversized: %d bytes, want 100000", len(r.body))
	}
	if r := c.post(t.Context(), "k3", "a"); r.err != nil || r.status != 201 || r.body != "" {
		t.Errorf("empty: status %d, body %q, error %v", r.status, r.body, r.err)
	}
	wantEffects(t, f, 3)
}

func TestRetryAfterOnlyWhenAsked(t *testing.T) {
	f, c := serve(t, nil)
	inject(t, f, fakeprovider.Fault{Kind: fakeprovider.RateLimit, RetryAfter: 1500 * time.Millisecond},
		fakeprovider.Fault{Kind: fakeprovider.RateLimit})
	if got := c.post(t.Context(), "k", "a").header.Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After = %q, want 2: whole seconds, rounded up", got)
	}
	if got := c.post(t.Context(), "k", "a").header.Values("Retry-After"); len(got) != 0 {
		t.Errorf("Retry-After = %q, want none", got)
	}
}

func TestRedirectPointsWhereItIsTold(t *testing.T) {
	f, c := serve(t, nil)
	inject(t, f, fakeprovider.Fault{Kind: fakeprovider.Redirect, Location: "/elsewhere"})
	if got := c.post(t.Context(), "k", "a").header.Get("Location"); got != "/elsewhere" {
		t.Errorf("Location = %q, want /elsewhere", got)
	}
}

// C30: net/http sends a keyed POST again by itself when a reused connection
// dies. The caller sees one answer; the provider counts two requests.
func TestResetReusedMakesNetHTTPResend(t *testing.T) {
	f, c := serve(t, nil)
	inject(t, f, fakeprovider.Fault{Kind: fakeprovider.ResetReused})
	c.post(t.Context(), "warm", "a").want(t, 201, false) // a new connection: the fault waits
	if len(f.Faults()) != 1 {
		t.Fatal("the fault met a connection that was not reused")
	}
	r := c.post(t.Context(), "k", "a")
	r.want(t, 201, false)
	if r.writes != 2 {
		t.Errorf("net/http wrote %d requests, want 2", r.writes)
	}
	log := f.Requests("order.create")[1:]
	if len(log) != 2 || log[0].Status != 0 || log[1].Delivery != 2 {
		t.Errorf("the provider saw %+v, want a dropped and an answered delivery", log)
	}
	if got := f.EffectsOfKey("k"); got != 1 {
		t.Errorf("effects of the key = %d, want 1", got)
	}
}

// A request that is still on its way when the caller gave up: the resend runs
// first, the late one finds its key used.
func TestLateApplyStillOnItsWay(t *testing.T) {
	f, c := serve(t, nil)
	inject(t, f, fakeprovider.Fault{Kind: fakeprovider.LateApply})
	if r := c.post(t.Context(), "k", "a"); r.err == nil {
		t.Fatalf("got status %d, want a lost connection", r.status)
	}
	c.post(t.Context(), "k", "a").want(t, 201, false)
	f.Release()
	await(t, f, func(s fakeprovider.Snapshot) bool { return s.Held == 0 })
	f.Close()
	wantEffects(t, f, 1)
}

// The same, but the provider is already working on it, and the clock ends it.
func TestLateApplyRunning(t *testing.T) {
	f, c := serve(t, nil)
	inject(t, f, fakeprovider.Fault{Kind: fakeprovider.LateApply, Running: true, Delay: 30 * time.Minute})
	if r := c.post(t.Context(), "k", "a"); r.err == nil {
		t.Fatalf("got status %d, want a lost connection", r.status)
	}
	c.post(t.Context(), "k", "a").want(t, 409, false)
	f.Advance(29 * time.Minute)
	wantEffects(t, f, 0)
	f.Advance(time.Minute)
	await(t, f, func(s fakeprovider.Snapshot) bool { return s.Effects == 1 })
	c.post(t.Context(), "k", "a").want(t, 201, true)
}

func TestSlowApplyGoesOnWhenTheClientHasGone(t *testing.T) {
	f, c := serve(t, nil)
	until := make(chan struct{})
	inject(t, f, fakeprovider.Fault{Kind: fakeprovider.SlowApply, Until: until})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan result, 1)
	go func() { done <- c.post(ctx, "k", "a") }()
	await(t, f, func(s fakeprovider.Snapshot) bool { return s.Held == 1 })
	cancel()
	if r := <-done; !errors.Is(r.err, context.Canceled) {
		t.Errorf("error %v, want the caller's cancellation", r.err)
	}
	wantEffects(t, f, 0)
	close(until)
	await(t, f, func(s fakeprovider.Snapshot) bool { return s.Effects == 1 })
}

func TestCloseAppliesNothingThatWasHeld(t *testing.T) {
	f, c := serve(t, nil)
	inject(t, f, fakeprovider.Fault{Kind: fakeprovider.LateApply}, fakeprovider.Fault{Kind: fakeprovider.SlowApply})
	c.post(t.Context(), "k1", "a")
	done := make(chan result, 1)
	go func() { done <- c.post(t.Context(), "k2", "a") }()
	await(t, f, func(s fakeprovider.Snapshot) bool { return s.Held == 2 })
	f.Close()
	if r := <-done; r.err == nil {
		t.Errorf("got status %d from a closed fake", r.status)
	}
	wantEffects(t, f, 0)
}

func TestFaultsMatchAsScripted(t *testing.T) {
	f, c := serve(t, nil)
	inject(t, f,
		fakeprovider.Fault{Kind: fakeprovider.Status503, Operation: "order.list"},
		fakeprovider.Fault{Kind: fakeprovider.Status500, Operation: "refund.create"},
		fakeprovider.Fault{Kind: fakeprovider.Status424, Skip: 1, Times: 2})
	var got []int
	for _, key := range []string{"a", "b", "c", "d"} {
		got = append(got, c.post(t.Context(), key, "a").status)
	}
	if want := []int{201, 424, 424, 201}; !equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
	resp, err := c.http.Get(c.url + "/orders")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 503 {
		t.Errorf("a read named by a fault got %d, want 503", resp.StatusCode)
	}
	if left := f.Faults(); len(left) != 1 || left[0].Operation != "refund.create" {
		t.Errorf("armed faults %+v, want only the one for refunds", left)
	}
}

// Chance follows from the seed alone.
func TestChanceIsRepeatable(t *testing.T) {
	run := func(seed uint64) (statuses []int) {
		f, c := serve(t, &fakeprovider.Options{Seed: seed})
		inject(t, f, fakeprovider.Fault{Kind: fakeprovider.Status500, Chance: 0.5, Times: -1})
		for range 40 {
			statuses = append(statuses, c.post(t.Context(), "", "a").status)
		}
		return statuses
	}
	first := run(7)
	if !equal(first, run(7)) {
		t.Error("the same seed gave other faults")
	}
	failed := 0
	for _, s := range first {
		if s == 500 {
			failed++
		}
	}
	if failed < 8 || failed > 32 {
		t.Errorf("%d of 40 requests met a fault of chance 0.5", failed)
	}
}

func TestSenselessFaultsAreRefused(t *testing.T) {
	f := fakeprovider.New(newShop, nil)
	for _, bad := range []fakeprovider.Fault{
		{}, {Kind: "explode"}, {Kind: fakeprovider.Hang, Chance: 2}, {Kind: fakeprovider.Hang, Chance: -1},
		{Kind: fakeprovider.Hang, Skip: -1}, {Kind: fakeprovider.Hang, Delay: -1}, {Kind: fakeprovider.Oversized, Size: 2 << 30},
	} {
		if err := f.Inject(fakeprovider.Fault{Kind: fakeprovider.Hang}, bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	if len(f.Faults()) != 0 {
		t.Error("a refused list armed some of its faults")
	}
}

// The counts hold under concurrency and random faults: every key is resent
// until it is answered, and has exactly one effect.
func TestOneEffectForEachKeyUnderFaults(t *testing.T) {
	f, c := serve(t, nil)
	for _, kind := range []fakeprovider.Kind{fakeprovider.DropBeforeApply, fakeprovider.DropAfterApply,
		fakeprovider.ResetReused, fakeprovider.Truncate, fakeprovider.HTML502, fakeprovider.RateLimit} {
		inject(t, f, fakeprovider.Fault{Kind: kind, Chance: 0.05, Times: -1})
	}
	inject(t, f, fakeprovider.Fault{Kind: fakeprovider.LateApply, Chance: 0.05, Times: -1, Delay: time.Millisecond})
	const keys, senders = 40, 8
	var wg sync.WaitGroup
	var mu sync.Mutex
	bodies := map[string]map[string]bool{}
	for range senders {
		wg.Go(func() {
			for k := range keys {
				key := "key-" + string(rune('A'+k))
				body := sendUntilAnswered(t, c, key)
				mu.Lock()
				if bodies[key] == nil {
					bodies[key] = map[string]bool{}
				}
				bodies[key][body] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	f.Close() // late effects have happened or never will
	wantEffects(t, f, keys)
	if got := f.Report().Duplicates; got != 0 {
		t.Errorf("duplicates = %d, want 0", got)
	}
	for key, answers := range bodies {
		if len(answers) != 1 || f.EffectsOfKey(key) != 1 {
			t.Errorf("%s: %d different answers, %d effects", key, len(answers), f.EffectsOfKey(key))
		}
	}
}

func sendUntilAnswered(t *testing.T, c *client, key string) string {
	for range 200 {
		if r := c.post(t.Context(), key, "a"); r.err == nil && r.status == http.StatusCreated {
			return r.body
		}
	}
	t.Errorf("%s: no answer in 200 deliveries", key)
	return ""
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
