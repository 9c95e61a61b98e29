package outbound

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxPause  = time.Hour // that a provider may ask for; a longer one is asked for again
	laneIdle  = time.Minute
	manyLanes = 1000 // accounts; from there on idle ones are forgotten
)

// lanes are the lanes of a reconciler, one for each account of a provider.
type lanes struct {
	opts *ReconcilerOptions

	mu sync.Mutex
	of map[[2]string]*lane
}

func newLanes(opts *ReconcilerOptions) *lanes {
	return &lanes{opts: opts, of: make(map[[2]string]*lane)}
}

// get returns the lane of an account, which carries its mode.
func (ls *lanes) get(provider, account string) *lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	now := time.Now()
	if len(ls.of) >= manyLanes {
		for key, l := range ls.of {
			if l.idle(now) {
				delete(ls.of, key)
			}
		}
	}
	key := [2]string{provider, account}
	l := ls.of[key]
	if l == nil {
		l = &lane{slots: make(chan struct{}, ls.opts.Concurrency), full: ls.opts.Rate, now: ls.opts.Rate}
		ls.of[key] = l
	}
	l.used = now
	return l
}

// lane is what a reconciler's requests to one account of a provider share: so many
// work at once, and so many requests go out a second. Where the provider objects it
// is half as many, and with each turn a tenth more again.
type lane struct {
	slots chan struct{}
	used  time.Time // guarded by lanes.mu

	mu        sync.Mutex
	full, now float64 // a second
	next      time.Time
}

// idle reports whether nothing is lost when the lane is forgotten.
func (l *lane) idle(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Sub(l.used) > laneIdle && len(l.slots) == 0 && l.now == l.full && l.next.Before(now)
}

var errNoTurn = errors.New("the account's rate left no turn while the lease lived")

// turn waits for the next turn, and gives up at once if that comes after until.
func (l *lane) turn(ctx context.Context, until time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	at := time.Now()
	if l.next.After(at) {
		at = l.next
	}
	if at.After(until) || at.Round(0).After(until.Round(0)) {
		l.mu.Unlock()
		return errNoTurn
	}
	l.next = at.Add(time.Duration(float64(time.Second) / l.now))
	l.now = min(l.now*1.1, l.full)
	l.mu.Unlock()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// objected halves the rate and lets nobody have a turn before after is over.
func (l *lane) objected(after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = max(l.now/2, l.full/64)
	if pause := time.Now().Add(min(after, maxPause)); l.next.Before(pause) {
		l.next = pause
	}
}

// turns are one record's share of a lane. A nil one has as many turns as it likes:
// calls that come in are not the reconciler's to hold back.
type turns struct {
	*lane
	until time.Time   // The lease lives long enough after it to settle.
	paid  atomic.Bool // The next turn was taken already.
	out   atomic.Bool // A turn was refused: what was not asked taught nothing.
}

// take waits for one turn.
func (t *turns) take(ctx context.Context) error {
	if t == nil || t.paid.CompareAndSwap(true, false) {
		return nil
	}
	err := t.turn(ctx, t.until)
	if err != nil {
		t.out.Store(true)
	}
	return err
}

// over reports whether a turn was refused.
func (t *turns) over() bool { return t != nil && t.out.Load() }

// turnsOf gives a record its share until so long after begun, when it was taken,
// that its lease still lives to settle.
func (w *worker) turnsOf(account string, begun time.Time) *turns {
	return &turns{lane: w.lanes.get(w.profile.Provider, account), until: w.turnsUntil(begun)}
}

// turnsUntil leaves a quarter of a lease that was taken at begun.
func (c *Client) turnsUntil(begun time.Time) time.Time { return begun.Add(c.opts.Lease / 4 * 3) }

// paced lets each attempt but the first, which had its turn before the lease was
// renewed for it, take a turn too. It is called for one attempt after the other.
func (o *order) paced(ctx context.Context, allow func() error) func() error {
	if o.turns == nil {
		return allow
	}
	first := true
	return func() error {
		if !first {
			if err := o.turns.take(ctx); err != nil {
				return err
			}
		}
		first = false
		return allow()
	}
}

// heed slows the lane down where an answer to a delivery asks for it.
func (o *order) heed(verdicts []Verdict) {
	if o.turns == nil {
		return
	}
	for _, v := range verdicts {
		if v.Code == ErrRateLimited || v.Answer != nil && v.Answer.Status >= 500 {
			o.turns.objected(v.RetryAfter)
		}
	}
}
