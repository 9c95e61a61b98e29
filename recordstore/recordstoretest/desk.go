package recordstoretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func deskCases() []testCase {
	return []testCase{
		{"desk/verdict", "R21: what nobody but a person can tell ends by a person's word, and the command moves on", deskVerdict},
		{"desk/version_seen", "a person decides about the record that they saw, not about one that moved since", deskVersionSeen},
		{"desk/resolve_grid", "a store that resolves in SQL must write what Resolved does: nothing that was settled or may be sending, and no send of what is known to be applied", deskResolveGrid},
		{"desk/abandon", "what a person abandoned is not sent; where it may have been applied, looking up goes on", deskAbandon},
		{"desk/abandon_grid", "a store that abandons in SQL must write what Abandonment does", deskAbandonGrid},
		{"desk/erase", "R18: bodies that must go at once go at once, and the evidence stays", deskErase},
		{"desk/erase_grid", "a store that erases in SQL must write what Erased does", deskEraseGrid},
		{"desk/missing", "a step on a record that is not there must say so and leave no trail", deskMissing},
		{"desk/invalid", "a verdict without a name or a reason, and a text of many lines, must not get into a trail", deskInvalid},
		{"trail/steps", "R21: who reads the trail learns what happened to the record, in order, and what it was before", trailSteps},
		{"trail/once", "a step that is asked again, or changes nothing, must not fill the trail", trailOnce},
		{"trail/contradiction", "the verdict that a late fact overruled stays readable", trailContradiction},
		{"trail/last", "a trail that grew long is shown from its end", trailLast},
		{"trail/second_handle", "the trail is the ledger's, not a process's", trailSecondHandle},
	}
}

func (l *ledger) desk() recordstore.Desk { return l.Store.(recordstore.Desk) }

// entry returns an entry for a trail, as its writer gives it.
func entry(kind, text string) *recordstore.Entry {
	return &recordstore.Entry{Kind: kind, Actor: "Ada Lovelace", Text: text}
}

// verdict returns a person's verdict about rec as they saw it.
func verdict(rec recordstore.Record, to recordstore.State) recordstore.Verdict {
	r := recordstore.Result{State: to, Evidence: "operator", Entry: entry("verdict", "seen in the dashboard")}
	return recordstore.Verdict{ID: rec.ID, Version: rec.Version, Result: r}
}

func (l *ledger) resolve(v recordstore.Verdict) recordstore.Record {
	l.Helper()
	got, err := l.desk().Resolve(l.Context(), v)
	if err != nil {
		l.Fatalf("Resolve: %v", err)
	}
	l.same("the record that Resolve returned, against the stored one", got, l.stored(v.ID))
	return got
}

// trail expects the trail of id.
func (l *ledger) trail(id recordstore.ID, want ...recordstore.Entry) {
	l.Helper()
	got, err := l.desk().Trail(l.Context(), id)
	if err != nil {
		l.Fatalf("Trail: %v", err)
	}
	same := func(a, b recordstore.Entry) bool {
		utc := a.At.Location() == time.UTC && a.At.Equal(b.At)
		a.At = b.At
		return utc && a == b
	}
	if !slices.EqualFunc(got, want, same) {
		l.Errorf("the trail is %+v, want %+v", got, want)
	}
}

func deskVerdict(l *ledger) {
	for n, then := range map[recordstore.State]recordstore.Decision{
		recordstore.Succeeded: recordstore.Replay, recordstore.Refused: recordstore.Replay, recordstore.NotExecuted: recordstore.Send,
	} {
		c := newClaim(len(n))
		rec := l.settle(l.claim(c, recordstore.Send), result(recordstore.ManualReview))
		l.claim(by(c, "other"), recordstore.Review)
		got := l.resolve(verdict(rec, n))
		if got.State != n || got.Evidence != "operator" || got.Version != rec.Version+1 {
			l.Errorf("the verdict %s led to %q with evidence %q, version %d after %d", n, got.State, got.Evidence, got.Version, rec.Version)
		}
		if got = l.claim(by(c, "other"), then); got.Doubt {
			l.Errorf("after the verdict %s there is still doubt", n)
		}
	}
}

