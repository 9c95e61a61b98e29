package fakeprovider

import (
	"context"
	"errors"
	"time"
)

// held is a request, or its late effect, that waits.
type held struct {
	due  time.Time // on the provider's clock; zero for never
	free chan struct{}
}

// hold waits for the fault's Delay, its Until, Release, or the end of ctx. It
// reports false if the fake was closed meanwhile.
func (f *Fake) hold(ctx context.Context, fault Fault) bool {
	f.mu.Lock()
	h := &held{free: make(chan struct{})}
	var timer <-chan time.Time
	if fault.Delay > 0 {
		h.due = f.now().Add(fault.Delay)
		t := time.NewTimer(fault.Delay)
		defer t.Stop()
		timer = t.C
	}
	f.held[h] = struct{}{}
	f.changed()
	f.mu.Unlock()

	open := true
	select {
	case <-timer:
	case <-h.free:
	case <-fault.Until:
	case <-ctx.Done():
	case <-f.closed:
		open = false
	}
	f.mu.Lock()
	delete(f.held, h)
	f.changed()
	f.mu.Unlock()
	return open
}

// Release ends every wait of Hang, SlowApply and LateApply that is going on.
func (f *Fake) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for h := range f.held {
		close(h.free)
		delete(f.held, h)
	}
}

// Now is the provider's clock.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now()
}

func (f *Fake) now() time.Time { return f.clock().Add(f.offset).UTC() }

// Advance moves the provider's clock forward: keys run out, and waits whose
// Delay has passed end. A negative d is ignored.
func (f *Fake) Advance(d time.Duration) {
	if d <= 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offset += d
	now := f.now()
	f.keys.prune(now)
	for h := range f.held {
		if !h.due.IsZero() && !now.Before(h.due) {
			close(h.free)
			delete(f.held, h)
		}
	}
}

// changed wakes those who wait in Await. The lock is held.
func (f *Fake) changed() {
	close(f.change)
	f.change = make(chan struct{})
}

// Snapshot is what Await asks about.
type Snapshot struct {
	Arrived int // requests of the operation so far, answered or not
	Effects int // effects of the operation so far
	Held    int // requests and late effects that wait, of any operation
}

// Await blocks until done says so of operation ("" for all), or until ctx ends,
// or the fake is closed. It needs no polling: tests use it to know that a
// request has arrived or that a late effect has happened.
func (f *Fake) Await(ctx context.Context, operation string, done func(Snapshot) bool) error {
	for {
		f.mu.Lock()
		s := Snapshot{Arrived: f.ledger.requests, Effects: f.ledger.total, Held: len(f.held)}
		if operation != "" {
			s.Arrived, s.Effects = f.ledger.arrived[operation], f.ledger.byOperation[operation]
		}
		change := f.change
		f.mu.Unlock()
		if done(s) {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		case <-f.closed:
			return errors.New("the fake was closed")
		}
	}
}
