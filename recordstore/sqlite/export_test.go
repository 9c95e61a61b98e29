package sqlite

import (
	"context"
	"database/sql"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Seed writes records as they are, in one transaction.
func (s *Store) Seed(ctx context.Context, recs ...recordstore.Record) error {
	return s.write(ctx, func(tx *sql.Tx, _ sql.NamedArg) error {
		put, err := tx.PrepareContext(ctx, putSQL)
		if err != nil {
			return err
		}
		for i := range recs {
			if _, err := put.ExecContext(ctx, values(&recs[i])...); err != nil {
				return err
			}
		}
		return nil
	})
}
