package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// purgeStep is how many records the reconciler removes at a time.
const purgeStep = 1000

// purges measures live calls while expired records are removed beside them, and
// how fast those go.
func purges(ctx context.Context, b *bench) error {
	pool, _, err := b.ledger(ctx, "purge")
	if err != nil {
		return err
	}
	expired, window := 1_000_000, 2*time.Second
	if b.quick {
		expired, window = 200_000, b.window
	}
	b.say("filling a ledger with %d expired records", expired)
	if err := fill(ctx, pool, filling{records: expired, from: 500, to: 410}); err != nil {
		return err
	}
	store := postgres.New(pool, nil)
	live := func(ctx context.Context) error { return ledgerCall(ctx, store) }
	during := *b // a purge is quick: there must be enough to remove for every round
	during.rounds, during.window = 3, window
	r, err := during.compare(ctx, "purge", []int{8}, calling("live calls alone", live), beside("live calls while purging", live, store))
	if err != nil {
		return err
	}
	b.result.ratio("purge_batches", 8, "", r.ratio("live calls while purging", "live calls alone", 8)...)
	most := 2 * time.Minute
	if b.quick {
		most = window
	}
	start, gone := time.Now(), 0
	for time.Since(start) < most {
		p, err := store.Purge(ctx, purgeStep)
		if err != nil {
			return err
		}
		if p.Records == 0 {
			break
		}
		gone += p.Records
	}
	b.result.figure("purge_speed", float64(gone)/time.Since(start).Seconds(), "records/s", "by batches, with nothing beside")
	if b.quick {
		expired /= 4
	}
	return b.purgeMonths(ctx, expired)
}

// purgeMonths measures live calls while whole months of expired records go, on a
// ledger with a partition for each month. They go once, so that there is one round.
func (b *bench) purgeMonths(ctx context.Context, expired int) error {
	dsn, err := b.database(ctx, "purge_months")
	if err != nil {
		return err
	}
	pool, err := b.pool(ctx, dsn)
	if err != nil {
		return err
	}
	if err := postgres.Migrate(ctx, pool, &postgres.Options{Partitions: true}); err != nil {
		return err
	}
	b.say("filling months with %d records", expired)
	if err := fill(ctx, pool, filling{records: expired, from: 395, to: 305}); err != nil {
		return err
	}
	// The records are expired on the ledger's clock, a hundred days from now.
	store := postgres.New(pool, &postgres.Options{Now: func() time.Time { return time.Now().AddDate(0, 0, 100) }})
	if err := store.Attach(ctx, recordstore.Pins{Derivation: keyderive.Version, Secret: "none"}); err != nil {
		return err
	}
	live := func(ctx context.Context) error { return ledgerCall(ctx, store) }
	before, err := load(ctx, 8, 2*b.window, live)
	if err != nil {
		return err
	}
	type purged struct {
		records int
		took    time.Duration
		err     error
	}
	went := make(chan purged, 1)
	go func() {
		start := time.Now()
		p, err := store.Purge(ctx, expired)
		went <- purged{p.Records, time.Since(start), err}
	}()
	during, err := load(ctx, 8, 2*b.window, live)
	gone := <-went
	if err := errors.Join(err, gone.err); err != nil {
		return err
	}
	after, err := load(ctx, 8, 2*b.window, live)
	if err != nil {
		return err
	}
	if gone.records < expired/2 {
		return fmt.Errorf("%d of %d expired records went with their months", gone.records, expired)
	}
	b.result.ratio("purge_partition", 8, "", 2*during.perSecond()/(before.perSecond()+after.perSecond()))
	b.result.figure("purge_partition_took", gone.took.Seconds(), "s", fmt.Sprintf("until the months with %d records were gone, beside 8 callers", expired))
	return nil
}

