package outbound_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// counting counts the calls of a real store and cuts it off on demand.
type counting struct {
	recordstore.Store
	mu     sync.Mutex
	counts map[string]int
	broken map[string]bool
}

var errCut = errors.New("the ledger is cut off")

func (s *counting) called(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = make(map[string]int)
	}
	s.counts[name]++
	if s.broken[name] {
		return errCut
	}
	return nil
}

func (s *counting) cut(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = make(map[string]bool)
	for _, n := range names {
		s.broken[n] = true
	}
}

func (s *counting) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[name]
}

func (s *counting) Claim(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	if err := s.called("Claim"); err != nil {
		return recordstore.Claimed{}, err
	}
	return s.Store.Claim(ctx, c)
}

func (s *counting) Settle(ctx context.Context, r recordstore.Settlement) (recordstore.Record, error) {
	if err := s.called("Settle"); err != nil {
		return recordstore.Record{}, err
	}
	return s.Store.Settle(ctx, r)
}

func (s *counting) Report(ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
	if err := s.called("Report"); err != nil {
		return recordstore.Record{}, err
	}
	return s.Store.Report(ctx, id, r)
}

func (s *counting) Get(ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error) {
	if err := s.called("Get"); err != nil {
		return recordstore.Record{}, time.Time{}, err
	}
	return s.Store.Get(ctx, id)
}

// An ordinary call costs exactly one claim and one settle, a replay one claim.
func TestStepsOfACall(t *testing.T) {
	ledger := &counting{Store: memory.New(nil)}
	c := client(t, &scripted{answer: always(paid)}, ledger, nil)
	for i, want := range []struct{ claims, settles int }{{1, 1}, {2, 1}} {
		if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
			t.Fatal(err)
		}
		if n, m := ledger.count("Claim"), ledger.count("Settle"); n != want.claims || m != want.settles {
			t.Errorf("after call %d: %d claims and %d settles, want %d and %d", i+1, n, m, want.claims, want.settles)
		}
	}
	if n := ledger.count("Get"); n != 0 {
		t.Errorf("%d reads, want none", n)
	}
}

// Send, lose the answer, stop the ledger, call again: nothing was sent, nothing
// is known.
func TestLedgerStopsAfterALostAnswer(t *testing.T) {
	ledger := &counting{Store: memory.New(nil)}
	a := &scripted{answer: always(lost)}
	c := client(t, a, ledger, nil)
	_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, true)
	ledger.cut("Claim")
	_, err = c.Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrStore, outbound.EffectUnknown, false)
	if !errors.Is(err, errCut) || len(a.deliveries()) != 1 {
		t.Errorf("%v after %d deliveries, want the ledger's error after 1", err, len(a.deliveries()))
	}
}

// Applied but not recorded is no error: the reply comes, the ledger is told in
// the background, and the next call replays.
func TestAppliedButNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &counting{Store: memory.New(nil)}
		ledger.cut("Settle")
		a := &scripted{answer: always(paid)}
		c := client(t, a, ledger, nil)
		r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
		wantReply(t, r, err, outbound.NewExecution, outbound.FromProvider)
		if !errors.Is(r.Unrecorded, outbound.ErrStore) || !errors.Is(r.Unrecorded, errCut) {
			t.Fatalf("Unrecorded = %v, want ErrStore with its cause", r.Unrecorded)
		}
		_, err = c.Do(t.Context(), pay("c1", "pay.stored"))
		wantError(t, err, outbound.ErrInFlight, outbound.EffectUnknown, false)
		ledger.cut()
		time.Sleep(time.Minute)
		r, err = c.Do(t.Context(), pay("c1", "pay.stored"))
		wantReply(t, r, err, outbound.OriginalReplay, outbound.FromLedger)
		if n := len(a.deliveries()); n != 1 {
			t.Errorf("%d deliveries, want 1", n)
		}
	})
}

// If the ledger stays away until the lease ends, the key's resend finds out: the
// provider replays.
func TestNeverRecordedIsReplayedByTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &counting{Store: memory.New(nil)}
		ledger.cut("Settle")
		replay := paid
		replay.Evidence = "replay_header"
		a := &scripted{answer: inTurn(paid, replay)}
		c := client(t, a, ledger, nil)
		if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		ledger.cut()
		r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
		wantReply(t, r, err, outbound.OriginalReplay, outbound.FromProvider)
	})
}

// The claim has its own time limit and fails before the wire.
func TestSlowLedgerFailsBeforeTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &scripted{answer: always(paid)}
		c := client(t, a, hanging{memory.New(nil)}, nil)
		began := time.Now()
		_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
		wantError(t, err, outbound.ErrStore, outbound.EffectUnknown, false)
		if waited := time.Since(began); waited != 2*time.Second || len(a.deliveries()) != 0 {
			t.Errorf("%d deliveries after %v, want none after 2s", len(a.deliveries()), waited)
		}
	})
}

type hanging struct{ recordstore.Store }

func (hanging) Claim(ctx context.Context, _ recordstore.Claim) (recordstore.Claimed, error) {
	<-ctx.Done()
	return recordstore.Claimed{}, ctx.Err()
}

// Close waits for answers that the ledger was not told yet, and gives up with its
// context.
func TestCloseWaitsForTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &counting{Store: memory.New(nil)}
		ledger.cut("Settle")
		c := client(t, &scripted{answer: always(paid)}, ledger, nil)
		if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v, want its context's end while the ledger is away", err)
		}
	})
}

func (s *counting) Renew(ctx context.Context, id recordstore.ID, holder string, fence int64, lease time.Duration) error {
	if err := s.called("Renew"); err != nil {
		return err
	}
	return s.Store.Renew(ctx, id, holder, fence, lease)
}

// R20: a long call renews its lease, first after a third of it, then every quarter.
func TestLongCallsRenewTheirLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &counting{Store: memory.New(nil)}
		a := &scripted{}
		a.answer = func(_ context.Context, _ int, d *outbound.Delivery) []outbound.Verdict {
			time.Sleep(101 * time.Second)
			if err := d.Allow(); err != nil {
				t.Errorf("the lease was renewed, but an attempt is refused: %v", err)
			}
			return []outbound.Verdict{lost, paid}
		}
		c := client(t, a, ledger, nil)
		if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
			t.Fatal(err)
		}
		if n := ledger.count("Renew"); n != 3 {
			t.Errorf("%d renewals in 101 s, want those after 40, 70 and 100 s", n)
		}
	})
}

// No attempt begins that the lease might not outlive.
func TestNoAttemptBeyondTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &scripted{}
		a.answer = func(_ context.Context, _ int, d *outbound.Delivery) []outbound.Verdict {
			time.Sleep(101 * time.Second)
			if err := d.Allow(); err != nil {
				return []outbound.Verdict{lost, {Effect: outbound.EffectNone, Code: outbound.ErrUnavailable, Err: err}}
			}
			return []outbound.Verdict{lost, paid}
		}
		ledger := &counting{Store: memory.New(nil)}
		ledger.cut("Renew")
		c := client(t, a, ledger, nil)
		_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
		wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, true)
	})
}
