package failures

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// R22: the ledger's clock is an hour off the provider's. A look-up that narrows a
// list by the ledger's times then misses an effect that is there, and past the
// provider's window a proof of absence by it would pay a second time.
func TestLedgerAndProviderAnHourApart(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"together": 0, "ledger ahead": time.Hour, "ledger behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var passed atomic.Int64
			now := func() time.Time { return time.Now().Add(off + time.Duration(passed.Load())) }
			ledger, err := sqlite.Open(filepath.Join(t.TempDir(), "ledger.db"), &sqlite.Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = ledger.Close() })
			s := newService(t, ledger, func(o *outbound.Options) { o.Retry.Attempts = 1 })
			s.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: refundCreate})
			if _, err := s.Do(t.Context(), s.refund("one")); !errors.Is(err, outbound.ErrUncertain) {
				t.Fatalf("a lost answer ends in %v", err)
			}
			const later = 40 * 24 * time.Hour // than the provider knows any key
			passed.Store(int64(later))
			s.fake.Advance(later)
			s.latestOrUnknown(s.refund("one"))
			if n := s.fake.Effects(refundCreate); n != 1 {
				t.Errorf("%d refunds, want 1", n)
			}
		})
	}
}

// latestOrUnknown expects that a call tells of the effect that is there, or that
// nobody knows: never a new one.
func (s *service) latestOrUnknown(call outbound.Call) {
	s.t.Helper()
	reply, err := s.Do(s.t.Context(), call)
	switch {
	case err != nil && !errors.Is(err, outbound.ErrUncertain):
		s.t.Errorf("%s ends in %v; want uncertain", call.Command.ID, err)
	case err == nil && reply.Label != outbound.LatestStatus:
		s.t.Errorf("%s ends in %s by %s; want the latest status of what is there", call.Command.ID, reply.Label, reply.Evidence)
	}
}
