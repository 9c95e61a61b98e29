package endtoend

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// rowsOf counts the records in a SQLite ledger, with SQL of its own.
func rowsOf(t *testing.T, path string) int {
	t.Helper()
	return rowsIn(t, path, "%")
}

// rowsIn counts those in a state.
func rowsIn(t *testing.T, path, state string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT count(*) FROM samekey_records WHERE state LIKE ?", state).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func result(value string) attribute.KeyValue { return attribute.String("samekey.result", value) }

// gate is the way to a database. Shut, it closes all connections and lets no new
// one through.
type gate struct {
	mu    sync.Mutex
	shut  bool
	conns []net.Conn
}

func (g *gate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut {
		return nil, errors.New("the database cannot be reached")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns = append(g.conns, conn)
	return conn, nil
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for _, c := range g.conns {
			_ = c.Close() // the database's server may have closed it before
		}
		g.conns = nil
	}
}

// postgresLedger returns a new ledger in PostgreSQL and the gate before it.
// change may be nil.
func postgresLedger(t *testing.T, change func(*pgxpool.Config)) (*postgres.Store, *pgxpool.Pool, *gate) {
	t.Helper()
	dsn := pgtest.DSN(t)
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{}
	config.MaxConns, config.ConnConfig.DialFunc = 8, g.dial
	if change != nil {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := postgres.Migrate(t.Context(), pool, nil); err != nil {
		t.Fatal(err)
	}
	return postgres.New(pool, nil), pool, g
}
