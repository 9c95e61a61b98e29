package fakeprovider_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// inMemory serves a shop inside a synctest bubble. The bubble itself proves that
// no goroutine outlives Close.
func inMemory(t *testing.T) (*fakeprovider.Fake, *client) {
	f := fakeprovider.New(newShop, nil)
	s := fakeprovider.InMemory(f)
	t.Cleanup(s.Close)
	return f, &client{s.URL, noRedirects(s.Transport())}
}

func TestInMemoryClockMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := inMemory(t)
		inject(t, f, fakeprovider.Fault{Kind: fakeprovider.SlowApply, Delay: 40 * time.Second})
		start := time.Now()
		c.post(t.Context(), "k", "a").want(t, 201, false)
		if took := time.Since(start); took != 40*time.Second {
			t.Errorf("the answer took %v of the bubble's time, want 40s", took)
		}
		time.Sleep(window) // the bubble's clock is the provider's clock
		c.post(t.Context(), "k", "a").want(t, 201, false)
		wantEffects(t, f, 2)
	})
}

func TestInMemoryHangEndsWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := inMemory(t)
		inject(t, f, fakeprovider.Fault{Kind: fakeprovider.Hang})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		r := c.post(ctx, "k", "a")
		if !errors.Is(r.err, context.DeadlineExceeded) || time.Since(start) != 20*time.Second {
			t.Errorf("error %v after %v, want the deadline after 20s", r.err, time.Since(start))
		}
		await(t, f, func(s fakeprovider.Snapshot) bool { return s.Held == 0 })
		c.post(t.Context(), "k", "a").want(t, 201, false)
		wantEffects(t, f, 1)
	})
}

func TestInMemoryLateApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := inMemory(t)
		inject(t, f, fakeprovider.Fault{Kind: fakeprovider.LateApply, Running: true, Delay: time.Minute})
		if r := c.post(t.Context(), "k", "a"); r.err == nil {
			t.Fatalf("got status %d, want a lost connection", r.status)
		}
		time.Sleep(59 * time.Second)
		wantEffects(t, f, 0)
		time.Sleep(2 * time.Second)
		wantEffects(t, f, 1)
	})
}

func TestInMemoryResetReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := inMemory(t)
		inject(t, f, fakeprovider.Fault{Kind: fakeprovider.ResetReused})
		c.post(t.Context(), "warm", "a").want(t, 201, false)
		synctest.Wait() // the connection is idle again
		if r := c.post(t.Context(), "k", "a"); r.err != nil || r.writes != 2 {
			t.Errorf("error %v after %d writes, want a hidden second one", r.err, r.writes)
		}
		wantEffects(t, f, 2)
	})
}

func TestInMemoryHeldAtClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := inMemory(t)
		inject(t, f, fakeprovider.Fault{Kind: fakeprovider.LateApply, Times: 3})
		for _, key := range []string{"a", "b", "c"} {
			c.post(t.Context(), key, "a")
		}
		await(t, f, func(s fakeprovider.Snapshot) bool { return s.Held == 3 })
		wantEffects(t, f, 0)
	})
}

// Requests that are held are bounded: a further one is refused as the provider
// refuses what it has no room for, and what is held still happens.
func TestHeldRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 2_000
		f, c := inMemory(t)
		inject(t, f, fakeprovider.Fault{Kind: fakeprovider.LateApply, Times: -1, Delay: time.Hour})
		for i := range most {
			if r := c.post(t.Context(), strconv.Itoa(i), "a"); r.err == nil {
				t.Fatalf("got status %d, want a lost connection", r.status)
			}
		}
		c.post(t.Context(), "further", "a").want(t, 503, false)
		time.Sleep(time.Hour) // the bubble's clock
		synctest.Wait()
		wantEffects(t, f, most)
	})
}