func deskVersionSeen(l *ledger) {
	seen := l.settle(l.claim(newClaim(1), recordstore.Send), result(recordstore.ManualReview))
	want, err := l.desk().Abandon(l.Context(), seen.ID, *entry("abandon", "the order was cancelled"))
	if err != nil || want.State != recordstore.ManualReview {
		l.Fatalf("Abandon of what is in review: state %q, %v", want.State, err)
	}
	got, err := l.desk().Resolve(l.Context(), verdict(seen, recordstore.NotExecuted))
	if !errors.Is(err, recordstore.ErrNotHeld) {
		l.Fatalf("Resolve of what moved since: error is %v, want ErrNotHeld", err)
	}
	l.same("the record that comes with ErrNotHeld", got, want)
	l.same("the stored record", l.stored(seen.ID), want)
	l.trail(seen.ID, entry("abandon", "the order was cancelled").Stamped(seen, want, start))
}

func deskResolveGrid(l *ledger) {
	verdicts := []recordstore.State{recordstore.Succeeded, recordstore.Refused, recordstore.NotExecuted}
	notes := []recordstore.State{"", recordstore.Succeeded, recordstore.Refused}
	l.gridMoves(func(rec *recordstore.Record, pick []int) move {
		if pick[0] > 0 && rec.State != recordstore.Sending {
			return move{} // Nothing else carries a note.
		}
		rec.Noted = notes[pick[0]]
		rec.LeaseEndsAt = start.Add(time.Duration(pick[1]) * time.Microsecond)
		v := recordstore.Verdict{ID: rec.ID, Version: rec.Version - int64(pick[2]), Result: gridResult(verdicts[pick[3]], pick[4])}
		v.Entry = entry("verdict", "seen in the dashboard")
		want, wantErr := recordstore.Resolved(*rec, v, start)
		return move{
			about: fmt.Sprintf("%s noted %q, lease %d, resolved to %s (version %d, result %d)", rec.State, rec.Noted, pick[1], v.State, pick[2], pick[4]),
			want:  want, wantErr: wantErr,
			do: func() (recordstore.Record, error) { return l.desk().Resolve(l.Context(), v) },
		}
	}, 3, 2, 2, len(verdicts), 2)
}

func deskAbandon(l *ledger) {
	c := newClaim(1)
	l.settle(l.claim(c, recordstore.Send), result(recordstore.NotExecuted))
	got, err := l.desk().Abandon(l.Context(), c.ID, *entry("abandon", "the order was cancelled"))
	if err != nil || got.State != recordstore.Abandoned {
		l.Fatalf("Abandon of what was not executed: state %q, %v", got.State, err)
	}
	l.claim(by(c, "other"), recordstore.Ended)

	c = newClaim(2)
	rec := l.settle(l.claim(c, recordstore.Send), result(recordstore.Uncertain))
	got, err = l.desk().Abandon(l.Context(), c.ID, *entry("abandon", "the order was cancelled"))
	if err != nil || got.State != recordstore.Uncertain {
		l.Fatalf("Abandon of what may have been applied: state %q, %v", got.State, err)
	}
	l.trail(c.ID, entry("abandon", "the order was cancelled").Stamped(rec, got, start))
	l.claim(by(c, "other"), recordstore.Lookup)
}

func deskAbandonGrid(l *ledger) {
	l.gridMoves(func(rec *recordstore.Record, pick []int) move {
		rec.NotAfter = []time.Time{{}, start.Add(-time.Second), start.Add(time.Second)}[pick[0]]
		return move{
			about: fmt.Sprintf("%s, not after %d, abandoned", rec.State, pick[0]),
			want:  recordstore.Abandonment(*rec, start),
			do: func() (recordstore.Record, error) {
				return l.desk().Abandon(l.Context(), rec.ID, *entry("abandon", "the order was cancelled"))
			},
		}
	}, 3)
}

func deskErase(l *ledger) {
	c := newClaim(1)
	rec := l.settle(l.claim(c, recordstore.Send), result(recordstore.Succeeded))
	l.clock.advance(time.Second)
	want := rec
	want.ResponseHeader, want.ResponseBody = nil, nil
	want.BodyPurgedAt, want.Version = l.clock.Now(), rec.Version+1
	got, err := l.desk().Erase(l.Context(), c.ID, *entry("erase", "asked for by the customer"))
	if err != nil {
		l.Fatalf("Erase: %v", err)
	}
	l.same("the erased record", got, want)
	l.same("the stored record", l.stored(c.ID), want)
	l.same("the replayed record", l.claim(by(c, "other"), recordstore.Replay), want)
	l.trail(c.ID, entry("erase", "asked for by the customer").Stamped(rec, want, l.clock.Now()))

	during := newClaim(2)
	rec = l.claim(during, recordstore.Send)
	if _, err := l.desk().Erase(l.Context(), during.ID, *entry("erase", "asked for during the call")); err != nil {
		l.Fatalf("Erase: %v", err)
	}
	if got := l.settle(rec, result(recordstore.Succeeded)); got.State != recordstore.Succeeded || got.ResponseHeader != nil || got.ResponseBody != nil {
		l.Errorf("the answer came after the erasure: the record is %s with %d bytes of body, want none", got.State, len(got.ResponseBody))
	}
}

