package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestYY(t *testing.T) {
	ctx := context.Background()
	_, pool := ledger(t)
	ins := func(n int, scope, state, due, claimed string) {
		_, err := pool.Exec(ctx, `INSERT INTO samekey.record (day, key_hash, scope_hash, provider, account, operation, command_id,
		class, derivation, request_hash, state, holder, fence, version, created_at, claimed_at, lease_expires_at, due_at, replay_until, evidence_until, response_body)
		SELECT 20000, substring(sha256(($2::text || '`+state+`' || i)::bytea) from 1 for 16), `+scope+`, 'stripe', 'a/live', 'o', 'c'||i, 'money', 'v1', '\x01aa', '`+state+`', 'h', 1, 1, now() - interval '3 days', `+claimed+`, `+claimed+` + interval '2 minutes', `+due+`, now() + interval '1 day', now() + interval '100 days', sha256(i::text::bytea)
		FROM generate_series(1, $1::int) AS i`, n, scope)
		if err != nil {
			t.Fatal(err)
		}
	}
	ins(300000, `sha256('settled')`, "succeeded", "NULL", "now() - interval '3 days' + i * interval '1 second'")
	ins(100000, `sha256('large')`, "uncertain", "now() - interval '1 hour' + i * interval '1 ms'", "now() - interval '2 hours'")
	show := func(pre, sql string) {
		tx, _ := pool.Begin(ctx)
		defer tx.Rollback(ctx)
		tx.Exec(ctx, pre)
		rows, _ := tx.Query(ctx, "EXPLAIN "+sql)
		out, err := pgx.CollectRows(rows, pgx.RowTo[string])
		fmt.Println(pre, err)
		for _, l := range out {
			fmt.Println("   ", l)
		}
	}
	und := ` AND account = 'a/live' AND derivation = ANY('{v1}') AND substring(request_hash FROM 1 FOR 1) = ANY('{"\\x01"}'::bytea[]) AND COALESCE(seal_version, 0) <= 1 AND (state IN ('planned', 'uncertain') OR state = 'sending' AND COALESCE(lease_expires_at <= (SELECT now()), true))`
	for _, q := range []string{
		`SELECT day FROM samekey.record WHERE provider='stripe' AND due_at <= (SELECT now())` + und + ` ORDER BY due_at LIMIT (SELECT 1000)`,
		`SELECT day FROM samekey.record WHERE provider='stripe' AND due_at <= (SELECT now()) AND CASE WHEN true` + und + ` THEN true ELSE false END ORDER BY due_at LIMIT (SELECT 1000)`,
	} {
		show("SELECT 1", q)
		show("SET LOCAL enable_bitmapscan = off", q)
	}
}
