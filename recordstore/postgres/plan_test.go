package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// claimWithin claims with a time limit, as a call does.
func claimWithin(ctx context.Context, store *postgres.Store, c recordstore.Claim, limit time.Duration) (recordstore.Claimed, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return store.Claim(ctx, c)
}

// A call whose plan is not committed yet is in flight: the ledger works, and the
// answer is not that it could not be asked.
func TestClaimOfAPlanThatIsStillOpen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool := ledger(t)
	for _, committed := range []bool{true, false} {
		c := claimOf(64)
		tx, err := pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(ctx) }()
		if planned, err := store.Tx(tx).Plan(ctx, c); err != nil || planned.Decision != recordstore.Send || planned.Record.State != recordstore.Planned {
			t.Fatalf("plan: %v in state %v, %v", planned.Decision, planned.Record.State, err)
		}
		got, err := claimWithin(ctx, store, c, 200*time.Millisecond)
		if err != nil || got.Decision != recordstore.InFlight || got.Record.ID != c.ID || !got.Record.LeaseEndsAt.IsZero() || got.Now.IsZero() {
			t.Errorf("claim of an open plan: %v until %v, %v; want in flight without a time", got.Decision, got.Record.LeaseEndsAt, err)
		}
		end := tx.Rollback
		if committed {
			end = tx.Commit
		}
		if err := end(ctx); err != nil {
			t.Fatal(err)
		}
		got, err = store.Claim(ctx, c)
		if from := map[bool]recordstore.State{true: recordstore.Planned}[committed]; err != nil ||
			got.Decision != recordstore.Send || got.Record.TakenFrom != from {
			t.Errorf("committed %v: the claim afterwards: %v from %q, %v", committed, got.Decision, got.Record.TakenFrom, err)
		}
	}
}

// A claim that meets its deadline for any other reason is an error of the ledger.
func TestClaimThatIsLateIsNotInFlight(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, hinder := range map[string]func(t *testing.T, store *postgres.Store, pool *pgxpool.Pool, c recordstore.Claim){
		"its record is locked": func(t *testing.T, store *postgres.Store, pool *pgxpool.Pool, c recordstore.Claim) {
			dead := c
			dead.Lease = time.Microsecond
			claimAs(t, ctx, store, dead, 1)
			open(t, pool, "SELECT FROM samekey.record FOR UPDATE")
		},
		"the table is locked": func(t *testing.T, _ *postgres.Store, pool *pgxpool.Pool, _ recordstore.Claim) {
			open(t, pool, "LOCK TABLE samekey.record IN SHARE MODE")
		},
		"no connection is free": func(t *testing.T, _ *postgres.Store, pool *pgxpool.Pool, _ recordstore.Claim) {
			for range pool.Config().MaxConns {
				open(t, pool, "SELECT 1")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, pool := ledger(t)
			c := claimOf(64)
			hinder(t, store, pool, c)
			start := time.Now()
			got, err := claimWithin(ctx, store, c, 200*time.Millisecond)
			if !errors.Is(err, context.DeadlineExceeded) || got.Decision != "" {
				t.Errorf("%v, %v; want the context's error", got.Decision, err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// open begins a transaction with a statement and leaves it open until the test ends.
func open(t testing.TB, pool *pgxpool.Pool, sql string) {
	t.Helper()
	ctx := context.Background()
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(ctx) })
	if _, err := tx.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

// A plan and the caller's own change are made together or not at all, through pgx
// and through database/sql.
func TestPlanWithTheCallersChange(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool := ledger(t)
	execute(t, pool, "CREATE TABLE orders (id text PRIMARY KEY)")
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	type transaction struct {
		planner          recordstore.Planner
		insert           func(id string) error
		commit, rollback func() error
	}
	for name, begin := range map[string]func() transaction{
		"pgx": func() transaction {
			tx, err := pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return transaction{store.Tx(tx), func(id string) error {
				_, err := tx.Exec(ctx, "INSERT INTO orders VALUES ($1)", id)
				return err
			}, func() error { return tx.Commit(ctx) }, func() error { return tx.Rollback(ctx) }}
		},
		"database/sql": func() transaction {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			return transaction{store.SQLTx(tx), func(id string) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES ($1)", id)
				return err
			}, tx.Commit, tx.Rollback}
		},
	} {
		for _, committed := range []bool{true, false} {
			c, order := claimOf(64), name+map[bool]string{true: " commit", false: " rollback"}[committed]
			tx := begin()
			_, err := tx.planner.Plan(ctx, c)
			end := tx.rollback
			if committed {
				end = tx.commit
			}
			if err := errors.Join(err, tx.insert(order), end()); err != nil {
				t.Fatalf("%s: %v", order, err)
			}
			var ordered bool
			if err := pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM orders WHERE id = $1)", order).Scan(&ordered); err != nil {
				t.Fatal(err)
			}
			rec, _, err := store.Get(ctx, c.ID)
			if planned := err == nil && rec.State == recordstore.Planned; planned != committed || ordered != committed {
				t.Errorf("%s: planned %v (%v), ordered %v", order, planned, err, ordered)
			}
		}
	}
}

// Two transactions plan one command at once: the second waits for the first and
// finds its plan, or, at a stricter level, learns that it must begin again.
func TestTwoPlansOfOneCommand(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool := ledger(t)
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		c := claimOf(64)
		var txs [2]pgx.Tx
		for i := range txs {
			var err error
			if txs[i], err = pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: level}); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = txs[i].Rollback(ctx) }()
			if _, err := txs[i].Exec(ctx, "SELECT FROM samekey.record LIMIT 1"); err != nil { // sets what it sees
				t.Fatal(err)
			}
		}
		if _, err := store.Tx(txs[0]).Plan(ctx, c); err != nil {
			t.Fatal(err)
		}
		type answer struct {
			recordstore.Claimed
			err error
		}
		second := make(chan answer)
		go func() {
			got, err := store.Tx(txs[1]).Plan(ctx, c)
			second <- answer{got, err}
		}()
		waitFor(t, pool, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		if err := txs[0].Commit(ctx); err != nil {
			t.Fatal(err)
		}
		got := <-second
		conflict, refused := errors.AsType[*pgconn.PgError](got.err)
		switch level {
		case pgx.ReadCommitted:
			if got.err != nil || got.Decision != recordstore.Send || got.Record.State != recordstore.Planned {
				t.Errorf("%s: %v of a record in state %q, %v; want the first one's plan", level, got.Decision, got.Record.State, got.err)
			}
		default:
			if !refused || conflict.Code != "40001" {
				t.Errorf("%s: %v, %v; want a serialization failure", level, got.Decision, got.err)
			}
		}
	}
}
