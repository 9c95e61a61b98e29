package postgres_test

import (
	"context"
	"testing"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// BenchmarkCall is what a call costs the ledger: one claim and one settlement.
func BenchmarkCall(b *testing.B) {
	ctx := context.Background()
	b.Run("one", func(b *testing.B) {
		store, _ := ledger(b)
		for b.Loop() {
			call(b, ctx, store)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		store, _ := ledger(b)
		b.SetParallelism(8) // times GOMAXPROCS
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				call(b, ctx, store)
			}
		})
	})
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
