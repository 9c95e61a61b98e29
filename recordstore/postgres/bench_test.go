package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// BenchmarkCall is what a call costs the ledger, one claim and one settlement, made
// by so many callers at once: each step alone, and in batches of so many workers.
func BenchmarkCall(b *testing.B) {
	for _, callers := range []int{1, 8, 32, 64, 256} {
		for _, workers := range []int{0, 2, 4, 8} {
			opts := &postgres.Options{Workers: workers, Direct: workers == 0}
			b.Run(fmt.Sprintf("%d/workers=%d", callers, workers), func(b *testing.B) {
				_, pool := ledger(b)
				benchmark(b, postgres.New(configured(b, pool, func(c *pgxpool.Config) { c.MaxConns = 32 }), opts), callers)
			})
		}
	}
}

// benchmark shares b.N calls among callers.
func benchmark(b *testing.B, store *postgres.Store, callers int) {
	ctx := context.Background()
	for range 100 {
		call(b, ctx, store) // statements are prepared, pages are there
	}
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				call(b, ctx, store)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func call(t testing.TB, ctx context.Context, store *postgres.Store) {
	got, err := store.Claim(ctx, claimOf(256))
	if err != nil || got.Decision != recordstore.Send {
		t.Errorf("claim: %v, %v", got.Decision, err)
		return
	}
	if _, err := store.Settle(ctx, settlementOf(got.Record, 256)); err != nil {
		t.Errorf("settle: %v", err)
	}
}
