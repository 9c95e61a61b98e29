package outbound

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// parts splits a group into what is asked at once: all of it where one list of
// the provider answers many, else one by one.
func (w *worker) parts(group []due) [][]due {
	if _, able := w.finder.(BatchFinder); able && len(group) > 1 {
		return [][]due{group}
	}
	parts := make([][]due, len(group))
	for i := range group {
		parts[i] = group[i : i+1]
	}
	return parts
}

// askAll looks records of one operation and account up, and does what follows.
func (w *worker) askAll(ctx context.Context, group []due, now time.Time) (all Swept) {
	findings, errs := w.findings(ctx, group)
	if len(group) > 1 && errors.As(errs[0], new(panicked)) { // one of them did it: it alone goes to review
		for i := range group {
			all.add(w.askAll(ctx, group[i:i+1], now))
		}
		return all
	}
	for i, d := range group {
		all.add(w.guarded(ctx, d, func() Swept { return w.follow(ctx, d, now, findings[i], errs[i]) }))
	}
	return all
}

// findings asks the adapter; a panic of a codec is told as an error.
func (w *worker) findings(ctx context.Context, group []due) (findings []Finding, errs []error) {
	findings, errs = make([]Finding, len(group)), make([]error, len(group))
	fail := func(err error) {
		for i := range errs {
			findings[i], errs[i] = Finding{}, err
		}
	}
	var failed error
	defer func() {
		if failed != nil {
			fail(failed)
		}
	}()
	defer spare("the adapter", &failed)
	op := group[0].order.row.Operation
	if w.finder == nil || op.Lookup == "" {
		fail(errNoLookup)
		return findings, errs
	}
	if err := w.pace.wait(ctx); err != nil {
		fail(err)
		return findings, errs
	}
	ctx, cancel := context.WithTimeout(ctx, w.Client.opts.Retry.CallTimeout)
	defer cancel()
	if batch, able := w.finder.(BatchFinder); able && len(group) > 1 {
		ls := make([]*Lookup, len(group))
		for i, d := range group {
			ls[i] = w.question(d.order, d.rec, d.order.frozen.Message, judged{})
		}
		got, err := batch.FindAll(ctx, ls)
		if err == nil && len(got) != len(group) {
			err = fmt.Errorf("the adapter answered %d of %d look-ups", len(got), len(group))
		}
		if err != nil {
			fail(err)
		} else {
			copy(findings, got)
		}
	} else {
		findings[0], errs[0] = w.finder.Find(ctx, w.question(group[0].order, group[0].rec, group[0].order.frozen.Message, judged{}))
	}
	w.pace.learn(errs[0] != nil)
	return findings, errs
}

var errNoLookup = errors.New("the provider offers no look-up for this operation")
