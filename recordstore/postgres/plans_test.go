package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// fill writes n records; the expressions may use i, which counts from 1.
func fill(t testing.TB, pool *pgxpool.Pool, n int, state, scope, claimed, due string) {
	t.Helper()
	fillDay(t, pool, 20_000, n, state, scope, claimed, due)
}

// fillDay is fill with the day of the records.
func fillDay(t testing.TB, pool *pgxpool.Pool, day int32, n int, state, scope, claimed, due string) {
	t.Helper()
	_, err := pool.Exec(context.Background(), `INSERT INTO samekey.record (day, key_hash, scope_hash, provider, account, operation,
		command_id, class, derivation, request_hash, state, holder, fence, version, created_at, claimed_at, lease_expires_at, due_at,
		replay_until, evidence_until, response_body)
		SELECT $4::integer, substring(sha256(($2 || i)::bytea) FROM 1 FOR 16), sha256((`+scope+`)::text::bytea), 'stripe', 'acct_1/live', 'refund.create',
			'c' || i, 'money', 'v1', '\x01aa', $3, 'earlier', 1, 1, now() - interval '3 days', `+claimed+`, `+claimed+` + interval '2 minutes', `+due+`,
			now() + interval '4 days', now() + interval '397 days', sha256(i::text::bytea)
		FROM generate_series(1, $1::integer) AS i`, n, fmt.Sprint(state, scope, due), state, day)
	if err != nil {
		t.Fatal(err)
	}
}

func dueQuery(limit int) recordstore.DueQuery {
	return recordstore.DueQuery{
		Provider: "stripe", Mode: "live", Derivations: []string{"v1"}, Fingerprints: []byte{1}, SealVersion: 1,
		Holder: "reconciler", Lease: time.Minute, Limit: limit,
	}
}

// After an outage 100,000 records of one owner are due, and the server's
// statistics are those from before it. No step looks at more than a small part of
// the ledger, and owners with one record get their turn at once.
func TestStepsOnALargeLedger(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool := ledger(t)
	fill(t, pool, 40_000, "succeeded", "'settled'", "now() - interval '3 days' + i * interval '1 second'", "NULL::timestamptz")
	execute(t, pool, "ANALYZE samekey.record")
	fill(t, pool, 100_000, "uncertain", "'large'", "now() - interval '2 hours'", "now() - interval '1 hour' + i * interval '1 millisecond'")
	fill(t, pool, 3_000, "uncertain", "i", "now() - interval '2 hours'", "now() - interval '1 second'")
	fill(t, pool, 300, "sending", "'crashed'", "now() - interval '10 minutes'", "NULL::timestamptz")

	plan, err := postgres.ExplainTakeDue(ctx, store, dueQuery(50))
	atMost(t, "TakeDue", plan, err, 5_000)
	taken, _, err := store.TakeDue(ctx, dueQuery(50))
	if err != nil {
		t.Fatal(err)
	}
	owners := map[[32]byte]int{}
	for _, rec := range taken {
		owners[rec.Scope]++
	}
	if len(taken) != 50 || len(owners) != 50 {
		t.Errorf("%d records of %d owners were taken, want 50 of 50", len(taken), len(owners))
	}

	execute(t, pool, "SELECT brin_summarize_new_values('samekey.record_claimed')") // as autovacuum does
	execute(t, pool, "ANALYZE samekey.record")
	found, err := store.FindCrashed(ctx, false, 200) // sets the mark
	if err != nil || found != 200 {
		t.Fatalf("FindCrashed found %d, %v; want 200", found, err)
	}
	plan, err = postgres.ExplainFindCrashed(ctx, store, 200)
	atMost(t, "FindCrashed", plan, err, 10_000)
	plans, err := postgres.ExplainPurge(ctx, store, 500)
	for i, plan := range plans {
		atMost(t, fmt.Sprint("step ", i, " of Purge with nothing to do"), plan, err, 10)
	}
	execute(t, pool, "UPDATE samekey.record SET replay_until = now() WHERE state = 'succeeded' AND claimed_at < now() - interval '71 hours'")
	plans, err = postgres.ExplainPurge(ctx, store, 500)
	for i, plan := range plans {
		atMost(t, fmt.Sprint("step ", i, " of Purge"), plan, err, 3_000)
	}
	b, err := store.Backlog(ctx, "stripe")
	if err != nil || b.Due != 100_000 || b.Uncertain != 100_000+100 || b.Review != 0 {
		t.Errorf("the backlog is %+v, %v; want counts that stop at 100,000 of what is indexed, and 100 dead senders", b, err)
	}
}

