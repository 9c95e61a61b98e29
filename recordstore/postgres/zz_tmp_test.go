package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

func rb(n int) []byte { b := make([]byte, n); rand.Read(b); return b }

func TestZZ(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		return
	}
	ctx := context.Background()
	pool := pgtest.Pool(t)
	if err := Migrate(ctx, pool, nil); err != nil {
		t.Fatal(err)
	}
	conn, _ := pool.Acquire(ctx)
	defer conn.Release()
	conn.Exec(ctx, "SET synchronous_commit=off")
	if os.Getenv("ZZ") == "g" {
		conn.Exec(ctx, "SET plan_cache_mode=force_generic_plan")
	}
	s := New(pool, nil)
	upsert := within("samekey", strings.NewReplacer("{columns}", columns, "{result}", strings.ReplaceAll(result, "{us}", us), "{clock}", clock, "{key}", key).Replace(upsertClaim))
	plainSettle := within("samekey", strings.NewReplacer("{columns}", columns, "{result}", strings.ReplaceAll(result, "{us}", us), "{clock}", clock, "{key}", key).Replace(`
	UPDATE {schema}.record AS r SET {result}
	FROM (SELECT now, $4::text AS next FROM ({clock}) AS clock) AS move
	WHERE {key} AND r.state = 'sending' AND r.holder = $17::text AND r.fence = $18::bigint
		AND r.noted IS NOT DISTINCT FROM $19::text
	RETURNING {columns}`))
	slim := strings.ReplaceAll(strings.ReplaceAll(plainSettle, "RETURNING "+columns, "RETURNING move.now, r.version"), "", "")
	run := func(name, sql string, n int, mk func() []any, dst func() []any) {
		start := time.Now()
		for range n {
			if err := conn.QueryRow(ctx, sql, mk()...).Scan(dst()...); err != nil {
				t.Fatal(name, err)
			}
		}
		fmt.Printf("%-20s %v\n", name, time.Since(start)/time.Duration(n))
	}
	var ids [][]byte
	mkClaim := func() []any {
		id := rb(16)
		ids = append(ids, id)
		return []any{s.clock(), int32(20000), id, "money", [][]byte{rb(33)}, []string{"v1", "foreign"}, 1, "holderholderholderholder", timestamp(time.Time{}), micros(time.Minute), micros(time.Hour), "v1", sealed(rb(256)), rb(32), "stripe", "acct_1Nv0FGQ9RKHgCVdK/live", "refund.create", "0193f6a2-1c3d-7e4f-8a5b-6c7d8e9f0a1b", int64(7 * 86400e6), int64(400 * 86400e6)}
	}
	claimDst := func() []any {
		var now time.Time
		var f int32
		var h bool
		r := &row{}
		return append([]any{&now, &f, &h}, r.fields()...)
	}
	settleDst := func() []any { r := &row{}; return r.fields() }
	slimDst := func() []any { var now time.Time; var h int64; return []any{&now, &h} }
	mkSettle := func() []any {
		id := ids[0]
		ids = ids[1:]
		return append(s.resultArgs(recordstore.ID{Day: 20000, KeyHash: [16]byte(id)}, recordstore.Result{State: "succeeded", Evidence: "no_replay_header", Outcome: "done", Deliveries: 1, ResponseStatus: 200, ResponseHeader: rb(100), ResponseBody: rb(256), ExternalRef: "re_3MmlLrLkdIwHu7ix0uke3Ezy", RequestID: "req_Tz1cKu5a9kJzYn"}), "holderholderholderholder", int64(1), text(""))
	}
	for range 4 {
		run("claim cte", s.sql.claim, 1000, mkClaim, claimDst)
		run("claim upsert", upsert, 1000, mkClaim, claimDst)
		run("settle cte", s.sql.settle, 600, mkSettle, settleDst)
		run("settle plain", plainSettle, 600, mkSettle, settleDst)
		run("settle slim", slim, 600, mkSettle, slimDst)
		_ = pgx.ErrNoRows
	}
	rows, _ := conn.Query(ctx, "select left(statement,30), generic_plans, custom_plans from pg_prepared_statements")
	for rows.Next() {
		var a string
		var b, c int64
		rows.Scan(&a, &b, &c)
		fmt.Println(strings.TrimSpace(a), b, c)
	}
}

const upsertClaim = `
WITH ledger AS MATERIALIZED (
	SELECT now, COALESCE((SELECT f.day FROM {schema}.frontier AS f WHERE f.class = $4::text), 0) AS frontier
	FROM ({clock}) AS clock
), written AS (
	INSERT INTO {schema}.record AS r (day, key_hash, class, request_hash, derivation, seal_version, holder, not_after,
		request, scope_hash, provider, account, operation, command_id, state, fence, version,
		created_at, claimed_at, lease_expires_at, window_ends_at, replay_until, evidence_until)
	SELECT $2::integer, $3::bytea, $4::text, ($5::bytea[])[1], $12::text,
		CASE WHEN $13::bytea IS NOT NULL THEN NULLIF($7::integer, 0) END, $8::text, $9::timestamptz,
		$13::bytea, $14::bytea, $15::text, $16::text, $17::text, $18::text, 'sending', 1, 1,
		now, now, now + $10::bigint * interval '1 microsecond', now + $11::bigint * interval '1 microsecond',
		now + $19::bigint * interval '1 microsecond', now + $20::bigint * interval '1 microsecond'
	FROM ledger
	WHERE $2::integer <= date_part('epoch', now) / 86400 + 1
		AND ($2::integer = 0 OR $2::integer > frontier)
		AND COALESCE(now < $9::timestamptz, true)
	ON CONFLICT (day, key_hash) DO UPDATE SET 
		taken_from = r.state,
		doubt = r.state NOT IN ('planned', 'not_executed'),
		state = 'sending', holder = $8::text, fence = r.fence + 1, version = r.version + 1,
		claimed_at = excluded.claimed_at, lease_expires_at = excluded.lease_expires_at, due_at = NULL,
		not_after = LEAST(r.not_after, $9::timestamptz),
		request = COALESCE(r.request, $13::bytea)
	WHERE r.request_hash = ANY($5::bytea[]) AND r.derivation = ANY($6::text[]) AND COALESCE(r.seal_version, 0) <= $7::integer
		AND CASE r.state
			WHEN 'uncertain' THEN true
			WHEN 'sending' THEN r.holder <> $8::text AND r.lease_expires_at <= excluded.claimed_at
			ELSE false
		END
	RETURNING {columns}
)
SELECT ledger.now, ledger.frontier, COALESCE(held, false), {columns} FROM ledger LEFT JOIN (
	SELECT true AS held, {columns} FROM written
	UNION ALL SELECT false, {columns} FROM {schema}.record WHERE {key} AND NOT EXISTS (SELECT FROM written)
) AS found ON true`
