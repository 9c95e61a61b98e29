package outbound

import (
	"context"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// waits shares the watching of records in flight: for each record one goroutine
// asks the ledger, whoever else waits in this process listens to it.
type waits struct {
	mu      sync.Mutex
	watched map[recordstore.ID]*watch
}

type watch struct {
	moved     chan struct{} // closed when the record may be claimed or has settled
	listeners int
	stop      context.CancelFunc
}

// wait returns true when the record has left the hands of its holder, and false
// when the caller's patience or context ends first.
func (c *core) wait(ctx context.Context, id recordstore.ID, until time.Time) bool {
	patience := time.Until(until)
	if patience <= 0 {
		return false
	}
	w := c.listen(id)
	defer c.leave(id, w)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.moved:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func (c *core) listen(id recordstore.ID) *watch {
	c.waits.mu.Lock()
	defer c.waits.mu.Unlock()
	w := c.waits.watched[id]
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &watch{moved: make(chan struct{}), stop: stop}
		if c.waits.watched == nil {
			c.waits.watched = make(map[recordstore.ID]*watch)
		}
		c.waits.watched[id] = w
		c.work.Go(func() { c.watch(ctx, id, w) })
	}
	w.listeners++
	return w
}

func (c *core) leave(id recordstore.ID, w *watch) {
	c.waits.mu.Lock()
	defer c.waits.mu.Unlock()
	if w.listeners--; w.listeners == 0 {
		w.stop()
		if c.waits.watched[id] == w {
			delete(c.waits.watched, id)
		}
	}
}

// watch asks the ledger until the record moves. An error counts as a move: the
// listeners then claim, and learn of it themselves.
func (c *core) watch(ctx context.Context, id recordstore.ID, w *watch) {
	defer func() {
		c.waits.mu.Lock()
		defer c.waits.mu.Unlock()
		if c.waits.watched[id] == w {
			delete(c.waits.watched, id)
		}
		close(w.moved)
	}()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		ask, cancel := context.WithTimeout(ctx, c.opts.ClaimTimeout)
		rec, now, err := c.ledger.Get(ask, id)
		cancel()
		if err != nil || rec.State != recordstore.Sending || !now.Before(rec.LeaseEndsAt) {
			return
		}
	}
}
