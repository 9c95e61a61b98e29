package failures

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// schemaOf returns a new ledger, in a schema of its own.
func schemaOf(t *testing.T, pool *pgxpool.Pool, name string) *postgres.Store {
	t.Helper()
	opts := &postgres.Options{Schema: name}
	if err := postgres.Migrate(t.Context(), pool, opts); err != nil {
		t.Fatal(err)
	}
	return postgres.New(pool, opts)
}

// R22: PostgreSQL stops at each step of a call and comes back. What was not claimed
// is not sent; what was applied is not lost; each answer says what is known.
func TestServerStopped(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pool := pgtest.Open(t, n.dsn())

	t.Run("at the claim", func(t *testing.T) {
		ledger := schemaOf(t, pool, "claim")
		s := newService(t, ledger, nil)
		s.must(s.refund("warm")) // the pool has connections to lose
		n.stop()
		s.fails(s.refund("one"), "connect")
		s.count(1, 1)
		n.start()
		if reply := s.must(s.refund("one")); reply.Label != outbound.NewExecution || reply.Unrecorded != nil {
			t.Errorf("%s, unrecorded: %v", reply.Label, reply.Unrecorded)
		}
		s.count(2, 2)
	})
	t.Run("between claim and settlement", func(t *testing.T) {
		ledger := schemaOf(t, pool, "between")
		s := newService(t, ledger, nil)
		release := s.held(s.refund("one"))
		n.stop()
		n.start()
		reply, err := release()
		if err != nil || reply.Unrecorded != nil || reply.Label != outbound.NewExecution {
			t.Fatalf("%+v, %v", reply, err)
		}
		s.replayed(s.refund("one"), reply.ExternalRef)
		s.count(1, 1)
	})
	t.Run("at the settlement", func(t *testing.T) {
		ledger := schemaOf(t, pool, "settle")
		s := newService(t, ledger, nil)
		release := s.held(s.refund("one"))
		n.stop()
		reply, err := release()
		s.unrecorded(reply, err, "connect")
		s.fails(s.refund("one"), "connect") // a second call does not send
		n.start()
		rec := s.awaitState(ledger, "one", recordstore.Succeeded) // the client goes on trying
		if rec.Fence != 1 || rec.Deliveries != 1 {
			t.Errorf("fence %d, %d deliveries", rec.Fence, rec.Deliveries)
		}
		s.replayed(s.refund("one"), reply.ExternalRef)
		s.count(1, 1)
	})
	t.Run("at the settlement, and the caller dies", func(t *testing.T) {
		ledger := schemaOf(t, pool, "died")
		s := newService(t, ledger, shortLease)
		release := s.held(s.refund("one"))
		n.stop()
		reply, err := release()
		s.unrecorded(reply, err, "connect")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Close(gone); err == nil {
			t.Error("Close has told a ledger that is not there")
		}
		n.start()
		if rec, err := s.record(ledger, "one"); err != nil || rec.State != recordstore.Sending {
			t.Fatalf("the record is %q, %v", rec.State, err)
		}
		second, err := s.again(ledger, shortLease).persist(s.refund("one"), nil)
		if err != nil || second.ExternalRef != reply.ExternalRef || second.Label != outbound.OriginalReplay || second.Origin != outbound.FromProvider {
			t.Fatalf("the next process gets %+v, %v", second, err)
		}
		s.count(1, 2)
	})
}
