package postgres_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// What a caller in a batch is told of its record is what the ledger then holds,
// whatever stands in the claims and settlements beside it; who does not hold a
// record learns that.
func TestAnswersOfABatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, _, seen := gathering(t, pgtest.DSN(t))
	variants := []func(*recordstore.Claim){
		func(*recordstore.Claim) {},
		func(c *recordstore.Claim) { c.Request, c.SealVersion = nil, 0 },
		func(c *recordstore.Claim) { c.Window = 0 },
		func(c *recordstore.Claim) { c.NotAfter = time.Now().Add(time.Hour).UTC() },
		func(c *recordstore.Claim) { c.LostBefore = time.Now().Add(-time.Hour).UTC() },
		func(c *recordstore.Claim) { c.Fingerprints = append(c.Fingerprints, []byte{2, 7}) },
	}
	holds := func(what string, told recordstore.Record) {
		if rec, _, err := store.Get(ctx, told.ID); err != nil || !reflect.DeepEqual(rec, told) {
			t.Errorf("%s of %x told of another record than the ledger holds: version %d and %d, %v", what, told.ID.KeyHash, told.Version, rec.Version, err)
		}
	}
	for seen.steps.Load() < 300 {
		atOnce(36, func(i int) {
			c := claimOf(64)
			variants[i%len(variants)](&c)
			got, err := store.Claim(ctx, c)
			if err != nil {
				t.Error(err)
				return
			}
			holds("a claim", got.Record)
			s := settlementOf(got.Record, 64)
			if i%4 == 0 {
				s.Result = recordstore.Result{State: recordstore.Uncertain, Deliveries: 1, DueIn: time.Minute}
			}
			stale := s
			stale.Fence++
			if _, err := store.Settle(ctx, stale); !errors.Is(err, recordstore.ErrNotHeld) {
				t.Errorf("the settlement of another claim: %v; want ErrNotHeld", err)
			}
			rec, err := store.Settle(ctx, s)
			if err != nil {
				t.Error(err)
				return
			}
			holds("a settlement", rec)
		})
	}
}

// uncompiled counts the batches that turn the server's compiler off.
type uncompiled struct {
	counter
	off atomic.Int64
}

func (u *uncompiled) TraceBatchStart(ctx context.Context, c *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	if strings.Contains(d.Batch.QueuedQueries[0].SQL, "'jit', 'off', true") {
		u.off.Add(1)
	}
	return u.counter.TraceBatchStart(ctx, c, d)
}

// What reconcilers and purges ask of a ledger is never compiled, which takes a
// second where the table is large; the setting ends with the statement.
func TestUpkeepIsNotCompiled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, pool := ledger(t)
	seen := &uncompiled{}
	own := configured(t, pool, func(c *pgxpool.Config) { c.ConnConfig.Tracer, c.MaxConns = seen, 1 })
	store := postgres.New(own, nil)
	for what, ask := range map[string]func() error{
		"TakeDue":     func() error { _, _, err := store.TakeDue(ctx, dueQuery(10)); return err },
		"FindCrashed": func() error { _, err := store.FindCrashed(ctx, false, 10); return err },
		"Backlog":     func() error { _, err := store.Backlog(ctx, "stripe"); return err },
		"Purge":       func() error { _, err := store.Purge(ctx, 10); return err },
	} {
		before := seen.off.Load()
		seen.take()
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		if off, sent := seen.off.Load()-before, len(seen.take()); off == 0 || int(off) != sent {
			t.Errorf("%s: %d of %d statements are not compiled", what, off, sent)
		}
	}
	var jit string
	if err := own.QueryRow(ctx, "SELECT current_setting('jit')").Scan(&jit); err != nil || jit != "on" {
		t.Errorf("afterwards jit is %q, %v; want on", jit, err)
	}
}
