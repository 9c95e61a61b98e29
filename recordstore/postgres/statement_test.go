package postgres_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// counter notes every statement that a pool's connections send.
type counter struct {
	mu   sync.Mutex
	seen []string
}

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, d.SQL)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart notes what goes with a setting for its transaction.
func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, q := range d.Batch.QueuedQueries {
		if i > 0 || !strings.HasPrefix(q.SQL, "SELECT set_config(") {
			c.seen = append(c.seen, q.SQL)
		}
	}
	return ctx
}

func (c *counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (c *counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (c *counter) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

// configured returns a pool on the same database with another configuration.
func configured(t testing.TB, pool *pgxpool.Pool, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	change(config)
	other, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	return other
}

func traced(t testing.TB, pool *pgxpool.Pool, c *counter) *pgxpool.Pool {
	return configured(t, pool, func(config *pgxpool.Config) { config.ConnConfig.Tracer = c })
}

// An ordinary call costs two statements, one for its claim and one for its
// settlement, without a transaction around them. A claim that finds a record costs
// one more, which decides.
func TestOneStatementAStep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, pool := ledger(t)
	counted := &counter{}
	// One connection, so that the server's statistics of it are complete when it asks.
	store := postgres.New(configured(t, pool, func(c *pgxpool.Config) { c.ConnConfig.Tracer, c.MaxConns = counted, 1 }), nil)

	must := func(what string, statements int, want recordstore.Decision, c recordstore.Claim) recordstore.Claimed {
		t.Helper()
		counted.take()
		got, err := store.Claim(ctx, c)
		if err != nil || got.Decision != want {
			t.Fatalf("%s: %v, %v; want %v", what, got.Decision, err, want)
		}
		if sent := counted.take(); len(sent) != statements {
			t.Errorf("%s took %d statements, want %d", what, len(sent), statements)
		}
		return got
	}
	mine := claimOf(256)
	other := mine
	other.Holder = "another"
	changed := other
	changed.Fingerprints = [][]byte{append([]byte{1}, bytesOf(32)...)}

	held := must("a new claim", 1, recordstore.Send, mine)
	must("the same claim again", 2, recordstore.Send, mine)
	must("a claim in flight", 2, recordstore.InFlight, other)
	must("a conflict", 2, recordstore.Conflict, changed)
	counted.take()
	if _, err := store.Settle(ctx, settlementOf(held.Record, 256)); err != nil {
		t.Fatal(err)
	}
	if sent := counted.take(); len(sent) != 1 || strings.Contains(sent[0], "BEGIN") {
		t.Errorf("a settlement took %d statements", len(sent))
	}
	must("a replay", 2, recordstore.Replay, other)

	dead := claimOf(256)
	dead.Lease = time.Microsecond
	must("a claim with a short lease", 1, recordstore.Send, dead)
	dead.Holder = "another"
	must("a takeover", 2, recordstore.Send, dead)
}

// So does every step of the reconciler and of people, with its entry in the trail.
func TestOneStatementAStepBesideCalls(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, pool := ledger(t)
	counted := &counter{}
	store := postgres.New(traced(t, pool, counted), nil)
	e := recordstore.Entry{Kind: "verdict", Actor: "Ada Lovelace", Text: "seen in the dashboard"}
	claimed, err := store.Claim(ctx, claimOf(64))
	if err != nil {
		t.Fatal(err)
	}
	rec, id := claimed.Record, claimed.Record.ID
	s := settlementOf(rec, 64)
	s.State, s.Entry, s.DueIn = recordstore.Uncertain, &e, time.Microsecond
	query := recordstore.DueQuery{
		Provider: rec.Provider, Mode: "live", Derivations: []string{"v1"}, Fingerprints: []byte{1}, SealVersion: 1,
		Holder: "reconciler", Lease: time.Microsecond, Limit: 10,
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"Renew", func() error { return store.Renew(ctx, id, rec.Holder, rec.Fence, time.Minute) }},
		{"Settle", func() error { rec, err = store.Settle(ctx, s); return err }},
		{"Wake", func() error { rec, err = store.Wake(ctx, id, "re_1"); return err }},
		{"Backlog", func() error { _, err := store.Backlog(ctx, rec.Provider); return err }},
		{"FindCrashed", func() error { _, err := store.FindCrashed(ctx, false, 10); return err }},
		{"TakeDue", func() error {
			taken, _, err := store.TakeDue(ctx, query)
			if err == nil && len(taken) == 1 {
				rec = taken[0]
			}
			return err
		}},
		{"Abandon", func() error { rec, err = store.Abandon(ctx, id, e); return err }},
		{"Resolve", func() error {
			rec, err = store.Resolve(ctx, recordstore.Verdict{ID: id, Version: rec.Version, Result: recordstore.Result{State: recordstore.Refused, Entry: &e}})
			return err
		}},
		{"Report", func() error {
			rec, err = store.Report(ctx, id, recordstore.Result{State: recordstore.Succeeded, Entry: &e})
			return err
		}},
		{"Erase", func() error { rec, err = store.Erase(ctx, id, e); return err }},
		{"Trail", func() error {
			trail, err := store.Trail(ctx, id)
			if len(trail) != 5 {
				t.Errorf("the trail has %d entries, want 5: %+v", len(trail), trail)
			}
			return err
		}},
	} {
		counted.take()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if sent := counted.take(); len(sent) != 1 {
			t.Errorf("%s took %d statements: %q", step.name, len(sent), sent)
		}
	}
	if rec.State != recordstore.ManualReview || rec.Checks != 1 {
		t.Errorf("the record ended as %q after %d checks, want manual_review after 1", rec.State, rec.Checks)
	}
}

