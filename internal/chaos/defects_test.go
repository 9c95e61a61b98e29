package chaos

import (
	"errors"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// R20: a caller who asks again and again does not put the reconciler's next check
// off: else what only the ladder can end never ends.
func TestAskingAgainPutsNoCheckOff(t *testing.T) {
	t.Parallel()
	s := newScene(t, "sqlite", stripeUsage)
	s.inject(fakeprovider.Fault{Kind: fakeprovider.Status500, Applied: true, Stored: true, Times: -1})
	j := s.jobs[0]
	ask := func() *outbound.Status {
		if _, err := s.clients["stripe"].Do(t.Context(), j.call()); !errors.Is(err, outbound.ErrUncertain) {
			t.Fatalf("a call whose answer is a stored 500: %v", err)
		}
		status, err := s.clients["stripe"].Status(t.Context(), outbound.Command{ID: j.ID}, operations[j.Kind])
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	first := ask()
	for range 3 {
		if again := ask(); again.DueAt.After(first.DueAt) {
			t.Fatalf("due at %v, and after asking again at %v", first.DueAt, again.DueAt)
		}
	}
}

// R9: a plan whose first request meets a 429 or a 401 had no effect. The
// reconciler, which alone knows of it, sends it again.
func TestPlanIsSentAfterItWasTurnedAway(t *testing.T) {
	t.Parallel()
	for _, kind := range []fakeprovider.Kind{fakeprovider.RateLimit, fakeprovider.Unauthorized} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, "sqlite", stripeRefund)
			s.attach()
			s.inject(fakeprovider.Fault{Kind: kind, Times: 4}) // all attempts of one call
			j := s.jobs[0]
			j.Plan = true
			if err := s.ledger.plan(t.Context(), s.clients["stripe"], j.ID, j.call(), func(bool) {}); err != nil {
				t.Fatal(err)
			}
			s.reconcile()
			s.poll("the plan is not sent", func() error {
				done, err := s.ledger.count(t.Context(), recordstore.Succeeded)
				if err == nil && done != 1 {
					err = errors.New("not yet")
				}
				return err
			})
			s.wantEffects(1)
		})
	}
}
