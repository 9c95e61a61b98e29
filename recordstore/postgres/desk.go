package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// resolve returns no row where it changes nothing: recordstore.Resolved says why.
const resolve = `
WITH move AS MATERIALIZED (
	SELECT now, state AS seen_state, version AS seen_version, $4::text AS next
	FROM {schema}.record, ({clock}) AS clock
	WHERE {key} AND version = $22::bigint AND (noted IS DISTINCT FROM 'succeeded' OR $4::text = 'succeeded') AND CASE
		WHEN state IN ('manual_review', 'uncertain') THEN true
		WHEN state = 'sending' THEN {dead}
		WHEN state = 'abandoned' THEN $4::text <> 'not_executed'
		ELSE false
	END
), resolved AS (
	UPDATE {schema}.record AS r SET {result}
	FROM move WHERE {key} AND r.version = seen_version
	RETURNING {columns}
), entered AS (
	INSERT INTO {trail} SELECT $2::integer, $3::bytea, now, version, seen_state, state, $19::text, $20::text, $21::text
	FROM move, resolved
)
SELECT {columns} FROM resolved`

// Resolve implements recordstore.Desk. Only a verdict that changes nothing needs a
// second statement, which reads why.
func (s *Store) Resolve(ctx context.Context, v recordstore.Verdict) (recordstore.Record, error) {
	if err := v.Check(); err != nil {
		return recordstore.Record{}, fmt.Errorf("postgres: resolve: %w", err)
	}
	args := append(append(s.resultArgs(v.ID, v.Result), entryArgs(v.Entry)...), v.Version)
	rec, err := s.settleBy(ctx, asked{id: v.ID, sql: s.on(v.ID).resolve, args: args}, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Resolved(rec, v, now)
	})
	if err != nil {
		return rec, fmt.Errorf("postgres: resolve: %w", err)
	}
	return rec, nil
}

// abandon moves a record as recordstore.Abandonment says.
const abandon = `
WITH move AS MATERIALIZED (
	SELECT now, state AS seen_state, version AS seen_version, CASE
		WHEN state IN ('planned', 'not_executed') THEN 'abandoned'
		WHEN state IN ('sending', 'uncertain', 'manual_review') THEN state
	END AS next
	FROM {schema}.record, ({clock}) AS clock WHERE {key}
), barred AS (
	UPDATE {schema}.record AS r SET state = next,
		due_at = CASE WHEN next = 'abandoned' THEN NULL ELSE r.due_at END,
		not_after = CASE WHEN next = 'abandoned' THEN r.not_after ELSE LEAST(r.not_after, now) END,
		version = r.version + 1
	FROM move WHERE {key} AND r.version = seen_version AND next IS NOT NULL
	RETURNING {columns}
), entered AS (
	INSERT INTO {trail} SELECT $2::integer, $3::bytea, now, version, seen_state, state, $4::text, $5::text, $6::text
	FROM move, barred
)
SELECT now, true, {columns} FROM move, barred
UNION ALL SELECT now, false, {columns} FROM move, {schema}.record WHERE {key} AND NOT EXISTS (SELECT FROM barred)`

// Abandon implements recordstore.Desk.
func (s *Store) Abandon(ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
	return s.byHand(ctx, "abandon", s.on(id).abandon, id, e, recordstore.Abandonment)
}

// erase changes a record as recordstore.Erased says.
const erase = `
WITH move AS MATERIALIZED (
	SELECT now, version AS seen_version FROM {schema}.record, ({clock}) AS clock WHERE {key}
), erased AS (
	UPDATE {schema}.record AS r SET request = NULL, response_headers = NULL, response_body = NULL,
		body_purged_at = now, version = r.version + 1
	FROM move WHERE {key} AND r.version = seen_version
	RETURNING {columns}
), entered AS (
	INSERT INTO {trail} SELECT $2::integer, $3::bytea, now, version, state, state, $4::text, $5::text, $6::text
	FROM move, erased
)
SELECT now, true, {columns} FROM move, erased
UNION ALL SELECT now, false, {columns} FROM move, {schema}.record WHERE {key} AND NOT EXISTS (SELECT FROM erased)`

// Erase implements recordstore.Desk. What was removed stays on the server's disk
// until a vacuum, and in its log and backups for as long as those are kept.
func (s *Store) Erase(ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
	return s.byHand(ctx, "erase", s.on(id).erase, id, e, recordstore.Erased)
}

// byHand changes a record by a statement that takes an entry and does what next
// does.
func (s *Store) byHand(ctx context.Context, verb, sql string, id recordstore.ID, e recordstore.Entry,
	next func(recordstore.Record, time.Time) recordstore.Record) (recordstore.Record, error) {
	err := e.Check()
	if err == nil {
		var rec recordstore.Record
		args := append([]any{s.clock(), id.Day, id.KeyHash[:]}, entryArgs(&e)...)
		if rec, err = s.change(ctx, sql, id, args, next); err == nil {
			return rec, nil
		}
	}
	return recordstore.Record{}, fmt.Errorf("postgres: %s: %w", verb, err)
}

// trail returns one row without an entry where a record has none, newest first.
const trail = `
SELECT at, t.version, from_state, to_state, kind, actor, reason
FROM (SELECT FROM {schema}.record WHERE day = $1::integer AND key_hash = $2::bytea) AS r LEFT JOIN {schema}.trail AS t
	ON t.day = $1::integer AND t.key_hash = $2::bytea
ORDER BY t.version DESC LIMIT $3::integer`

// Trail implements recordstore.Desk.
func (s *Store) Trail(ctx context.Context, id recordstore.ID) ([]recordstore.Entry, error) {
	entries, err := collect(ctx, s, s.sql.trail, []any{id.Day, id.KeyHash[:], recordstore.MaxTrail}, readEntry)
	if err == nil && len(entries) == 0 {
		err = recordstore.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("postgres: trail: %w", err)
	}
	if entries[0].Kind == "" {
		return nil, nil
	}
	slices.Reverse(entries)
	return entries, nil
}

func readEntry(from pgx.CollectableRow) (recordstore.Entry, error) {
	var e recordstore.Entry
	err := from.Scan(moment(&e.At), (*zeronull.Int8)(&e.Version), (*zeronull.Text)(&e.From), (*zeronull.Text)(&e.To),
		(*zeronull.Text)(&e.Kind), (*zeronull.Text)(&e.Actor), (*zeronull.Text)(&e.Text))
	e.At = e.At.UTC()
	return e, err
}
