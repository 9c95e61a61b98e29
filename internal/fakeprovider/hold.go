package fakeprovider

import (
	"context"
	"errors"
	"time"
)

// held is a request, or its late effect, that waits.
type held struct {
	fault Fault
	due   time.Time // on the provider's clock; zero for never
	free  chan struct{}
}

// hold registers a wait, so that Release and Advance know of it. The lock is held.
func (f *Fake) hold(fault Fault) *held {
	h := &held{fault: fault, free: make(chan struct{})}
	if fault.Delay > 0 {
		h.due = f.now().Add(fault.Delay)
	}
	f.held[h] = struct{}{}
	f.changed()
	return h
}

// wait waits for the fault's Delay, its Until, Release, Advance, or the end of
// ctx. It reports false if the fake was closed meanwhile.
func (f *Fake) wait(ctx context.Context, h *held) bool {
	var timer <-chan time.Time
	if h.fault.Delay > 0 {
		t := time.NewTimer(h.fault.Delay)
		defer t.Stop()
		timer = t.C
	}
	open := true
	select {
	case <-timer:
	case <-h.free:
	case <-h.fault.Until:
	case <-ctx.Done():
	case <-f.closed:
		open = false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.held, h)
	f.changed()
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
	for _, m := range f.outbox.boxes {
		m.nudge()
	}
}

// changed wakes those who wait in Await. The lock is held.
func (f *Fake) changed() {
	if f.waiting == 0 {
		return
	}
	close(f.change)
	f.change = make(chan struct{})
}

// Snapshot is what Await asks about.
type Snapshot struct {
	Arrived int // requests of the operation so far, answered or not
	Effects int // effects of the operation so far
	Held    int // requests and late effects that wait, of any operation
	// Delivered is how many attempts to deliver webhooks there were.
	Delivered int
}

// Await blocks until done says so of operation ("" for all), or until ctx ends,
// or the fake is closed. It needs no polling: tests use it to know that a
// request has arrived or that a late effect has happened.
func (f *Fake) Await(ctx context.Context, operation string, done func(Snapshot) bool) error {
	f.mu.Lock()
	f.waiting++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.waiting--
		f.mu.Unlock()
	}()
	for {
		f.mu.Lock()
		s := Snapshot{Arrived: f.ledger.requests, Effects: f.ledger.total, Held: len(f.held), Delivered: f.outbox.delivered}
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
