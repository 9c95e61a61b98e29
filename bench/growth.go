package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// growth measures a ledger of 10,000,000 records beside one of 10,000, and what a
// record takes on disk.
func growth(ctx context.Context, b *bench) error {
	const small, large, callers = 10_000, 10_000_000, 8
	contenders := make([]contender, 2)
	pools := make([]*pgxpool.Pool, 2)
	for i, records := range []int{small, large} {
		pool, _, err := b.ledger(ctx, fmt.Sprintf("growth_%d", records))
		if err != nil {
			return err
		}
		b.say("filling a ledger with %d records", records)
		if err := fill(ctx, pool, filling{records: records, from: 399, to: 0, bodies: true}); err != nil {
			return err
		}
		store := postgres.New(pool, nil)
		pools[i] = pool
		contenders[i] = calling(fmt.Sprintf("a ledger of %d records", records), func(ctx context.Context) error { return ledgerCall(ctx, store) })
	}
	before, err := updatesOf(ctx, pools[1])
	if err != nil {
		return err
	}
	r, err := b.compare(ctx, "growth", []int{callers}, contenders...)
	if err != nil {
		return err
	}
	b.result.ratio("growth_10m_vs_10k", callers, "", r.ratio(contenders[1].name, contenders[0].name, callers)...)
	var wal [2]float64
	for i, c := range contenders {
		if wal[i], err = b.walOf(ctx, pools[i], c, callers); err != nil {
			return err
		}
		b.result.figure("growth_wal_"+[]string{"10k", "10m"}[i], wal[i], "bytes/call", "after a checkpoint")
	}
	b.result.ratio("growth_wal", callers, "", wal[1]/wal[0])
	after, err := updatesOf(ctx, pools[1])
	if err != nil {
		return err
	}
	b.result.ratio("growth_hot", callers, "", float64(after.hot-before.hot)/float64(after.all-before.all))
	return b.diskOf(ctx, callers)
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

// updates counts the updates of a ledger's records, and those of them that
// touched no index.
type updates struct{ all, hot int64 }

func updatesOf(ctx context.Context, pool *pgxpool.Pool) (u updates, err error) {
	// Each connection hands its counts in when it has been idle for a while or ends.
	pool.Reset()
	err = pool.QueryRow(ctx, `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'samekey.record'::regclass`).Scan(&u.all, &u.hot)
	return u, err
}

// diskOf measures what a record takes with its indexes, in a ledger that holds
// nothing but what calls left.
func (b *bench) diskOf(ctx context.Context, callers int) error {
	pool, _, err := b.ledger(ctx, "growth_disk")
	if err != nil {
		return err
	}
	store := postgres.New(pool, nil)
	const most = 200_000
	var made atomic.Int64
	for made.Load() < most {
		if _, err := load(ctx, callers*8, b.window, func(ctx context.Context) error {
			made.Add(1)
			return ledgerCall(ctx, store)
		}); err != nil {
			return err
		}
	}
	var bytes int64
	if err := pool.QueryRow(ctx, "SELECT pg_total_relation_size('samekey.record')").Scan(&bytes); err != nil {
		return err
	}
	b.result.ratio("growth_bytes", callers, "bytes/record", float64(bytes)/float64(made.Load()))
	return nil
}
