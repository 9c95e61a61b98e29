package failures

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// spoiled is a new ledger on n that is reached through a proxy, and directly.
func spoiled(t *testing.T, n *node, schema string) (*proxy, *postgres.Store, *postgres.Store) {
	t.Helper()
	direct := pgtest.Open(t, n.dsn())
	store := schemaOf(t, direct, schema)
	p := newProxy(t, "127.0.0.1:"+n.port)
	config, err := pgxpool.ParseConfig(n.dsn())
	if err != nil {
		t.Fatal(err)
	}
	at, err := pgx.ParseConfig("postgres://" + p.addr)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Host, config.ConnConfig.Port, config.MaxConns = at.Host, at.Port, 8
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return p, postgres.New(pool, &postgres.Options{Schema: schema}), store
}

// R20: the connection to the ledger fails in the middle of a statement, so that
// nobody knows whether it was committed. A claim and a settlement are asked again,
// and find themselves: one effect, one request, no claim that blocks its own
// caller. Where the ledger stays silent the call sends nothing, or its answer is
// handed over unrecorded.
func TestUnknownCommits(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for i, c := range []struct {
		of    statement
		how   mishap
		times int  // A store asks twice, and a call asks the store twice.
		ends  bool // The call ends before the ledger has answered.
		sent  bool // The ledger holds the claim although the call sent nothing.
	}{
		{claimStatement, loseAnswer, 1, false, false},
		{claimStatement, loseAnswer, 2, false, false},
		{claimStatement, loseAnswer, 3, false, false},
		{claimStatement, loseAnswer, 4, true, true},
		{claimStatement, halfAnswer, 1, false, false},
		{claimStatement, halfAnswer, 4, true, true},
		{claimStatement, halfRequest, 3, false, false},
		{claimStatement, halfRequest, 4, true, false},
		{claimStatement, delayAnswer, 1, true, true},
		{settleStatement, loseAnswer, 1, false, false},
		{settleStatement, loseAnswer, 3, false, false},
		{settleStatement, loseAnswer, 4, true, false},
		{settleStatement, halfAnswer, 3, false, false},
		{settleStatement, halfRequest, 3, false, false},
		{settleStatement, halfRequest, 4, true, false},
		{settleStatement, delayAnswer, 2, true, false},
	} {
		t.Run(fmt.Sprintf("%s, %s, %d times", c.of, c.how, c.times), func(t *testing.T) {
			t.Parallel()
			p, through, direct := spoiled(t, n, fmt.Sprintf("unknown_%d", i))
			s := newService(t, through, shortLease)
			s.must(s.refund("warm")) // statements are prepared: the next answer is that of the commit
			call := s.refund("one")
			p.spoil(c.of, c.how, c.times)
			if c.of == claimStatement && c.ends {
				s.lostClaim(p, direct, call, c.times, c.sent)
				return
			}
			reply, err := s.Do(t.Context(), call)
			if struck := p.heal(); struck != c.times {
				t.Errorf("the proxy struck %d times, want %d", struck, c.times)
			}
			if c.ends {
				s.unrecorded(reply, err, "postgres: settle")
			} else if err != nil || reply.Unrecorded != nil || reply.Label != outbound.NewExecution {
				t.Fatalf("the call ends in %+v, %v", reply, err)
			}
			rec := s.awaitState(direct, "one", recordstore.Succeeded)
			if rec.Fence != 1 || rec.Version != 2 || rec.Deliveries != 1 || rec.Doubt {
				t.Errorf("the record has fence %d, version %d, %d deliveries, doubt %v; want 1, 2, 1, false", rec.Fence, rec.Version, rec.Deliveries, rec.Doubt)
			}
			s.replayed(call, reply.ExternalRef)
			s.count(2, 2)
		})
	}
}

// lostClaim expects a call that does not know whether it holds its claim, and so
// sends nothing. The next calls wait for its lease and then send, once.
func (s *service) lostClaim(p *proxy, direct *postgres.Store, call outbound.Call, times int, written bool) {
	s.t.Helper()
	began := time.Now()
	s.fails(call, "postgres: claim")
	if took := time.Since(began); took > 10*time.Second {
		s.t.Errorf("a claim with a limit of a second took %v", took)
	}
	s.count(1, 1)
	if struck := p.heal(); struck != times {
		s.t.Errorf("the proxy struck %d times, want %d", struck, times)
	}
	if rec, err := s.record(direct, call.Command.ID); written && (err != nil || rec.State != recordstore.Sending || rec.Fence != 1) {
		s.t.Errorf("the record is %q with fence %d, %v; want a claim", rec.State, rec.Fence, err)
	} else if !written && err == nil {
		s.t.Errorf("a claim of which half arrived wrote %q", rec.State)
	}
	reply, err := s.persist(call, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	rec := s.awaitState(direct, call.Command.ID, recordstore.Succeeded)
	if rec.Doubt != written {
		s.t.Errorf("doubt is %v, the first claim was written: %v", rec.Doubt, written)
	}
	s.replayed(call, reply.ExternalRef)
	s.count(2, 2)
}

// R22: PostgreSQL goes down while a claim, or a settlement, is on its way to it, and
// comes back. The call whose claim it was sends nothing; the settlement is made
// again.
func TestServerGoesDownUnderAStatement(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for _, of := range []statement{claimStatement, settleStatement} {
		t.Run(of.String(), func(t *testing.T) {
			p, through, direct := spoiled(t, n, of.String())
			s := newService(t, through, nil)
			s.must(s.refund("warm"))
			p.stopAt(of, n.process.Stop)
			call := s.refund("one")
			if of == claimStatement {
				s.fails(call, "connect")
				s.count(1, 1)
				n.start()
				s.must(call)
			} else {
				reply, err := s.Do(t.Context(), call)
				s.unrecorded(reply, err, "connect")
				n.start()
				s.awaitState(direct, "one", recordstore.Succeeded)
				s.replayed(call, reply.ExternalRef)
			}
			s.count(2, 2)
		})
	}
}