func deskEraseGrid(l *ledger) {
	l.gridMoves(func(rec *recordstore.Record, pick []int) move {
		if pick[0] == 1 {
			rec.Request, rec.ResponseHeader, rec.ResponseBody = nil, nil, nil
		}
		return move{
			about: fmt.Sprintf("%s, bodies %d, erased", rec.State, pick[0]),
			want:  recordstore.Erased(*rec, start),
			do: func() (recordstore.Record, error) {
				return l.desk().Erase(l.Context(), rec.ID, *entry("erase", "asked for by the customer"))
			},
		}
	}, 2)
}

// deskSteps takes the steps of a Desk on the record of v.
func (l *ledger) deskSteps(ctx context.Context, v recordstore.Verdict, e recordstore.Entry) map[string]error {
	_, resolveErr := l.desk().Resolve(ctx, v)
	_, abandonErr := l.desk().Abandon(ctx, v.ID, e)
	_, eraseErr := l.desk().Erase(ctx, v.ID, e)
	return map[string]error{"Resolve": resolveErr, "Abandon": abandonErr, "Erase": eraseErr}
}

func deskMissing(l *ledger) {
	rec := recordstore.Record{ID: identity(1), Version: 1}
	errs := l.deskSteps(l.Context(), verdict(rec, recordstore.Succeeded), *entry("abandon", "no longer wanted"))
	_, errs["Trail"] = l.desk().Trail(l.Context(), rec.ID)
	for step, err := range errs {
		if !errors.Is(err, recordstore.ErrNotFound) {
			l.Errorf("%s: error is %v, want ErrNotFound", step, err)
		}
	}
	l.absent(rec.ID)
	l.claim(newClaim(1), recordstore.Send)
	l.trail(rec.ID)
}

func deskInvalid(l *ledger) {
	rec := l.settle(l.claim(newClaim(1), recordstore.Send), result(recordstore.ManualReview))
	live := l.claim(newClaim(2), recordstore.Send)
	for _, e := range []recordstore.Entry{
		{}, *entry("", "no kind"), *entry("verdict", "two\nlines"), *entry("verdict", "nul\x00byte"), *entry("verdict", strings.Repeat("x", 1<<16)),
		{Kind: "verdict", Text: "seen", Actor: strings.Repeat("x", 1<<10)}, *entry("verdict", "no\xfftext"),
	} {
		v := verdict(rec, recordstore.Succeeded)
		v.Entry = &e
		errs := l.deskSteps(l.Context(), v, e)
		s := settlement(live, result(recordstore.Succeeded))
		s.Entry = &e
		_, errs["Settle"] = l.Settle(l.Context(), s)
		_, errs["Report"] = l.Report(l.Context(), rec.ID, s.Result)
		for step, err := range errs {
			if !errors.Is(err, recordstore.ErrInvalid) {
				l.Errorf("%s with the entry %.40q: error is %v, want ErrInvalid", step, fmt.Sprint(e), err)
			}
		}
	}
	for what, spoil := range map[string]func(*recordstore.Verdict){
		"no entry":  func(v *recordstore.Verdict) { v.Entry = nil },
		"no name":   func(v *recordstore.Verdict) { v.Entry.Actor = "" },
		"no reason": func(v *recordstore.Verdict) { v.Entry.Text = "" },
		"review":    func(v *recordstore.Verdict) { v.State = recordstore.ManualReview },
		"uncertain": func(v *recordstore.Verdict) { v.State = recordstore.Uncertain },
		"abandoned": func(v *recordstore.Verdict) { v.State = recordstore.Abandoned },
	} {
		v := verdict(rec, recordstore.Succeeded)
		spoil(&v)
		if _, err := l.desk().Resolve(l.Context(), v); !errors.Is(err, recordstore.ErrInvalid) {
			l.Errorf("a verdict with %s: error is %v, want ErrInvalid", what, err)
		}
	}
	l.same("the stored record", l.stored(rec.ID), rec)
	l.trail(rec.ID)
}

