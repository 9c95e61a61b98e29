package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// providerTime is what a provider takes in the measurement of latency.
const providerTime = 300 * time.Millisecond

// latency measures what samekey adds to a provider that takes 300 ms, and how many
// of the ledger's connections are held while every caller waits for it.
func latency(ctx context.Context, b *bench) error {
	remote, err := b.provider(ctx)
	if err != nil {
		return err
	}
	pool, _, err := b.ledger(ctx, "latency")
	if err != nil {
		return err
	}
	base := remote.slow(providerTime)
	client, err := b.client(base, postgres.New(pool, nil), newTransport())
	if err != nil {
		return err
	}
	post := poster(newTransport(), base)
	window, rounds := 1250*time.Millisecond, 1
	if !b.quick {
		window, rounds = 6*time.Second, 5
	}
	for _, n := range []int{1, 64} {
		var held atomic.Int64
		alone := calling("POST alone, 300 ms", func(ctx context.Context) error { return post(ctx, outbound.NewCommandID()) })
		ours := calling("samekey, 300 ms", func(ctx context.Context) error { return refund(ctx, client) })
		watched := contender{ours.name, func(ctx context.Context, callers int, window time.Duration) (sample, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			watching := make(chan error, 1)
			go func() { watching <- watch(ctx, remote, pool, callers, &held) }()
			s, err := ours.run(ctx, callers, window)
			cancel()
			if err == nil {
				err = <-watching
			}
			return s, err
		}}
		during := *b
		during.window, during.rounds = window, rounds
		if _, err := during.compare(ctx, "latency", []int{n}, alone, watched); err != nil {
			return err
		}
		last := b.result.Measurements[len(b.result.Measurements)-2:]
		b.result.ratio("latency_p50", n, "ms", last[1].P50-last[0].P50)
		b.result.ratio("latency_p99", n, "ms", last[1].P99-last[0].P99)
		b.result.ratio("latency_connections", n, "", float64(held.Load()))
	}
	return nil
}

// watch notes the most connections that were held at moments when all callers were
// waiting for the provider.
func watch(ctx context.Context, remote *provider, pool *pgxpool.Pool, callers int, held *atomic.Int64) error {
	all := false
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			if !all {
				held.Store(-1) // there was no such moment
			}
			return nil
		case <-tick.C:
		}
		before, err := remote.waiting(ctx)
		acquired := int64(pool.Stat().AcquiredConns())
		after, err2 := remote.waiting(ctx)
		if ctx.Err() != nil {
			continue
		}
		if err != nil || err2 != nil {
			return err
		}
		if before == callers && after == callers {
			all = true
			held.Store(max(held.Load(), acquired))
		}
	}
}
