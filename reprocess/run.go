package reprocess

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// RunOptions are the optional settings of Run. Every zero value is usable.
type RunOptions struct {
	Rate      float64       // Calls begun a second. Defaults to 10.
	Parallel  int           // Calls at one time. Defaults to 4.
	MaxErrors int           // Errors in a row that stop the run. Defaults to 20.
	Patience  time.Duration // How long targets are waited for that others hold or whose outcome is not known. Defaults to 5 minutes.

	// Progress hears of the run from time to time, one call at a time; nil: nobody does.
	Progress func(Report)
}

const (
	keepEvery   = 10 * time.Second // between two writes of a running report
	maxFailures = 1000             // named in a report
)

// Run makes the effect of each target, and keeps a report beside the manifest. It
// refuses, before anything is sent, a manifest that allows no external writes or
// whose numbers differ from the plan's, and more than ShadowOver targets without the
// shadow of this batch. The client must admit the version: see Admitted.
//
// A target that fails does not stop the others. When ctx ends, no further call
// begins and those under way end. Killed anywhere, it may be called again: the
// ledger knows what is done.
func (r *Runner) Run(ctx context.Context, opts RunOptions) (*Report, error) {
	if !r.batch.Manifest.ExternalWrites {
		return nil, errors.New("the manifest does not allow external writes: \"external_writes\" is false")
	}
	if len(r.batch.targets) > ShadowOver {
		if err := r.batch.shadowed(); err != nil {
			return nil, err
		}
	}
	plan, err := r.Plan(ctx, nil)
	if err != nil {
		return nil, err
	}
	if len(plan.Differs) > 0 {
		return nil, fmt.Errorf("the manifest does not fit: %s: find out why, then correct it", strings.Join(plan.Differs, "; "))
	}
	opts.complete()
	w := newWork(r, opts)
	if err := w.keep(); err != nil {
		return nil, err
	}
	w.all(ctx)
	w.report.EndedAt = time.Now().UTC()
	w.report.Finished = w.report.Stopped == ""
	return &w.report, w.keep()
}

func (o *RunOptions) complete() {
	if o.Rate <= 0 {
		o.Rate = 10
	}
	if o.Parallel < 1 {
		o.Parallel = 4
	}
	if o.MaxErrors < 1 {
		o.MaxErrors = 20
	}
	if o.Patience <= 0 {
		o.Patience = 5 * time.Minute
	}
}

// work is one run.
type work struct {
	*Runner
	opts RunOptions
	pace pace

	mu     sync.Mutex
	report Report
	failed map[*Target]Failure
	row    int                   // errors in a row
	later  map[*Target]time.Time // to be tried again, and when
	kept   time.Time
}

func newWork(r *Runner, opts RunOptions) *work {
	now := time.Now()
	return &work{
		Runner: r, opts: opts, pace: pace{every: time.Duration(float64(time.Second) / opts.Rate)},
		failed: make(map[*Target]Failure), later: make(map[*Target]time.Time), kept: now,
		report: Report{
			Digest: r.batch.Digest, Manifest: r.batch.Manifest, StartedAt: now.UTC(),
			Targets: len(r.batch.targets), Skipped: len(r.batch.targets), Failures: []Failure{},
			path: r.batch.beside("run-" + now.UTC().Format("20060102T150405.000000000Z")),
		},
	}
}

// all tries every target, and again, as long as patience lasts, those of which
// another try may teach more.
func (w *work) all(ctx context.Context) {
	w.try(ctx, w.batch.targets)
	until := time.Now().Add(w.opts.Patience)
	for w.report.Stopped == "" {
		again, first := w.waiting()
		if len(again) == 0 || first.After(until) {
			return
		}
		if !wait(ctx, time.Until(first)) {
			w.report.Stopped = interrupted
			return
		}
		w.try(ctx, again)
	}
}

const interrupted = "interrupted: run it again"