func trailSteps(l *ledger) {
	c := newClaim(1)
	claimed := l.claim(c, recordstore.Send)
	r := result(recordstore.Uncertain)
	r.Entry = entry("takeover", "the answer did not come")
	uncertain := l.settle(claimed, r)
	want := []recordstore.Entry{r.Entry.Stamped(claimed, uncertain, start)}
	l.trail(c.ID, want...)

	l.clock.advance(time.Second)
	claimed = l.claim(by(c, "other"), recordstore.Send)
	review := l.settle(claimed, result(recordstore.ManualReview)) // Without a word.
	l.clock.advance(time.Second)
	resolved := l.resolve(verdict(review, recordstore.NotExecuted))
	want = append(want, entry("verdict", "seen in the dashboard").Stamped(review, resolved, l.clock.Now()))
	l.clock.advance(time.Second)
	erased, err := l.desk().Erase(l.Context(), c.ID, *entry("erase", "asked for by the customer"))
	if err != nil {
		l.Fatalf("Erase: %v", err)
	}
	want = append(want, entry("erase", "asked for by the customer").Stamped(resolved, erased, l.clock.Now()))
	abandoned, err := l.desk().Abandon(l.Context(), c.ID, *entry("abandon", "Ünï\u0301 \U0001f4b6 '; DROP TABLE"))
	if err != nil {
		l.Fatalf("Abandon: %v", err)
	}
	want = append(want, entry("abandon", "Ünï\u0301 \U0001f4b6 '; DROP TABLE").Stamped(erased, abandoned, l.clock.Now()))
	r = result(recordstore.Succeeded)
	r.Entry = &recordstore.Entry{Kind: "webhook"} // Neither actor nor text.
	settled := l.report(c.ID, r)
	want = append(want, r.Entry.Stamped(abandoned, settled, l.clock.Now()))
	l.trail(c.ID, want...)
}

func trailOnce(l *ledger) {
	c := newClaim(1)
	claimed := l.claim(c, recordstore.Send)
	r := result(recordstore.Succeeded)
	r.Entry = entry("lookup", "found by its mark")
	settled := l.settle(claimed, r)
	l.settle(claimed, r)
	l.report(c.ID, r)
	if _, err := l.desk().Abandon(l.Context(), c.ID, *entry("abandon", "too late")); err != nil {
		l.Fatalf("Abandon: %v", err)
	}
	stale := settlement(claimed, r)
	stale.Fence++
	l.lost(stale)
	l.trail(c.ID, r.Entry.Stamped(claimed, settled, start))
}

func trailContradiction(l *ledger) {
	c := newClaim(1)
	review := l.settle(l.claim(c, recordstore.Send), result(recordstore.ManualReview))
	refused := l.resolve(verdict(review, recordstore.Refused))
	r := result(recordstore.Succeeded)
	r.Entry = entry("report", "the provider says that it is applied")
	back := l.report(c.ID, r)
	if back.State != recordstore.ManualReview {
		l.Fatalf("applied on a refusal led to %q, want manual_review", back.State)
	}
	l.trail(c.ID, entry("verdict", "seen in the dashboard").Stamped(review, refused, start), r.Entry.Stamped(refused, back, start))
}

func trailLast(l *ledger) {
	c := newClaim(1)
	rec := l.settle(l.claim(c, recordstore.Send), result(recordstore.Succeeded))
	var want []recordstore.Entry
	for n := range recordstore.MaxTrail + 5 {
		e := entry("erase", fmt.Sprint("the ", n, ". time"))
		next, err := l.desk().Erase(l.Context(), c.ID, *e)
		if err != nil {
			l.Fatalf("Erase: %v", err)
		}
		want, rec = append(want, e.Stamped(rec, next, start)), next
	}
	got, err := l.desk().Trail(l.Context(), c.ID)
	if err != nil || len(got) != recordstore.MaxTrail || got[0].Text != want[5].Text || got[len(got)-1].Text != want[len(want)-1].Text {
		l.Errorf("Trail returned %d entries (%v), want the last %d, oldest first", len(got), err, recordstore.MaxTrail)
	}
}

func trailSecondHandle(l *ledger) {
	c := newClaim(1)
	rec := l.settle(l.claim(c, recordstore.Send), result(recordstore.ManualReview))
	got := l.resolve(verdict(rec, recordstore.Succeeded))
	other := *l
	other.Store = l.harness.Reopen(l.TB)
	other.trail(c.ID, entry("verdict", "seen in the dashboard").Stamped(rec, got, start))
	l.claim(newClaim(2), recordstore.Send)
	other.trail(newClaim(2).ID)
}
