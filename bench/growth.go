package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// growth measures a ledger of 10,000,000 records beside one of 10,000, and what a
// record takes on disk.
func growth(ctx context.Context, b *bench) error {
	const small, large, callers = 10_000, 10_000_000, 8
	contenders := make([]contender, 2)
	pools := make([]*pgxpool.Pool, 2)
	stores := make([]*postgres.Store, 2)
	var said statements
	for i, records := range []int{small, large} {
		pool, dsn, err := b.ledger(ctx, fmt.Sprintf("growth_%d", records))
		if err != nil {
			return err
		}
		b.say("filling a ledger with %d records", records)
		if err := fill(ctx, pool, filling{records: records, from: 399, to: 0, bodies: true}); err != nil {
			return err
		}
		store := postgres.New(pool, nil)
		if said, err = b.statementsOf(ctx, dsn); err != nil {
			return err
		}
		pools[i], stores[i] = pool, store
		contenders[i] = calling(fmt.Sprintf("a ledger of %d records", records), func(ctx context.Context) error { return ledgerCall(ctx, store) })
	}
	if err := b.plansOf(ctx, pools[1], said); err != nil {
		return err
	}
	r, err := b.compare(ctx, "growth", []int{callers}, contenders...)
	if err != nil {
		return err
	}
	b.result.ratio("growth_10m_vs_10k", callers, "", r.ratio(contenders[1].name, contenders[0].name, callers)...)
	// The server's log is everybody's: a vacuum of one ledger would count for the other.
	if err := b.vacuums(ctx, pools[1], "off"); err != nil {
		return err
	}
	var wal [2]float64
	for i, c := range contenders {
		if wal[i], err = b.walOf(ctx, pools[i], c, callers); err != nil {
			return err
		}
		b.result.figure("growth_wal_"+[]string{"10k", "10m"}[i], wal[i], "bytes/call", "after a checkpoint")
	}
	if err := b.vacuums(ctx, pools[1], "on"); err != nil {
		return err
	}
	b.result.ratio("growth_wal", callers, "", wal[1]/wal[0])
	if err := b.besideCalls(ctx, stores[1]); err != nil {
		return err
	}
	return b.diskOf(ctx)
}

// walCalls is how many calls follow the checkpoint: some minutes' worth of a busy
// service, of the five minutes that PostgreSQL leaves between two by default.
const walCalls = 50_000

// walOf is what a call writes to the server's log right after a checkpoint, when
// each page that is touched is written whole once.
func (b *bench) walOf(ctx context.Context, pool *pgxpool.Pool, c contender, callers int) (float64, error) {
	if _, err := pool.Exec(ctx, "CHECKPOINT"); err != nil {
		return 0, err
	}
	var from, bytes int64
	const position = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint - $1::bigint"
	if err := pool.QueryRow(ctx, position, 0).Scan(&from); err != nil {
		return 0, err
	}
	calls := 0
	for calls < walCalls {
		s, err := c.run(ctx, callers, b.window)
		if err != nil {
			return 0, err
		}
		calls += s.calls
	}
	if err := pool.QueryRow(ctx, position, from).Scan(&bytes); err != nil {
		return 0, err
	}
	return float64(bytes) / float64(calls), nil
}

// vacuums turns the server's autovacuum on or off, and waits for those under way.
func (b *bench) vacuums(ctx context.Context, pool *pgxpool.Pool, to string) error {
	for _, sql := range []string{"ALTER SYSTEM SET autovacuum = " + to, "SELECT pg_reload_conf()"} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	for running := true; running && to == "off"; time.Sleep(time.Second / 4) {
		const workers = "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'"
		if err := pool.QueryRow(ctx, workers).Scan(&running); err != nil {
			return err
		}
	}
	return nil
}

// updates counts the updates of a ledger's records, and those of them that
// touched no index.
type updates struct{ all, hot int64 }

func updatesOf(ctx context.Context, pool *pgxpool.Pool) (u updates, err error) {
	// Each connection hands its counts in when it has been idle for a while or ends.
	pool.Reset()
	err = pool.QueryRow(ctx, `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'samekey.record'::regclass`).Scan(&u.all, &u.hot)
	return u, err
}

