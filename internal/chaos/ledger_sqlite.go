//go:build !postgresonly

package chaos

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// openSQLite opens a ledger in a file, with a connection of the application's own
// to the same file for its orders.
func openSQLite(ctx context.Context, path string, fresh bool) (*ledger, error) {
	s, err := sqlite.Open(path, nil)
	if err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: "_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)"}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if fresh {
		if _, err := db.ExecContext(ctx, ordersTable); err != nil {
			return nil, errors.Join(err, db.Close(), s.Close())
		}
	}
	l := &ledger{store: s, close: func() { _ = errors.Join(db.Close(), s.Close()) }} // all that counts is on disk
	l.plan = func(ctx context.Context, c *outbound.Client, order string, call outbound.Call, around func(bool)) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after the commit it does nothing
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (?) ON CONFLICT DO NOTHING", order); err != nil {
			return err
		}
		if err := c.Plan(ctx, s.Tx(tx), call); err != nil {
			return err
		}
		around(false)
		err = tx.Commit()
		around(true)
		return err
	}
	l.orders = func(ctx context.Context) (n int, err error) {
		err = db.QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&n)
		return n, err
	}
	l.waiting = func(ctx context.Context, states ...recordstore.State) (list []found, err error) {
		args := make([]any, len(states))
		for i, s := range states {
			args[i] = string(s)
		}
		rows, err := db.QueryContext(ctx, "SELECT provider, operation, command_id FROM samekey_records WHERE state IN (?"+
			strings.Repeat(",?", len(states)-1)+")", args...)
		if err != nil {
			return nil, err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var f found
			if err := rows.Scan(&f.provider, &f.operation, &f.command); err != nil {
				return nil, err
			}
			list = append(list, f)
		}
		return list, rows.Err()
	}
	return l, nil
}
