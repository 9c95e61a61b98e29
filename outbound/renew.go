package outbound

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// lease is the right to send that a claim gave. Its end counts from before the
// claim, on the monotonic and on the wall clock: the one stands still while a
// machine sleeps, the other may be set back.
type lease struct {
	mu   sync.Mutex
	ends time.Time
	lost bool
}

// hold keeps the lease of a claim alive while its holder sends: first after a
// third of its length, so that an ordinary call costs no renewal, then every
// quarter. stop returns when no renewal is on its way any more.
func (c *Client) hold(ctx context.Context, o *order, rec recordstore.Record) (l *lease, stop func()) {
	l = &lease{ends: o.begun.Add(c.opts.Lease)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	var timer *time.Timer
	var next sync.Mutex // guards timer against the renewal that sets it anew
	stopped := false
	renew := func() {
		defer running.Done()
		again := c.renew(ctx, l, rec)
		next.Lock()
		defer next.Unlock()
		if again && !stopped {
			running.Add(1)
			timer.Reset(c.opts.Lease / 4)
		}
	}
	running.Add(1)
	next.Lock()
	timer = time.AfterFunc(c.opts.Lease/3, renew)
	next.Unlock()
	return l, func() {
		next.Lock()
		stopped = true
		if timer.Stop() {
			running.Done()
		}
		next.Unlock()
		cancel()
		running.Wait()
	}
}

// renew prolongs the lease once and reports whether to go on. Failing to reach
// the ledger is no loss: the lease lives until its end.
func (c *Client) renew(ctx context.Context, l *lease, rec recordstore.Record) bool {
	ctx, cancel := context.WithTimeout(ctx, c.opts.ClaimTimeout)
	defer cancel()
	begun := time.Now()
	err := c.ledger.Renew(ctx, rec.ID, rec.Holder, rec.Fence, c.opts.Lease)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.ends = begun.Add(c.opts.Lease)
	case errors.Is(err, recordstore.ErrNotHeld):
		l.lost = true
		return false
	}
	return true
}

// outlives refuses what might end after the lease.
func (l *lease) outlives(end time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lost:
		return errors.New("the lease was taken over")
	case end.After(l.ends) || end.Round(0).After(l.ends.Round(0)):
		return errors.New("the lease ends before another attempt could")
	}
	return nil
}
