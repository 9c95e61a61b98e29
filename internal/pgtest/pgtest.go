// Package pgtest gives tests a real PostgreSQL: the server that
// SAMEKEY_TEST_POSTGRES names, or a private one that lives as long as the test
// process. Every test gets a database of its own. A machine without PostgreSQL
// fails the test, it does not skip it.
package pgtest

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// EnvDSN names the environment variable with the DSN of a running server. Its
// user must be allowed to create databases.
const EnvDSN = "SAMEKEY_TEST_POSTGRES"

// shared is the private server of this process. It is started by the first test
// that needs it and stops when the process ends.
var shared = sync.OnceValues(Start)

// DSN returns a URL that leads to a new, empty database, which is dropped when
// the test ends. It goes over a Unix socket; a private server also listens on
// 127.0.0.1 with the same port, user and password.
func DSN(t testing.TB) string {
	t.Helper()
	server := os.Getenv(EnvDSN)
	if server == "" {
		s, err := shared()
		if err != nil {
			t.Fatalf("pgtest: %v", err)
		}
		server = s.DSN
	}
	at, err := url.Parse(server)
	if err != nil || at.Scheme == "" {
		t.Fatalf("pgtest: %s is not a postgres:// URL", EnvDSN)
	}
	name := "t_" + strings.ToLower(rand.Text())
	// template0, since nobody can be connected to it: creating from it never waits.
	run(t, server, "CREATE DATABASE "+name+" TEMPLATE template0")
	t.Cleanup(func() { run(t, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	at.Path = "/" + name
	return at.String()
}

// OwnServer starts a server for this test alone and returns the DSN of an empty
// database on it: for tests that read a server's statistics or stop it, since
// transactions in other databases count in both. It stops when the test ends.
func OwnServer(t testing.TB) string {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(s.Stop)
	return s.DSN
}

// Pool returns a pool of at most 16 connections to a new, empty database. Both
// go when the test ends.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Open(t, DSN(t))
}

// Open returns another pool of at most 16 connections to dsn, as another process
// would have. It is closed when the test ends.
func Open(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// run executes one statement on a connection of its own.
func run(t testing.TB, dsn, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("pgtest: no PostgreSQL answers: %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("pgtest: %s: %v", sql, err)
	}
}
