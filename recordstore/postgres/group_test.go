package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/recordstoretest"
)

// batches counts what goes in batches.
type batches struct {
	sent, steps atomic.Int64
	largest     atomic.Int64
}

func (b *batches) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (b *batches) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (b *batches) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	n := int64(0)
	for _, q := range d.Batch.QueuedQueries[1:] { // without the settings
		if keys, many := q.Arguments[2].([][]byte); many {
			n += int64(len(keys))
		} else {
			n++
		}
	}
	b.sent.Add(1)
	b.steps.Add(n)
	for seen := b.largest.Load(); n > seen && !b.largest.CompareAndSwap(seen, n); seen = b.largest.Load() {
	}
	return ctx
}

func (b *batches) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (b *batches) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// gathering returns a store whose steps gather behind one worker, its pool, and
// what went in batches. At the end it expects that most of what was asked did.
func gathering(t testing.TB, dsn string) (*postgres.Store, *pgxpool.Pool, *batches) {
	t.Helper()
	pool := pgtest.Open(t, dsn)
	migrate(t, pool, nil)
	seen := &batches{}
	traced := configured(t, pool, func(c *pgxpool.Config) { c.ConnConfig.Tracer = seen })
	t.Cleanup(func() {
		t.Logf("%d steps went in %d batches of at most %d", seen.steps.Load(), seen.sent.Load(), seen.largest.Load())
		if seen.largest.Load() < 4 {
			t.Error("nothing gathered: this test shows nothing")
		}
	})
	return postgres.New(traced, &postgres.Options{Workers: 1}), pool, seen
}

// atOnce runs f n times at once and waits.
func atOnce(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// callRight makes one call and returns what was wrong about it. What fails for a
// reason that passes is asked again, as package outbound does.
func callRight(ctx context.Context, store *postgres.Store, passes func(error) bool) error {
	c := claimOf(256)
	var got recordstore.Claimed
	err := until(ctx, passes, func() (err error) { got, err = store.Claim(ctx, c); return err })
	if err != nil || got.Decision != recordstore.Send || got.Record.ID != c.ID || got.Record.Holder != c.Holder || got.Record.Fence != 1 {
		return fmt.Errorf("claim: %v of fence %d, %w; want send of fence 1", got.Decision, got.Record.Fence, err)
	}
	s := settlementOf(got.Record, 256)
	var rec recordstore.Record
	err = until(ctx, passes, func() (err error) { rec, err = store.Settle(ctx, s); return err })
	if err != nil || rec.ID != c.ID || rec.State != recordstore.Succeeded || rec.Version != 2 || rec.Deliveries != 1 || string(rec.ResponseBody) != string(s.ResponseBody) {
		return fmt.Errorf("settle: %v, version %d, %d deliveries, %w; want succeeded, 2, 1", rec.State, rec.Version, rec.Deliveries, err)
	}
	return nil
}

// until asks again as long as an error passes.
func until(ctx context.Context, passes func(error) bool, ask func() error) error {
	for {
		if err := ask(); err == nil || !passes(err) || ctx.Err() != nil {
			return err
		}
	}
}

func never(error) bool { return false }

// A statement that the server refuses takes its whole transaction with it, after
// those before it reported success. Nobody but its caller learns of that.
func TestPoisonInABatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, _, seen := gathering(t, pgtest.DSN(t))
	poisoned := 0
	for seen.steps.Load() < 300 { // until there was enough company
		atOnce(32, func(i int) {
			if i%16 != 5 {
				if err := callRight(ctx, store, never); err != nil {
					t.Error(err)
				}
				return
			}
			c := claimOf(64)
			c.CommandID = "not text \x00"
			_, err := store.Claim(ctx, c)
			if e, said := errors.AsType[*pgconn.PgError](err); !said || e.Code != "22021" {
				t.Errorf("the claim that the server refuses: %v; want its own error", err)
			}
		})
		poisoned += 2
	}
	t.Logf("%d poisoned claims", poisoned)
}

// Callers who give up return at once, and touch nobody. What became of their claim
// they learn by the same claim again.
func TestCancelledCallersInABatch(t *testing.T) {
	t.Parallel()
	store, _, seen := gathering(t, pgtest.DSN(t))
	for seen.steps.Load() < 300 {
		atOnce(32, func(i int) {
			if i%2 == 0 {
				if err := callRight(context.Background(), store, never); err != nil {
					t.Error(err)
				}
				return
			}
			c := claimOf(64)
			ctx, cancel := context.WithTimeout(context.Background(), rand.N(10*time.Millisecond))
			defer cancel()
			if _, err := store.Claim(ctx, c); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a claim that was given up: %v", err)
			}
			got, err := store.Claim(context.Background(), c)
			if err != nil || got.Decision != recordstore.Send || got.Record.Fence != 1 {
				t.Errorf("the same claim again: %v of fence %d, %v; want send of fence 1", got.Decision, got.Record.Fence, err)
			}
		})
	}
}

// A record that an open transaction holds keeps its own caller waiting, and nobody
// else for longer than a moment, again and again.
func TestLockedRecordInABatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool, _ := gathering(t, pgtest.DSN(t))
	dead := claimOf(64)
	dead.Lease = time.Microsecond
	claimAs(t, ctx, store, dead, 1)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, "SELECT FROM samekey.record FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	freed := make(chan recordstore.Decision, 1)
	atOnce(33, func(i int) {
		if i == 32 {
			go func() { freed <- claimAs(t, ctx, store, dead, 2) }()
			return
		}
		for range 5 {
			begun := time.Now()
			if err := callRight(ctx, store, never); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("a call took %v while another's record was locked", took)
			}
		}
	})
	select {
	case d := <-freed:
		t.Fatalf("the claim of the locked record: %v; want it to wait", d)
	default:
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if d := <-freed; d != recordstore.Send {
		t.Errorf("the claim of the record that was locked: %v; want send", d)
	}
}

