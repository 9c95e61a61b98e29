// Package groupcommit lets the steps of many goroutines share transactions of a
// ledger, so that they share what a commit costs. Nothing waits for a timer: a
// batch is what gathered while the ones before it were on their way, and a step
// that finds no more than one of them is taken at once and alone. It serves the
// stores of package recordstore and nobody else.
package groupcommit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Ledger is how a store takes steps, each of which changes at most one record and
// may be taken again after an unknown commit.
type Ledger[S any] interface {
	// Alone takes one step in a transaction of its own.
	Alone(ctx context.Context, step S) error

	// Together takes steps on different records, sorted by ID, in one transaction. It
	// returns what each of them came to, once that is committed; ErrAgain for one
	// that waits for the next transaction. With ok false none of it counts, whether
	// it was committed or not, and each step is taken alone.
	Together(ctx context.Context, steps []S) (errs []error, ok bool)
}

// Options are what a Group needs to know. The numbers must be positive.
type Options struct {
	Workers int // Transactions on their way at once.
	Batch   int // Steps in one transaction.
	Queue   int // Steps that wait.

	// Patience is how long a transaction counts as a worker: one that is held up
	// longer, by a lock or the network, holds nobody else up. 0: until it ends.
	Patience time.Duration
}

var (
	// ErrClosed is returned by Do after Close.
	ErrClosed = errors.New("the ledger is closed")

	// ErrAgain says that a step was not taken yet.
	ErrAgain = errors.New("the step waits for another transaction")
)

// Group gathers steps. It is safe for concurrent use and keeps no goroutine while
// there is nothing to do.
type Group[S any] struct {
	ledger Ledger[S]
	opts   Options
	steps  sync.WaitGroup // Under way, batches among them.

	mu     sync.Mutex
	active int // Workers on their way.
	queue  []*member[S]
	busy   map[recordstore.ID]int // Steps under way on each record.
	closed bool
}

// New returns a Group that takes its steps on ledger.
func New[S any](ledger Ledger[S], opts Options) *Group[S] {
	return &Group[S]{ledger: ledger, opts: opts, busy: map[recordstore.ID]int{}}
}

// member is a step that waits.
type member[S any] struct {
	id    recordstore.ID
	step  S
	told  chan verdict // Holds one.
	batch *batch       // nil in the queue.
	left  bool         // Nobody waits for it any more.
}

// verdict is what a member is told.
type verdict struct {
	way way
	err error // Of a step that was taken.
}

// way is how a step gets on.
type way uint8

const (
	taken  way = iota // In a batch.
	leads             // Alone, as a worker.
	alone             // Alone, and no worker.
	waits             // In the queue.
	refuse            // Not at all: the queue is full.
	ended             // Not at all: the group is closed.
)

// batch is a transaction on its way. It ends early when nobody waits for it.
type batch struct {
	cancel context.CancelFunc
	wait   int
}

// Do takes a step on the record id and returns what it came to. When ctx ends Do
// returns at once; a step that waited is then not taken, and one that is in a
// batch may be, so that it must be asked again to be known. What a step writes to
// must not be read after an error of ctx. With refusable, a step for which the
// queue has no room is recordstore.ErrOverloaded; without, it is taken alone.
//
// A second step on a record that has one under way does not wait for it here, but
// in the database: no batch holds a record twice, and no batch waits for a record
// that another one holds.
func (g *Group[S]) Do(ctx context.Context, id recordstore.ID, step S, refusable bool) error {
	m := &member[S]{id: id, step: step}
	way := g.enter(m, refusable)
	switch way {
	case ended:
		return ErrClosed
	case refuse:
		return recordstore.ErrOverloaded
	}
	defer g.steps.Done()
	var err error
	if way == waits {
		select {
		case v := <-m.told:
			way, err = v.way, v.err
		case <-ctx.Done():
			return g.leave(m, ctx.Err())
		}
	}
	switch way {
	case leads:
		defer g.free(m)
		defer g.work()()
		return g.ledger.Alone(ctx, step)
	case alone:
		defer g.free(m)
		return g.ledger.Alone(ctx, step)
	}
	return err
}