func execute(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// planNode is a part of a plan as the server shows it after it was run.
type planNode struct {
	Type    string     `json:"Node Type"`
	Table   string     `json:"Relation Name"`
	Index   string     `json:"Index Name"`
	Rows    float64    `json:"Actual Rows"` // Of each loop.
	Loops   float64    `json:"Actual Loops"`
	Removed float64    `json:"Rows Removed by Filter"`
	Recheck float64    `json:"Rows Removed by Index Recheck"`
	Plans   []planNode `json:"Plans"`
}

// read counts the rows that a plan read from tables.
func (n planNode) read() (rows float64) {
	if n.Table != "" {
		rows = (n.Rows + n.Removed + n.Recheck) * n.Loops
	}
	for _, p := range n.Plans {
		rows += p.read()
	}
	return rows
}

// lines describes a plan, one line for each node.
func (n planNode) lines(indent string) string {
	out := fmt.Sprintf("%s%s %s: %.0f rows and %.0f removed, %.0f times\n", indent, n.Type, n.Index, n.Rows, n.Removed+n.Recheck, n.Loops)
	for _, p := range n.Plans {
		out += p.lines(indent + "  ")
	}
	return out
}

// atMost expects that a step read no more rows than that.
func atMost(t testing.TB, what string, plan []byte, err error, rows float64) {
	t.Helper()
	var shown []struct{ Plan planNode }
	if err == nil {
		err = json.Unmarshal(plan, &shown)
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got := shown[0].Plan.read(); got > rows {
		t.Errorf("%s read %.0f rows, want at most %.0f:\n%s", what, got, rows, shown[0].Plan.lines(""))
	}
}

// One owner's record is behind thousands of another's and is taken with the first.
func TestOneRecordBehindThousands(t *testing.T) {
	t.Parallel()
	store, pool := ledger(t)
	fill(t, pool, 3_000, "uncertain", "'large'", "now() - interval '2 hours'", "now() - interval '1 hour'")
	fill(t, pool, 1, "uncertain", "'single'", "now() - interval '2 hours'", "now() - interval '1 second'")
	taken, _, err := store.TakeDue(context.Background(), dueQuery(2))
	if err != nil || len(taken) != 2 || taken[0].Scope == taken[1].Scope {
		t.Fatalf("%d records were taken, %v; want one of each owner", len(taken), err)
	}
}

// What another process holds at the moment is passed over by all who take, sweep
// and purge; they do not wait.
func TestLockedRecordsArePassedOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool := ledger(t)
	fill(t, pool, 3, "uncertain", "'a'", "now() - interval '2 hours'", "now()")
	fill(t, pool, 3, "sending", "'b'", "now() - interval '1 hour'", "NULL::timestamptz")
	fill(t, pool, 3, "succeeded", "'c'", "now() - interval '2 days'", "NULL::timestamptz")
	execute(t, pool, `UPDATE samekey.record SET replay_until = now(), evidence_until = now(), day = 10000 WHERE state = 'succeeded'`)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, "SELECT FROM samekey.record WHERE command_id = 'c1' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	steps := func(due, want int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		taken, _, err := store.TakeDue(ctx, dueQuery(10))
		if err != nil || len(taken) != due {
			t.Errorf("TakeDue took %d, %v; want %d", len(taken), err, due)
		}
		for _, full := range []bool{false, true} {
			found, err := store.FindCrashed(ctx, full, 10)
			if n := map[bool]int{false: want}[full]; err != nil || found != n {
				t.Errorf("FindCrashed(full %v) found %d, %v; want %d", full, found, err, n)
			}
		}
		if purged, err := store.Purge(ctx, 10); err != nil || purged != (recordstore.Purged{Bodies: want, Records: want}) {
			t.Errorf("Purge removed %+v, %v; want %d of each", purged, err, want)
		}
	}
	steps(2, 2)
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	steps(3, 1) // with those that were found crashed
}
