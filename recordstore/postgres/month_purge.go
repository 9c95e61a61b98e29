package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// kept returns up to $2 records of a month that are still needed: all that
// recordstore.Purgeable would not let go. Each part of it is read along an index;
// those that are being sent are found by the sweep's mark, before which no claim is
// open.
const kept = `
WITH ledger AS MATERIALIZED ({clock}), kept AS (
	SELECT day, key_hash FROM {month} WHERE waiting IS NOT NULL
	UNION SELECT day, key_hash FROM {month} WHERE due_at IS NOT NULL
	UNION SELECT day, key_hash FROM {month} WHERE state = 'sending' AND claimed_at >= {mark}
	UNION SELECT day, key_hash FROM {month} WHERE waiting IS NULL AND bodies
	UNION SELECT day, key_hash FROM {month} WHERE waiting IS NULL AND NOT bodies AND {ends} > (SELECT now FROM ledger)
	UNION SELECT day, key_hash FROM {month} WHERE waiting IS NULL AND NOT bodies AND {ends} IS NULL
) SELECT day, key_hash FROM kept LIMIT $2::integer`

// moveOut takes the records of $1 and $2 and their trails over into a month's new
// tables.
const moveOut = `
INSERT INTO {month} (day, key_hash, {columns}) SELECT day, key_hash, {columns} FROM {gone}
	WHERE (day, key_hash) IN (SELECT * FROM unnest($1::integer[], $2::bytea[]))`
const moveTrails = `
INSERT INTO {trails} SELECT t.* FROM {gone_trails} AS t
	WHERE (day, key_hash) IN (SELECT * FROM unnest($1::integer[], $2::bytea[]))`

// maxKept is how many records are moved out of a month that goes. A month that has
// more stays.
const maxKept = 1000

// keptRecords are the keys of records that are needed.
type keptRecords struct {
	days []int32
	keys [][]byte
}

// dropMonths lets the months go of which nothing is needed but a few records, and
// returns how many records that were, by the server's estimate. It does nothing
// where the pool's user does not own the tables.
func (s *Store) dropMonths(ctx context.Context) (gone int, err error) {
	var owner bool
	err = s.one(ctx, "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass($1::text)",
		[]any{pgx.Identifier{s.schema, "record"}.Sanitize()}, []any{&owner})
	if err != nil || !owner {
		return 0, err
	}
	now, err := s.time(ctx)
	if err != nil {
		return 0, err
	}
	if err := addMonths(ctx, s.pool, s.schema, now); err != nil {
		return 0, err
	}
	months, err := readMonths(ctx, s.pool, s.schema)
	if err != nil {
		return 0, err
	}
	for _, m := range months {
		n, err := s.dropMonth(ctx, m, now)
		gone += n
		if err != nil {
			return gone, fmt.Errorf("month %s: %w", m.name, err)
		}
	}
	return gone, nil
}

// dropMonth lets one month go, if nothing is left in it but a few records that are
// needed. Those keep a table of their own. It is looked for them first while calls
// go on, and again when they stand still: for as long as it takes to exchange two
// empty tables. Where others hold the tables for long, the month stays for now.
func (s *Store) dropMonth(ctx context.Context, m month, now time.Time) (gone int, err error) {
	if m.to > dayOf(now.Add(-monthsBack)) { // a new command of it is to be expected
		return 0, nil
	}
	var records int64
	few := false
	err = s.readsIndexes(ctx, func(tx pgx.Tx) error {
		left, err := s.keptIn(ctx, tx, m)
		if err != nil {
			return err
		}
		few = len(left.days) <= maxKept
		return tx.QueryRow(ctx, "SELECT GREATEST(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass($1::text)",
			s.tableOf("record", m)).Scan(&records)
	})
	if err != nil || !few {
		return 0, err
	}
	if err := s.raiseAll(ctx, m.to-1); err != nil {
		return 0, err
	}
	var moved int
	err = s.readsIndexes(ctx, func(tx pgx.Tx) (err error) {
		moved, err = s.exchange(ctx, tx, m)
		return err
	})
	if e, said := errors.AsType[*pgconn.PgError](err); said && (e.Code == "55P03" || e.Code == "40P01") { // another time
		return 0, nil
	}
	if err != nil || moved < 0 {
		return 0, err
	}
	return max(int(records)-moved, 0), nil
}

