package groupcommit

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// poison is a step that no transaction survives.
const poison = 666

var errPoison = errors.New("poison")

// slowLedger takes a second over each transaction, and notes them. A step is a
// number, and comes to the error odd if it is one.
type slowLedger struct {
	mu       sync.Mutex
	alone    []int
	together [][]int
	again    int // How often a whole batch is told to wait.
	cut      int // Batches whose context ended.
}

var errOdd = errors.New("odd")

func (l *slowLedger) take(step int) error {
	switch {
	case step == poison:
		return errPoison
	case step%2 == 1:
		return errOdd
	}
	return nil
}

func (l *slowLedger) Alone(ctx context.Context, step int) error {
	l.mu.Lock()
	l.alone = append(l.alone, step)
	l.mu.Unlock()
	select {
	case <-time.After(time.Second):
		return l.take(step)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *slowLedger) Together(ctx context.Context, steps []int) ([]error, bool) {
	l.mu.Lock()
	l.together = append(l.together, slices.Clone(steps))
	again := l.again > 0
	l.again--
	l.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		l.mu.Lock()
		l.cut++
		l.mu.Unlock()
		return nil, false
	}
	errs := make([]error, len(steps))
	for i, step := range steps {
		if errs[i] = l.take(step); errors.Is(errs[i], errPoison) {
			return nil, false
		}
		if again {
			errs[i] = ErrAgain
		}
	}
	return errs, true
}

func idOf(n int) recordstore.ID {
	return recordstore.ID{Day: 20_000, KeyHash: [16]byte{byte(n >> 8), byte(n)}}
}

// group is a Group under test on a ledger that is slow.
type group struct {
	*testing.T
	*Group[int]
	ledger *slowLedger
	done   sync.WaitGroup
}

func newGroup(t *testing.T, opts Options) *group {
	l := &slowLedger{}
	return &group{T: t, Group: New[int](l, opts), ledger: l}
}

// start asks for a step in a goroutine, expects that it comes to want in a number
// of seconds, and returns when it is under way.
func (g *group) start(ctx context.Context, record, step int, want error, seconds float64) {
	begun := time.Now()
	g.done.Go(func() {
		err := g.Do(ctx, idOf(record), step, true)
		if took := time.Since(begun).Seconds(); !errors.Is(err, want) || took != seconds {
			g.Errorf("step %d on record %d: %v after %v s; want %v after %v s", step, record, err, took, want, seconds)
		}
	})
	synctest.Wait()
}

// end waits for all steps and expects what the ledger was asked for.
func (g *group) end(alone []int, together ...[]int) {
	g.Helper()
	g.done.Wait()
	g.Close()
	if !slices.Equal(g.ledger.alone, alone) {
		g.Errorf("alone went %v, want %v", g.ledger.alone, alone)
	}
	if !slices.EqualFunc(g.ledger.together, together, slices.Equal) {
		g.Errorf("together went %v, want %v", g.ledger.together, together)
	}
	g.rests()
}

// rests expects that nothing is left of the steps.
func (g *group) rests() {
	g.Helper()
	if g.active != 0 || len(g.queue) != 0 || len(g.busy) != 0 {
		g.Errorf("at the end %d workers are on their way, %d steps wait, %d records are busy", g.active, len(g.queue), len(g.busy))
	}
}

// A step that is the only one is taken at once and alone. Those that come
// meanwhile gather and go together, in the order of their records; each gets its
// own answer.
func TestGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Options{Workers: 1, Batch: 3, Queue: 10})
		g.start(t.Context(), 1, 0, nil, 1)
		g.start(t.Context(), 9, 90, nil, 2)
		g.start(t.Context(), 3, 31, errOdd, 2)
		g.start(t.Context(), 5, 50, nil, 2)
		g.start(t.Context(), 4, 40, nil, 3) // a batch holds three, and one that is left is alone
		g.end([]int{0, 40}, []int{31, 50, 90})
	})
}

// Several workers are on their way at once.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Options{Workers: 2, Batch: 10, Queue: 10})
		g.start(t.Context(), 1, 0, nil, 1)
		g.start(t.Context(), 2, 2, nil, 1)
		g.start(t.Context(), 3, 4, nil, 2)
		g.start(t.Context(), 4, 6, nil, 2)
		g.end([]int{0, 2}, []int{4, 6})
	})
}

// A batch that fails is repeated one by one: whoever made it fail learns why, and
// nobody else notices but for the time.
func TestPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Options{Workers: 1, Batch: 10, Queue: 10})
		g.start(t.Context(), 1, 0, nil, 1)
		g.start(t.Context(), 2, 2, nil, 3)
		g.start(t.Context(), 3, poison, errPoison, 3)
		g.start(t.Context(), 4, 5, errOdd, 3)
		g.done.Wait()
		slices.Sort(g.ledger.alone) // they go at once
		g.end([]int{0, 2, 5, poison}, []int{2, poison, 5})
	})
}

// A record is in no batch twice, and in no batch while a step on it is under way
// elsewhere: the second one goes alone and waits in the database.
func TestOneRecordTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Options{Workers: 1, Batch: 10, Queue: 10})
		g.start(t.Context(), 1, 0, nil, 1)
		g.start(t.Context(), 1, 10, nil, 1)
		g.start(t.Context(), 2, 20, nil, 2)
		g.start(t.Context(), 2, 22, nil, 1)
		g.start(t.Context(), 3, 30, nil, 2)
		g.end([]int{0, 10, 22}, []int{20, 30})
	})
}

