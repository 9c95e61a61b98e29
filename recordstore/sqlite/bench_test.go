package sqlite_test

import (
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// BenchmarkCall measures what a call costs the ledger: one claim and one settle.
func BenchmarkCall(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run("callers="+strconv.Itoa(callers), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "ledger.db"), nil)
			var n atomic.Int64
			b.SetParallelism(callers)
			start := time.Now()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c := command(int(n.Add(1)), "caller")
					got, err := s.Claim(b.Context(), c)
					if err != nil || got.Decision != recordstore.Send {
						b.Errorf("Claim: %q, %v", got.Decision, err)
						return
					}
					_, err = s.Settle(b.Context(), recordstore.Settlement{ID: c.ID, Holder: c.Holder, Fence: got.Record.Fence,
						Result: recordstore.Result{State: recordstore.Succeeded, Deliveries: 1, SealVersion: 1, ResponseBody: make([]byte, 1024)}})
					if err != nil {
						b.Errorf("Settle: %v", err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "calls/s")
		})
	}
}