// waiting returns the targets to be tried again whose time comes first.
func (w *work) waiting() (again []*Target, first time.Time) {
	for _, at := range w.later {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for _, t := range w.batch.targets {
		if at, waits := w.later[t]; waits && !at.After(first.Add(time.Second)) {
			again = append(again, t)
		}
	}
	return again, first
}

// try works through targets with a few calls at a time, until ctx ends or too many
// errors came in a row.
func (w *work) try(ctx context.Context, targets []*Target) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	queue := make(chan *Target)
	var workers sync.WaitGroup
	for range w.opts.Parallel {
		workers.Go(func() {
			for t := range queue {
				if !w.one(ctx, t) {
					stop()
				}
			}
		})
	}
feeding:
	for _, t := range targets {
		select {
		case queue <- t:
		case <-ctx.Done():
			break feeding
		}
	}
	close(queue)
	workers.Wait()
	if ctx.Err() != nil && w.report.Stopped == "" {
		w.report.Stopped = interrupted
	}
}

// one makes a target's effect, unless the ledger has it. It is false when the run has
// to stop. A call that began is not interrupted, so that its answer is recorded.
func (w *work) one(ctx context.Context, t *Target) bool {
	if ctx.Err() != nil {
		return true
	}
	known, err := w.compare(ctx, t, w.batch.Manifest.EffectVersion)
	if err == nil && known.State == recordstore.Succeeded && known.Same {
		return w.note(t, replayed, nil)
	}
	if err == nil && !w.pace.wait(ctx) {
		return true
	}
	var reply *outbound.Reply
	if err == nil {
		var call outbound.Call
		if call, err = w.batch.call(t, w.batch.Manifest.EffectVersion, w.rows); err == nil {
			reply, err = w.client.Do(context.WithoutCancel(ctx), call)
		}
	}
	switch {
	case err != nil:
		return ctx.Err() != nil || w.note(t, "", err)
	case reply.Origin == outbound.FromLedger:
		return w.note(t, replayed, nil)
	}
	return w.note(t, executed, nil)
}

// note counts what became of a target, and reports whether the run goes on.
func (w *work) note(t *Target, kind outcome, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		kind = w.fail(t, err)
	} else {
		w.row = 0
		delete(w.failed, t)
		delete(w.later, t)
	}
	w.report.move(t, kind)
	if w.opts.Progress != nil {
		w.opts.Progress(w.report)
	}
	if now := time.Now(); now.Sub(w.kept) >= keepEvery {
		w.kept = now
		if err := w.keep(); err != nil {
			w.report.Stopped = err.Error()
		}
	}
	if w.row >= w.opts.MaxErrors && w.report.Stopped == "" {
		w.report.Stopped = fmt.Sprintf("%d errors in a row, the last one %s", w.row, w.failed[t].Code)
	}
	return w.report.Stopped == ""
}

// fail takes an error: whether it is worth another try, and whether all others have
// to wait for it.
func (w *work) fail(t *Target, err error) outcome {
	f := Failure{Line: t.line, Event: t.Event, Operation: t.Operation, Effect: outbound.EffectOf(err).String(), Code: "invalid"}
	if e, ok := errors.AsType[*outbound.Error](err); ok {
		f.Command, f.Code, f.ProviderCode, f.RequestID = e.Command.ID, string(e.Code), e.ProviderCode, e.RequestID
	}
	w.failed[t] = f
	if after, again := outbound.RetryAfter(err); again && !errors.Is(err, outbound.ErrAuth) {
		w.later[t] = time.Now().Add(max(after, 100*time.Millisecond))
		if errors.Is(err, outbound.ErrRateLimited) || errors.Is(err, outbound.ErrOverloaded) {
			w.pace.hold(after)
		}
	} else {
		delete(w.later, t)
	}
	if !errors.Is(err, outbound.ErrInFlight) { // it is on its way, which is no error
		w.row++
	}
	if outbound.EffectOf(err) == outbound.EffectUnknown {
		return unknown
	}
	return failed
}

// pace spaces calls evenly. It is safe for concurrent use.
type pace struct {
	every time.Duration

	mu   sync.Mutex
	next time.Time
}

// wait is false when ctx ends first.
func (p *pace) wait(ctx context.Context) bool {
	p.mu.Lock()
	at := p.next
	if now := time.Now(); at.Before(now) {
		at = now
	}
	p.next = at.Add(p.every)
	p.mu.Unlock()
	return wait(ctx, time.Until(at))
}

// hold lets no call begin for d.
func (p *pace) hold(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := time.Now().Add(d); at.After(p.next) {
		p.next = at
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
