package fakeprovider_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// R13: inside the window a key replays; after it, the same key executes anew.
func TestWindow(t *testing.T) {
	f, c := serve(t, nil)
	first := c.post(t.Context(), "k", "a")
	first.want(t, 201, false)
	f.Advance(window - time.Minute)
	again := c.post(t.Context(), "k", "a")
	again.want(t, 201, true)
	if again.body != first.body {
		t.Errorf("replay %q differs from %q", again.body, first.body)
	}
	wantEffects(t, f, 1)

	f.Advance(2 * time.Minute)
	c.post(t.Context(), "k", "a").want(t, 201, false)
	wantEffects(t, f, 2)
	if got := f.EffectsOfKey("k"); got != 2 {
		t.Errorf("effects of the key = %d, want 2", got)
	}
	if got := f.Report().Duplicates; got != 1 {
		t.Errorf("duplicates = %d, want 1", got)
	}
}

func TestMismatchIsRefusedAndKeepsTheFirst(t *testing.T) {
	f, c := serve(t, nil)
	c.post(t.Context(), "k", "a").want(t, 201, false)
	c.post(t.Context(), "k", "b").want(t, 422, false)
	c.post(t.Context(), "k", "a").want(t, 201, true)
	wantEffects(t, f, 1)
}

func TestKeptAndRepeatedFailures(t *testing.T) {
	f, c := serve(t, nil)
	c.post(t.Context(), "kept", "decline").want(t, 402, false)
	c.post(t.Context(), "kept", "decline").want(t, 402, true)
	c.post(t.Context(), "anew", "invalid").want(t, 400, false)
	c.post(t.Context(), "anew", "a").want(t, 201, false)
	wantEffects(t, f, 1)
}

func TestWithoutKeyEveryRequestExecutes(t *testing.T) {
	f, c := serve(t, nil)
	c.post(t.Context(), "", "a").want(t, 201, false)
	c.post(t.Context(), "", "a").want(t, 201, false)
	wantEffects(t, f, 2)
	if got := f.Report().Duplicates; got != 0 {
		t.Errorf("duplicates = %d: a request without a key repeats nothing", got)
	}
}

// R10's judge: a key whose request runs gives the conflict; then the replay.
func TestInFlight(t *testing.T) {
	f, c := serve(t, nil)
	inject(t, f, fakeprovider.Fault{Kind: fakeprovider.SlowApply})
	first := make(chan result, 1)
	go func() { first <- c.post(t.Context(), "k", "a") }()
	await(t, f, func(s fakeprovider.Snapshot) bool { return s.Held == 1 })

	c.post(t.Context(), "k", "a").want(t, 409, false)
	c.post(t.Context(), "k", "b").want(t, 422, false)
	f.Advance(2 * window) // a key does not run out while its request runs
	c.post(t.Context(), "k", "a").want(t, 409, false)
	wantEffects(t, f, 0)

	f.Release()
	(<-first).want(t, 201, false)
	wantEffects(t, f, 1)
}

// A fake that cannot hold another key says so; it never forgets one early.
func TestFullMemoryIsRefused(t *testing.T) {
	f, c := serve(t, &fakeprovider.Options{MaxKeys: 2})
	c.post(t.Context(), "k1", "a").want(t, 201, false)
	c.post(t.Context(), "k2", "a").want(t, 201, false)
	c.post(t.Context(), "k3", "a").want(t, 503, false)
	c.post(t.Context(), "k1", "a").want(t, 201, true)
	wantEffects(t, f, 2)
	f.Advance(window)
	c.post(t.Context(), "k3", "a").want(t, 201, false)
}

func TestLogAndEffectsAreBounded(t *testing.T) {
	f, c := serve(t, &fakeprovider.Options{MaxLog: 5})
	for i := range 23 {
		c.post(t.Context(), fmt.Sprintf("k%d", i), "a").want(t, 201, false)
	}
	if log, effects, events := f.Requests(""), f.EffectList(), f.Events(); len(log) != 5 || len(effects) != 5 || len(events) != 5 {
		t.Errorf("kept %d requests, %d effects, %d events; want 5 each", len(log), len(effects), len(events))
	}
	if got := f.EffectList()[4].Object; got != "order_23" {
		t.Errorf("the last effect is %q, want order_23", got)
	}
	wantEffects(t, f, 23)
}

// R14: the log names a key by its hash, and counts its deliveries.
func TestRequestLog(t *testing.T) {
	f, c := serve(t, nil)
	c.post(t.Context(), "k", "a").want(t, 201, false)
	c.post(t.Context(), "k", "a").want(t, 201, true)
	log := f.Requests("order.create")
	if len(log) != 2 {
		t.Fatalf("logged %d requests, want 2", len(log))
	}
	for i, e := range log {
		if e.KeyHash != sha256.Sum256([]byte("k")) || e.BodyHash != sha256.Sum256([]byte("a")) {
			t.Error("key or body hash is not the SHA-256 of what was sent")
		}
		if e.Delivery != i+1 || e.Status != 201 || e.Replayed != (i == 1) || e.Method != "POST" || e.Path != "/orders" {
			t.Errorf("entry %d = %+v", i, e)
		}
	}
}

func TestReset(t *testing.T) {
	f, c := serve(t, nil)
	c.post(t.Context(), "k", "a").want(t, 201, false)
	f.Advance(time.Minute)
	inject(t, f, fakeprovider.Fault{Kind: fakeprovider.Status500})
	f.Reset()
	if r := f.Report(); r.Total != 0 || r.Requests != 0 || len(f.Faults()) != 0 || len(f.Events()) != 0 {
		t.Errorf("after reset: %+v, faults %v", r, f.Faults())
	}
	if r := c.post(t.Context(), "k", "b"); r.status != 201 || r.body != `{"id":"order_1"}` {
		t.Errorf("after reset: status %d body %s, want the first order again", r.status, r.body)
	}
}

func TestSeedHasNoEffect(t *testing.T) {
	f, _ := serve(t, nil)
	id, err := f.Seed(seeded{N: 3})
	if err != nil || id != "order_3" {
		t.Errorf("seed = %q, %v; want order_3", id, err)
	}
	if _, err := f.Seed(seeded{}); err == nil {
		t.Error("a senseless seed was accepted")
	}
	wantEffects(t, f, 0)
}
