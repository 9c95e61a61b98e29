package outbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	share := group[0].order.turns
	if err := share.take(ctx); err != nil {
		fail(err)
		return findings, errs
	}
	share.paid.Store(true) // the adapter's first request has its turn, also where it asks for none
	ctx, cancel := context.WithDeadline(ctx, share.until)
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
	w.noteUnheard(ctx, group, findings)
	return findings, errs
}

// noteUnheard marks what a look-up left open because a turn was refused to one of
// the group, or its time was over.
func (w *worker) noteUnheard(ctx context.Context, group []due, findings []Finding) {
	over := ctx.Err() != nil || slices.ContainsFunc(group, func(d due) bool { return d.order.turns.over() })
	for i, d := range group {
		if over && findings[i].Effect == EffectUnknown {
			d.order.turns.out.Store(true)
		}
	}
}

var errNoLookup = errors.New("the provider offers no look-up for this operation")