// enter says how m gets on.
func (g *Group[S]) enter(m *member[S], refusable bool) way {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ended
	}
	full := len(g.queue) >= g.opts.Queue
	if full && refusable {
		return refuse
	}
	g.steps.Add(1)
	g.busy[m.id]++
	switch {
	case g.busy[m.id] > 1 || full:
		return alone
	case len(g.queue) == 0 && g.worth(1):
		g.active++
		return leads
	}
	m.told = make(chan verdict, 1)
	g.queue = append(g.queue, m)
	g.goOn()
	return waits
}

// share is what a worker beyond the second must take along, for each that is on its
// way beyond the first. A transaction costs the database much and a step in it
// little: two workers keep one transaction in work while the other one is written
// to disk, and more of them pay only where the disk lets many callers wait.
const share = 6

// worth reports whether another worker may go with so many steps: many callers make
// few large transactions, and few callers do not wait for each other. It is called
// under the lock.
func (g *Group[S]) worth(steps int) bool {
	return g.active < g.opts.Workers && steps > 0 && steps >= share*(g.active-1)
}

// done ends a step on the record of m. It is called under the lock.
func (g *Group[S]) done(m *member[S]) {
	if g.busy[m.id]--; g.busy[m.id] == 0 {
		delete(g.busy, m.id)
	}
}

// leave takes back a member whose caller waits no longer, because of err. What it
// was told in the same moment counts.
func (g *Group[S]) leave(m *member[S], err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case v := <-m.told:
		switch v.way {
		case taken:
			return v.err
		case leads:
			g.active--
			g.goOn()
		}
		g.done(m)
		return err
	default:
	}
	m.left = true
	if m.batch == nil {
		i := slices.Index(g.queue, m)
		g.queue = slices.Delete(g.queue, i, i+1)
		g.done(m)
		return err
	}
	if m.batch.wait--; m.batch.wait == 0 {
		m.batch.cancel()
	}
	return err
}

// free ends a step that was taken alone.
func (g *Group[S]) free(m *member[S]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done(m)
}

// work begins a worker's transaction. The worker goes on to the next when pass is
// called, or when the transaction takes too long.
func (g *Group[S]) work() (pass func()) {
	passed := false
	end := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !passed {
			passed = true
			g.active--
		}
		g.goOn()
	}
	if g.opts.Patience == 0 {
		return end
	}
	watch := time.AfterFunc(g.opts.Patience, end)
	return func() {
		watch.Stop()
		end()
	}
}

// goOn sends a worker with what waits, if that is worth it. It is called under the
// lock.
func (g *Group[S]) goOn() {
	if !g.worth(len(g.queue)) {
		return
	}
	g.active++
	n := min(len(g.queue), g.opts.Batch)
	members := slices.Clone(g.queue[:n])
	clear(g.queue[:n])
	if g.queue = g.queue[n:]; len(g.queue) == 0 {
		g.queue = nil
	}
	if n == 1 {
		members[0].told <- verdict{way: leads}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &batch{cancel: cancel, wait: n}
	for _, m := range members {
		m.batch = b
	}
	g.steps.Go(func() { g.commit(ctx, b, members) })
}

// commit takes the members' steps together, tells them what they came to, and goes
// on to the next.
func (g *Group[S]) commit(ctx context.Context, b *batch, members []*member[S]) {
	defer b.cancel()
	slices.SortFunc(members, func(a, b *member[S]) int {
		return cmp.Or(cmp.Compare(a.id.Day, b.id.Day), bytes.Compare(a.id.KeyHash[:], b.id.KeyHash[:]))
	})
	steps := make([]S, len(members))
	for i, m := range members {
		steps[i] = m.step
	}
	pass := g.work()
	errs, ok := g.ledger.Together(ctx, steps)
	g.tell(members, errs, ok)
	pass()
}

// tell lets the members know what became of their batch.
func (g *Group[S]) tell(members []*member[S], errs []error, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var again []*member[S]
	for i, m := range members {
		switch {
		case m.left:
			g.done(m)
		case ok && errors.Is(errs[i], ErrAgain):
			m.batch = nil
			again = append(again, m)
		case ok:
			g.done(m)
			m.told <- verdict{way: taken, err: errs[i]}
		default: // it stays busy until it is done
			m.told <- verdict{way: alone}
		}
	}
	if len(again) > 0 {
		g.queue = append(again, g.queue...)
	}
}

// Close refuses new steps and returns when those under way have ended.
func (g *Group[S]) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.steps.Wait()
}
