package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/recordstoretest"
)

// The suite holds on a ledger with partitions, but for its cases on purging: there
// records go by the month. Some of its commands are older than any month, so that
// the ledger is given one more partition.
func TestSuiteByMonth(t *testing.T) {
	t.Parallel()
	h := &monthly{newHarness(t, pgx.QueryExecModeCacheStatement)}
	h.months = true
	recordstoretest.Run(t, h)
}

type monthly struct{ *harness }

// Lacks names what does not depend on where a record lies, too: each case makes the
// tables of more than a year.
func (*monthly) Lacks() []string { return []string{"Purger", "Lister", "Restorer"} }

// addAncient makes a partition for all days before the first month, and forgets
// that they are to be forgotten.
func addAncient(t testing.TB, pool *pgxpool.Pool, schema string) {
	t.Helper()
	name := pgx.Identifier{schema}.Sanitize()
	var floor int
	if err := pool.QueryRow(context.Background(), "DELETE FROM "+name+".frontier WHERE class = '' RETURNING day").Scan(&floor); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"record", "trail"} {
		execute(t, pool, fmt.Sprintf("CREATE TABLE %s.%s_ancient PARTITION OF %[1]s.%[2]s FOR VALUES FROM (1) TO (%[3]d)", name, table, floor+1))
	}
}

// ledgerByMonth returns a store with partitions on a new ledger, whose clock is now.
func ledgerByMonth(t testing.TB, now func() time.Time) (*postgres.Store, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Pool(t)
	opts := &postgres.Options{Partitions: true, Now: now}
	migrate(t, pool, opts)
	store := postgres.New(pool, opts)
	if err := store.Attach(context.Background(), recordstore.Pins{Derivation: "v1", Secret: "none"}); err != nil {
		t.Fatal(err)
	}
	return store, pool
}

// A key and a mark lead to their record by one look-up in the primary key, in each
// statement on a record, whether the server knows anything of the table or not,
// and with partitions in the one of the record's month.
func TestStatementsFindTheirRecordByPrimaryKey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	plain, plainPool := ledger(t)
	byMonth, monthPool := ledgerByMonth(t, nil)
	for name, l := range map[string]struct {
		store *postgres.Store
		pool  *pgxpool.Pool
	}{"plain": {plain, plainPool}, "by month": {byMonth, monthPool}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atOnce(8, func(int) {
				for range 100 {
					call(t, ctx, l.store)
				}
			})
			for _, known := range []bool{false, true} {
				if known {
					execute(t, l.pool, "ANALYZE")
				}
				c := claimOf(64)
				got, err := l.store.Claim(ctx, c)
				if err != nil {
					t.Fatal(err)
				}
				plans, err := postgres.ExplainOnRecord(ctx, l.store, c, settlementOf(got.Record, 64))
				if err != nil {
					t.Fatal(err)
				}
				for statement, plan := range plans {
					byKey(t, statement, plan, 1)
				}
				const steps = 20
				var settlements []recordstore.Settlement
				for range steps {
					got, err := l.store.Claim(ctx, claimOf(64))
					if err != nil {
						t.Fatal(err)
					}
					settlements = append(settlements, settlementOf(got.Record, 64))
				}
				begin, end, err := postgres.ExplainMany(ctx, l.store, []recordstore.Claim{claimOf(64), claimOf(64), claimOf(64)}, settlements)
				if err != nil {
					t.Fatal(err)
				}
				byKey(t, "a batch of claims", begin, 0)
				byKey(t, "a batch of settlements", end, steps)
			}
		})
	}
}

// byKey expects that a plan reads records by their primary key only, in one table,
// at most so many rows in each place.
func byKey(t testing.TB, what string, plan []byte, rows float64) {
	t.Helper()
	var shown []struct{ Plan planNode }
	if err := json.Unmarshal(plan, &shown); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	tables := map[string]bool{}
	var look func(n planNode)
	look = func(n planNode) {
		if strings.HasPrefix(n.Table, "record") {
			tables[n.Table] = true
			if n.Type != "ModifyTable" && (!strings.HasSuffix(n.Index, "_pkey") || n.Rows*n.Loops > rows || n.Removed > 0) {
				t.Errorf("%s looks for its record so:\n%s", what, shown[0].Plan.lines(""))
			}
		}
		for _, p := range n.Plans {
			look(p)
		}
	}
	look(shown[0].Plan)
	if len(tables) == 0 || len(tables) > 1 && !onlyParent(tables) {
		t.Errorf("%s reads %v:\n%s", what, tables, shown[0].Plan.lines(""))
	}
}

