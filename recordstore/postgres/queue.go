package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// understood tells whether a record may be taken that is due, as
// recordstore.TakenDue says. It is a CASE, of which the server foresees nothing:
// else it takes so many conditions for a rare match, and rather sorts all that is
// due than reads along an index.
const understood = `CASE WHEN (account = ANY($3::text[]) OR right(account, length($4::text)) = $4::text)
		AND derivation = ANY($5::text[]) AND substring(request_hash FROM 1 FOR 1) = ANY($6::bytea[])
		AND COALESCE(seal_version, 0) <= $7::integer AND (state IN ('planned', 'not_executed', 'uncertain')
			OR state = 'sending' AND COALESCE(lease_expires_at <= (SELECT now FROM ledger), true)) THEN true ELSE false END`

// takeDue chooses from the oldest due records, $11 of them. Where that is not all
// that is due, it also walks over the scopes that have something, from one index
// entry to the next scope's first, from a random place ($12) up and from the
// beginning up to there, $13 steps each at most. Of each scope it takes the oldest.
// So it never sorts all that is due, and the cost is bounded. Candidates are
// several times as many as are taken, since others may be taking some.
// A LIMIT that the server cannot foresee, a SELECT, has it read along an index and
// stop there, whatever its statistics say: after an outage they know of nothing
// that is due.
const takeDue = `
WITH RECURSIVE ledger AS MATERIALIZED ({clock}), oldest AS MATERIALIZED (
	SELECT day, key_hash, scope_hash, due_at FROM {schema}.record
	WHERE provider = $2::text AND due_at <= (SELECT now FROM ledger) AND checks >= 0 AND {understood}
	ORDER BY due_at LIMIT (SELECT $11::integer)
), walk AS (
	SELECT place, until, 0 AS steps
	FROM (VALUES ($12::bytea, decode(repeat('ff', 33), 'hex')), ('\x'::bytea, $12::bytea)) AS ends (place, until)
	WHERE (SELECT count(*) FROM oldest) >= $11::integer
	UNION ALL
	SELECT scope_hash, until, steps + 1 FROM walk CROSS JOIN LATERAL (
		SELECT scope_hash FROM {schema}.record
		WHERE provider = $2::text AND due_at IS NOT NULL AND scope_hash > place AND scope_hash <= until
		ORDER BY scope_hash LIMIT 1
	) AS following WHERE steps < $13::integer
), depth AS MATERIALIZED (
	SELECT $11::integer / GREATEST(count(*), 1) + 1 AS records FROM walk
), candidates AS (
	SELECT day, key_hash, scope_hash, due_at FROM oldest
	UNION
	SELECT day, key_hash, scope_hash, due_at FROM walk CROSS JOIN LATERAL (
		SELECT day, key_hash, scope_hash, due_at FROM {schema}.record
		WHERE provider = $2::text AND scope_hash = place AND due_at <= (SELECT now FROM ledger) AND {understood}
		ORDER BY due_at LIMIT (SELECT records FROM depth)
	) AS of_scope WHERE steps > 0
), turns AS (
	SELECT day AS turn_day, key_hash AS turn_key, due_at AS turn_due,
		row_number() OVER (PARTITION BY scope_hash ORDER BY due_at) AS turn
	FROM candidates ORDER BY turn, turn_due LIMIT 4 * $10::integer
), chosen AS (
	SELECT turn_day, turn_key FROM turns JOIN {schema}.record AS r ON r.day = turn_day AND r.key_hash = turn_key
	WHERE COALESCE(due_at <= (SELECT now FROM ledger), false) AND {understood}
	ORDER BY turn, turn_due LIMIT $10::integer
	FOR UPDATE OF r SKIP LOCKED
), taken AS (
	UPDATE {schema}.record AS r SET
		state = CASE WHEN {unsent} THEN r.state ELSE 'sending' END,
		taken_from = CASE WHEN {unsent} THEN r.taken_from ELSE r.state END,
		doubt = r.doubt OR NOT {unsent},
		holder = CASE WHEN {unsent} THEN r.holder ELSE $8::text END,
		fence = CASE WHEN {unsent} THEN r.fence ELSE r.fence + 1 END,
		claimed_at = CASE WHEN {unsent} THEN r.claimed_at ELSE now END,
		lease_expires_at = CASE WHEN {unsent} THEN r.lease_expires_at ELSE now + {us} * $9::bigint END,
		sent_until = CASE WHEN NOT {unsent} AND COALESCE(GREATEST(r.created_at, r.claimed_at, r.answered_at) < $14::timestamptz, false)
			THEN GREATEST(r.sent_until, $14::timestamptz) ELSE r.sent_until END,
		due_at = now + {us} * $9::bigint,
		checks = CASE WHEN {unsent} OR r.doubt THEN r.checks + 1 ELSE 1 END, version = r.version + 1
	FROM chosen, ledger WHERE r.day = turn_day AND r.key_hash = turn_key
	RETURNING day, key_hash, {columns}
)
SELECT now, day, key_hash, {columns} FROM ledger LEFT JOIN taken ON true`

