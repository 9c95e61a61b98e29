package reprocess

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A hold reaches those too who wait for turns that they took before it, and what
// follows it keeps to the rate.
func TestPaceHoldsTurnsThatWereTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pace{every: 100 * time.Millisecond}
		start := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		take := func() {
			if p.wait(t.Context()) {
				mu.Lock()
				at = append(at, time.Since(start))
				mu.Unlock()
			}
		}
		take()
		var others sync.WaitGroup
		for range 3 {
			others.Go(take)
		}
		synctest.Wait() // all three wait for their turns
		p.hold(time.Second)
		others.Wait()
		if len(at) != 4 || at[0] != 0 || at[1] < time.Second {
			t.Fatalf("turns at %v, want one at once and three after a second", at)
		}
		slices.Sort(at)
		for i := 2; i < len(at); i++ {
			if at[i]-at[i-1] < p.every {
				t.Errorf("turns at %v come closer than %v", at, p.every)
			}
		}
		p.hold(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if p.wait(ctx) {
			t.Error("a turn was given during a hold")
		}
	})
}
