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
// quarter. The keeper's stop returns when no renewal is on its way any more.
func (c *Client) hold(ctx context.Context, o *order, rec *recordstore.Record) *keeper {
	k := &keeper{lease: lease{ends: o.begun.Add(c.opts.Lease)}, client: c, id: rec.ID, holder: rec.Holder, fence: rec.Fence, ctx: ctx}
	k.running.Add(1)
	k.next.Lock()
	k.timer = time.AfterFunc(c.opts.Lease/3, k.run)
	k.next.Unlock()
	return k
}

// keeper renews one lease.
type keeper struct {
	lease
	client *Client
	id     recordstore.ID
	holder string
	fence  int64
	ctx    context.Context // The caller's, whose end does not matter here.

	running sync.WaitGroup     // The renewal that is waited for, or on its way.
	next    sync.Mutex         // Guards the rest against the renewal that sets it anew.
	timer   *time.Timer        //
	cancel  context.CancelFunc // Of the renewal on its way; nil if there is none.
	stopped bool
}

func (k *keeper) run() {
	defer k.running.Done()
	k.next.Lock()
	if k.stopped {
		k.next.Unlock()
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), k.client.opts.ClaimTimeout)
	defer cancel()
	k.cancel = cancel
	k.next.Unlock()
	again := k.renew(ctx)
	k.next.Lock()
	defer k.next.Unlock()
	if k.cancel = nil; again && !k.stopped {
		k.running.Add(1)
		k.timer.Reset(k.client.opts.Lease / 4)
	}
}

// stop ends the renewals, and waits for the one on its way.
func (k *keeper) stop() {
	k.next.Lock()
	k.stopped = true
	if k.timer.Stop() {
		k.running.Done()
	}
	if k.cancel != nil {
		k.cancel()
	}
	k.next.Unlock()
	k.running.Wait()
}

// renew prolongs the lease once and reports whether to go on. Failing to reach
// the ledger is no loss: the lease lives until its end.
func (k *keeper) renew(ctx context.Context) bool {
	begun := time.Now()
	err := k.client.ledger.Renew(ctx, k.id, k.holder, k.fence, k.client.opts.Lease)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil:
		k.ends = begun.Add(k.client.opts.Lease)
	case errors.Is(err, recordstore.ErrNotHeld):
		k.lost = true
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
