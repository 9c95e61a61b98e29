package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// Many instances start at once on an empty database: each may migrate, one does.
func TestMigrateBySixteenAtOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dsn := pgtest.DSN(t)
	pools := []*pgxpool.Pool{pgtest.Open(t, dsn), pgtest.Open(t, dsn)}
	errs := make([]error, 16)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = postgres.Migrate(ctx, pools[i%2], nil) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if err := postgres.New(pools[0], nil).Attach(ctx, recordstore.Pins{Derivation: "v1", Secret: "none"}); err != nil {
		t.Fatal(err)
	}
	var locks int
	if err := pools[0].QueryRow(ctx, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&locks); err != nil || locks != 0 {
		t.Fatalf("%d advisory locks are left, %v; want none", locks, err)
	}
}

// A migrated ledger is migrated again by a user who may read and write it and
// nothing else, and its tables are not locked for that.
func TestMigrateOfACurrentLedgerOnlyReads(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, pool := ledger(t)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, "LOCK TABLE samekey.record IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	counted := &counter{}
	if err := postgres.Migrate(ctx, traced(t, pool, counted), nil); err != nil {
		t.Fatal(err)
	}
	for _, sql := range counted.take() {
		if !strings.HasPrefix(strings.TrimSpace(sql), "SELECT") {
			t.Errorf("Migrate wrote: %.60s", sql)
		}
	}
}

