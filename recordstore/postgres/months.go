package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// storage is how a table of records is kept.
const storage = `WITH (
	-- A settled row is larger than the claimed one it replaces. Pages filled to
	-- this degree hold all of their rows once settled, for sealed bodies of 256
	-- bytes to 1 KB, so that the update stays on its page and touches no index.
	-- Larger ones are kept beside the row, and nine in ten updates stay.
	fillfactor = 66,
	autovacuum_vacuum_scale_factor = 0.05,
	autovacuum_vacuum_insert_scale_factor = 0.05,
	autovacuum_analyze_scale_factor = 0.05
)`

// A ledger with partitions has one for each month, one for the records without a
// day, and none for what lies before the first month: its frontier of all classes,
// which goes by the name of "", is the day before it.
const (
	byMonth  = `PARTITION BY RANGE (day)`
	allKnown = `max(f.day) FROM {schema}.frontier AS f WHERE f.class IN ('', $4::text)`

	// monthsBack is how far the first month lies back when a ledger is made, and how
	// long ago a month ended that goes: commands of it are then forgotten.
	monthsBack = 400 * 24 * time.Hour

	// monthGrace is how long a record whose evidence is over waits to go with its
	// month.
	monthGrace = 62 * 24 * time.Hour

	floorSQL = `
INSERT INTO {schema}.frontier (class, day) VALUES ('', %d) ON CONFLICT (class) DO NOTHING;
COMMENT ON COLUMN {schema}.frontier.class IS 'Empty: all classes, where the tables have a partition for each month.';
`
	partitionSQL = `
CREATE TABLE IF NOT EXISTS {schema}.record_%[1]s PARTITION OF {schema}.record FOR VALUES FROM (%[2]d) TO (%[3]d) %[4]s;
CREATE TABLE IF NOT EXISTS {schema}.trail_%[1]s PARTITION OF {schema}.trail FOR VALUES FROM (%[2]d) TO (%[3]d);
`
)

// month is one of the partitions: the days from from to before to.
type month struct {
	name     string
	from, to int32
}

func (m month) sql() string { return fmt.Sprintf(partitionSQL, m.name, m.from, m.to, storage) }

// monthOf returns the month in which t lies.
func monthOf(t time.Time) month {
	first := time.Date(t.UTC().Year(), t.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	return month{first.Format("2006_01"), dayOf(first), dayOf(first.AddDate(0, 1, 0))}
}

// after returns the month behind m.
func (m month) after() month { return monthOf(time.Unix(int64(m.to)*86400, 0)) }

func dayOf(t time.Time) int32 { return int32(t.Unix() / 86400) }

// monthsUntil returns the months from first to the one after now. Commands of more
// than a day ahead are not taken.
func monthsUntil(first month, now time.Time) (months []month) {
	for m := first; m.from <= monthOf(now).to; m = m.after() {
		months = append(months, m)
	}
	return months
}

// firstMonths is the SQL of the partitions of a new ledger.
func firstMonths(now time.Time) string {
	first := monthOf(now.Add(-monthsBack))
	var b strings.Builder
	fmt.Fprintf(&b, floorSQL, first.from-1)
	b.WriteString(month{"day0", 0, 1}.sql())
	for _, m := range monthsUntil(first, now) {
		b.WriteString(m.sql())
	}
	return b.String()
}

// newestMonth returns the last of the partitions, and false where there are none.
func newestMonth(ctx context.Context, q querier, schema string) (m month, found bool, err error) {
	months, err := readMonths(ctx, q, schema)
	if err != nil || len(months) == 0 {
		return m, false, err
	}
	return months[len(months)-1], true, nil
}

// readMonths returns the partitions but for that of day 0, in order. Their names
// say which months they are.
func readMonths(ctx context.Context, q querier, schema string) ([]month, error) {
	rows, err := q.Query(ctx, `SELECT right(c.relname, 7) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
		WHERE i.inhparent = to_regclass($1::text) AND c.relname ~ '^record_\d{4}_\d\d$' ORDER BY c.relname`,
		pgx.Identifier{schema, "record"}.Sanitize())
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	months := make([]month, len(names))
	for i, name := range names {
		t, err := time.Parse("2006_01", name)
		if err != nil {
			return nil, fmt.Errorf("the partition record_%s is no month: rename it", name)
		}
		months[i] = monthOf(t)
	}
	return months, nil
}

// partitioned reports whether the ledger's tables have partitions.
func partitioned(ctx context.Context, q querier, schema string) (yes bool, err error) {
	err = q.QueryRow(ctx, "SELECT COALESCE((SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass($1::text)), false)",
		pgx.Identifier{schema, "record"}.Sanitize()).Scan(&yes)
	return yes, err
}

// addMonths makes the months that are missing up to the one after now. It waits
// for the tables no longer than a moment, in which all calls would wait too.
func addMonths(ctx context.Context, pool beginner, schema string, now time.Time) error {
	last, found, err := newestMonth(ctx, pool, schema)
	if err != nil || !found {
		return err
	}
	missing := monthsUntil(last.after(), now)
	if len(missing) == 0 {
		return nil
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '1s'"); err != nil {
			return err
		}
		for _, m := range missing {
			if _, err := tx.Exec(ctx, within(schema, m.sql())); err != nil {
				return fmt.Errorf("make the partition of month %s: %w", m.name, err)
			}
		}
		return nil
	})
}

// beginner is a pool.
type beginner interface {
	querier
	Begin(ctx context.Context) (pgx.Tx, error)
}

// daily are the statements on a record for each day, in which the day is a
// constant: the server then finds the partition when it plans, and looks at no
// other.
type daily struct {
	schema string
	mu     sync.Mutex
	of     map[int32]*statements
}

// maxDays bounds how many days' statements are kept. Most calls are about two or
// three days.
const maxDays = 32

func (d *daily) on(day int32) *statements {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, known := d.of[day]; known {
		return s
	}
	if len(d.of) >= maxDays || d.of == nil {
		d.of = map[int32]*statements{}
	}
	s := statementsWith(d.schema, fmt.Sprintf("day = %d AND %s", day, key), allKnown)
	d.of[day] = &s
	return &s
}

// on returns the statements on the record id. Until Attach has found out whether
// there are partitions, those that serve both.
func (s *Store) on(id recordstore.ID) *statements {
	if s.byMonth.Load() {
		return s.daily.on(id.Day)
	}
	return &s.sql
}

// noMonth explains the error of a write for which there is no partition.
func noMonth(err error) error {
	if e, said := errors.AsType[*pgconn.PgError](err); said && e.Code == "23514" {
		return fmt.Errorf("the ledger has no partition for the command's month: run `samekey migrate` or call postgres.Migrate: %w", err)
	}
	return err
}
