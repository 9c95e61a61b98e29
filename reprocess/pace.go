package reprocess

import (
	"context"
	"sync"
	"time"
)

// pace spaces calls evenly. It is safe for concurrent use.
type pace struct {
	every time.Duration

	mu   sync.Mutex
	next time.Time // turn that is free
	held time.Time // No call begins before it.
}

// wait takes a turn. It is false when ctx ends first. A hold that comes while it
// waits holds it too.
func (p *pace) wait(ctx context.Context) bool {
	for {
		if !wait(ctx, time.Until(p.turn())) {
			return false
		}
		if p.free() {
			return true
		}
	}
}

func (p *pace) turn() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := time.Now()
	for _, t := range []time.Time{p.next, p.held} {
		if t.After(at) {
			at = t
		}
	}
	p.next = at.Add(p.every)
	return at
}

func (p *pace) free() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !time.Now().Before(p.held)
}

// hold lets no call begin for d.
func (p *pace) hold(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := time.Now().Add(d); at.After(p.held) {
		p.held = at
	}
}

// wait is false when ctx ends before d is over.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
