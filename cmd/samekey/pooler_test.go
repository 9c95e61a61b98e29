package main

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
)

const bouncerConfig = `[databases]
* = host=%s port=%d user=%s password=%s

[pgbouncer]
unix_socket_dir = %s
listen_addr =
listen_port = 6432
auth_type = any
pool_mode = transaction
default_pool_size = 2
`

// bounced returns a DSN that leads through PgBouncer in transaction mode to the
// database of dsn.
func bounced(t *testing.T, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path = "/usr/sbin/pgbouncer" // not in everybody's PATH
	}
	folder := pgtest.Folder(t)
	file := filepath.Join(folder, "pgbouncer.ini")
	text := fmt.Sprintf(bouncerConfig, config.Host, config.Port, config.User, config.Password, folder)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { // its folder is closed to others
		t.Fatal(err)
	}
	process := pgtest.Run(t, filepath.Join(folder, "run"), path, file)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if _, err := os.Stat(filepath.Join(folder, ".s.PGSQL.6432")); err == nil {
			return "postgres://" + url.UserPassword(config.User, config.Password).String() + "@/" + config.Database +
				"?host=" + url.QueryEscape(folder) + "&port=6432"
		}
		select {
		case <-process.Ended():
			t.Fatalf("%s ended at once: install PgBouncer (Debian: apt-get install pgbouncer)", path)
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatalf("%s did not listen within 20 s", path)
	return ""
}

// All commands work through PgBouncer in transaction mode with a DSN as it is, and
// the doctor tells that it stands there.
func TestThroughPgBouncer(t *testing.T) {
	file := dsnFile(t, bounced(t, pgtest.DSN(t)))
	succeeds(t, "migrate", "--dsn-file", file)
	for range 2 { // another process on the same server connections
		for _, args := range [][]string{{"ledger", "open"}, {"ledger", "stats"}, {"purge"}, {"ledger", "restored", "--clear"}} {
			succeeds(t, append(args, "--dsn-file", file)...)
		}
		if out := succeeds(t, "doctor", "--dsn-file", file); !strings.Contains(out, "a pooler stands before the server, and this DSN prepares statements") {
			t.Errorf("the doctor says:\n%s", out)
		}
	}
	dsn, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out := succeeds(t, "doctor", "--dsn-file", dsnFile(t, string(dsn)+"&default_query_exec_mode=exec")); !strings.Contains(out, "this DSN prepares nothing (exec)") {
		t.Errorf("the doctor says:\n%s", out)
	}
}
