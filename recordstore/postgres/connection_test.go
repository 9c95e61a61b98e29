package postgres_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// Every connection of the pool is dead, as after a failover: the first settlement
// succeeds, on a new connection.
func TestSettleAfterEveryConnectionDied(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dsn := pgtest.DSN(t)
	pool, admin := pgtest.Open(t, dsn), pgtest.Open(t, dsn)
	migrate(t, pool, nil)
	store := postgres.New(pool, nil)
	var held []recordstore.Record
	for range 8 {
		got, err := store.Claim(ctx, claimOf(64))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, got.Record)
	}
	// All of the pool's connections at once, so that there are several to die.
	conns := make([]*pgxpool.Conn, 0, 8)
	for range cap(conns) {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		conn.Release()
	}
	terminate(t, admin, "true")
	for _, rec := range held {
		got, err := store.Settle(ctx, settlementOf(rec, 64))
		if err != nil || got.State != recordstore.Succeeded {
			t.Fatalf("settle: %v, %v", got.State, err)
		}
	}
}

// The connection dies while the settlement is under way, here waiting for a lock.
func TestSettleWhoseConnectionDiesInTheMiddle(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dsn := pgtest.DSN(t)
	pool, admin := pgtest.Open(t, dsn), pgtest.Open(t, dsn)
	migrate(t, pool, nil)
	store := postgres.New(pool, nil)
	claimed, err := store.Claim(ctx, claimOf(64))
	if err != nil {
		t.Fatal(err)
	}
	tx, err := admin.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, "SELECT FROM samekey.record FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	settled := make(chan error)
	go func() {
		_, err := store.Settle(ctx, settlementOf(claimed.Record, 64))
		settled <- err
	}()
	waits := "wait_event_type = 'Lock' AND query LIKE '%UPDATE%'"
	waitFor(t, admin, "SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND "+waits)
	terminate(t, admin, waits)
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-settled; err != nil {
		t.Fatal(err)
	}
}

// terminate kills the backends of this database that a condition names, and waits
// until they are gone.
func terminate(t testing.TB, admin *pgxpool.Pool, which string) {
	t.Helper()
	var killed []int32
	if err := admin.QueryRow(context.Background(), `SELECT array_agg(pid) FROM (
		SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND `+which+`) AS killed`).Scan(&killed); err != nil {
		t.Fatal(err)
	}
	if len(killed) == 0 {
		t.Fatal("nothing was terminated")
	}
	for end := time.Now().Add(10 * time.Second); ; {
		var left int
		if err := admin.QueryRow(context.Background(), "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1)", killed).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d backends live 10 s after they were terminated", left)
		}
	}
}

// lossyConn loses the answer to one statement: the server did it, nobody heard.
type lossyConn struct {
	net.Conn
	lose *atomic.Bool
}

func (c *lossyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.lose.CompareAndSwap(true, false) {
		return 0, errors.Join(io.ErrUnexpectedEOF, c.Conn.Close())
	}
	return n, err
}

// A commit whose answer was lost is found again: the claim holds its record with
// the first fence, the settlement is done once.
func TestUnknownCommit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, pool := ledger(t)
	var lose atomic.Bool
	dial := pool.Config().ConnConfig.DialFunc
	lossy := configured(t, pool, func(c *pgxpool.Config) {
		c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &lossyConn{conn, &lose}, err
		}
	})
	store := postgres.New(lossy, nil)
	call(t, ctx, store) // the statements are prepared: the next answer is the commit's
	call(t, ctx, store)

	lose.Store(true)
	got, err := store.Claim(ctx, claimOf(64))
	if err != nil || got.Decision != recordstore.Send || got.Record.Fence != 1 || lose.Load() {
		t.Fatalf("claim: %v, fence %d, %v; want send, fence 1", got.Decision, got.Record.Fence, err)
	}
	call(t, ctx, store)
	call(t, ctx, store)
	lose.Store(true)
	rec, err := store.Settle(ctx, settlementOf(got.Record, 64))
	if err != nil || rec.State != recordstore.Succeeded || rec.Version != 2 || rec.Deliveries != 1 || lose.Load() {
		t.Fatalf("settle: %v, version %d, %d deliveries, %v; want succeeded, 2, 1", rec.State, rec.Version, rec.Deliveries, err)
	}
}

// A ledger that cannot be reached is an error in time, and never looks like an
// answer of the ledger.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() }) // it accepts, and says nothing
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, addr := range map[string]string{"refuses": closed.Addr().String(), "is silent": listener.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Open(t, "postgres://nobody:hunter2@"+addr+"/none?sslmode=disable")
			store := postgres.New(pool, nil)
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, claimErr := store.Claim(ctx, claimOf(64))
			_, settleErr := store.Settle(ctx, settlementOf(recordstore.Record{}, 64))
			_, reportErr := store.Report(ctx, recordstore.ID{}, recordstore.Result{State: recordstore.Succeeded})
			attachErr := store.Attach(ctx, recordstore.Pins{Derivation: "v1", Secret: "none"})
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("four steps took %v with 300 ms to go", took)
			}
			for _, err := range []error{claimErr, settleErr, reportErr, attachErr} {
				if err == nil {
					t.Fatal("a step on no server succeeded")
				}
				for _, answer := range []error{recordstore.ErrNotFound, recordstore.ErrNotHeld, recordstore.ErrPinned, recordstore.ErrSchema} {
					if errors.Is(err, answer) {
						t.Errorf("%v is %v", err, answer)
					}
				}
			}
		})
	}
}

// A pool that its owner closed stays closed.
func TestClosedPool(t *testing.T) {
	t.Parallel()
	store, pool := ledger(t)
	pool.Close()
	if _, err := store.Claim(context.Background(), claimOf(64)); err == nil {
		t.Fatal("a claim on a closed pool succeeded")
	}
}
