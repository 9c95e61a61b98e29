package postgres_test

import (
	"context"
	"sync"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// An ordinary call's settlement touches no index: at least 98 % of updates are
// HOT, as the server counts them, for calls that are settled at once and for
// calls that are in flight together. Bodies that are too large for the row are kept
// beside it, and it grows by more than its page has room for in one of ten cases.
// Calls in flight leave no room behind that only a vacuum would give back.
// Each has a server of its own: old row versions go when no transaction of the
// whole server is older.
func TestSettlementsAreHOT(t *testing.T) {
	t.Parallel()
	const calls = 2000
	for _, c := range []struct {
		name    string
		size    int // Of the sealed request and of the sealed answer.
		workers int
		flight  int     // Calls that one worker has in flight.
		hot     float64 // The share of HOT updates, at least.
		bytes   int64   // On disk for each record, with its indexes, at most; 0 for any.
		direct  bool    // Each step in a transaction of its own.
	}{
		{"256 B at once", 256, 8, 1, 0.98, 0, true},
		// A batch settles several rows of the page that it had claimed, and their old
		// versions take up room until it is committed.
		{"256 B at once in batches", 256, 8, 1, 0.90, 0, false},
		{"1 KB at once", 1024, 8, 1, 0.98, 0, true},
		{"2 KB at once", 2048, 8, 1, 0.98, 0, true},
		// Pages fill with claims before the first of them is settled, as with a provider
		// that takes its time.
		{"256 B in flight", 256, 1, 100, 0.98, 1100, false},
		{"1 KB in flight", 1024, 1, 100, 0.98, 0, false},
		{"2 KB in flight", 2048, 1, 100, 0.90, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			dsn := pgtest.OwnServer(t)
			pool := pgtest.Open(t, dsn)
			migrate(t, pool, nil)
			store := postgres.New(pool, &postgres.Options{Direct: c.direct})
			var wg sync.WaitGroup
			for range c.workers {
				wg.Go(func() { callsInFlight(t, ctx, store, calls/c.workers, c.flight, c.size) })
			}
			wg.Wait()
			pool.Close() // backends hand in their counts when they end
			updates, hot, bytes := statistics(t, dsn)
			share := float64(hot) / float64(updates)
			t.Logf("%d updates, HOT %.1f %%, %d bytes a record", updates, 100*share, bytes/calls)
			if updates != calls || share < c.hot {
				t.Errorf("%d updates, HOT %.1f %%; want %d and at least %.0f %%", updates, 100*share, calls, 100*c.hot)
			}
			if c.bytes > 0 && bytes/calls > c.bytes {
				t.Errorf("a record takes %d bytes, want at most %d", bytes/calls, c.bytes)
			}
		})
	}
}

// callsInFlight makes n calls, each of which is settled when flight-1 more have
// been claimed.
func callsInFlight(t testing.TB, ctx context.Context, store *postgres.Store, n, flight, size int) {
	var held []recordstore.Record
	for i := range n + flight - 1 {
		if i < n {
			got, err := store.Claim(ctx, claimOf(size))
			if err != nil {
				t.Error(err)
				return
			}
			held = append(held, got.Record)
		}
		if i >= flight-1 {
			if _, err := store.Settle(ctx, settlementOf(held[0], size)); err != nil {
				t.Error(err)
				return
			}
			held = held[1:]
		}
	}
}

// statistics waits until the server has counted the updates of 2,000 calls and
// returns them, the HOT ones among them, and the table's size with its indexes.
func statistics(t testing.TB, dsn string) (updates, hot, bytes int64) {
	t.Helper()
	pool := pgtest.Open(t, dsn)
	waitFor(t, pool, "SELECT n_tup_upd >= 2000 FROM pg_stat_user_tables WHERE relid = 'samekey.record'::regclass")
	if err := pool.QueryRow(context.Background(), `SELECT n_tup_upd, n_tup_hot_upd, pg_total_relation_size(relid)
		FROM pg_stat_user_tables WHERE relid = 'samekey.record'::regclass`).Scan(&updates, &hot, &bytes); err != nil {
		t.Fatal(err)
	}
	return updates, hot, bytes
}
