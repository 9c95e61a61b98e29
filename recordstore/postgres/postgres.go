// Package postgres is the ledger where several services and machines meet. It
// needs PostgreSQL 15 or newer and works through PgBouncer in transaction mode:
// every step is one statement (a claim of a known command, a purge and a full sweep
// are several), and no session state is used. A single machine is served as well by
// package sqlite.
//
// Claims, settlements and other steps on one record that come together share
// transactions, and with them round trips and commits. A step that meets no other
// waits for nobody. Each gets its own answer, after the commit; where a transaction
// fails each of its steps is taken again, alone. One that a lock holds up holds the
// others up for 250 ms at most. Byte slices that are handed in must not change
// afterwards, not even where the call ended with its context.
//
// Through a PgBouncer older than 1.21, or one with max_prepared_statements at 0,
// pgx must prepare nothing: put default_query_exec_mode=exec into the DSN, or
// cache_describe. Otherwise the prepared statements of several clients meet on one
// server connection, and calls end in SQLSTATE 42P05 or 26000.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/internal/groupcommit"
)

// Options are what a ledger may be told. Migrate, WriteSchema and New must be
// given the same Schema.
type Options struct {
	// Schema is the PostgreSQL schema that holds the ledger's tables: 1 to 63
	// bytes, no control characters, not beginning with "pg_". Defaults to
	// "samekey".
	Schema string

	// Now is the ledger's clock. Defaults to the server's, which all machines
	// share; another one is for tests. It is called by many goroutines at once.
	Now func() time.Time

	// Partitions has Migrate and WriteSchema make a new ledger's tables with a
	// partition for each month, beginning 400 days ago: commands of days before that
	// are Forgotten from the beginning. A month goes as a whole, in a moment, once
	// nothing in it is needed any more. Purge makes the months to come, where the
	// pool's user may; else run Migrate every month. Defaults to false: one plain
	// table. A ledger that is there keeps what it has; Migrate with Partitions on one
	// plain table is an error.
	Partitions bool

	// Workers is how many transactions of claims, settlements and other steps on
	// one record are on their way at once. Steps that meet none free gather, and go
	// together in the next one. Defaults to 8, and is at most the pool's MaxConns.
	Workers int

	// Queue is how many steps may wait for a worker. A claim beyond it is
	// recordstore.ErrOverloaded; other steps go alone. Defaults to 16,384.
	Queue int

	// Direct sends each step alone, in a transaction and on a connection of its
	// own. Defaults to false.
	Direct bool
}

// Store is a ledger in PostgreSQL. It implements recordstore.Store and all of its
// optional abilities, a Planner by Tx and SQLTx. It is safe for concurrent use by
// many goroutines, processes and machines.
//
// A step whose connection broke is asked once more on a new connection: all
// steps are repeatable, and the pool may hold more connections that broke.
type Store struct {
	pool    *pgxpool.Pool
	now     func() time.Time
	schema  string // As given, for messages.
	sql     statements
	byMonth atomic.Bool // Whether there are partitions; then daily serves steps on one record.
	daily   daily
	rescues chan struct{} // Bounds the connections opened beside the pool.
	group   *groupcommit.Group[*asked]
	invalid error // What New found wrong; every method returns it.
}

var (
	_ recordstore.Store     = (*Store)(nil)
	_ recordstore.Durable   = (*Store)(nil)
	_ recordstore.Forgetter = (*Store)(nil)
	_ recordstore.Queue     = (*Store)(nil)
	_ recordstore.Desk      = (*Store)(nil)
	_ recordstore.Purger    = (*Store)(nil)
	_ recordstore.Restorer  = (*Store)(nil)
)

// maxRescues bounds the connections that a Store opens beside its pool.
const maxRescues = 4

