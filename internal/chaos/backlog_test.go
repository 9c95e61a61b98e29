package chaos

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

const (
	backlogGroup  = 1_000 // Records that one list answers.
	backlogAbsent = 500   // One of so many was never executed.
	backlogRate   = 60.0  // Requests a second.
)

// R20: an outage has left 100,000 records due (5,000 under the race detector). The
// reconciler drains them with few look-ups, no faster than the rate that the provider
// allows, and sends what never happened. Calls that come in meanwhile succeed all
// the time.
func TestBacklogIsDrained(t *testing.T) {
	pool := pgtest.Pool(t)
	// What is measured here is no crash.
	if _, err := pool.Exec(t.Context(), "ALTER DATABASE "+pool.Config().ConnConfig.Database+" SET synchronous_commit = off"); err != nil {
		t.Fatal(err)
	}
	pool.Reset()
	if err := postgres.Migrate(t.Context(), pool, nil); err != nil {
		t.Fatal(err)
	}
	fake := fakeprovider.New(newBulkDialect, &fakeprovider.Options{MaxLog: maxLog})
	server, err := fakeprovider.Listen(fake)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client, err := outbound.New(newBulk(bulkCodec{}, server.URL, server.Transport()), postgres.New(pool, nil),
		&outbound.Options{Bodies: outbound.PlainBodies(), Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	seedBacklog(t, pool, fake, client)

	calls := new(atomic.Int64)
	stopCalls := callAllTheTime(t, client, calls)
	r, err := outbound.NewReconciler(&outbound.ReconcilerOptions{Rate: backlogRate, Batch: backlogGroup * 4, Concurrency: 4}, client)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	swept, err := r.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	during := calls.Load()
	stopCalls()
	most, lookups, sends := busiestSecond(fake)
	t.Logf("%d records in %v: %+v; %d calls meanwhile; %d lists, %d sends, at most %d in a second", backlogSize, took.Round(time.Millisecond), swept, during, lookups, sends, most)

	var open int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM samekey.record WHERE state <> 'succeeded'").Scan(&open); err != nil || open != 0 {
		t.Errorf("%d records are not resolved, %v", open, err)
	}
	if swept.LookedUp < backlogSize || swept.Sent != backlogSize/backlogAbsent {
		t.Errorf("swept %+v", swept)
	}
	if got := fake.Report(); got.Duplicates != 0 || got.Total != backlogSize/backlogAbsent+int(calls.Load()) {
		t.Errorf("%+v, want the %d that never happened and %d calls", got, backlogSize/backlogAbsent, calls.Load())
	}
	if lookups > 4*backlogSize/backlogGroup {
		t.Errorf("%d lists for %d records", lookups, backlogSize)
	}
	if limit := int(backlogRate) + 4 + 1; most > limit {
		t.Errorf("%d requests of the reconciler in one second, want at most %d", most, limit)
	}
	if during == 0 {
		t.Error("no call came through while the backlog was drained")
	}
}

const liveGroup = "live"

// callAllTheTime makes a call every 20 ms, each of which must succeed at once.
func callAllTheTime(t *testing.T, client *outbound.Client, calls *atomic.Int64) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ; ctx.Err() == nil; <-tick.C {
			cmd := outbound.Command{ID: outbound.NewCommandID(), Scope: "live"}
			if _, err := client.Do(context.Background(), bulkCall(cmd, "", bulkBody{Group: liveGroup})); err != nil {
				ended <- err
				return
			}
			calls.Add(1)
		}
		ended <- nil
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("a call while the backlog was drained: %v", err)
		}
	}
}

// busiestSecond returns how many of the reconciler's requests fell into one
// second at most, by the fake's own clock, and how many lists and sends there were.
func busiestSecond(fake *fakeprovider.Fake) (most, lists, sends int) {
	lists = len(fake.Requests("transfer.list"))
	var at []time.Time
	for _, e := range fake.Requests("transfer.list") {
		at = append(at, e.At)
	}
	live := map[[32]byte]bool{}
	for _, e := range fake.EffectList() {
		live[e.KeyHash] = isLive(e.Object)
	}
	for _, e := range fake.Requests(bulkTransfer.Name) {
		if !live[e.KeyHash] {
			at, sends = append(at, e.At), sends+1
		}
	}
	return inOneSecond(at), lists, sends
}

// isLive tells a call's mark from the backlog's: those commands carry no day.
func isLive(mark string) bool { return mark[:4] != "0000" }

// capture takes the claim that a plan would write.
type capture struct{ claim recordstore.Claim }

func (c *capture) Plan(_ context.Context, claim recordstore.Claim) (recordstore.Claimed, error) {
	c.claim = claim
	return recordstore.Claimed{Decision: recordstore.Send}, nil
}

// seedBacklog writes what an outage leaves: calls of two hours ago whose answers
// were lost. All but a few were executed. The window of their keys is closed, so
// that only a look-up may speak.
func seedBacklog(t *testing.T, pool *pgxpool.Pool, fake *fakeprovider.Fake, client *outbound.Client) {
	t.Helper()
	columns := []string{"day", "key_hash", "scope_hash", "provider", "account", "operation", "command_id", "class", "derivation",
		"request_hash", "state", "doubt", "fence", "version", "holder", "request", "seal_version", "deliveries",
		"created_at", "claimed_at", "lease_expires_at", "sent_until", "window_ends_at", "answered_at", "due_at", "replay_until", "evidence_until"}
	now := time.Now()
	ago := now.Add(-2 * time.Hour)
	n := 0
	copied, err := pool.CopyFrom(t.Context(), pgx.Identifier{"samekey", "record"}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		if n == backlogSize {
			return nil, nil
		}
		account := fmt.Sprint("B", n/backlogGroup%4) // four accounts in turn
		b := bulkBody{Group: fmt.Sprint("group-", n/backlogGroup)}
		cmd := outbound.Command{ID: fmt.Sprint("backlog-", n), NotAfter: outbound.Forever}
		var taken capture
		if err := client.Plan(t.Context(), &taken, bulkCall(cmd, account, b)); err != nil {
			return nil, err
		}
		if n%backlogAbsent != 0 {
			key, err := client.Key(cmd, bulkTransfer.Name, account)
			if err != nil {
				return nil, err
			}
			b.Mark = key.Mark()
			if _, err := fake.Seed(b); err != nil {
				return nil, err
			}
		}
		n++
		c := taken.claim
		due := now.Add(-time.Hour + time.Duration(n)*time.Millisecond)
		return []any{c.ID.Day, c.ID.KeyHash[:], c.Scope[:], c.Provider, c.Account, c.Operation, c.CommandID, c.Class, c.Derivation,
			c.Fingerprints[0], "uncertain", true, 1, 2, "outage", c.Request, c.SealVersion, 1,
			ago, ago, ago.Add(2 * time.Minute), ago.Add(2 * time.Minute), ago.Add(time.Hour), ago, due, now.Add(24 * time.Hour), now.Add(400 * 24 * time.Hour)}, nil
	}))
	if err != nil || copied != backlogSize {
		t.Fatalf("%d records are due, %v", copied, err)
	}
	if _, err := pool.Exec(t.Context(), "ANALYZE samekey.record"); err != nil {
		t.Fatal(err)
	}
}
