package main

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

const since = "2026-03-04T06:06:07.5+01:00"

var sinceTime = time.Date(2026, 3, 4, 5, 6, 7, 500_000_000, time.UTC)

// succeeds runs a command line that must succeed, and returns what it printed.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	out, err := samekey(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// fails runs a command line that must fail with an exit code and one line that
// holds want, and returns the line.
func fails(t *testing.T, code int, want string, args ...string) string {
	t.Helper()
	out, err := samekey(t.Context(), args...)
	if err == nil {
		t.Fatalf("%v succeeded, want an error with %q\n%s", args, want, out)
	}
	if got := exitCode(err); got != code {
		t.Errorf("%v: exit code %d, want %d (%v)", args, got, code, err)
	}
	if said := err.Error(); !strings.Contains(said, want) || strings.Contains(said, "\n") {
		t.Errorf("%v: %q, want one line with %q", args, said, want)
	}
	return err.Error()
}

func wantRestored(t *testing.T, s recordstore.Restorer, want time.Time) {
	t.Helper()
	if got, err := s.Restored(t.Context()); err != nil || !got.Equal(want) {
		t.Errorf("the ledger holds %v (%v), want %v", got, err, want)
	}
}

// marksAndLifts proves a whole restore with the arguments that name a ledger.
func marksAndLifts(t *testing.T, s recordstore.Restorer, ledger ...string) {
	t.Helper()
	restored := append([]string{"ledger", "restored"}, ledger...)
	if out := succeeds(t, append(restored, "--since", since)...); !strings.Contains(out, "2026-03-04T05:06:07.5Z") || !strings.Contains(out, "2026-03-04 or before") {
		t.Errorf("marking says %q", out)
	}
	wantRestored(t, s, sinceTime)
	if out := succeeds(t, append(restored, "--clear")...); !strings.HasPrefix(out, "lifted") {
		t.Errorf("lifting says %q", out)
	}
	wantRestored(t, s, time.Time{})
}

// R22
func TestRestoredOnSQLite(t *testing.T) {
	t.Setenv(envDSN, "postgres://nobody@127.0.0.1:1/elsewhere") // --sqlite counts
	path := filepath.Join(t.TempDir(), "ledger.db")
	s, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	marksAndLifts(t, s, "--sqlite", path)

	missing := filepath.Join(t.TempDir(), "missing.db")
	fails(t, exitFailed, "no such file", "ledger", "restored", "--sqlite", missing, "--clear")
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mistyped path: %v, want no file", err)
	}
	empty := filepath.Join(t.TempDir(), "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, exitFailed, "holds no ledger", "ledger", "restored", "--sqlite", empty, "--clear")
}

// R22
func TestRestoredOnPostgres(t *testing.T) {
	dsn := pgtest.DSN(t)
	pool := pgtest.Open(t, dsn)
	t.Setenv(envDSN, dsn)
	fails(t, exitFailed, "samekey migrate", "ledger", "restored", "--since", since)
	fails(t, exitFailed, "samekey migrate", "ledger", "show", "refund-1")
	succeeds(t, "migrate")
	marksAndLifts(t, postgres.New(pool, nil))

	fails(t, exitFailed, "is it the right database and --schema?", "ledger", "restored", "--schema", "payments", "--since", since)
	succeeds(t, "migrate", "--schema", "payments")
	t.Setenv(envDSN, "")
	file := dsnFile(t, dsn+"\n")
	marksAndLifts(t, postgres.New(pool, &postgres.Options{Schema: "payments"}), "--schema", "payments", "--dsn-file", file)
	wantRestored(t, postgres.New(pool, nil), time.Time{})

	if _, err := pool.Exec(t.Context(), "UPDATE samekey.meta SET value = '99' WHERE name LIKE 'schema%'"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ledger", "restored", "--since", since}, {"migrate"}, {"ledger", "open"}, {"doctor"}, {"purge"}} {
		fails(t, exitFailed, "newer build", append(args, "--dsn-file", file)...)
	}
}

func dsnFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The SQL that is printed makes the schema that the other commands work on; to
// print it needs no server.
func TestMigratePrintsSQL(t *testing.T) {
	t.Setenv(envDSN, "")
	sql := succeeds(t, "migrate", "--sql", "--schema", "pay ments")
	dsn := pgtest.DSN(t)
	pool := pgtest.Open(t, dsn)
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	marksAndLifts(t, postgres.New(pool, &postgres.Options{Schema: "pay ments"}), "--schema", "pay ments", "--dsn-file", dsnFile(t, dsn))
	if out := succeeds(t, "migrate", "--schema", "pay ments", "--dsn-file", dsnFile(t, dsn)); !strings.Contains(out, `"pay ments" is up to date`) {
		t.Errorf("migrating again says %q", out)
	}
	fails(t, exitFailed, "will not do", "migrate", "--sql", "--schema", "pg_ledger")
	fails(t, exitUsage, "asks no server", "migrate", "--sql", "--dsn-file", dsnFile(t, dsn))
}