// What takeDue looks at, at most.
const (
	minCandidates = 1_000 // Or more, for who takes many.
	maxScopes     = 500   // In each of two directions.
)

// TakeDue implements recordstore.Queue. Where more than 1,000 records are due, or
// four times what is taken, it looks at about 1,000 scopes, others each time.
func (s *Store) TakeDue(ctx context.Context, q recordstore.DueQuery) ([]recordstore.Record, time.Time, error) {
	if err := q.Check(); err != nil {
		return nil, time.Time{}, fmt.Errorf("postgres: take due: %w", err)
	}
	var found []due
	err := s.step(ctx, func() (done bool, err error) {
		found, err = upkeep(ctx, s, s.sql.takeDue, s.dueArgs(q), readDue)
		return true, err
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("postgres: take due: %w", err)
	}
	var taken []recordstore.Record
	for _, d := range found {
		if d.record.State != "" { // else it is the time alone
			taken = append(taken, d.record)
		}
	}
	return taken, found[0].now, nil
}

func (s *Store) dueArgs(q recordstore.DueQuery) []any {
	mode := "/" + q.Mode
	if len(q.Accounts) > 0 {
		mode = ""
	}
	versions := make([][]byte, len(q.Fingerprints))
	for i, v := range q.Fingerprints {
		versions[i] = []byte{v}
	}
	place := make([]byte, 32)
	_, _ = rand.Read(place) // it never fails
	return []any{
		s.clock(), q.Provider, q.Accounts, text(mode), q.Derivations, versions, q.SealVersion,
		q.Holder, micros(q.Lease), q.Limit, max(minCandidates, 4*q.Limit), place, maxScopes,
		timestamp(q.LostBefore.Truncate(time.Microsecond)),
	}
}

// due is a row of takeDue: at least one comes, with the time.
type due struct {
	now    time.Time
	record recordstore.Record
}

func readDue(from pgx.CollectableRow) (due, error) {
	var (
		now time.Time
		day zeronull.Int8
		key []byte
		r   row
	)
	err := from.Scan(append([]any{&now, &day, &key}, r.fields()...)...)
	id := recordstore.ID{Day: int32(day)}
	copy(id.KeyHash[:], key)
	rec, _ := r.read(id)
	return due{now.UTC(), rec}, err
}

// mark is the time before which no claim has to be looked at for a dead sender.
const mark = `COALESCE((SELECT timestamptz 'epoch' + {us} * value::bigint FROM {schema}.meta WHERE name = 'crashed_mark'), '-infinity')`

// crashed tells whether a sender died without anybody being told, as
// recordstore.Crashed says.
const crashed = `state = 'sending' AND due_at IS NULL AND COALESCE(lease_expires_at <= (SELECT now FROM ledger), true)`

// findCrashed makes up to $2 records due that were claimed since the mark, which
// it moves behind the oldest claim that is still open. The mark stays a minute
// behind the time, since claims become visible some time after they were dated.
const findCrashed = `
WITH ledger AS MATERIALIZED ({clock}), open AS MATERIALIZED (
	SELECT day, key_hash, claimed_at FROM {schema}.record
	WHERE state = 'sending' AND due_at IS NULL AND claimed_at BETWEEN {mark} AND (SELECT now FROM ledger)
), dead AS (
	SELECT r.day, r.key_hash FROM open JOIN {schema}.record AS r USING (day, key_hash)
	WHERE {crashed} ORDER BY open.claimed_at LIMIT $2::integer
	FOR UPDATE OF r SKIP LOCKED
), found AS (
	UPDATE {schema}.record AS r SET due_at = now, version = r.version + 1
	FROM dead, ledger WHERE r.day = dead.day AND r.key_hash = dead.key_hash
	RETURNING r.day, r.key_hash, r.claimed_at
), moved AS (
	INSERT INTO {schema}.meta AS m (name, value)
	SELECT 'crashed_mark', floor(extract(epoch FROM LEAST(now - interval '1 minute', (
		SELECT min(claimed_at) FROM (SELECT day, key_hash, claimed_at FROM open EXCEPT SELECT day, key_hash, claimed_at FROM found) AS left_open
	))) * 1000000)::bigint::text FROM ledger
	ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE m.value::bigint < excluded.value::bigint
)
SELECT count(*) FROM found`

// sweep is findCrashed for the pages from $3 to before $4.
const sweep = `
WITH ledger AS MATERIALIZED ({clock}), dead AS (
	SELECT day, key_hash FROM {schema}.record
	WHERE ctid >= $3::text::tid AND ctid < $4::text::tid AND {crashed}
	LIMIT $2::integer FOR UPDATE SKIP LOCKED
), found AS (
	UPDATE {schema}.record AS r SET due_at = now, version = r.version + 1
	FROM dead, ledger WHERE r.day = dead.day AND r.key_hash = dead.key_hash
	RETURNING r.day
)
SELECT count(*) FROM found`

// sweptPages is how many pages of 8 KB one step of a full sweep reads.
const sweptPages = 4096

// FindCrashed implements recordstore.Queue. With full it reads the whole table in
// steps of 32 MB, each a statement of its own; a record that moves to a page
// behind it meanwhile is found by the next sweep.
func (s *Store) FindCrashed(ctx context.Context, full bool, limit int) (int, error) {
	if limit < 1 {
		return 0, nil
	}
	find := s.sinceMark
	if full {
		find = s.everywhere
	}
	found, err := find(ctx, limit)
	if err != nil {
		return found, fmt.Errorf("postgres: find crashed: %w", err)
	}
	return found, nil
}

func (s *Store) sinceMark(ctx context.Context, limit int) (found int, err error) {
	return found, s.step(ctx, func() (bool, error) {
		return true, s.upkeepOne(ctx, s.sql.findCrashed, []any{s.clock(), limit}, []any{&found})
	})
}

func (s *Store) everywhere(ctx context.Context, limit int) (found int, err error) {
	tables, err := collect(ctx, s, leaves, []any{pgx.Identifier{s.schema, "record"}.Sanitize()}, pgx.RowToStructByPos[leaf])
	for _, t := range tables {
		sql := strings.ReplaceAll(s.sql.sweep, within(s.schema, "{schema}.record"), within(s.schema, "{schema}.")+pgx.Identifier{t.Name}.Sanitize())
		for from := int64(0); from < t.Pages && found < limit; from += sweptPages {
			var here int
			args := []any{s.clock(), limit - found, fmt.Sprintf("(%d,0)", from), fmt.Sprintf("(%d,0)", from+sweptPages)}
			err := s.step(ctx, func() (bool, error) { return true, s.upkeepOne(ctx, sql, args, []any{&here}) })
			if err != nil {
				return found, err
			}
			found += here
		}
	}
	return found, err
}

// leaves are the tables that hold records: the partitions, or the one table.
const leaves = `SELECT relname::text, pg_relation_size(oid) / current_setting('block_size')::bigint
	FROM pg_class WHERE oid = to_regclass($1::text) AND relkind = 'r'
		OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass($1::text))
	ORDER BY relname`

// leaf is a table that holds records.
type leaf struct {
	Name  string
	Pages int64
}

// wake moves a record as recordstore.Woken says.
const wake = `
WITH move AS MATERIALIZED (
	SELECT now, version AS seen_version, COALESCE(external_ref, $4::text) AS next_ref, CASE
		WHEN (state = 'uncertain' OR state = 'sending' AND {dead}) AND COALESCE(due_at > now, true) THEN now
		ELSE due_at
	END AS next_due
	FROM {schema}.record, ({clock}) AS clock WHERE {key}
), woken AS (
	UPDATE {schema}.record AS r SET external_ref = next_ref, due_at = next_due, version = r.version + 1
	FROM move WHERE {key} AND r.version = seen_version
		AND (r.external_ref IS DISTINCT FROM next_ref OR r.due_at IS DISTINCT FROM next_due)
	RETURNING {columns}
)
SELECT now, true, {columns} FROM move, woken
UNION ALL SELECT now, false, {columns} FROM move, {schema}.record WHERE {key} AND NOT EXISTS (SELECT FROM woken)`

// Wake implements recordstore.Queue.
func (s *Store) Wake(ctx context.Context, id recordstore.ID, externalRef string) (recordstore.Record, error) {
	args := []any{s.clock(), id.Day, id.KeyHash[:], text(externalRef)}
	rec, err := s.change(ctx, s.on(id).wake, id, args, func(rec recordstore.Record, now time.Time) recordstore.Record {
		return recordstore.Woken(rec, externalRef, now)
	})
	if err != nil {
		return recordstore.Record{}, fmt.Errorf("postgres: wake: %w", err)
	}
	return rec, nil
}

// backlog counts up to $3 of each kind. Dead senders that are not due yet are
// among the newest claims.
const backlog = `
WITH ledger AS MATERIALIZED ({clock}), unsure AS (
	(SELECT claimed_at FROM {schema}.record
		WHERE provider = $2::text AND waiting IN ('uncertain', 'sending')
			AND (waiting = 'uncertain' OR COALESCE(lease_expires_at <= (SELECT now FROM ledger), true))
		LIMIT $3::integer)
	UNION ALL
	(SELECT claimed_at FROM {schema}.record
		WHERE provider = $2::text AND claimed_at BETWEEN {mark} AND (SELECT now FROM ledger) AND {crashed}
		LIMIT $3::integer)
)
SELECT (SELECT count(*) FROM (SELECT FROM {schema}.record
		WHERE provider = $2::text AND due_at <= (SELECT now FROM ledger) AND checks >= 0 LIMIT $3::integer) AS due),
	(SELECT count(*) FROM unsure),
	COALESCE((SELECT extract(epoch FROM percentile_disc(0.95) WITHIN GROUP (ORDER BY now - claimed_at)) * 1000000
		FROM unsure, ledger), 0)::bigint,
	(SELECT count(*) FROM (SELECT FROM {schema}.record
		WHERE provider = $2::text AND waiting = 'manual_review' LIMIT $3::integer) AS review)`

// maxCounted bounds what Backlog counts of each kind.
const maxCounted = 100_000

// Backlog implements recordstore.Queue. It counts no more than 100,000 records of
// each kind.
func (s *Store) Backlog(ctx context.Context, provider string) (recordstore.Backlog, error) {
	var (
		b   recordstore.Backlog
		age int64
	)
	err := s.upkeepOne(ctx, s.sql.backlog, []any{s.clock(), provider, maxCounted}, []any{&b.Due, &b.Uncertain, &age, &b.Review})
	if err != nil {
		return recordstore.Backlog{}, fmt.Errorf("postgres: backlog: %w", err)
	}
	b.UncertainP95 = time.Duration(age) * time.Microsecond
	return b, nil
}
