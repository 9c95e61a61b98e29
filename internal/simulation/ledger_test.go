package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

var (
	errDead = errors.New("simulation: the process is gone")
	errDown = errors.New("simulation: the ledger cannot be asked")
)

// ledger is the one ledger of a run. It watches every move of every record.
type ledger struct {
	store *memory.Store
	ids   []recordstore.ID // In the order of the commands.

	mu    sync.Mutex
	moved func(before, after recordstore.Record, by string) // Told every change.
}

// Who takes a step, beside the holder of a claim.
const (
	anybody   = ""         // Who may do what the step does, whoever holds the claim.
	outsiders = "outsider" // Who brings a fact and holds nothing.
)

// step runs f alone, and tells what it changed.
func (l *ledger) step(by string, f func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.all()
	err := f()
	for i, after := range l.all() {
		if after.Version != before[i].Version {
			l.moved(before[i], after, by)
		}
	}
	return err
}

// all returns the records of the run; zero for one that is not there.
func (l *ledger) all() []recordstore.Record {
	recs := make([]recordstore.Record, len(l.ids))
	for i, id := range l.ids {
		recs[i], _, _ = l.store.Get(context.Background(), id) // what is not there stays zero
	}
	return recs
}

// view is the ledger as one process sees it: it may be slow, down, or answer
// after the process is gone.
type view struct {
	*memory.Store
	ledger *ledger
	sim    *run
	bad    variant

	mu   sync.Mutex
	luck *rand.Rand // nil: nothing goes wrong
	dead bool
}

func (v *view) kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead = true
}

func (v *view) gone() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dead
}

// fate is what becomes of one request to the ledger.
func (v *view) fate() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.luck == nil || v.dead || v.luck.IntN(100) < 80 {
		return 0
	}
	return 1 + v.luck.IntN(4)
}

// do asks the ledger. The process may sleep before and after, for as long as the
// schedule says; the ledger may be down, and its answer may be lost.
func (v *view) do(by string, f func() error) error {
	fate := v.fate()
	if fate == 1 {
		v.sim.sleep()
	}
	if v.gone() {
		return errDead
	}
	if fate == 2 {
		return errDown
	}
	err := v.ledger.step(by, f)
	if fate == 3 {
		v.sim.sleep()
	}
	switch {
	case v.gone():
		return errDead
	case fate == 4 && err == nil:
		return errDown
	}
	return err
}

func (v *view) Erase(ctx context.Context, id recordstore.ID, e recordstore.Entry) (rec recordstore.Record, err error) {
	err = v.do(anybody, func() (err error) {
		rec, err = v.Store.Erase(ctx, id, e)
		return err
	})
	return rec, err
}

func (v *view) Attach(ctx context.Context, p recordstore.Pins) error { return v.Store.Attach(ctx, p) }

func (v *view) Claim(ctx context.Context, c recordstore.Claim) (claimed recordstore.Claimed, err error) {
	err = v.do(anybody, func() (err error) {
		if claimed, err = v.Store.Claim(ctx, c); err == nil {
			v.bad.claimed(v, c, &claimed)
		}
		return err
	})
	return claimed, err
}

func (v *view) Plan(ctx context.Context, c recordstore.Claim) (claimed recordstore.Claimed, err error) {
	err = v.do(anybody, func() (err error) {
		claimed, err = v.Store.Plan(ctx, c)
		return err
	})
	return claimed, err
}

func (v *view) Renew(ctx context.Context, id recordstore.ID, holder string, fence int64, lease time.Duration) error {
	return v.do(anybody, func() error { return v.Store.Renew(ctx, id, holder, fence, lease) })
}

func (v *view) Settle(ctx context.Context, s recordstore.Settlement) (rec recordstore.Record, err error) {
	s.DueIn = rung(s.DueIn)
	err = v.do(s.Holder, func() (err error) {
		v.bad.settling(v, &s)
		rec, err = v.Store.Settle(ctx, s)
		return err
	})
	return rec, err
}

func (v *view) Report(ctx context.Context, id recordstore.ID, r recordstore.Result) (rec recordstore.Record, err error) {
	err = v.do(outsiders, func() (err error) {
		v.bad.reporting(v, id)
		rec, err = v.Store.Report(ctx, id, r)
		return err
	})
	return rec, err
}

func (v *view) Get(ctx context.Context, id recordstore.ID) (rec recordstore.Record, now time.Time, err error) {
	err = v.do(anybody, func() (err error) {
		rec, now, err = v.Store.Get(ctx, id)
		return err
	})
	return rec, now, err
}

// TakeDue takes the first due record in the order of the commands, so that a run
// repeats itself.
func (v *view) TakeDue(ctx context.Context, q recordstore.DueQuery) (taken []recordstore.Record, now time.Time, err error) {
	err = v.do(anybody, func() error {
		now = time.Now().UTC().Truncate(time.Microsecond)
		for _, rec := range v.ledger.all() {
			if next, ok := recordstore.TakenDue(rec, q, now); ok {
				v.Store.Seed(next)
				v.bad.taken(&next)
				taken = append(taken, next)
				return ctx.Err()
			}
		}
		return ctx.Err()
	})
	return taken, now, err
}

func (v *view) FindCrashed(ctx context.Context, full bool, limit int) (n int, err error) {
	err = v.do(anybody, func() (err error) {
		n, err = v.Store.FindCrashed(ctx, full, limit)
		return err
	})
	return n, err
}

func (v *view) Wake(ctx context.Context, id recordstore.ID, externalRef string) (rec recordstore.Record, err error) {
	err = v.do(outsiders, func() (err error) {
		rec, err = v.Store.Wake(ctx, id, externalRef)
		return err
	})
	return rec, err
}

func (v *view) Resolve(ctx context.Context, verdict recordstore.Verdict) (rec recordstore.Record, err error) {
	err = v.do(anybody, func() (err error) {
		rec, err = v.Store.Resolve(ctx, verdict)
		return err
	})
	return rec, err
}

func (v *view) Abandon(ctx context.Context, id recordstore.ID, e recordstore.Entry) (rec recordstore.Record, err error) {
	err = v.do(anybody, func() (err error) {
		rec, err = v.Store.Abandon(ctx, id, e)
		return err
	})
	return rec, err
}

// rung takes the jitter off the pause before a check, which no seed decides.
func rung(pause time.Duration) time.Duration {
	for _, rung := range ladder() {
		if pause > rung*8/10 && pause < rung*12/10 {
			return rung
		}
	}
	return pause
}

func ladder() []time.Duration {
	const day = 24 * time.Hour
	return []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, day, day, day, day, day}
}

func stateOf(rec recordstore.Record) string {
	if rec.Noted != "" {
		return fmt.Sprintf("%s(%s)", rec.State, rec.Noted)
	}
	return string(rec.State)
}