// What WriteSchema prints makes the same tables as Migrate when psql applies it,
// twice and under a name that needs quotes.
func TestPrintedSchemaEqualsMigrate(t *testing.T) {
	t.Parallel()
	bin, err := pgtest.Programs()
	if err != nil {
		t.Fatal(err)
	}
	for _, opts := range []*postgres.Options{nil, {Schema: `Pay"ments 1`}, {Schema: "It's by month", Partitions: true}} {
		dsn := pgtest.DSN(t)
		var script bytes.Buffer
		if err := postgres.WriteSchema(&script, opts); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			psql := exec.Command(filepath.Join(bin, "psql"), dsn, "--no-psqlrc", "--quiet", "--single-transaction", "-v", "ON_ERROR_STOP=1")
			psql.Stdin = bytes.NewReader(script.Bytes())
			if out, err := psql.CombinedOutput(); err != nil {
				t.Fatalf("psql: %v\n%s", err, out)
			}
		}
		printed, migrated := pgtest.Open(t, dsn), pgtest.Pool(t)
		migrate(t, migrated, opts)
		migrate(t, printed, opts) // finds nothing to do
		want, got := catalog(t, migrated), catalog(t, printed)
		if len(want) < 60 {
			t.Fatalf("the catalog shows %d things only: %v", len(want), want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the printed schema differs:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if err := postgres.New(printed, opts).Attach(context.Background(), recordstore.Pins{Derivation: "v1", Secret: "none"}); err != nil {
			t.Error(err)
		}
	}
}

// catalog describes everything in the schemas that are not PostgreSQL's.
func catalog(t testing.TB, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(context.Background(), `
		SELECT format('table %s %s %s %s', c.oid::regclass, c.relkind, c.reloptions, obj_description(c.oid))
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname !~ '^(pg_|information_schema|public)'
		UNION ALL
		SELECT format('column %s %s %s %s %s %s %s', c.oid::regclass, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod),
			a.attnotnull, a.attstorage, COALESCE(col_description(c.oid, a.attnum), pg_get_expr(d.adbin, d.adrelid)))
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_attribute AS a ON a.attrelid = c.oid
			LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE n.nspname !~ '^(pg_|information_schema|public)' AND a.attnum > 0
		UNION ALL
		SELECT format('index %s', indexdef) FROM pg_indexes WHERE schemaname !~ '^(pg_|information_schema|public)'
		UNION ALL
		SELECT format('constraint %s %s', conname, pg_get_constraintdef(oid)) FROM pg_constraint
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Every column that people read says what it is.
func TestEveryColumnOfARecordIsDocumented(t *testing.T) {
	t.Parallel()
	_, pool := ledger(t)
	rows, err := pool.Query(context.Background(), `SELECT attname::text FROM pg_attribute
		WHERE attrelid = 'samekey.record'::regclass AND attnum > 0 AND col_description(attrelid, attnum) IS NULL`)
	if err != nil {
		t.Fatal(err)
	}
	if names, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(names) > 0 {
		t.Fatalf("columns without a comment: %v, %v", names, err)
	}
}

// A ledger that is missing, older than this build needs or newer than it knows is
// refused, with both versions and what to do.
func TestAttachChecksTheSchema(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pins := recordstore.Pins{Derivation: "v1", Secret: "none"}
	this := fmt.Sprintf("version %d", postgres.SchemaVersion)
	for _, c := range []struct {
		name, sql string
		says      []string
	}{
		{"missing", "SELECT 1", []string{"version 0", this, "samekey migrate", "postgres.Migrate"}},
		{"older", "UPDATE samekey.meta SET value = '0' WHERE name = 'schema_version'", []string{"version 0", this, "samekey migrate"}},
		{"newer", "UPDATE samekey.meta SET value = '99' WHERE name LIKE 'schema%'", []string{"version 99", this, "newer build"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			if c.name != "missing" {
				migrate(t, pool, nil)
			}
			if _, err := pool.Exec(ctx, c.sql); err != nil {
				t.Fatal(err)
			}
			err := postgres.New(pool, nil).Attach(ctx, pins)
			if !errors.Is(err, recordstore.ErrSchema) {
				t.Fatalf("Attach: %v; want ErrSchema", err)
			}
			for _, word := range c.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q has more than one line", err)
			}
		})
	}
	t.Run("newer but expanded only", func(t *testing.T) {
		t.Parallel()
		store, pool := ledger(t)
		if _, err := pool.Exec(ctx, "UPDATE samekey.meta SET value = '99' WHERE name = 'schema_version'"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(store.Attach(ctx, pins), postgres.Migrate(ctx, pool, nil)); err != nil {
			t.Fatalf("a schema that fits older builds is refused: %v", err)
		}
	})
}

// Bad arguments are errors with a clear text, where I/O would begin.
func TestBadArguments(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := pgtest.Pool(t)
	pins := recordstore.Pins{Derivation: "v1", Secret: "none"}
	for name, store := range map[string]*postgres.Store{
		"nil pool":      postgres.New(nil, nil),
		"long schema":   postgres.New(pool, &postgres.Options{Schema: strings.Repeat("s", 64)}),
		"pg_ schema":    postgres.New(pool, &postgres.Options{Schema: "pg_ledger"}),
		"NUL in schema": postgres.New(pool, &postgres.Options{Schema: "a\x00b"}),
		"not UTF-8":     postgres.New(pool, &postgres.Options{Schema: "\xff"}),
	} {
		_, claimErr := store.Claim(ctx, claimOf(1))
		_, settleErr := store.Settle(ctx, settlementOf(recordstore.Record{}, 1))
		_, _, getErr := store.Get(ctx, recordstore.ID{})
		_, _, takeErr := store.TakeDue(ctx, dueQuery(1))
		_, trailErr := store.Trail(ctx, recordstore.ID{})
		_, purgeErr := store.Purge(ctx, 1)
		_, planErr := store.Tx(nil).Plan(ctx, claimOf(1))
		for _, err := range []error{
			store.Attach(ctx, pins), claimErr, settleErr, getErr, takeErr, trailErr, purgeErr, planErr,
			store.Renew(ctx, recordstore.ID{}, "h", 1, 1), store.RaiseFrontier(ctx, "money", 1),
		} {
			if err == nil || errors.Is(err, recordstore.ErrNotFound) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v; want one clear line", name, err)
			}
		}
	}
	if err := postgres.Migrate(ctx, nil, nil); err == nil {
		t.Error("Migrate without a pool is no error")
	}
	if err := postgres.WriteSchema(&bytes.Buffer{}, &postgres.Options{Schema: "pg_x"}); err == nil {
		t.Error("WriteSchema of a reserved name is no error")
	}
	store, _ := ledger(t)
	if err := store.RaiseFrontier(ctx, " ", 1); !errors.Is(err, recordstore.ErrInvalid) {
		t.Errorf("RaiseFrontier without a class: %v; want ErrInvalid", err)
	}
}
