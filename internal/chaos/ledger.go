package chaos

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// place is where a ledger is: one of both.
type place struct {
	SQLite   string // A file.
	Postgres string // A DSN.
}

// store is all that a ledger offers.
type store interface {
	recordstore.Store
	recordstore.Durable
	recordstore.Forgetter
	recordstore.Queue
	recordstore.Desk
	recordstore.Purger
}

// ledger is an open ledger with what the chaos needs beside the store itself.
type ledger struct {
	store

	// plan writes the row of an order and the plan of its call in one transaction.
	// around is called before and after the commit.
	plan func(ctx context.Context, c *outbound.Client, order string, call outbound.Call, around func(committed bool)) error

	// orders counts the rows that plan wrote.
	orders func(ctx context.Context) (int, error)

	// waiting are the commands of records in one of the states.
	waiting func(ctx context.Context, states ...recordstore.State) ([]found, error)

	close func()
}

// found is a record as far as a command leads to it.
type found struct{ provider, operation, command string }

// open opens the ledger at p; fresh also brings its schema up to date.
func open(ctx context.Context, p place, fresh bool) (*ledger, error) {
	if p.SQLite != "" {
		return openSQLite(ctx, p.SQLite, fresh)
	}
	return openPostgres(ctx, p.Postgres, fresh)
}

const ordersTable = "CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY)"

func openPostgres(ctx context.Context, dsn string, fresh bool) (*ledger, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 12
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if fresh {
		if err = postgres.Migrate(ctx, pool, nil); err == nil {
			_, err = pool.Exec(ctx, ordersTable)
		}
		if err != nil {
			pool.Close()
			return nil, err
		}
	}
	s := postgres.New(pool, nil)
	l := &ledger{store: s, close: pool.Close}
	l.plan = func(ctx context.Context, c *outbound.Client, order string, call outbound.Call, around func(bool)) error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after the commit it does nothing
		if _, err := tx.Exec(ctx, "INSERT INTO orders VALUES ($1) ON CONFLICT DO NOTHING", order); err != nil {
			return err
		}
		if err := c.Plan(ctx, s.Tx(tx), call); err != nil {
			return err
		}
		around(false)
		err = tx.Commit(ctx)
		around(true)
		return err
	}
	l.orders = func(ctx context.Context) (n int, err error) {
		err = pool.QueryRow(ctx, "SELECT count(*) FROM orders").Scan(&n)
		return n, err
	}
	l.waiting = func(ctx context.Context, states ...recordstore.State) ([]found, error) {
		rows, err := pool.Query(ctx, "SELECT provider, operation, command_id FROM samekey.record WHERE state = ANY($1)", states)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f found, err error) {
			err = row.Scan(&f.provider, &f.operation, &f.command)
			return f, err
		})
	}
	return l, nil
}

// unresolved are the states in which nothing may be left behind.
var unresolved = []recordstore.State{recordstore.Planned, recordstore.Sending, recordstore.Uncertain}

// count is how many records are in one of the states.
func (l *ledger) count(ctx context.Context, states ...recordstore.State) (int, error) {
	list, err := l.waiting(ctx, states...)
	if err != nil {
		return 0, fmt.Errorf("the ledger could not be counted: %w", err)
	}
	return len(list), nil
}
