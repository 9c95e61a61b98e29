package recordstoretest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func concurrentCases() []testCase {
	return []testCase{
		{"concurrent/one_sender", "R10: of all who ask at the same time, in all processes, one sends", oneSender},
		{"concurrent/one_takeover", "R10, R20: of all who find the same dead lease, one takes it", oneTakeover},
		{"concurrent/settle_or_takeover", "C25: when a settle and a takeover meet, one of them wins and the other learns it", settleOrTakeover},
		{"concurrent/settle_or_report", "C26: when the answer and a fact meet, the record ends settled, in either order", settleOrReport},
		{"concurrent/pins", "two services that start at once with different secrets must not both be let in", pinsRace},
	}
}

const (
	racers = 16 // Goroutines for each handle.
	rounds = 20
)

// handles returns the store under test and a second handle on its ledger.
func (l *ledger) handles() [2]recordstore.Store {
	return [2]recordstore.Store{l.Store, l.harness.Reopen(l.TB)}
}

// race runs f as often as n says, at the same time, and waits.
func race(n int, f func(i int)) {
	var wg sync.WaitGroup
	ready := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-ready
			f(i)
		})
	}
	close(ready)
	wg.Wait()
}

func oneSender(l *ledger) {
	l.claimedOnce(func(n int) recordstore.Claim { return newClaim(n) })
}

func oneTakeover(l *ledger) {
	for n := range rounds {
		l.claim(by(newClaim(n), "dead"), recordstore.Send)
	}
	l.clock.advance(lease)
	l.claimedOnce(func(n int) recordstore.Claim { return newClaim(n) })
}

// claimedOnce lets everybody claim the same records and expects one Send each.
func (l *ledger) claimedOnce(claim func(n int) recordstore.Claim) {
	l.Helper()
	stores := l.handles()
	for n := range rounds {
		var mu sync.Mutex
		decided := map[recordstore.Decision]int{}
		race(2*racers, func(i int) {
			got, err := stores[i%2].Claim(l.Context(), by(claim(n), fmt.Sprintf("racer-%d", i)))
			if err != nil {
				l.Errorf("Claim: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			decided[got.Decision]++
		})
		if decided[recordstore.Send] != 1 || decided[recordstore.InFlight] != 2*racers-1 {
			l.Fatalf("record %d: the decisions of %d claims at once are %v, want one send and all others in_flight", n, 2*racers, decided)
		}
	}
}

func settleOrTakeover(l *ledger) {
	stores := l.handles()
	for n := range rounds {
		c := newClaim(n)
		first := l.claim(c, recordstore.Send)
		l.clock.advance(lease)
		var settleErr, claimErr error
		var claimed recordstore.Claimed
		race(2, func(i int) {
			if (i+n)%2 == 0 { // Either may come first.
				_, settleErr = stores[0].Settle(l.Context(), settlement(first, result(recordstore.Succeeded)))
			} else {
				claimed, claimErr = stores[1].Claim(l.Context(), by(c, "other"))
			}
		})
		won := settleErr == nil && claimed.Decision == recordstore.Replay
		lost := errors.Is(settleErr, recordstore.ErrNotHeld) && claimed.Decision == recordstore.Send
		if claimErr != nil || won == lost {
			l.Fatalf("Settle returned %v, the takeover decided %q (%v): want one winner", settleErr, claimed.Decision, claimErr)
		}
	}
}

func settleOrReport(l *ledger) {
	stores := l.handles()
	for n := range rounds {
		first := l.claim(newClaim(n), recordstore.Send)
		s := settlement(first, result(recordstore.Succeeded))
		var settleErr, reportErr error
		race(2, func(i int) {
			if (i+n)%2 == 0 { // Either may come first.
				_, settleErr = stores[0].Settle(l.Context(), s)
			} else {
				_, reportErr = stores[1].Report(l.Context(), first.ID, result(recordstore.Succeeded))
			}
		})
		if reportErr != nil {
			l.Fatalf("Report: %v", reportErr)
		}
		if errors.Is(settleErr, recordstore.ErrNotHeld) { // The note came first.
			s.Noted = recordstore.Succeeded
			_, settleErr = l.Settle(l.Context(), s)
		}
		if settleErr != nil {
			l.Fatalf("Settle: %v", settleErr)
		}
		if got := l.stored(first.ID); got.State != recordstore.Succeeded || got.Noted != "" {
			l.Fatalf("the record ended as %q with note %q", got.State, got.Noted)
		}
	}
}

func pinsRace(l *ledger) {
	stores := l.handles()
	errs := make([]error, 2*racers)
	race(2*racers, func(i int) {
		errs[i] = stores[i%2].Attach(l.Context(), recordstore.Pins{Derivation: "k1", Secret: fmt.Sprint(i)})
	})
	let := 0
	for _, err := range errs {
		switch {
		case err == nil:
			let++
		case !errors.Is(err, recordstore.ErrPinned):
			l.Errorf("Attach: error is %v, want ErrPinned", err)
		}
	}
	if let != 1 {
		l.Errorf("%d clients with different secrets were let in, want 1", let)
	}
}