// No connection is held between a claim and its settlement: a provider that takes
// minutes costs the pool nothing.
func TestNoConnectionHeld(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool := ledger(t)
	var held []recordstore.Record
	for range 100 {
		got, err := store.Claim(ctx, claimOf(64))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, got.Record)
		if n := pool.Stat().AcquiredConns(); n != 0 {
			t.Fatalf("%d connections are held after a claim", n)
		}
	}
	var open int
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`).Scan(&open); err != nil || open != 0 {
		t.Fatalf("%d transactions are open, %v; want none", open, err)
	}
	for _, rec := range held {
		if _, err := store.Settle(ctx, settlementOf(rec, 64)); err != nil {
			t.Fatal(err)
		}
	}
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Fatalf("%d connections are held at the end", n)
	}
}

// A strict default isolation turns a concurrent change into an error of the
// server; the step is asked again.
func TestRepeatableReadByDefault(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, pool := ledger(t)
	store := postgres.New(configured(t, pool, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "repeatable read"
	}), nil)
	for range 20 {
		c := claimOf(64)
		if got := race(t, 16, func(i int) recordstore.Decision { return claimAs(t, ctx, store, c, i) }); got[recordstore.Send] != 1 || got[recordstore.InFlight] != 15 {
			t.Fatalf("16 claims of one key: %v; want 1 send, 15 in flight", got)
		}
	}
}

// R10: 64 callers over two pools, as on two machines, ask for one key at once.
func TestManyClaimsOfOneKey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dsn := pgtest.DSN(t)
	one, two := pgtest.Open(t, dsn), pgtest.Open(t, dsn)
	migrate(t, one, nil)
	stores := []*postgres.Store{postgres.New(one, nil), postgres.New(two, nil)}
	for _, from := range []string{"nothing", "a dead lease"} {
		for range 10 {
			c := claimOf(256)
			if from != "nothing" {
				dead := c
				dead.Lease = time.Microsecond
				claimAs(t, ctx, stores[0], dead, -1)
			}
			got := race(t, 64, func(i int) recordstore.Decision { return claimAs(t, ctx, stores[i%2], c, i) })
			if got[recordstore.Send] != 1 || got[recordstore.InFlight] != 63 {
				t.Fatalf("64 claims from %s: %v; want 1 send, 63 in flight", from, got)
			}
		}
	}
}

// claimAs claims c as caller i, who is another than all other callers.
func claimAs(t testing.TB, ctx context.Context, store *postgres.Store, c recordstore.Claim, i int) recordstore.Decision {
	c.Holder += string(rune('A' + i + 1))
	got, err := store.Claim(ctx, c)
	if err != nil {
		t.Error(err)
	}
	return got.Decision
}

// race runs f n times at once and counts what it returned.
func race(t testing.TB, n int, f func(int) recordstore.Decision) map[recordstore.Decision]int {
	t.Helper()
	results := make([]recordstore.Decision, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			results[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	count := make(map[recordstore.Decision]int)
	for _, r := range results {
		count[r]++
	}
	return count
}

// An insert that another transaction has not committed yet is waited for, and
// then explains the decision: no answer is made up from a record nobody sees.
func TestClaimWaitsForAnOpenInsert(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool := ledger(t)
	c := claimOf(64)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	// The same statement inside a transaction of the test's own.
	if _, err := tx.Exec(ctx, `INSERT INTO samekey.record (day, key_hash, scope_hash, provider, account, operation, command_id,
		class, derivation, request_hash, state, holder, fence, version, created_at, claimed_at, lease_expires_at)
		VALUES ($1, $2, $3, 'stripe', 'a', 'o', 'c', 'money', 'v1', $4, 'sending', 'first', 1, 1, now(), now(), now() + interval '1 minute')`,
		c.ID.Day, c.ID.KeyHash[:], c.Scope[:], c.Fingerprints[0]); err != nil {
		t.Fatal(err)
	}
	decided := make(chan recordstore.Decision)
	go func() { decided <- claimAs(t, ctx, store, c, 0) }()
	waitFor(t, pool, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if d := <-decided; d != recordstore.InFlight {
		t.Fatalf("the claim that waited: %v; want in flight", d)
	}
}

// waitFor polls until a query is true, 10 s at most.
func waitFor(t testing.TB, pool *pgxpool.Pool, sql string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		var ok bool
		if err := pool.QueryRow(context.Background(), sql).Scan(&ok); err != nil {
			t.Fatal(err)
		}
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", sql)
		}
	}
}

// A key leads to its record by one look-up in the primary key, also in a table
// that nobody has run ANALYZE on.
func TestKeyFindsItsRecordByPrimaryKey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, pool := ledger(t)
	for range 50 {
		call(t, ctx, store)
	}
	rows, err := pool.Query(ctx, `EXPLAIN (COSTS OFF) SELECT state FROM samekey.record WHERE day = 20000 AND key_hash = '\x00'`)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || !slices.ContainsFunc(plan, func(l string) bool { return strings.Contains(l, "record_pkey") }) {
		t.Fatalf("plan %q, %v; want the primary key", plan, err)
	}
}
