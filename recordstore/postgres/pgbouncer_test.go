package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/recordstoretest"
)

// The whole suite passes through PgBouncer in transaction mode, where each
// statement may meet another server connection, with pgx told to prepare nothing.
func TestSuiteThroughPgBouncer(t *testing.T) {
	t.Parallel()
	pool := startBouncer(t, 20).pool(t, pgtest.Pool(t), pgx.QueryExecModeExec)
	recordstoretest.Run(t, &bounced{harness: harness{pool: pool}})
}

// bounced is the harness of ledgers in one database, each in a schema of its own:
// they also share the server's connections.
type bounced struct {
	harness
	opened int
}

func (h *bounced) Open(t testing.TB, now func() time.Time) recordstore.Store {
	h.opened++
	h.opts = &postgres.Options{Now: now, Schema: fmt.Sprintf("ledger_%d", h.opened)}
	migrate(t, h.pool, h.opts)
	return postgres.New(h.pool, h.opts)
}

// pgx's own way, statements prepared once for each connection, does not go with
// PgBouncer before 1.21: two clients meet on one server connection. The error
// names the statement, so that the package documentation can be found by it.
func TestPreparedStatementsThroughPgBouncer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, direct := ledger(t)
	b := startBouncer(t, 1)
	first := postgres.New(b.pool(t, direct, pgx.QueryExecModeCacheStatement), nil)
	second := postgres.New(b.pool(t, direct, pgx.QueryExecModeCacheStatement), nil)
	c := claimOf(64)
	if _, err := first.Claim(ctx, c); err != nil {
		t.Fatal(err)
	}
	_, err := second.Claim(ctx, c)
	if b.prepares() {
		if err != nil {
			t.Errorf("this PgBouncer keeps prepared statements apart, and still: %v", err)
		}
		return
	}
	if e, said := errors.AsType[*pgconn.PgError](err); !said || e.Code != "42P05" {
		t.Fatalf("error is %v, want that the prepared statement exists", err)
	}
	// Nothing was lost by it: the same ledger with the right setting.
	right := postgres.New(b.pool(t, direct, pgx.QueryExecModeExec), nil)
	if got, err := right.Claim(ctx, c); err != nil || got.Decision != recordstore.Send || got.Record.Fence != 1 {
		t.Errorf("with the right setting: %v, fence %d, %v", got.Decision, got.Record.Fence, err)
	}
}

// Many clients share few server connections: no claim waits for a connection that
// another claim holds, since none is held between two statements. Both ways of pgx
// serve that prepare nothing that outlives a statement.
func TestManyClientsThroughPgBouncer(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeCacheDescribe} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			_, direct := ledger(t)
			b := startBouncer(t, 2)
			stores := make([]*postgres.Store, 8)
			for i := range stores {
				stores[i] = postgres.New(b.pool(t, direct, mode), nil)
			}
			errs := make(chan error)
			for i := range 64 {
				go func() { errs <- claimAndSettle(t.Context(), stores[i%len(stores)], stores[(i+1)%len(stores)]) }()
			}
			for range 64 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// claimAndSettle claims through one client and settles through another.
func claimAndSettle(ctx context.Context, claims, settles *postgres.Store) error {
	for range 5 {
		got, err := claims.Claim(ctx, claimOf(64))
		if err != nil {
			return err
		}
		if _, err := settles.Settle(ctx, settlementOf(got.Record, 64)); err != nil {
			return err
		}
	}
	return nil
}

// bouncer is a PgBouncer in transaction mode in front of the tests' server.
type bouncer struct {
	folder string // Of its socket.
	path   string // Of the program.
}

const bouncerPort = 6432

const bouncerConfig = `[databases]
* = host=%s port=%d user=%s password=%s

[pgbouncer]
unix_socket_dir = %s
listen_addr =
listen_port = %d
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 1000
`

// startBouncer starts a PgBouncer that gives each database so many server
// connections. It ends with the test. A machine without PgBouncer fails the test.
func startBouncer(t testing.TB, size int) bouncer {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path = "/usr/sbin/pgbouncer" // not in everybody's PATH
		if _, err := os.Stat(path); err != nil {
			t.Fatal("no pgbouncer found: install it (Debian: apt-get install pgbouncer; macOS: brew install pgbouncer), or run `make test`")
		}
	}
	config, err := pgx.ParseConfig(pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	b := bouncer{folder: pgtest.Folder(t), path: path}
	file := filepath.Join(b.folder, "pgbouncer.ini")
	text := fmt.Sprintf(bouncerConfig, config.Host, config.Port, config.User, config.Password, b.folder, bouncerPort, size)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { // its folder is closed to others
		t.Fatal(err)
	}
	run := filepath.Join(b.folder, "run")
	process := pgtest.Run(t, run, path, file)
	for end := time.Now().Add(20 * time.Second); ; {
		if _, err := os.Stat(filepath.Join(b.folder, fmt.Sprintf(".s.PGSQL.%d", bouncerPort))); err == nil {
			return b
		}
		select {
		case <-process.Ended():
			t.Fatalf("%s ended at once with the configuration\n%s", path, text)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(run, "log"))
			t.Fatalf("%s did not listen within 20 s:\n%s", path, log)
		}
	}
}

// pool returns a pool that reaches direct's database through b.
func (b bouncer) pool(t testing.TB, direct *pgxpool.Pool, mode pgx.QueryExecMode) *pgxpool.Pool {
	t.Helper()
	return configured(t, direct, func(c *pgxpool.Config) {
		c.ConnConfig.Host, c.ConnConfig.Port = b.folder, bouncerPort
		c.ConnConfig.DefaultQueryExecMode = mode
	})
}

// prepares reports whether this PgBouncer keeps the prepared statements of its
// clients apart, as it does since 1.21.
func (b bouncer) prepares() bool {
	out, err := exec.Command(b.path, "--version").Output()
	var major, minor int
	if err == nil {
		_, err = fmt.Sscanf(string(out), "PgBouncer %d.%d", &major, &minor)
	}
	return err == nil && (major > 1 || minor >= 21)
}