// readsIndexes runs do in a transaction that reads no table from end to end, and
// waits for no lock longer than a moment.
func (s *Store) readsIndexes(ctx context.Context, do func(tx pgx.Tx) error) error {
	committed := pgx.TxOptions{IsoLevel: pgx.ReadCommitted} // it sees what was written until it had its lock
	return pgx.BeginTxFunc(ctx, s.pool, committed, func(tx pgx.Tx) error {
		const settings = `SELECT set_config('enable_seqscan', 'off', true), set_config('lock_timeout', '250ms', true)`
		if _, err := tx.Exec(ctx, settings); err != nil {
			return err
		}
		return do(tx)
	})
}

// raiseAll moves the frontier of all classes.
func (s *Store) raiseAll(ctx context.Context, day int32) error {
	_, err := s.pool.Exec(ctx, s.sql.raise, "", day)
	return err
}

// keptIn returns what is needed of a month, and one more where that is too much.
func (s *Store) keptIn(ctx context.Context, q querier, m month) (left keptRecords, err error) {
	rows, err := q.Query(ctx, s.ofMonth(s.sql.kept, m), s.clock(), maxKept+1)
	if err != nil {
		return left, err
	}
	var day int32
	var key []byte
	_, err = pgx.ForEachRow(rows, []any{&day, &key}, func() error {
		left.days, left.keys = append(left.days, day), append(left.keys, append([]byte{}, key...))
		return nil
	})
	return left, err
}

// tableOf is the name of a month's table in SQL.
func (s *Store) tableOf(table string, m month) string {
	return pgx.Identifier{s.schema, table + "_" + m.name}.Sanitize()
}

// ofMonth puts a month's tables into sql, and those that are in their place no
// longer.
func (s *Store) ofMonth(sql string, m month) string {
	old := month{name: m.name + "_gone"}
	return within(s.schema, strings.NewReplacer(
		"{month}", s.tableOf("record", m), "{trails}", s.tableOf("trail", m),
		"{gone}", s.tableOf("record", old), "{gone_trails}", s.tableOf("trail", old),
		"{gone_name}", pgx.Identifier{"record_" + old.name}.Sanitize(), "{gone_trails_name}", pgx.Identifier{"trail_" + old.name}.Sanitize(),
		"{columns}", columns,
	).Replace(sql))
}

// exchange puts empty tables in the place of a month's, moves what is needed into
// them and returns how much that was. It returns -1 where it leaves the month.
func (s *Store) exchange(ctx context.Context, tx pgx.Tx, m month) (moved int, err error) {
	if _, err := tx.Exec(ctx, within(s.schema, "LOCK TABLE {schema}.record, {schema}.trail IN ACCESS EXCLUSIVE MODE")); err != nil {
		return -1, err
	}
	left, err := s.keptIn(ctx, tx, m)
	if err != nil || len(left.days) > maxKept {
		return -1, err
	}
	steps := []string{
		"ALTER TABLE {schema}.record DETACH PARTITION {month}", "ALTER TABLE {schema}.trail DETACH PARTITION {trails}",
	}
	if len(left.days) > 0 {
		steps = append(steps,
			"ALTER TABLE {month} RENAME TO {gone_name}", "ALTER TABLE {trails} RENAME TO {gone_trails_name}", m.sql(),
			moveOut, moveTrails, "DROP TABLE {gone}, {gone_trails}")
	} else {
		steps = append(steps, "DROP TABLE {month}, {trails}")
	}
	for _, sql := range steps {
		var args []any
		if sql == moveOut || sql == moveTrails {
			args = []any{left.days, left.keys}
		}
		if _, err := tx.Exec(ctx, s.ofMonth(sql, m), args...); err != nil {
			return -1, err
		}
	}
	return len(left.days), nil
}
