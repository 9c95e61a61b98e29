package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

func TestZZ(t *testing.T) {
	ctx := context.Background()
	store, pool := ledger(t)
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
	ins(3000, `sha256(('o' || i)::bytea)`, "uncertain", "now() - interval '1 second'", "now() - interval '2 hours'")
	ins(5000, `sha256(('p' || i)::bytea)`, "uncertain", "now() + interval '1 hour'", "now() - interval '2 hours'")
	q := recordstore.DueQuery{Provider: "stripe", Mode: "live", Derivations: []string{"v1"}, Fingerprints: []byte{1}, Holder: "h2", Lease: time.Minute, Limit: 50}
	for _, an := range []bool{false, true} {
		if an {
			pool.Exec(ctx, "ANALYZE samekey.record")
		}
		p, err := postgres.ExplainTakeDue(ctx, store, q)
		os.WriteFile(fmt.Sprintf("/tmp/plan-due-%v.json", an), p, 0o644)
		fmt.Println(err)
		for range 8 {
			start := time.Now()
			recs, _, err := store.TakeDue(ctx, q)
			sc := map[[32]byte]int{}
			for _, r := range recs {
				sc[r.Scope]++
			}
			fmt.Println("take", time.Since(start), len(recs), len(sc), err)
		}
		p, err = postgres.ExplainFindCrashed(ctx, store, 100)
		os.WriteFile(fmt.Sprintf("/tmp/plan-crash-%v.json", an), p, 0o644)
		for range 3 {
			start := time.Now()
			n, err := store.FindCrashed(ctx, false, 100)
			fmt.Println("crashed", time.Since(start), n, err)
		}
		start := time.Now()
		n, err := store.FindCrashed(ctx, true, 100)
		fmt.Println("full", time.Since(start), n, err)
		p, err = postgres.ExplainBacklog(ctx, store, "stripe")
		os.WriteFile(fmt.Sprintf("/tmp/plan-backlog-%v.json", an), p, 0o644)
		start = time.Now()
		b, err := store.Backlog(ctx, "stripe")
		fmt.Println("backlog", time.Since(start), b, err)
		start = time.Now()
		pu, err := store.Purge(ctx, 1000)
		fmt.Println("purge", time.Since(start), pu, err)
		ps, err := postgres.ExplainPurge(ctx, store, 500)
		for i, p := range ps {
			os.WriteFile(fmt.Sprintf("/tmp/plan-purge%d-%v.json", i, an), p, 0o644)
		}
	}
}
