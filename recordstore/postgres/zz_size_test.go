package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"
)

func TestZSize(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		return
	}
	ctx := context.Background()
	s, pool := ledger(t)
	for _, sz := range []int{256, 1024, 2048} {
		got, _ := s.Claim(ctx, claimOf(sz))
		var a, b int
		pool.QueryRow(ctx, "select pg_column_size(r.*) from samekey.record r where key_hash=$1", got.Record.ID.KeyHash[:]).Scan(&a)
		s.Settle(ctx, settlementOf(got.Record, sz))
		pool.QueryRow(ctx, "select pg_column_size(r.*) from samekey.record r where key_hash=$1", got.Record.ID.KeyHash[:]).Scan(&b)
		fmt.Println(sz, a, b)
	}
}
