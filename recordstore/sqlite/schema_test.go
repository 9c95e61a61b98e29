package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func openTemp(t *testing.T) *Store {
	t.Helper()
	return openAgain(t, filepath.Join(t.TempDir(), "ledger.db"), 0)
}

func openAgain(t *testing.T, path string, busy time.Duration) *Store {
	t.Helper()
	s, err := Open(path, &Options{BusyTimeout: busy})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// The columns that statements name are those of the table, in any order.
func TestColumnsAreThoseOfTheTable(t *testing.T) {
	s := openTemp(t)
	rows, err := s.writer.QueryContext(t.Context(), `SELECT name FROM pragma_table_info('samekey_records')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var inTable []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		inTable = append(inTable, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	named := strings.FieldsFunc(columns, func(r rune) bool { return strings.ContainsRune(", \n\t", r) })
	if !slices.Equal(slices.Sorted(slices.Values(inTable)), slices.Sorted(slices.Values(named))) {
		t.Errorf("the table has %v, statements name %v", inTable, named)
	}
	if n := len(row(&recordstore.Record{})); n != len(named) || n != len(values(&recordstore.Record{})) {
		t.Errorf("%d columns are named, %d are read, %d are written", len(named), n, len(values(&recordstore.Record{})))
	}
}

// A claim must not become slower as the ledger grows.
func TestNoStatementScansTheLedger(t *testing.T) {
	s := openTemp(t)
	args, err := claimArgs(recordstore.Claim{Fingerprints: [][]byte{{1}}})
	if err != nil {
		t.Fatal(err)
	}
	held := []any{sql.Named("holder", "a"), sql.Named("fence", 1), sql.Named("lease", 1)}
	due, err := takeDueArgs(recordstore.DueQuery{Holder: "a", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	large := []string{"samekey_records", "samekey_trail", "r", "d", "e"} // And their aliases.
	at, limit, ids := sql.Named("at", 1), sql.Named("limit", 1), sql.Named("ids", "[]")
	for name, q := range map[string]struct {
		text string
		args []any
	}{
		"claim":    {claimSQL, args},
		"settle":   {settleSQL, settleArgs(recordstore.Settlement{})},
		"renew":    {renewSQL, append(held, key(recordstore.ID{})...)},
		"get":      {getSQL, key(recordstore.ID{})},
		"frontier": {frontierSQL, []any{sql.Named("class", "money")}},
		"plan":     {planSQL, planArgs(recordstore.Claim{Fingerprints: [][]byte{{1}}})},
		"take due": {takeDueSQL, due},
		"sweep":    {sweepSQL, nil},
		"senders":  {sendersSQL, []any{sql.Named("since", 1), at}},
		"crashed":  {crashedSQL, []any{ids, at}},
		"backlog":  {backlogSQL, []any{sql.Named("provider", "stripe")}},
		"trail":    {trailSQL, append(key(recordstore.ID{}), limit)},
		"empty":    {emptySQL, []any{at, limit}},
		"outlived": {outlivedSQL, []any{at, limit}},
		"remove 0": {removeSQL[0], []any{ids, at}},
		"remove 1": {removeSQL[1], []any{ids, at}},
		"remove 2": {removeSQL[2], []any{ids, at}},
	} {
		rows, err := s.writer.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+q.text, append(q.args, s.now())...)
		if err != nil {
			t.Fatal(err)
		}
		steps := 0
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			steps++
			if table, ok := strings.CutPrefix(detail, "SCAN "); ok && slices.Contains(large, strings.Fields(table)[0]) {
				t.Errorf("%s: %s", name, detail)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || steps == 0 {
			t.Errorf("%s: %d steps, %v", name, steps, err)
		}
	}
}

// A newer ledger is refused, with both versions; it is not touched.
func TestNewerSchemaIsRefused(t *testing.T) {
	s := openTemp(t)
	if _, err := s.writer.ExecContext(t.Context(), `UPDATE samekey_schema SET version = 7`); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"Open":   second(Open(s.path, nil)),
		"Attach": s.Attach(t.Context(), recordstore.Pins{Derivation: "k1", Secret: "none"}),
	} {
		if !errors.Is(err, recordstore.ErrSchema) || !strings.Contains(err.Error(), "version 7") ||
			!strings.Contains(err.Error(), fmt.Sprintf("understands %d", len(migrations))) {
			t.Errorf("%s: error is %v, want ErrSchema with both versions", what, err)
		}
	}
	if version, err := readVersion(t.Context(), s.writer); version != 7 || err != nil {
		t.Errorf("the version is now %d (%v)", version, err)
	}
}

func second(_ *Store, err error) error { return err }

// An older ledger is migrated and keeps its rows.
func TestOlderSchemaIsMigrated(t *testing.T) {
	s := openTemp(t)
	rec := recordstore.Record{ID: recordstore.ID{Day: 1}, State: recordstore.Planned, Fingerprint: []byte{1}}
	if err := s.Seed(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	next := append(slices.Clone(migrations), `ALTER TABLE samekey_records ADD COLUMN later TEXT NOT NULL DEFAULT 'x'`)
	if err := checkVersion(t.Context(), s.writer, len(next)); !errors.Is(err, recordstore.ErrSchema) {
		t.Errorf("before the migration: error is %v, want ErrSchema", err)
	}
	for range 2 { // The second time there is nothing to do.
		if err := migrate(t.Context(), s.writer, next); err != nil {
			t.Fatal(err)
		}
	}
	var later string
	if err := s.writer.QueryRowContext(t.Context(), `SELECT later FROM samekey_records`).Scan(&later); err != nil || later != "x" {
		t.Errorf("the new column is %q, %v", later, err)
	}
	if version, err := readVersion(t.Context(), s.writer); version != len(next) || err != nil {
		t.Errorf("the version is %d, want %d (%v)", version, len(next), err)
	}
}

// A migration that fails changes nothing.
func TestFailedMigrationIsUndone(t *testing.T) {
	s := openTemp(t)
	next := append(slices.Clone(migrations), `CREATE TABLE samekey_later (n INTEGER); SELECT nonsense FROM nowhere`)
	if err := migrate(t.Context(), s.writer, next); err == nil {
		t.Fatal("a broken migration succeeded")
	}
	var n int
	const q = `SELECT count(*) FROM sqlite_schema WHERE name = 'samekey_later'`
	if err := s.writer.QueryRowContext(t.Context(), q).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d tables of the failed migration are left (%v)", n, err)
	}
	if err := checkVersion(t.Context(), s.writer, len(migrations)); err != nil {
		t.Error(err)
	}
}

func TestManyOpenANewFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			s, err := Open(path, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(s.Attach(context.Background(), recordstore.Pins{Derivation: "k1", Secret: "none"}), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A service may keep the ledger beside its own tables.
func TestLedgerBesideOtherTables(t *testing.T) {
	s := openTemp(t)
	for _, q := range []string{`CREATE TABLE orders (id TEXT)`, `INSERT INTO orders VALUES ('o-1')`, `PRAGMA user_version = 12`} {
		if _, err := s.writer.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	again := openAgain(t, s.path, 0)
	var names int
	const q = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'samekey\_%' ESCAPE '\' AND name <> 'orders'`
	if err := again.writer.QueryRowContext(t.Context(), q).Scan(&names); err != nil || names != 0 {
		t.Errorf("%d tables without the ledger's prefix (%v)", names, err)
	}
	var version int
	if err := again.writer.QueryRowContext(t.Context(), `PRAGMA user_version`).Scan(&version); err != nil || version != 12 {
		t.Errorf("user_version is %d (%v)", version, err)
	}
}

// The settings that the package documentation promises hold on every connection.
func TestDurableSettings(t *testing.T) {
	s := openTemp(t)
	busy := map[string]string{"writer": "1", "reader": "2000"} // the writer asks again by itself
	for name, db := range map[string]*sql.DB{"writer": s.writer, "reader": s.readers} {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": busy[name]} {
			var got string
			if err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %s is %q, want %q (%v)", name, pragma, got, want, err)
			}
		}
	}
	if !s.Durable() {
		t.Error("the store does not call itself durable")
	}
}