// onlyParent reports whether tables are one month and the table that it is part of,
// through which a row is written.
func onlyParent(tables map[string]bool) bool { return len(tables) == 2 && tables["record"] }

// What is over goes by the month: at once, but for the records that are needed,
// which are found where they were. Commands of that month are then forgotten, and
// the months to come are there.
func TestAMonthGoes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var clock atomic.Int64
	begin := time.Now().AddDate(0, 0, -470)
	clock.Store(begin.UnixMicro())
	store, pool := ledgerByMonth(t, func() time.Time { return time.UnixMicro(clock.Load()) })
	const records = 50_000
	day := int32(begin.Unix() / 86400)
	fillDay(t, pool, day, records, "succeeded", "'settled'", "now() - interval '470 days'", "NULL::timestamptz")
	execute(t, pool, `UPDATE samekey.record SET response_body = NULL, created_at = now() - interval '470 days',
		replay_until = now() - interval '460 days', evidence_until = now() - interval '40 days'`)
	execute(t, pool, "ANALYZE samekey.record")

	claim := func(lease time.Duration) recordstore.Record {
		c := claimOf(64)
		c.ID.Day, c.Lease = day, lease
		got, err := store.Claim(ctx, c)
		if err != nil || got.Decision != recordstore.Send {
			t.Fatalf("claim: %v, %v", got.Decision, err)
		}
		return got.Record
	}
	crashed, uncertain, young := claim(time.Minute), claim(time.Minute), claim(time.Minute)
	entry := recordstore.Entry{Kind: "check", Text: "seen at the provider"}
	s := settlementOf(uncertain, 0)
	s.State, s.DueIn, s.Entry = recordstore.Uncertain, time.Hour, &entry
	if _, err := store.Settle(ctx, s); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Settle(ctx, settlementOf(young, 64)); err != nil {
		t.Fatal(err)
	}
	execute(t, pool, "UPDATE samekey.record SET evidence_until = now() + interval '1 day' WHERE key_hash = $1", young.ID.KeyHash[:])

	clock.Store(time.Now().UnixMicro())
	began := time.Now()
	purged, err := store.Purge(ctx, 1000)
	took := time.Since(began)
	if err != nil || purged.Records < records*9/10 || purged.Records > records*11/10 {
		t.Fatalf("Purge removed %+v, %v; want about %d records", purged, err, records)
	}
	if took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, rec := range []recordstore.Record{crashed, uncertain, young} {
		if _, _, err := store.Get(ctx, rec.ID); err != nil {
			t.Errorf("a record that is needed went: %v", err)
		}
	}
	if trail, err := store.Trail(ctx, uncertain.ID); err != nil || len(trail) != 1 {
		t.Errorf("the trail of a record that is needed has %d entries, %v", len(trail), err)
	}
	var left int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM samekey.record").Scan(&left); err != nil || left != 3 {
		t.Errorf("%d records are left, %v; want 3", left, err)
	}
	if found, err := store.FindCrashed(ctx, true, 10); err != nil || found != 1 {
		t.Errorf("the full sweep found %d dead senders, %v; want 1", found, err)
	}
	if taken, _, err := store.TakeDue(ctx, dueQuery(10)); err != nil || len(taken) != 2 {
		t.Errorf("%d records were taken, %v; want 2", len(taken), err)
	}
	forgotten := claimOf(64)
	forgotten.ID.Day = day
	if d := claimAs(t, ctx, store, forgotten, 0); d != recordstore.Forgotten {
		t.Errorf("a command of the month that went: %v; want forgotten", d)
	}
	for _, ahead := range []int32{0, 1} {
		c := claimOf(64)
		c.ID.Day += ahead
		if d := claimAs(t, ctx, store, c, 0); d != recordstore.Send {
			t.Errorf("a command %d days ahead: %v; want send", ahead, d)
		}
	}
	again, err := store.Purge(ctx, 1000)
	if err != nil || again.Records > 3 {
		t.Errorf("Purge again removed %+v, %v; want nothing that is needed", again, err)
	}
	if _, _, err := store.Get(ctx, crashed.ID); err != nil {
		t.Errorf("a record that is needed went later: %v", err)
	}
}

