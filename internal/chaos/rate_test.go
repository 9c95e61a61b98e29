package chaos

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// R20: a reconciler asks a provider no more often than its rate allows, also
// where every record needs a request of its own: here the orders of forty captures.
func TestLookUpsKeepToTheRate(t *testing.T) {
	t.Parallel()
	const records, rate = 40, 10.0
	kinds := make([]kind, records)
	for i := range kinds {
		kinds[i] = paypalCapture
	}
	s := newScene(t, "sqlite", kinds...)
	s.loseAnswers()
	fake := s.providers["paypal"].fake
	before := len(fake.Requests(""))
	opts := quick()
	opts.Rate, opts.ResendFor = rate, time.Nanosecond
	r, err := outbound.NewReconciler(opts, s.clients["paypal"])
	if err != nil {
		t.Fatal(err)
	}
	s.poll("records are left behind", func() error {
		if _, err := r.Sweep(t.Context()); err != nil {
			return err
		}
		open, err := s.ledger.count(t.Context(), unresolved...)
		if err == nil && open > 0 {
			err = errors.New("records are in the air")
		}
		return err
	})
	s.wantEffects(1)
	var at []time.Time
	for _, e := range fake.Requests("")[before:] {
		at = append(at, e.At)
	}
	if most := inOneSecond(at); most > rate+quick().Concurrency+1 {
		t.Errorf("%d requests in one second, %d in all; the rate is %v a second", most, len(at), rate)
	}
}

// inOneSecond is how many of the times fall into one second, at most.
func inOneSecond(at []time.Time) (most int) {
	slices.SortFunc(at, time.Time.Compare)
	for first, last := 0, 0; last < len(at); last++ {
		for at[last].Sub(at[first]) >= time.Second {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}