// beside is a contender that purges without a pause while it makes calls.
func beside(name string, live func(context.Context) error, store recordstore.Purger) contender {
	return contender{name, func(ctx context.Context, callers int, window time.Duration) (sample, error) {
		purging, stop := context.WithCancel(ctx)
		defer stop()
		ended := make(chan error, 1)
		go func() {
			for {
				p, err := store.Purge(purging, purgeStep)
				switch {
				case purging.Err() != nil:
					ended <- nil
					return
				case err == nil && p.Records == 0:
					err = errors.New("all expired records went before the calls were measured")
					fallthrough
				case err != nil:
					ended <- err
					return
				}
			}
		}()
		s, err := load(ctx, callers, window, live)
		stop()
		return s, errors.Join(err, <-ended)
	}}
}

// filling are settled records, evenly spread over past days.
type filling struct {
	records  int
	from, to int // Days ago, the older one first.
	bodies   bool
}

// fillStep is how many records one statement writes.
const fillStep = 250_000

// fill writes records as ordinary calls leave them. What they cost to keep is
// measured elsewhere, on records that calls made.
func fill(ctx context.Context, pool *pgxpool.Pool, f filling) error {
	body, header := "NULL::bytea", "NULL::bytea"
	if f.bodies {
		body, header = "decode(repeat(md5(i::text), 16), 'hex')", "decode(repeat(md5(i::text), 8), 'hex')"
	}
	sql := fmt.Sprintf(`
		INSERT INTO samekey.record (created_at, claimed_at, lease_expires_at, window_ends_at, sent_until, answered_at,
			replay_until, evidence_until, body_purged_at, day, fence, version, deliveries, response_status, seal_version, key_hash,
			scope_hash, provider, account, operation, command_id, class, derivation, request_hash, state, evidence, outcome,
			holder, external_ref, object_status, provider_request_id, response_headers, response_body)
		SELECT at, at, at + interval '2 minutes', at + interval '23 hours', at + interval '2 minutes', at,
			at + interval '7 days', at + interval '400 days', CASE WHEN $4::boolean THEN NULL ELSE at + interval '7 days' END,
			floor(date_part('epoch', at) / 86400), 1, 2, 1, 200, 1, decode(md5('key' || i), 'hex'),
			decode(repeat(md5('scope'), 2), 'hex'), 'stripe', 'acct_1Nv0FGQ9RKHgCVdK/live', 'refund.create', md5(i::text)::uuid::text,
			'money', 'v1', decode('01' || md5('print' || i), 'hex'), 'succeeded', 'no_replay_header', 'done',
			md5('holder' || i)::uuid::text, 're_' || substr(md5(i::text), 1, 24), 'succeeded', 'req_' || substr(md5(i::text), 1, 14),
			%s, %s
		FROM generate_series($1::bigint, $2::bigint) AS i,
			LATERAL (SELECT $3::timestamptz + i * $5::bigint * interval '1 microsecond' AS at) AS t`, header, body)
	from := time.Now().AddDate(0, 0, -f.from)
	step := time.Now().AddDate(0, 0, -f.to).Sub(from).Microseconds() / int64(f.records)
	// Calls fill a page with rows that grow when they are settled; these have grown.
	if err := filled(ctx, pool, "fillfactor = 95"); err != nil {
		return err
	}
	for first := 0; first < f.records; first += fillStep {
		last := min(first+fillStep, f.records) - 1
		if _, err := pool.Exec(ctx, sql, first, last, from, f.bodies, step); err != nil {
			return err
		}
	}
	if err := filled(ctx, pool, "fillfactor = 66"); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, "VACUUM (ANALYZE) samekey.record")
	return err
}

// filled sets how full the pages are made, of each month where there are months.
func filled(ctx context.Context, pool *pgxpool.Pool, setting string) error {
	_, err := pool.Exec(ctx, `DO $$ DECLARE t regclass; BEGIN
		FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND (oid = 'samekey.record'::regclass
			OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'samekey.record'::regclass)) LOOP
			EXECUTE format('ALTER TABLE %s SET (`+setting+`)', t);
		END LOOP;
	END $$`)
	return err
}
