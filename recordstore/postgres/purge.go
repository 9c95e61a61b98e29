package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

const raise = `
INSERT INTO {schema}.frontier AS f (class, day) VALUES ($1::text, $2::integer)
ON CONFLICT (class) DO UPDATE SET day = excluded.day WHERE f.day < excluded.day`

// RaiseFrontier implements recordstore.Forgetter. A claim that is under way still
// compares with the old day; what it found in the ledger it does not write anew.
func (s *Store) RaiseFrontier(ctx context.Context, class string, day int32) error {
	if s.invalid != nil {
		return s.invalid
	}
	if strings.TrimSpace(class) == "" || day < 0 {
		return fmt.Errorf("postgres: raise frontier: %w: it takes a class and a day since 1970", recordstore.ErrInvalid)
	}
	err := s.step(ctx, func() (bool, error) {
		_, err := s.pool.Exec(ctx, s.sql.raise, class, day)
		return true, err
	})
	if err != nil {
		return fmt.Errorf("postgres: raise frontier: %w", err)
	}
	return nil
}

// What retention asks of a record. {ends} is what the index record_ends is sorted
// by; $3 is how long ago that must have been. The order, and a LIMIT and a CASE that
// the server cannot foresee, have it read along that index and stop.
const (
	ends    = `(CASE WHEN bodies THEN replay_until ELSE evidence_until END)`
	past    = `{ends} <= (SELECT now FROM ledger) - {us} * $3::bigint AND waiting IS NULL`
	settled = `state IN ('succeeded', 'refused', 'not_executed', 'abandoned')`

	// over is said of a record that is no longer needed. One that was written just
	// now stays: a claim of it that saw neither record nor frontier may still be
	// under way.
	over = `{settled} AND created_at <= (SELECT now FROM ledger) - interval '10 minutes'`

	// ended is said of a record's day: no new command of it is to be expected.
	ended = `day > 0 AND day < (SELECT {today} FROM ledger) - 1`
)

// empty removes up to $2 bodies, as recordstore.Emptied says.
const empty = `
WITH ledger AS MATERIALIZED ({clock}), done AS (
	SELECT day, key_hash FROM {schema}.record
	WHERE bodies AND {past} AND CASE WHEN {settled} THEN true ELSE false END
	ORDER BY {ends} LIMIT (SELECT $2::integer) FOR UPDATE SKIP LOCKED
), emptied AS (
	UPDATE {schema}.record AS r SET request = NULL, response_headers = NULL, response_body = NULL,
		body_purged_at = now, version = r.version + 1
	FROM done, ledger WHERE r.day = done.day AND r.key_hash = done.key_hash
	RETURNING r.day
)
SELECT count(*) FROM emptied`

// purgeable returns how far the frontiers must be raised before remove.
const purgeable = `
WITH ledger AS MATERIALIZED ({clock})
SELECT class, max(day) FROM (
	SELECT class, day FROM {schema}.record WHERE NOT bodies AND {past}
		AND CASE WHEN {over} AND {ended} THEN true ELSE false END
	ORDER BY {ends} LIMIT (SELECT $2::integer)
) AS next GROUP BY class`

// remove deletes up to $2 records, as recordstore.Purgeable says, that lie behind
// the frontier of their class, and their trails.
const remove = `
WITH ledger AS MATERIALIZED ({clock}), done AS (
	SELECT day, key_hash FROM {schema}.record AS r
	WHERE NOT bodies AND {past} AND CASE WHEN {over} AND {ended}
		AND day <= (SELECT f.day FROM {schema}.frontier AS f WHERE f.class = r.class) THEN true ELSE false END
	ORDER BY {ends} LIMIT (SELECT $2::integer) FOR UPDATE OF r SKIP LOCKED
), removed AS (
	DELETE FROM {schema}.record AS r USING done WHERE r.day = done.day AND r.key_hash = done.key_hash
	RETURNING r.day, r.key_hash
), forgotten AS (
	DELETE FROM {schema}.trail AS t USING removed WHERE t.day = removed.day AND t.key_hash = removed.key_hash
)
SELECT count(*) FROM removed`

