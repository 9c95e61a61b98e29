package postgres_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/recordstoretest"
)

// harness opens ledgers for the conformance suite, each in a schema of its own.
type harness struct {
	mode   pgx.QueryExecMode
	plain  bool // Plan in transactions of database/sql.
	direct bool // Each step alone.
	months bool // In partitions.
	pool   *pgxpool.Pool
	opts   *postgres.Options
}

func newHarness(t testing.TB, mode pgx.QueryExecMode) *harness {
	pool := configured(t, pgtest.Pool(t), func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
	return &harness{mode: mode, pool: pool}
}

func (h *harness) Open(t testing.TB, now func() time.Time) recordstore.Store {
	h.opts = &postgres.Options{Schema: rand.Text(), Now: now, Direct: h.direct, Partitions: h.months}
	migrate(t, h.pool, h.opts)
	if h.months {
		addAncient(t, h.pool, h.opts.Schema)
	}
	return h.store(h.pool)
}

func (h *harness) Reopen(t testing.TB) recordstore.Store {
	return h.store(configured(t, h.pool, func(*pgxpool.Config) {}))
}

func (h *harness) store(pool *pgxpool.Pool) *postgres.Store {
	s := postgres.New(pool, h.opts)
	if h.months {
		postgres.ByMonth(s)
	}
	return s
}

func (h *harness) Seed(t testing.TB, s recordstore.Store, recs ...recordstore.Record) {
	t.Helper()
	if err := postgres.Seed(context.Background(), s.(*postgres.Store), recs...); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) Begin(t testing.TB, s recordstore.Store) (p recordstore.Planner, commit, rollback func() error) {
	t.Helper()
	ctx := context.Background()
	if h.plain {
		db := stdlib.OpenDBFromPool(h.pool)
		t.Cleanup(func() { _ = db.Close() })
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.(*postgres.Store).SQLTx(tx), tx.Commit, tx.Rollback
	}
	tx, err := h.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*postgres.Store).Tx(tx), func() error { return tx.Commit(ctx) }, func() error { return tx.Rollback(ctx) }
}

func TestSuite(t *testing.T) {
	t.Parallel()
	recordstoretest.Run(t, newHarness(t, pgx.QueryExecModeCacheStatement))
}

func migrate(t testing.TB, pool *pgxpool.Pool, opts *postgres.Options) {
	t.Helper()
	if err := postgres.Migrate(context.Background(), pool, opts); err != nil {
		t.Fatal(err)
	}
}

// ledger returns a store on a new ledger and its pool.
func ledger(t testing.TB) (*postgres.Store, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Pool(t)
	migrate(t, pool, nil)
	return postgres.New(pool, nil), pool
}

// claimOf returns an ordinary claim of a new command with a frozen request of
// size bytes, as incompressible as a sealed one.
func claimOf(size int) recordstore.Claim {
	c := recordstore.Claim{
		ID:       recordstore.ID{Day: int32(time.Now().Unix() / 86400)},
		Provider: "stripe", Account: "acct_1Nv0FGQ9RKHgCVdK/live", Operation: "refund.create",
		CommandID: "0193f6a2-1c3d-7e4f-8a5b-6c7d8e9f0a1b", Class: "money", Derivation: "v1",
		Derivations: []string{"v1", recordstore.Foreign}, Fingerprints: [][]byte{append([]byte{1}, bytesOf(32)...)},
		SealVersion: 1, Request: bytesOf(size), Holder: rand.Text(),
		Lease: 2 * time.Minute, Window: 23 * time.Hour, Replay: 7 * 24 * time.Hour, Evidence: 400 * 24 * time.Hour,
	}
	copy(c.ID.KeyHash[:], bytesOf(16))
	copy(c.Scope[:], bytesOf(32))
	return c
}

// settlementOf returns an ordinary settlement of rec with an answer of size bytes.
func settlementOf(rec recordstore.Record, size int) recordstore.Settlement {
	return recordstore.Settlement{
		ID: rec.ID, Holder: rec.Holder, Fence: rec.Fence,
		Result: recordstore.Result{
			State: recordstore.Succeeded, Evidence: "no_replay_header", Outcome: "done", Deliveries: 1,
			ResponseStatus: 200, SealVersion: 1, ResponseHeader: bytesOf(120), ResponseBody: bytesOf(size),
			ExternalRef: "re_3MmlLrLkdIwHu7ix0uke3Ezy", ObjectStatus: "succeeded", RequestID: "req_Tz1cKu5a9kJzYn",
		},
	}
}

func bytesOf(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}