// plansOf makes sure that a ledger finds the records of a call by their key alone,
// and prints how.
func (b *bench) plansOf(ctx context.Context, pool *pgxpool.Pool, said statements) error {
	for _, st := range []statement{said.claim, said.settle} {
		rows, err := pool.Query(ctx, "EXPLAIN (COSTS OFF) "+st.sql, st.args...)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		plan := strings.Join(lines, "\n")
		b.say("%s", plan)
		if !strings.Contains(plan, "record_pkey") || strings.Contains(plan, "Seq Scan on record") || strings.Contains(plan, "Bitmap") {
			return fmt.Errorf("a record is not found by its key:\n%s", plan)
		}
	}
	return nil
}

// besideCalls measures what a reconciler asks of a large ledger, where nothing is
// due.
func (b *bench) besideCalls(ctx context.Context, store *postgres.Store) error {
	due := recordstore.DueQuery{
		Provider: "stripe", Mode: "live", Derivations: []string{keyderive.Version}, Fingerprints: []byte{1}, SealVersion: 1,
		Holder: "reconciler", Lease: time.Minute, Limit: 50,
	}
	if _, err := store.FindCrashed(ctx, false, recordstore.MaxTake); err != nil { // sets the mark
		return err
	}
	for _, q := range []struct {
		name string
		ask  func() error
	}{
		{"take_due", func() error { _, _, err := store.TakeDue(ctx, due); return err }},
		{"find_crashed", func() error { _, err := store.FindCrashed(ctx, false, recordstore.MaxTake); return err }},
		{"backlog", func() error { _, err := store.Backlog(ctx, "stripe"); return err }},
	} {
		if err := b.timed("growth_"+q.name, "by the reconciler, with nothing due among 10,000,000 records", q.ask); err != nil {
			return err
		}
	}
	return nil
}

// diskOf measures what a record takes with its indexes, in a ledger that holds
// nothing but what calls left, and how many settlements touched no index: where a
// provider takes its time, so that each caller has many calls in flight, and where
// every call is settled at once, by the batch that its page was written by.
func (b *bench) diskOf(ctx context.Context) error {
	const callers, flight, most = 64, 50, 100_000
	for _, w := range []struct {
		name   string
		flight int
	}{{"", flight}, {"_at_once", 1}} {
		pool, _, err := b.ledger(ctx, "growth_disk"+w.name)
		if err != nil {
			return err
		}
		store := postgres.New(pool, nil)
		size := func() (bytes int64, err error) {
			err = pool.QueryRow(ctx, "SELECT pg_total_relation_size('samekey.record')").Scan(&bytes)
			return bytes, err
		}
		if err := callsInFlight(ctx, store, callers, most/callers, w.flight); err != nil {
			return err
		}
		first, err1 := size()
		u, err2 := updatesOf(ctx, pool)
		_, err3 := pool.Exec(ctx, "VACUUM samekey.record")
		if err := errors.Join(err1, err2, err3, callsInFlight(ctx, store, callers, most/callers, w.flight)); err != nil {
			return err
		}
		second, err := size()
		if err != nil {
			return err
		}
		const made = most / callers * callers
		b.result.ratio("growth_bytes"+w.name, callers, "bytes/record", float64(first)/made)
		b.result.ratio("growth_hot"+w.name, callers, "", float64(u.hot)/float64(u.all))
		b.result.figure("growth_bytes_after_vacuum"+w.name, float64(second-first)/made, "bytes/record", "that the ledger grows by for each further call once autovacuum was there")
	}
	return nil
}

// callsInFlight has callers make so many calls each, of which each is settled when
// flight-1 more have been claimed, in no order: providers answer so.
func callsInFlight(ctx context.Context, store recordstore.Store, callers, calls, flight int) error {
	var working sync.WaitGroup
	failed := make([]error, callers)
	for caller := range callers {
		working.Go(func() { failed[caller] = callInFlight(ctx, store, calls, flight) })
	}
	working.Wait()
	return errors.Join(failed...)
}

func callInFlight(ctx context.Context, store recordstore.Store, calls, flight int) error {
	var held []recordstore.Record
	for i := range calls + flight - 1 {
		if i < calls {
			got, err := store.Claim(ctx, newClaim())
			if err != nil {
				return err
			}
			held = append(held, got.Record)
		}
		if i >= flight-1 {
			next := rand.IntN(len(held))
			if _, err := store.Settle(ctx, settlementOf(held[next])); err != nil {
				return err
			}
			held[next] = held[len(held)-1]
			held = held[:len(held)-1]
		}
	}
	return nil
}