// shrink makes up to $2 tombstones, as recordstore.Tombstone says, without their
// trails.
const shrink = `
WITH ledger AS MATERIALIZED ({clock}), done AS (
	SELECT day, key_hash FROM {schema}.record
	WHERE NOT bodies AND {past} AND CASE WHEN {over} AND day = 0 THEN true ELSE false END
	ORDER BY {ends} LIMIT (SELECT $2::integer) FOR UPDATE SKIP LOCKED
), shrunk AS (
	UPDATE {schema}.record AS r SET object_status = NULL, provider_request_id = NULL, evidence_until = NULL, version = r.version + 1
	FROM done, ledger WHERE r.day = done.day AND r.key_hash = done.key_hash
	RETURNING r.day, r.key_hash
), forgotten AS (
	DELETE FROM {schema}.trail AS t USING shrunk WHERE t.day = shrunk.day AND t.key_hash = shrunk.key_hash
)
SELECT count(*) FROM shrunk`

// purgeStep bounds what one statement of a purge locks, and what calls wait for
// beside it. purgeRest is how long a purge rests after each, for each time that it
// took: it takes a fifth of a connection's time, whatever the server's pace is, and
// rests longer where calls make it slow.
const (
	purgeStep = 200
	purgeRest = 4
	maxRest   = 5 * time.Second
)

// Purge implements recordstore.Purger. Each step is a statement for at most 200
// records; a record that somebody else holds is passed over. A record goes no
// earlier than 10 minutes after it was written. A purge that goes on rests four
// fifths of its time, so that calls hardly notice; ctx ends it.
//
// Where there are partitions, a month that ended 400 days ago goes as a whole, once
// nothing in it is needed but up to 1,000 records; how many went is the server's
// estimate. Who does not own the tables leaves that to Migrate. Calls stand still
// for it, for a few milliseconds. What is over long before its month goes is
// removed one by one, two months late.
func (s *Store) Purge(ctx context.Context, limit int) (recordstore.Purged, error) {
	var p recordstore.Purged
	if s.byMonth.Load() {
		var err error
		if p.Records, err = s.dropMonths(ctx); err != nil {
			return p, fmt.Errorf("postgres: purge: %w", err)
		}
	}
	steps := []struct {
		total *int
		do    func(ctx context.Context, n int) (int, error)
	}{
		{&p.Bodies, func(ctx context.Context, n int) (int, error) { return s.purge(ctx, s.sql.empty, n, 0) }},
		{&p.Records, s.remove},
		{&p.Records, func(ctx context.Context, n int) (int, error) { return s.purge(ctx, s.sql.shrink, n, 0) }},
	}
	for _, step := range steps {
		for more := true; more && *step.total < limit; {
			n, begun := min(purgeStep, limit-*step.total), time.Now()
			done, err := step.do(ctx, n)
			*step.total += done
			if done > 0 && err == nil {
				err = rest(ctx, purgeRest*time.Since(begun))
			}
			if err != nil {
				return p, fmt.Errorf("postgres: purge: %w", err)
			}
			more = done == n
		}
	}
	return p, nil
}

// rest waits, unless ctx ends.
func rest(ctx context.Context, d time.Duration) error {
	over := time.NewTimer(min(d, maxRest))
	defer over.Stop()
	select {
	case <-over.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// remove raises the frontiers, lets that be committed, and then deletes: every
// claim that finds a record gone sees the frontier.
func (s *Store) remove(ctx context.Context, n int) (int, error) {
	var grace time.Duration
	if s.byMonth.Load() {
		grace = monthGrace
	}
	days, err := upkeep(ctx, s, s.sql.purgeable, []any{s.clock(), n, grace.Microseconds()}, pgx.RowToStructByPos[classDay])
	if err != nil || len(days) == 0 {
		return 0, err
	}
	for _, d := range days {
		if err := s.RaiseFrontier(ctx, d.Class, d.Day); err != nil {
			return 0, err
		}
	}
	return s.purge(ctx, s.sql.remove, n, grace)
}

// purge runs one step and returns how many records it changed.
func (s *Store) purge(ctx context.Context, sql string, n int, grace time.Duration) (done int, err error) {
	args := []any{s.clock(), n, grace.Microseconds()}
	err = s.step(ctx, func() (bool, error) { return true, s.upkeepOne(ctx, sql, args, []any{&done}) })
	return done, err
}

// classDay is how far a class's frontier must reach.
type classDay struct {
	Class string
	Day   int32
}
