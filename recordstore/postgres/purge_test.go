package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// outlived writes the record of a command of 450 days ago that was not executed,
// and whose time is over.
func outlived(t testing.TB, store *postgres.Store) recordstore.Claim {
	t.Helper()
	c := claimOf(64)
	c.ID.Day -= 450
	now := time.Now().UTC().Truncate(time.Microsecond)
	rec, _ := recordstore.Take(c, nil, 0, now.Add(-440*24*time.Hour))
	rec.State, rec.Request = recordstore.NotExecuted, nil
	if err := postgres.Seed(context.Background(), store, rec); err != nil {
		t.Fatal(err)
	}
	return c
}

// R22: a claim that began before the frontier was raised saw the record of its old
// command, and comes to write when the record is gone. It must not write it anew:
// it would not know what became of the command meanwhile.
func TestClaimUnderWayDuringAPurge(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool := ledger(t)
	c := outlived(t, store)
	tx, err := pool.Begin(ctx) // stands for the purge's second step
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, "SELECT FROM samekey.record FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	decided := make(chan recordstore.Decision)
	go func() { decided <- claimAs(t, ctx, store, c, 0) }()
	waitFor(t, pool, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
	if err := store.RaiseFrontier(ctx, c.Class, c.ID.Day); err != nil { // the first step, committed
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "DELETE FROM samekey.record"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if d := <-decided; d != recordstore.Forgotten {
		t.Errorf("the claim that was under way: %v; want forgotten", d)
	}
	if _, _, err := store.Get(ctx, c.ID); !errors.Is(err, recordstore.ErrNotFound) {
		t.Errorf("the record is there again: %v", err)
	}
}

// R22: the frontier is there for everybody before a record goes.
func TestFrontierIsRaisedBeforeRecordsGo(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool := ledger(t)
	c := outlived(t, store)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	// The step that deletes also deletes trails, and now waits for that.
	if _, err := tx.Exec(ctx, "LOCK TABLE samekey.trail IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	purged := make(chan error)
	go func() {
		got, err := store.Purge(ctx, 10)
		if want := (recordstore.Purged{Records: 1}); err == nil && got != want {
			t.Errorf("Purge removed %+v, want %+v", got, want)
		}
		purged <- err
	}()
	waitFor(t, pool, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
	if _, _, err := store.Get(ctx, c.ID); err != nil {
		t.Errorf("the record went too early: %v", err)
	}
	other := claimOf(64)
	other.ID.Day = c.ID.Day
	if d := claimAs(t, ctx, store, other, 0); d != recordstore.Forgotten {
		t.Errorf("another command of that day: %v; want forgotten", d)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-purged; err != nil {
		t.Fatal(err)
	}
	if d := claimAs(t, ctx, store, c, 0); d != recordstore.Forgotten {
		t.Errorf("the command whose record went: %v; want forgotten", d)
	}
}

// A record that is a few minutes old stays, whatever its retention: a claim that
// saw neither it nor the frontier may still be under way.
func TestYoungRecordsStay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	now := time.Now()
	_, pool := ledger(t)
	store := postgres.New(pool, &postgres.Options{Now: func() time.Time { return now }})
	c := claimOf(0)
	c.ID.Day -= 30
	c.Evidence, c.Replay = time.Second, time.Second
	claimed, err := store.Claim(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	s := settlementOf(claimed.Record, 0)
	s.ResponseHeader = nil
	if _, err := store.Settle(ctx, s); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		wait time.Duration
		want int
	}{{10*time.Minute - time.Second, 0}, {2 * time.Second, 1}} {
		now = now.Add(step.wait)
		if got, err := store.Purge(ctx, 10); err != nil || got.Records != step.want {
			t.Errorf("after %v Purge removed %+v, %v; want %d", step.wait, got, err, step.want)
		}
	}
}