// R10: many callers who ask for the same few records at once, beside others: of
// each record one sends, and each caller gets the answer about its own.
func TestOneRecordInManyBatches(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, _, _ := gathering(t, pgtest.DSN(t))
	for range 10 {
		contested := []recordstore.Claim{claimOf(64), claimOf(64), claimOf(64)}
		var sent [3]atomic.Int64
		atOnce(64, func(i int) {
			if i%2 == 0 {
				if err := callRight(ctx, store, never); err != nil {
					t.Error(err)
				}
				return
			}
			c := contested[i%3]
			c.Holder += fmt.Sprint(i)
			got, err := store.Claim(ctx, c)
			if err != nil || got.Record.ID != c.ID {
				t.Errorf("claim of %v: %v about %v", c.ID, err, got.Record.ID)
			}
			if got.Decision == recordstore.Send {
				sent[i%3].Add(1)
			} else if got.Decision != recordstore.InFlight {
				t.Errorf("%v; want in flight", got.Decision)
			}
		})
		for i := range sent {
			if n := sent[i].Load(); n != 1 {
				t.Errorf("%d callers may send one record", n)
			}
		}
	}
}

// The server goes down in the middle of everything and comes up again: what was
// asked again is done once.
func TestServerRestartUnderBatches(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dsn := pgtest.OwnServer(t)
	store, pool, _ := gathering(t, dsn)
	var victim int
	if err := pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&victim); err != nil {
		t.Fatal(err)
	}
	var calls, failed atomic.Int64
	passes := func(error) bool { failed.Add(1); return true }
	killed := make(chan struct{})
	kill := sync.OnceFunc(func() { // a backend that is killed takes all of the server along
		if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		close(killed)
	})
	atOnce(32, func(int) {
		after := 0
		for after < 5 { // calls after the restart
			if err := callRight(ctx, store, passes); err != nil {
				t.Error(err)
				return
			}
			if calls.Add(1) > 200 {
				kill()
			}
			select {
			case <-killed:
				after++
			default:
			}
		}
	})
	if failed.Load() == 0 {
		t.Error("nobody noticed that the server went down: this test shows nothing")
	}
	var wrong int
	if err := pgtest.Open(t, dsn).QueryRow(ctx, "SELECT count(*) FROM samekey.record WHERE state <> 'succeeded' OR version <> 2 OR fence <> 1").Scan(&wrong); err != nil || wrong != 0 {
		t.Errorf("%d records are not settled once, %v", wrong, err)
	}
}

// A claim beyond the queue is told so at once, and nothing is written; settlements
// are not refused.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, pool := ledger(t)
	store := postgres.New(pool, &postgres.Options{Workers: 1, Queue: 1})
	got, err := store.Claim(ctx, claimOf(64))
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	for refused.Load() == 0 {
		atOnce(32, func(i int) {
			if i == 0 {
				if _, err := store.Settle(ctx, settlementOf(got.Record, 64)); err != nil {
					t.Errorf("a settlement with the queue full: %v", err)
				}
				return
			}
			c := claimOf(64)
			switch _, err := store.Claim(ctx, c); {
			case errors.Is(err, recordstore.ErrOverloaded):
				refused.Add(1)
				if _, _, err := store.Get(ctx, c.ID); !errors.Is(err, recordstore.ErrNotFound) {
					t.Errorf("a refused claim left a record: %v", err)
				}
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// Close waits for what is under way, refuses the rest, and leaves the pool alone.
func TestClose(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool := ledger(t)
	var made atomic.Int64
	begun := make(chan struct{})
	go atOnce(32, func(i int) {
		for {
			_, err := store.Claim(ctx, claimOf(64))
			if err != nil {
				return
			}
			if made.Add(1) == 50 {
				close(begun)
			}
		}
	})
	<-begun
	store.Close()
	if _, err := store.Claim(ctx, claimOf(64)); err == nil {
		t.Error("a claim after Close succeeded")
	}
	var written int64
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM samekey.record").Scan(&written); err != nil {
		t.Fatal(err)
	}
	if again := postgres.New(pool, nil); callRight(ctx, again, never) != nil {
		t.Error("the pool does not serve another store")
	}
	waitFor(t, pool, fmt.Sprintf("SELECT count(*) = %d FROM samekey.record", written+1)) // nothing came later
}

// The suite holds without group commit too, here in the simple protocol, which
// some poolers need, and with plans in transactions of database/sql.
func TestSuiteDirect(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgx.QueryExecModeSimpleProtocol)
	h.direct, h.plain = true, true
	recordstoretest.Run(t, h)
}

// Batches pass through PgBouncer in transaction mode: a step finds the limit that
// its batch set, and no limit outlives the batch.
func TestBatchesThroughPgBouncer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, direct := ledger(t)
	b := startBouncer(t, 2)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeSimpleProtocol} {
		seen := &batches{}
		pool := configured(t, b.pool(t, direct, mode), func(c *pgxpool.Config) { c.ConnConfig.Tracer = seen })
		store := postgres.New(pool, &postgres.Options{Workers: 1})
		for seen.largest.Load() < 4 {
			atOnce(32, func(int) {
				if err := callRight(ctx, store, never); err != nil {
					t.Errorf("%v: %v", mode, err)
				}
			})
		}
		for range 10 {
			var limit string
			if err := pool.QueryRow(ctx, "SELECT current_setting('lock_timeout')").Scan(&limit); err != nil || limit != "0" {
				t.Fatalf("%v: the lock timeout outside a batch is %q, %v; want 0", mode, limit, err)
			}
		}
	}
}
