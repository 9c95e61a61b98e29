package failures

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// R20: a worker's clock and the ledger's are an hour apart, and the ledger's alone
// decides whether a lease lives, a window is open and NotAfter has passed. Here the
// ledger's clock is moved, which is the same difference seen from the other side.
// What this does not cover is a process whose own wall clock is wrong: package
// chaos runs such workers, and the tests of package postgres show that no
// statement carries a client's time.
func TestWorkerAndLedgerAnHourApart(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"worker an hour ahead": -time.Hour, "worker an hour behind": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := func() time.Time { return time.Now().Add(off) }
			pool := pgtest.Pool(t)
			if err := postgres.Migrate(t.Context(), pool, nil); err != nil {
				t.Fatal(err)
			}
			ledger := postgres.New(pool, &postgres.Options{Now: now})
			s := newService(t, ledger, func(o *outbound.Options) { o.Retry.Attempts = 1 })

			s.leaseLives(ledger, now)
			s.notAfter(now)
			for command, window := range map[string]time.Duration{"open": 30 * time.Minute, "closed": -time.Minute} {
				s.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: refundCreate})
				if _, err := s.Do(t.Context(), s.refund(command)); !errors.Is(err, outbound.ErrUncertain) {
					t.Fatalf("a lost answer ends in %v", err)
				}
				if _, err := pool.Exec(t.Context(), "UPDATE samekey.record SET window_ends_at = $1 WHERE command_id = $2", now().Add(window), command); err != nil {
					t.Fatal(err)
				}
			}
			before := len(s.fake.Requests(refundCreate))
			if reply := s.must(s.refund("open")); reply.Label != outbound.OriginalReplay || len(s.fake.Requests(refundCreate)) != before+1 {
				t.Errorf("inside the window the answer is %s by %s, want the original by a resend", reply.Label, reply.Evidence)
			}
			s.latestOrUnknown(s.refund("closed"))
			if n := len(s.fake.Requests(refundCreate)); n != before+1 {
				t.Errorf("%d requests were sent past the window", n-before-1)
			}
		})
	}
}

// leaseLives lets a second call meet the first one's claim.
func (s *service) leaseLives(ledger recordstore.Store, now func() time.Time) {
	s.t.Helper()
	release := s.held(s.refund("lease"))
	_, err := s.Do(s.t.Context(), s.refund("lease"))
	e, ours := errors.AsType[*outbound.Error](err)
	if !ours || e.Code != outbound.ErrInFlight || e.RetryAfter <= 30*time.Second || e.RetryAfter > time.Minute {
		s.t.Errorf("beside a call with a lease of a minute: %v, again after %v", err, e.RetryAfter)
	}
	rec, err := s.record(ledger, "lease")
	if age := now().Sub(rec.ClaimedAt); err != nil || age < 0 || age > 30*time.Second || rec.LeaseEndsAt.Sub(rec.ClaimedAt) != time.Minute {
		s.t.Errorf("by the ledger's clock the claim is %v old, its lease lasts %v, %v", age, rec.LeaseEndsAt.Sub(rec.ClaimedAt), err)
	}
	if _, err := release(); err != nil {
		s.t.Error(err)
	}
}

// notAfter sends while the ledger's clock says that there is time.
func (s *service) notAfter(now func() time.Time) {
	s.t.Helper()
	until := s.refund("there is time")
	until.Command.NotAfter = now().Add(30 * time.Minute)
	if reply := s.must(until); reply.Label != outbound.NewExecution {
		s.t.Errorf("before NotAfter: %s", reply.Label)
	}
	over := s.refund("time is over")
	over.Command.NotAfter = now().Add(-time.Minute)
	before := len(s.fake.Requests(refundCreate))
	if _, err := s.Do(s.t.Context(), over); !errors.Is(err, outbound.ErrExpired) {
		s.t.Errorf("after NotAfter: %v", err)
	}
	if after := len(s.fake.Requests(refundCreate)); after != before {
		s.t.Errorf("%d requests were sent after NotAfter", after-before)
	}
}