// A DSN that leads nowhere fails on one line that says where to look and holds no
// password.
func TestWrongDSN(t *testing.T) {
	right, err := url.Parse(pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := *right
	elsewhere.Path = "/no_such_database"
	const password = "hunter2/x"
	for _, tt := range []struct{ name, dsn, want string }{
		{"not a DSN", "postgres://ledger:" + password + "@127.0.0.1:5432/shop", "cannot be read"},
		{"no server", "postgres://ledger:hunter2@127.0.0.1:1,127.0.0.1:2/shop", "failed to connect"},
		{"another database", elsewhere.String(), "no_such_database"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(envDSN, tt.dsn)
			for _, args := range [][]string{{"ledger", "restored", "--clear"}, {"migrate"}, {"ledger", "open"}, {"purge"}, {"doctor"}} {
				if said := fails(t, exitFailed, tt.want, args...); strings.Contains(said, "hunter2") {
					t.Errorf("%v shows the password: %q", args, said)
				}
			}
		})
	}
	for name, file := range map[string]struct{ path, want string }{
		"missing":   {filepath.Join(t.TempDir(), "missing"), "no such file"},
		"a folder":  {t.TempDir(), "directory"},
		"empty":     {dsnFile(t, " \n"), "one line"},
		"two lines": {dsnFile(t, "host=127.0.0.1\npassword=hunter2"), "one line"},
		"too long":  {dsnFile(t, strings.Repeat("x", maxDSN+1)), "one line"},
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, exitFailed, file.want, "ledger", "restored", "--clear", "--dsn-file", file.path)
		})
	}
}

// A command line that could be meant in two ways does nothing.
func TestLedgerUsage(t *testing.T) {
	t.Setenv(envDSN, "")
	restored := func(args ...string) []string {
		return append([]string{"ledger", "restored", "--sqlite", "x.db"}, args...)
	}
	for _, tt := range []struct {
		want string
		args []string
	}{
		{envDSN, []string{"ledger", "restored", "--clear"}},
		{"--sqlite PATH", []string{"ledger", "restored", "--clear"}},
		{envDSN, []string{"migrate"}},
		{"--sqlite is empty", []string{"ledger", "restored", "--sqlite", "", "--clear"}},
		{"--dsn-file is empty", []string{"migrate", "--dsn-file", ""}},
		{"different ledgers", restored("--clear", "--dsn-file", "y")},
		{"different ledgers", restored("--clear", "--dsn", "host=127.0.0.1")},
		{"different ledgers", []string{"purge", "--dsn", "host=127.0.0.1", "--dsn-file", "y"}},
		{"--dsn is empty", []string{"doctor", "--dsn", ""}},
		{"holds a password", []string{"ledger", "open", "--dsn", "postgres://shop:hunter2@db.example/shop"}},
		{"holds a password", []string{"migrate", "--dsn", "host=db.example password=hunter2"}},
		{"--schema is for PostgreSQL", restored("--clear", "--schema", "y")},
		{"either --since TIME or --clear", restored()},
		{"either --since TIME or --clear", restored("--since", since, "--clear")},
		{"either --since TIME or --clear", restored("--clear=false")},
		{"2026-11-30T03:10:00Z", restored("--since", "yesterday")},
		{"day, time and zone", restored("--since", "2026-03-04 05:06")},
		{"future", restored("--since", "2999-01-01T00:00:00Z")},
		{"before 1970", restored("--since", "0001-01-01T00:00:00Z")},
		{"unknown command", []string{"ledger", "unheard"}},
		{"unknown flag", []string{"migrate", "--sqlite", "x.db"}},
		{"name one command", []string{"ledger", "show"}},
		{"name one command", []string{"ledger", "show", "a", "--external-ref", "re_1"}},
		{"no command ID", []string{"ledger", "show", "a/b/c"}},
		{"no state", []string{"ledger", "open", "--state", "stuck"}},
		{"--limit 0", []string{"ledger", "review", "--limit", "0"}},
		{"in the future", []string{"ledger", "open", "--older-than", "-1h"}},
		{"--verdict", []string{"ledger", "resolve", "a", "--version", "1", "--reason", "x", "--name", "y"}},
		{"--version is required", []string{"ledger", "resolve", "a", "--verdict", "none", "--reason", "x", "--name", "y"}},
		{"--reason is required", []string{"ledger", "abandon", "a", "--name", "y"}},
		{"--name is required", []string{"ledger", "erase", "a", "--reason", "x"}},
		{"how long ago", []string{"ledger", "stats", "--since", "yesterday"}},
		{"--batch 0", []string{"purge", "--batch", "0"}},
		{"--retry-horizon", []string{"doctor", "--retry-horizon", "0"}},
	} {
		args := tt.args
		if args[0] == "ledger" && args[1] != "restored" && !slices.Contains(args, "--dsn") {
			args = append(slices.Clone(args), "--sqlite", "x.db")
		}
		if said := fails(t, exitUsage, tt.want, args...); strings.Contains(said, "hunter2") {
			t.Errorf("%v shows the password: %q", args, said)
		}
	}
	if _, err := os.Stat("x.db"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a wrong command line left x.db: %v", err)
	}
	for _, name := range []string{"ledger", "ledger restored", "ledger show", "ledger open", "ledger review", "ledger resolve", "ledger abandon",
		"ledger erase", "ledger export", "ledger stats", "migrate", "purge", "reconcile", "doctor"} {
		args := append(strings.Fields(name), "--help")
		if out := succeeds(t, args...); !strings.Contains(out, "Examples:") || !strings.Contains(out, envDSN) {
			t.Errorf("%v says %q", args, out)
		}
	}
	if out := succeeds(t, "ledger"); !strings.Contains(out, "restored") {
		t.Errorf("ledger without a command says %q", out)
	}
}
