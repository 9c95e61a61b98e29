package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// ExplainList shows the plan of List.
func ExplainList(ctx context.Context, s *Store, q recordstore.ListQuery) (plan []byte, err error) {
	sql, args := s.listing(q)
	err = s.reading(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, args...).Scan(&plan)
	})
	return plan, err
}
