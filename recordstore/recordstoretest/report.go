package recordstoretest

import (
	"github.com/seed-6b5e302b/samekey/recordstore"
)

func reportCases() []testCase {
	return []testCase{
		{"report/live_lease", "a fact that arrives during a call is noted for the holder, whose claim stays its own", reportLive},
		{"report/takeover", "a note survives the holder's death, and the next one only looks up", reportTakeover},
		{"report/dead_lease", "C26: a fact settles a record that nobody works on", reportDead},
		{"report/applied_outranks", "an applied effect outranks every proof that there was none", reportApplied},
		{"report/refused_applied", "a refusal that turns out to be applied is for a person to judge", reportContradiction},
		{"report/no_undo", "C25, C26: a refusal does not undo what is settled, and nothing undoes a success", reportNoUndo},
		{"report/no_fact", "what a stale holder does not know is no fact", reportNoFact},
	}
}

func reportLive(l *ledger) {
	c := newClaim(1)
	want := l.claim(c, recordstore.Send)
	got := l.report(c.ID, result(recordstore.Refused))
	if got.State != recordstore.Sending || got.Noted != recordstore.Refused || string(got.ResponseBody) != "sealed body" {
		l.Errorf("state %q, noted %q, %d bytes of body: want a note with its answer", got.State, got.Noted, len(got.ResponseBody))
	}
	if got.Holder != want.Holder || got.Fence != want.Fence || !got.LeaseEndsAt.Equal(want.LeaseEndsAt) || got.Request == nil {
		l.Errorf("the note changed the claim: holder %q, fence %d, lease until %v", got.Holder, got.Fence, got.LeaseEndsAt)
	}
	l.same("the record after the same note", l.report(c.ID, result(recordstore.Refused)), got)

	got = l.report(c.ID, result(recordstore.Succeeded))
	if got.Noted != recordstore.Succeeded {
		l.Errorf("noted is %q: applied outranks a noted refusal", got.Noted)
	}
	l.same("the record after a lesser note", l.report(c.ID, result(recordstore.Refused)), got)
	l.claim(by(c, "other"), recordstore.InFlight)
	l.claim(c, recordstore.Lookup) // The holder, asking again, learns that there is something to see.
}

func reportTakeover(l *ledger) {
	c := newClaim(1)
	l.claim(c, recordstore.Send)
	l.report(c.ID, result(recordstore.Succeeded))
	l.clock.advance(lease)
	got := l.claim(by(c, "other"), recordstore.Lookup)
	if got.Noted != recordstore.Succeeded || string(got.ResponseBody) != "sealed body" {
		l.Errorf("noted is %q with %d bytes of body: the takeover lost the fact", got.Noted, len(got.ResponseBody))
	}
	s := settlement(got, result(recordstore.Succeeded))
	s.Noted = recordstore.Succeeded
	if _, err := l.Settle(l.Context(), s); err != nil {
		l.Errorf("Settle: %v", err)
	}
}

func reportDead(l *ledger) {
	for n, fact := range []recordstore.State{recordstore.Succeeded, recordstore.Refused} {
		c := newClaim(n)
		rec := l.claim(c, recordstore.Send)
		l.clock.advance(lease)
		got := l.report(c.ID, result(fact))
		if got.State != fact || got.Noted != "" || got.Request != nil || got.Fence != rec.Fence {
			l.Errorf("state %q, noted %q, %d bytes of request, fence %d", got.State, got.Noted, len(got.Request), got.Fence)
		}
		l.same("the record after the same fact", l.report(c.ID, result(fact)), got)
		l.claim(by(c, "other"), recordstore.Replay)
		l.lost(settlement(rec, result(recordstore.Uncertain)))
	}
}

func reportApplied(l *ledger) {
	for n, from := range []recordstore.State{
		recordstore.Uncertain, recordstore.NotExecuted, recordstore.ManualReview, recordstore.Abandoned,
	} {
		rec := found(newClaim(n))
		rec.State = from
		l.seed(rec)
		if got := l.report(rec.ID, result(recordstore.Succeeded)); got.State != recordstore.Succeeded {
			l.Errorf("applied on %q led to %q, want succeeded", from, got.State)
		}
	}

	c := newClaim(9) // A noted success is not lost to a refusal once the lease is dead.
	l.claim(c, recordstore.Send)
	l.report(c.ID, result(recordstore.Succeeded))
	l.clock.advance(lease)
	if got := l.report(c.ID, result(recordstore.Refused)); got.State == recordstore.Refused {
		l.Errorf("a refusal overwrote a noted success")
	}
}

func reportContradiction(l *ledger) {
	c := newClaim(1)
	l.settle(l.claim(c, recordstore.Send), result(recordstore.Refused))
	if got := l.report(c.ID, result(recordstore.Succeeded)); got.State != recordstore.ManualReview {
		l.Errorf("applied on a refusal led to %q, want manual_review", got.State)
	}
	l.claim(by(c, "other"), recordstore.Review)

	person := result(recordstore.Succeeded)
	person.Evidence = "operator"
	c = newClaim(2)
	l.settle(l.claim(c, recordstore.Send), person)
	if got := l.report(c.ID, result(recordstore.Refused)); got.State != recordstore.ManualReview {
		l.Errorf("a refusal of what a person said was applied led to %q, want manual_review", got.State)
	}
}

func reportNoUndo(l *ledger) {
	c := newClaim(1)
	want := l.settle(l.claim(c, recordstore.Send), result(recordstore.Succeeded))
	l.same("the record after a late refusal", l.report(c.ID, result(recordstore.Refused)), want)
	for n, from := range []recordstore.State{recordstore.ManualReview, recordstore.Abandoned, recordstore.Planned} {
		rec := found(newClaim(n + 2))
		rec.State = from
		l.seed(rec)
		l.same("the record after a refusal", l.report(rec.ID, result(recordstore.Refused)), rec)
	}
}

func reportNoFact(l *ledger) {
	c := newClaim(1)
	want := l.settle(l.claim(c, recordstore.Send), result(recordstore.Uncertain))
	for _, r := range []recordstore.State{recordstore.NotExecuted, recordstore.Uncertain, recordstore.ManualReview} {
		l.same("the record after a report of "+string(r), l.report(c.ID, result(r)), want)
	}
}
