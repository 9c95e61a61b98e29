package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// schemaVersion is the version of the schema that this build makes and needs.
const schemaVersion = 1

// fitsFrom is the oldest version whose builds still work on this schema.
// Migrations only expand, so that builds of the last two minor versions run side
// by side.
const fitsFrom = 1

//go:embed schema.sql
var schemaSQL string

const versionSQL = `
INSERT INTO {schema}.meta (name, value) VALUES ('schema_version', '%d'), ('schema_fits_from', '%d')
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value::integer < excluded.value::integer;
`

// Migrate makes the ledger's schema or brings it up to date. Many instances may
// call it at once: one works, the others wait for it and find it done. On an
// up-to-date schema it only reads. The pool's user must own the schema, or be
// allowed to create it. Builds of the last two minor versions keep working on the
// newer schema; on one that this build is too old for it returns ErrSchema. On a
// ledger with partitions it also makes the months that are missing, up to the next
// one. opts may be nil.
func Migrate(ctx context.Context, pool *pgxpool.Pool, opts *Options) error {
	s := New(pool, opts)
	if s.invalid != nil {
		return s.invalid
	}
	has, err := s.migrate(ctx, opts != nil && opts.Partitions)
	if err != nil {
		return fmt.Errorf("postgres: migrate schema %q: %w", s.schema, err)
	}
	return has.check(s.schema)
}

// migrate returns the version that the schema then has.
func (s *Store) migrate(ctx context.Context, partitions bool) (has version, err error) {
	now, err := s.time(ctx)
	if err != nil {
		return has, err
	}
	if has, err = readVersion(ctx, s.pool, s.schema); err != nil {
		return has, err
	}
	if has.number < schemaVersion {
		sql := script(s.schema, partitions, now)
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return migrate(ctx, tx, s.schema, sql) })
		if err == nil {
			has, err = readVersion(ctx, s.pool, s.schema)
		}
		if err != nil {
			return has, err
		}
	}
	split, err := partitioned(ctx, s.pool, s.schema)
	switch {
	case err != nil:
		return has, err
	case partitions && !split:
		return has, errors.New("its tables have no partitions, and get none afterwards: leave Options.Partitions out, or take another schema")
	case !split:
		return has, nil
	}
	if err := addMonths(ctx, s.pool, s.schema, now); err != nil {
		return has, err
	}
	_, err = s.dropMonths(ctx)
	return has, err
}

// time is the ledger's.
func (s *Store) time(ctx context.Context) (now time.Time, err error) {
	err = s.one(ctx, clock, []any{s.clock()}, []any{&now})
	return now.UTC(), err
}

// WriteSchema writes what Migrate executes as plain SQL, for goose, Flyway, Atlas
// or a database administrator. It may be applied again, and is best applied in
// one transaction. opts may be nil.
func WriteSchema(w io.Writer, opts *Options) error {
	schema, err := opts.schemaName()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "-- The schema of a samekey ledger, version %d, for PostgreSQL 15 or newer.\n%s",
		schemaVersion, script(schema, opts != nil && opts.Partitions, opts.time())); err != nil {
		return fmt.Errorf("postgres: write schema: %w", err)
	}
	return nil
}

// script is what makes the schema. now says which months a ledger with partitions
// begins with.
func script(schema string, partitions bool, now time.Time) string {
	records, trails, months := storage, "", ""
	if partitions {
		records, trails, months = byMonth, byMonth, firstMonths(now)
	}
	tables := strings.NewReplacer(" {records}", " "+records, " {trails}", strings.TrimRight(" "+trails, " ")).Replace(schemaSQL)
	return within(schema, "CREATE SCHEMA IF NOT EXISTS {schema};\n\n"+tables+months+fmt.Sprintf(versionSQL, schemaVersion, fitsFrom))
}

// time is the clock's by which a schema is printed.
func (o *Options) time() time.Time {
	if o != nil && o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// migrate applies sql in a transaction that holds the migration's lock.
func migrate(ctx context.Context, tx pgx.Tx, schema, sql string) error {
	_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))", "samekey migration of "+schema)
	if err != nil {
		return err
	}
	has, err := readVersion(ctx, tx, schema)
	if err != nil || has.number >= schemaVersion { // another instance was here first
		return err
	}
	_, err = tx.Exec(ctx, sql)
	return err
}

// version is what a ledger says of its schema. Zero: it has none.
type version struct{ number, fitsFrom int }

