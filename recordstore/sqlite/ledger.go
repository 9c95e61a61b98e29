package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Attach implements recordstore.Store. Where the pins are there it waits for no
// writer, which may be the caller's own transaction, around a plan.
func (s *Store) Attach(ctx context.Context, p recordstore.Pins) error {
	pinned, err := s.pins(ctx, s.readers)
	if errors.Is(err, sql.ErrNoRows) {
		err = s.write(ctx, func(tx *sql.Tx, _ sql.NamedArg) (err error) {
			const pin = `INSERT INTO samekey_pins VALUES (1, :derivation, :secret) ON CONFLICT DO NOTHING`
			if _, err := tx.ExecContext(ctx, pin, sql.Named("derivation", p.Derivation), sql.Named("secret", p.Secret)); err != nil {
				return err
			}
			pinned, err = s.pins(ctx, tx)
			return err
		})
	}
	if err == nil {
		err = pinned.Compare(p)
	}
	return wrap("attach", err)
}

// pins reads what the ledger pinned, after a look at its schema. Before the first
// use that is sql.ErrNoRows.
func (s *Store) pins(ctx context.Context, db querier) (p recordstore.Pins, err error) {
	if err := checkVersion(ctx, db, len(migrations)); err != nil {
		return p, err
	}
	return p, db.QueryRowContext(ctx, `SELECT derivation, secret FROM samekey_pins`).Scan(&p.Derivation, &p.Secret)
}

// Get implements recordstore.Store. It does not wait for writers.
func (s *Store) Get(ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error) {
	rec, now, err := read(ctx, s.get, id, s.now())
	if err != nil {
		return recordstore.Record{}, time.Time{}, wrap("get", err)
	}
	s.clock.observe(now.UnixMicro())
	return rec, now, nil
}

// RaiseFrontier implements recordstore.Forgetter.
func (s *Store) RaiseFrontier(ctx context.Context, class string, day int32) error {
	err := s.write(ctx, func(tx *sql.Tx, _ sql.NamedArg) error {
		const raise = `INSERT INTO samekey_frontier VALUES (:class, :day)
			ON CONFLICT (class) DO UPDATE SET day = max(day, excluded.day)`
		_, err := tx.ExecContext(ctx, raise, sql.Named("class", class), sql.Named("day", day))
		return err
	})
	return wrap("raise frontier", err)
}

// MarkRestored implements recordstore.Restorer.
func (s *Store) MarkRestored(ctx context.Context, t time.Time) error {
	err := s.write(ctx, func(tx *sql.Tx, _ sql.NamedArg) error {
		if t.IsZero() {
			_, err := tx.ExecContext(ctx, `DELETE FROM samekey_restored`)
			return err
		}
		const mark = `INSERT INTO samekey_restored VALUES (1, :at) ON CONFLICT (one) DO UPDATE SET at = excluded.at`
		_, err := tx.ExecContext(ctx, mark, sql.Named("at", micros(t)))
		return err
	})
	return wrap("mark restored", err)
}

// Restored implements recordstore.Restorer. It does not wait for writers.
func (s *Store) Restored(ctx context.Context) (t time.Time, err error) {
	err = s.readers.QueryRowContext(ctx, `SELECT (SELECT at FROM samekey_restored)`).Scan(timestamp{&t})
	return t, wrap("restored", err)
}