// A month with more than can be moved out stays, and so does one that is not over.
func TestAMonthStays(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var clock atomic.Int64
	begin := time.Now().AddDate(0, 0, -470)
	clock.Store(begin.UnixMicro())
	store, pool := ledgerByMonth(t, func() time.Time { return time.UnixMicro(clock.Load()) })
	fillDay(t, pool, int32(begin.Unix()/86400), 1500, "uncertain", "'needed'", "now() - interval '470 days'", "now()")
	execute(t, pool, "UPDATE samekey.record SET evidence_until = now()")
	clock.Store(time.Now().UnixMicro())
	for range 2 {
		if purged, err := store.Purge(ctx, 1000); err != nil || purged.Records != 0 {
			t.Fatalf("Purge removed %+v, %v; want no records", purged, err)
		}
	}
	var left int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM samekey.record").Scan(&left); err != nil || left != 1500 {
		t.Errorf("%d records are left, %v; want 1500", left, err)
	}
}

// Calls go on while months go, and none of them goes wrong.
func TestCallsWhileMonthsGo(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var clock atomic.Int64
	begin := time.Now().AddDate(0, 0, -470)
	clock.Store(begin.UnixMicro())
	store, _ := ledgerByMonth(t, func() time.Time { return time.UnixMicro(clock.Load()) })
	clock.Store(time.Now().UnixMicro())
	if err := postgres.AddMonths(ctx, store); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := callRight(ctx, store, never); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	gone := 0
	for end := time.Now().Add(20 * time.Second); gone < 13 && time.Now().Before(end); {
		n, err := postgres.DropMonths(ctx, store)
		if err != nil {
			t.Error(err)
			break
		}
		gone += n
	}
	close(stop)
	calls.Wait()
	if gone < 13 {
		t.Errorf("%d of at least 13 empty months went", gone)
	}
}

// What a user is told who asks for partitions too late, or whose month is missing.
func TestMonthErrors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, plain := ledger(t)
	err := postgres.Migrate(ctx, plain, &postgres.Options{Partitions: true})
	if err == nil || !strings.Contains(err.Error(), "leave Options.Partitions out") {
		t.Errorf("Migrate of a plain ledger: %v", err)
	}
	store, pool := ledgerByMonth(t, nil)
	c := claimOf(64)
	execute(t, pool, "DROP TABLE samekey.record_"+time.Unix(int64(c.ID.Day)*86400, 0).UTC().Format("2006_01"))
	if _, err := store.Claim(ctx, c); err == nil || !strings.Contains(err.Error(), "samekey migrate") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a claim without a month: %v", err)
	}
	if _, _, err := store.Get(ctx, c.ID); !errors.Is(err, recordstore.ErrNotFound) {
		t.Errorf("Get without a month: %v", err)
	}
}

// Who may not change the tables purges bodies, and leaves the months to Migrate.
func TestMonthsAreTheirOwners(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var clock atomic.Int64
	clock.Store(time.Now().AddDate(0, 0, -100).UnixMicro())
	now := func() time.Time { return time.UnixMicro(clock.Load()) }
	_, pool := ledgerByMonth(t, now)
	newest := func() (name string) {
		t.Helper()
		if err := pool.QueryRow(ctx, `SELECT max(relname) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
			WHERE inhparent = 'samekey.record'::regclass AND relname ~ '\d$' AND relname !~ 'day0'`).Scan(&name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	had := newest()
	role := "service_" + pool.Config().ConnConfig.Database // roles are the whole server's
	execute(t, pool, "CREATE ROLE "+role)
	t.Cleanup(func() { execute(t, pool, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	execute(t, pool, "GRANT USAGE ON SCHEMA samekey TO "+role)
	execute(t, pool, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA samekey TO "+role)
	service := configured(t, pool, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = role })
	clock.Store(time.Now().UnixMicro())
	servant := postgres.New(service, &postgres.Options{Now: now})
	if err := servant.Attach(ctx, recordstore.Pins{Derivation: "v1", Secret: "none"}); err != nil {
		t.Fatal(err)
	}
	if _, err := servant.Purge(ctx, 10); err != nil || newest() != had {
		t.Errorf("Purge by a service: %v, and the newest month is %s", err, newest())
	}
	if err := postgres.Migrate(ctx, pool, &postgres.Options{Now: now}); err != nil || newest() <= had {
		t.Errorf("Migrate by the owner: %v, and the newest month is %s", err, newest())
	}
	if err := callRight(ctx, servant, never); err != nil {
		t.Error(err)
	}
}