// New returns the ledger on pool. It does no I/O: Attach finds out whether the
// schema fits and what is wrong with the arguments. The pool stays the caller's
// to close; it is held by a statement only, never from a claim to its
// settlement. opts may be nil.
func New(pool *pgxpool.Pool, opts *Options) *Store {
	s := &Store{pool: pool, rescues: make(chan struct{}, maxRescues)}
	if opts != nil {
		s.now = opts.Now
	}
	s.schema, s.invalid = opts.schemaName()
	if pool == nil {
		s.invalid = errors.New("recordstore/postgres: the pool is nil: pass the result of pgxpool.New")
	}
	s.sql, s.daily.schema = statementsFor(s.schema), s.schema
	s.group = opts.groupOf(s)
	return s
}

// Durable reports that records outlive the process.
func (s *Store) Durable() bool { return true }

// clock is the first parameter of every statement: NULL for the server's time.
func (s *Store) clock() any {
	if s.now == nil {
		return nil
	}
	return s.now()
}

// schemaName returns the schema to use, or what is wrong with it.
func (o *Options) schemaName() (string, error) {
	if o == nil || o.Schema == "" {
		return "samekey", nil
	}
	name := o.Schema
	control := strings.ContainsFunc(name, unicode.IsControl)
	if len(name) > 63 || control || !utf8.ValidString(name) || strings.HasPrefix(name, "pg_") {
		return name, fmt.Errorf("recordstore/postgres: the schema name %.80q will not do: it has 1 to 63 bytes, no control characters, and does not begin with \"pg_\"", name)
	}
	return name, nil
}

// within puts the quoted schema name into sql, wherever it says {schema}.
func within(schema, sql string) string {
	return strings.ReplaceAll(sql, "{schema}", pgx.Identifier{schema}.Sanitize())
}

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// ask runs do on the pool and, where its connection broke, once more on a new one.
func (s *Store) ask(ctx context.Context, do func(querier) error) error {
	if s.invalid != nil {
		return s.invalid
	}
	err := do(s.pool)
	if !broken(err) || ctx.Err() != nil {
		return err
	}
	conn, rescueErr := s.rescue(ctx)
	if rescueErr != nil {
		return errors.Join(err, rescueErr)
	}
	defer s.release(ctx, conn)
	return do(conn)
}

// one runs a statement that returns one row and scans it.
func (s *Store) one(ctx context.Context, sql string, args, into []any) error {
	return s.ask(ctx, func(q querier) error { return q.QueryRow(ctx, sql, args...).Scan(into...) })
}

// collect runs a statement that returns any number of rows.
func collect[T any](ctx context.Context, s *Store, sql string, args []any, read pgx.RowToFunc[T]) (found []T, err error) {
	err = s.ask(ctx, func(on querier) error {
		rows, _ := on.Query(ctx, sql, args...) // its error is that of the rows
		found, err = pgx.CollectRows(rows, read)
		return err
	})
	return found, err
}

// uncompiled has the server compile no machine code for the statement behind it, in
// one transaction: on a large table it foresees much work for statements that find
// next to nothing, and compiles for a second.
const uncompiled = `SELECT set_config('jit', 'off', true)`

// upkeep is collect for what reconcilers and purges ask.
func upkeep[T any](ctx context.Context, s *Store, sql string, args []any, read pgx.RowToFunc[T]) (found []T, err error) {
	err = s.ask(ctx, func(on querier) error {
		batch := &pgx.Batch{}
		batch.Queue(uncompiled)
		batch.Queue(sql, args...)
		results := on.SendBatch(ctx, batch)
		_, err := results.Exec()
		if err == nil {
			rows, _ := results.Query() // its error is that of the rows
			found, err = pgx.CollectRows(rows, read)
		}
		if closed := results.Close(); err == nil {
			err = closed // of the commit
		}
		return err
	})
	return found, err
}

// upkeepOne is upkeep for a statement that returns one row, which it scans.
func (s *Store) upkeepOne(ctx context.Context, sql string, args, into []any) error {
	_, err := upkeep(ctx, s, sql, args, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, row.Scan(into...) })
	return err
}