// A caller who waits no longer returns at once, wherever its step is. The others
// do not notice.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Options{Workers: 1, Batch: 10, Queue: 10})
		soon, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		later, cancel := context.WithTimeout(t.Context(), 3*time.Second/2)
		defer cancel()
		g.start(t.Context(), 1, 0, nil, 1)
		g.start(soon, 2, 20, context.DeadlineExceeded, 0.5) // in the queue
		g.start(later, 3, 30, context.DeadlineExceeded, 1.5)
		g.start(t.Context(), 4, 41, errOdd, 2)
		g.end([]int{0}, []int{30, 41})
	})
}

// A transaction that nobody waits for ends, and gives its worker back.
func TestAllLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Options{Workers: 1, Batch: 10, Queue: 10})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second/2)
		defer cancel()
		g.start(t.Context(), 1, 0, nil, 1)
		g.start(ctx, 2, 20, context.DeadlineExceeded, 1.5)
		g.start(ctx, 3, 30, context.DeadlineExceeded, 1.5)
		time.Sleep(1600 * time.Millisecond)
		synctest.Wait()
		g.start(t.Context(), 2, 22, nil, 1)
		g.end([]int{0, 22}, []int{20, 30})
		if g.ledger.cut != 1 {
			t.Errorf("%d batches were ended early, want 1", g.ledger.cut)
		}
	})
}

// The queue is bounded: a claim that finds no room is told so and nothing is
// written; what must not be refused goes alone.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Options{Workers: 1, Batch: 10, Queue: 1})
		g.start(t.Context(), 1, 0, nil, 1)
		g.start(t.Context(), 2, 2, nil, 2)
		g.start(t.Context(), 3, 4, recordstore.ErrOverloaded, 0)
		g.done.Go(func() {
			if err := g.Do(t.Context(), idOf(4), 6, false); err != nil {
				t.Errorf("a step that may not be refused: %v", err)
			}
		})
		synctest.Wait()
		g.end([]int{0, 6, 2})
	})
}

// What is told to wait for another transaction is the first in it.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Options{Workers: 1, Batch: 2, Queue: 10})
		g.ledger.again = 1
		g.start(t.Context(), 1, 0, nil, 1)
		g.start(t.Context(), 2, 20, nil, 3)
		g.start(t.Context(), 3, 30, nil, 3)
		g.start(t.Context(), 4, 40, nil, 4)
		g.end([]int{0, 40}, []int{20, 30}, []int{20, 30})
	})
}

// A worker whose transaction is held up holds nobody else up: another takes its
// place.
func TestHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Options{Workers: 1, Batch: 2, Queue: 10, Patience: time.Second / 4})
		g.ledger.again = 1
		g.start(t.Context(), 1, 0, nil, 1)
		g.start(t.Context(), 2, 20, nil, 2.25) // put back after 1.25 s
		g.start(t.Context(), 3, 30, nil, 2.25)
		g.start(t.Context(), 4, 40, nil, 1.5)
		g.end([]int{0, 40}, []int{20, 30}, []int{20, 30})
	})
}

// Close waits for what is under way, and refuses what comes after.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Options{Workers: 1, Batch: 10, Queue: 10})
		g.start(t.Context(), 1, 0, nil, 1)
		g.start(t.Context(), 2, 2, nil, 2)
		g.start(t.Context(), 3, 4, nil, 2)
		begun := time.Now()
		closed := make(chan struct{})
		go func() {
			g.Close()
			close(closed)
		}()
		synctest.Wait()
		g.start(t.Context(), 4, 6, ErrClosed, 0)
		<-closed
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("Close returned after %v, want 2s", took)
		}
		g.end([]int{0}, []int{2, 4})
	})
}

// Whatever comes together, each step that is not given up ends as it should, and
// nothing is left behind.
func TestManyAtOnce(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			g := newGroup(t, Options{Workers: 1 + r.IntN(4), Batch: 2 + r.IntN(6), Queue: 40, Patience: time.Duration(r.IntN(3)) * 400 * time.Millisecond})
			g.ledger.again = r.IntN(3)
			for range 300 {
				time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
				step, record, limit := r.IntN(40), r.IntN(60), time.Duration(r.IntN(6000))*time.Millisecond
				if r.IntN(30) == 0 {
					step = poison
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				g.done.Go(func() {
					defer cancel()
					begun := time.Now()
					err := g.Do(ctx, idOf(record), step, true)
					late := errors.Is(err, context.DeadlineExceeded)
					if late && time.Since(begun) != limit {
						t.Errorf("seed %d: a caller who gave up after %v was kept for %v", seed, limit, time.Since(begun))
					}
					if want := g.ledger.take(step); !late && !errors.Is(err, recordstore.ErrOverloaded) && !errors.Is(err, want) {
						t.Errorf("seed %d: step %d: %v, want %v", seed, step, err, want)
					}
				})
			}
			g.done.Wait()
			g.Close()
			g.rests()
			for _, batch := range g.ledger.together {
				if len(batch) > g.opts.Batch || len(batch) < 2 {
					t.Errorf("seed %d: a batch of %d steps", seed, len(batch))
				}
			}
		})
	}
}
