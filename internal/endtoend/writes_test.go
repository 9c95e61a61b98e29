package endtoend

import (
	"context"
	"encoding/binary"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// tracer notes every statement that pgx sends.
type tracer struct {
	mu   sync.Mutex
	seen []string
}

func (c *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, d.SQL)
	return ctx
}

func (c *tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *tracer) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

// stepped counts the steps that a client takes, one call at a time.
type stepped struct {
	recordstore.Store
	claims, settles int
}

func (s *stepped) Claim(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	s.claims++
	return s.Store.Claim(ctx, c)
}

func (s *stepped) Settle(ctx context.Context, st recordstore.Settlement) (recordstore.Record, error) {
	s.settles++
	return s.Store.Settle(ctx, st)
}

// An ordinary call costs PostgreSQL two statements without a transaction
// around them, one claim and one settle. A replay costs two that write nothing: that
// the command is new is tried first.
func TestTwoStatementsACallOnPostgres(t *testing.T) {
	counted := &tracer{}
	store, _, _ := postgresLedger(t, func(c *pgxpool.Config) { c.ConnConfig.Tracer = counted })
	b := newBench(t, "stripe", native, false, nil)
	steps := &stepped{Store: store}
	client := newClient(t, b.adapter(), steps, &outbound.Options{Bodies: sealed()})
	if _, err := client.Do(t.Context(), b.refund("warm")); err != nil { // attaches once
		t.Fatal(err)
	}
	counted.take()
	const calls = 20
	for i := range calls {
		if _, err := client.Do(t.Context(), b.refund(string(rune('a'+i)))); err != nil {
			t.Fatal(err)
		}
	}
	if sent := counted.take(); steps.claims != calls+1 || steps.settles != calls+1 || len(sent) != 2*calls {
		t.Errorf("%d calls took %d claims, %d settles and %d statements", calls, steps.claims-1, steps.settles-1, len(sent))
	}
	counted.take()
	if _, err := client.Do(t.Context(), b.refund("a")); err != nil {
		t.Fatal(err)
	}
	if n := len(counted.take()); n != 2 {
		t.Errorf("a replay took %d statements", n)
	}
	b.count("refund.create", calls+1, calls+1)
}

// While the provider works the ledger is not held: no connection is taken out of
// the pool and no transaction is open.
func TestNothingIsHeldDuringTheProviderCall(t *testing.T) {
	store, pool, _ := postgresLedger(t, nil)
	b := newBench(t, "stripe", native, false, nil)
	client := newClient(t, b.adapter(), store, &outbound.Options{Bodies: sealed()})
	b.inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "refund.create", Times: 12})
	var group sync.WaitGroup
	for i := range 12 { // more than the pool has connections
		group.Go(func() {
			if _, err := client.Do(t.Context(), b.refund(string(rune('a'+i)))); err != nil {
				t.Error(err)
			}
		})
	}
	b.fake.AwaitHeld(12)
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are held while 12 calls wait for the provider", n)
	}
	var open int
	err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`).Scan(&open)
	if err != nil || open != 0 {
		t.Errorf("%d transactions are open, %v", open, err)
	}
	b.fake.Release()
	group.Wait()
	b.count("refund.create", 12, 12)
}

// An ordinary call costs SQLite two commits, counted in the write-ahead log.
func TestTwoCommitsACallOnSQLite(t *testing.T) {
	b := newBench(t, "stripe", native, false, nil)
	b.must(b.refund("warm"))
	before := walCommits(t, b.path)
	const calls = 20
	for i := range calls {
		b.must(b.refund(string(rune('a' + i))))
	}
	if got := walCommits(t, b.path) - before; got != 2*calls {
		t.Errorf("%d calls took %d commits", calls, got)
	}
	for i := range calls {
		b.must(b.refund(string(rune('a' + i))))
	}
	if got := walCommits(t, b.path) - before; got != 2*calls {
		t.Errorf("replays wrote to the ledger: %d commits", got)
	}
	b.inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "refund.create"})
	done := make(chan error, 1)
	go func() { _, err := b.client.Do(t.Context(), b.refund("held")); done <- err }()
	b.fake.AwaitHeld(1)
	b.restart(nil).must(pay("beside", goodCard)) // another process writes meanwhile
	b.fake.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	b.count("refund.create", calls+2, calls+2)
}

// walCommits counts the commits in a ledger's write-ahead log: frames whose
// header states the size of the database, with the log's present salt. The
// format is that of https://www.sqlite.org/fileformat2.html#walformat.
func walCommits(t *testing.T, path string) (n int) {
	t.Helper()
	const walHeader, frameHeader = 32, 24
	wal, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if len(wal) < walHeader {
		t.Fatalf("the write-ahead log has %d bytes", len(wal))
	}
	page := int(binary.BigEndian.Uint32(wal[8:]))
	salt := string(wal[16:24])
	for at := walHeader; at+frameHeader+page <= len(wal); at += frameHeader + page {
		if string(wal[at+8:at+16]) != salt {
			break
		}
		if binary.BigEndian.Uint32(wal[at+4:]) != 0 {
			n++
		}
	}
	return n
}