func readVersion(ctx context.Context, q querier, schema string) (v version, err error) {
	var exists bool
	table := pgx.Identifier{schema, "meta"}.Sanitize()
	if err := q.QueryRow(ctx, "SELECT to_regclass($1::text) IS NOT NULL", table).Scan(&exists); err != nil || !exists {
		return v, err
	}
	err = q.QueryRow(ctx, `SELECT COALESCE(max(value::integer) FILTER (WHERE name = 'schema_version'), 0),
		COALESCE(max(value::integer) FILTER (WHERE name = 'schema_fits_from'), 0) FROM `+table).Scan(&v.number, &v.fitsFrom)
	return v, err
}

// check returns ErrSchema where this build does not work on v.
func (v version) check(schema string) error {
	const migrate = "run `samekey migrate` or call postgres.Migrate"
	switch {
	case v.number == 0:
		return fmt.Errorf("%w: schema %q holds no ledger (version 0), this build needs version %d: %s",
			recordstore.ErrSchema, schema, schemaVersion, migrate)
	case v.number < schemaVersion:
		return fmt.Errorf("%w: schema %q has version %d, this build needs version %d: %s",
			recordstore.ErrSchema, schema, v.number, schemaVersion, migrate)
	case v.fitsFrom > schemaVersion:
		return fmt.Errorf("%w: schema %q has version %d and needs builds for version %d or newer, this build is for version %d: "+
			"use a newer build of samekey", recordstore.ErrSchema, schema, v.number, v.fitsFrom, schemaVersion)
	}
	return nil
}

// Attach implements recordstore.Store. It changes nothing where the ledger is
// pinned already.
func (s *Store) Attach(ctx context.Context, p recordstore.Pins) error {
	if s.invalid != nil {
		return s.invalid
	}
	has, err := readVersion(ctx, s.pool, s.schema)
	if err != nil {
		return fmt.Errorf("postgres: attach: %w", err)
	}
	if err := has.check(s.schema); err != nil {
		return fmt.Errorf("postgres: attach: %w", err)
	}
	split, err := partitioned(ctx, s.pool, s.schema)
	if err != nil {
		return fmt.Errorf("postgres: attach: %w", err)
	}
	s.byMonth.Store(split)
	pinned, err := s.pins(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		if err = s.pin(ctx, p); err == nil {
			pinned, err = s.pins(ctx) // another client may have been first
		}
	}
	if err == nil {
		err = pinned.Compare(p)
	}
	if err != nil {
		return fmt.Errorf("postgres: attach: %w", err)
	}
	return nil
}

func (s *Store) pins(ctx context.Context) (p recordstore.Pins, err error) {
	err = s.one(ctx, within(s.schema, `SELECT d.value, s.value FROM {schema}.meta AS d, {schema}.meta AS s
		WHERE d.name = 'derivation' AND s.name = 'secret'`), nil, []any{&p.Derivation, &p.Secret})
	return p, err
}

// pin writes both values or, where another client did, none.
func (s *Store) pin(ctx context.Context, p recordstore.Pins) error {
	_, err := s.pool.Exec(ctx, within(s.schema, `INSERT INTO {schema}.meta (name, value)
		VALUES ('derivation', $1::text), ('secret', $2::text) ON CONFLICT (name) DO NOTHING`), p.Derivation, p.Secret)
	if e, said := errors.AsType[*pgconn.PgError](err); said && e.Code == "40001" {
		return nil
	}
	return err
}

// MarkRestored implements recordstore.Restorer. ErrSchema where there is no ledger
// that this build works on.
func (s *Store) MarkRestored(ctx context.Context, t time.Time) error {
	if s.invalid != nil {
		return s.invalid
	}
	has, err := readVersion(ctx, s.pool, s.schema)
	if err == nil {
		err = has.check(s.schema)
	}
	if err == nil {
		err = s.step(ctx, func() (bool, error) {
			if t.IsZero() {
				_, err := s.pool.Exec(ctx, within(s.schema, `DELETE FROM {schema}.meta WHERE name = 'restored'`))
				return true, err
			}
			_, err := s.pool.Exec(ctx, within(s.schema, `INSERT INTO {schema}.meta (name, value) VALUES ('restored', $1::bigint::text)
				ON CONFLICT (name) DO UPDATE SET value = excluded.value`), t.UnixMicro())
			return true, err
		})
	}
	if err != nil {
		return fmt.Errorf("postgres: mark restored: %w", err)
	}
	return nil
}

// Restored implements recordstore.Restorer.
func (s *Store) Restored(ctx context.Context) (time.Time, error) {
	var at *int64
	err := s.one(ctx, within(s.schema, `SELECT (SELECT value::bigint FROM {schema}.meta WHERE name = 'restored')`), nil, []any{&at})
	if err != nil {
		return time.Time{}, fmt.Errorf("postgres: restored: %w", err)
	}
	if at == nil {
		return time.Time{}, nil
	}
	return time.UnixMicro(*at).UTC(), nil
}
