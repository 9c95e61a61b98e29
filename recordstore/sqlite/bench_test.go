package sqlite_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// BenchmarkCall is what a call costs the ledger, one claim and one settlement, made
// by so many callers at once: in transactions that they share, and each in its own.
func BenchmarkCall(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		for _, direct := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/direct=%v", callers, direct), func(b *testing.B) {
				s := open(b, filepath.Join(b.TempDir(), "ledger.db"), &sqlite.Options{Direct: direct})
				var left atomic.Int64
				left.Store(int64(b.N))
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						for n := left.Add(-1); n >= 0; n = left.Add(-1) {
							call(b, s, int(n))
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			})
		}
	}
}

// call claims and settles the n-th command.
func call(t testing.TB, s *sqlite.Store, n int) {
	c := command(n, "caller")
	got, err := s.Claim(t.Context(), c)
	if err != nil || got.Decision != recordstore.Send {
		t.Errorf("Claim: %q, %v", got.Decision, err)
		return
	}
	_, err = s.Settle(t.Context(), recordstore.Settlement{ID: c.ID, Holder: c.Holder, Fence: got.Record.Fence,
		Result: recordstore.Result{State: recordstore.Succeeded, Deliveries: 1, SealVersion: 1, ResponseBody: make([]byte, 1024)}})
	if err != nil {
		t.Errorf("Settle: %v", err)
	}
}
