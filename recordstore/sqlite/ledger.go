package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Attach implements recordstore.Store.
func (s *Store) Attach(ctx context.Context, p recordstore.Pins) error {
	err := s.write(ctx, func(tx *sql.Tx, _ sql.NamedArg) error {
		if err := checkVersion(ctx, tx, len(migrations)); err != nil {
			return err
		}
		const pin = `INSERT INTO samekey_pins VALUES (1, :derivation, :secret) ON CONFLICT DO NOTHING`
		if _, err := tx.ExecContext(ctx, pin, sql.Named("derivation", p.Derivation), sql.Named("secret", p.Secret)); err != nil {
			return err
		}
		var pinned recordstore.Pins
		const read = `SELECT derivation, secret FROM samekey_pins`
		if err := tx.QueryRowContext(ctx, read).Scan(&pinned.Derivation, &pinned.Secret); err != nil {
			return err
		}
		return pinned.Compare(p)
	})
	return wrap("attach", err)
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
