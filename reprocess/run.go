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
	Rate      float64       // Calls begun a second, repetitions among them. Defaults to 10.
	Parallel  int           // Calls at one time. Defaults to 4.
	MaxErrors int           // Errors in a row that stop the run. Defaults to 20.
	Patience  time.Duration // How long targets are waited for that others hold or whose outcome is not known. Defaults to 5 minutes.

	// Progress hears of the run from time to time, one call at a time; nil: nobody does.
	Progress func(Report)
}

const (
	keepEvery   = 10 * time.Second // between two writes of a running report
	maxFailures = 1000             // named in a report
	maxAttempts = 4                // of a target before the next one has its turn
	firstPause  = 500 * time.Millisecond
)

// Run makes the effect of each target, and keeps a report beside the manifest. It
// refuses, before anything is sent, a manifest that allows no external writes or
// whose numbers differ from the plan's, and more than ShadowOver targets without the
// shadow of this batch, made with the same secret, account and mode. The client must
// admit the version: see Admitted.
//
// A target that fails does not stop the others. When ctx ends, no further call
// begins and those under way end. Killed anywhere, it may be called again: the
// ledger knows what is done.
func (r *Runner) Run(ctx context.Context, opts RunOptions) (*Report, error) {
	if !r.batch.Manifest.ExternalWrites {
		return nil, errors.New("the manifest does not allow external writes: \"external_writes\" is false")
	}
	if len(r.batch.targets) > ShadowOver {
		if err := r.shadowed(ctx); err != nil {
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
// to stop. What a call ended with is always noted, also when ctx ended meanwhile.
func (w *work) one(ctx context.Context, t *Target) bool {
	if ctx.Err() != nil {
		return true
	}
	known, err := w.compare(ctx, t, w.batch.Manifest.EffectVersion)
	var call outbound.Call
	if err == nil {
		call, err = w.batch.call(t, w.batch.Manifest.EffectVersion, w.rows)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return true
	case err != nil:
		return w.note(t, "", err)
	case known.State == recordstore.Succeeded && known.Same:
		return w.note(t, replayed, nil)
	}
	reply, err := w.send(ctx, call)
	switch {
	case err != nil:
		return w.note(t, "", err)
	case reply == nil:
		return true
	case reply.Origin == outbound.FromLedger:
		return w.note(t, replayed, nil)
	}
	return w.note(t, executed, nil)
}

// send calls, and repeats the same command a few times where another call may teach
// more. Each call takes its turn, and is not interrupted, so that its answer is
// recorded. Without reply and error none began before ctx ended.
func (w *work) send(ctx context.Context, call outbound.Call) (reply *outbound.Reply, err error) {
	for attempt := range maxAttempts {
		if !w.pace.wait(ctx) {
			return nil, err
		}
		if reply, err = w.client.Do(context.WithoutCancel(ctx), call); err == nil {
			return reply, nil
		}
		if !w.repeats(err, firstPause<<attempt) || attempt == maxAttempts-1 || !wait(ctx, firstPause<<attempt) {
			return nil, err
		}
	}
	return nil, err
}

// repeats reports whether a call is to be made once more at its next turn. Where the
// provider asks for patience no other call begins before either.
func (w *work) repeats(err error, pause time.Duration) bool {
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case outbound.ErrRateLimited, outbound.ErrOverloaded:
		w.pace.hold(min(max(e.RetryAfter, pause), w.opts.Patience))
	case outbound.ErrUnavailable, outbound.ErrUncertain:
		w.pace.hold(min(e.RetryAfter, w.opts.Patience))
	default:
		return false
	}
	return e.RetryAfter <= w.opts.Patience
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
	if e, ok := errors.AsType[*outbound.Error](err); ok && e.Code != outbound.ErrInFlight && e.RetryAfter > w.opts.Patience && w.report.Stopped == "" {
		w.report.Stopped = fmt.Sprintf("the provider asks to wait %s, which is longer than the run's patience: run it again then", e.RetryAfter)
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
