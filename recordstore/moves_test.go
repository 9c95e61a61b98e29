package recordstore_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

var start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

var states = []recordstore.State{
	recordstore.Planned, recordstore.Sending, recordstore.Succeeded, recordstore.Refused,
	recordstore.NotExecuted, recordstore.Uncertain, recordstore.ManualReview, recordstore.Abandoned,
}

func TestLegalMove(t *testing.T) {
	// One column for each of states, in their order; x is legal.
	for from, row := range map[recordstore.State]string{
		"":                       "xx......",
		recordstore.Planned:      ".x.....x",
		recordstore.Sending:      ".xxxxxx.",
		recordstore.Succeeded:    "......x.",
		recordstore.Refused:      "......x.",
		recordstore.NotExecuted:  ".xxx...x",
		recordstore.Uncertain:    ".xxxx.xx",
		recordstore.ManualReview: "..xxx..x",
		recordstore.Abandoned:    "..xx....",
		"paid":                   "........",
	} {
		for i, to := range states {
			if got, want := recordstore.LegalMove(from, to), row[i] == 'x'; got != want {
				t.Errorf("LegalMove(%q, %q) is %v, want %v", from, to, got, want)
			}
		}
		if recordstore.LegalMove(from, "") || recordstore.LegalMove(from, "paid") {
			t.Errorf("%q may move to a state that is none", from)
		}
	}
}

func TestCheckClaim(t *testing.T) {
	sound := recordstore.Claim{Holder: "a", Lease: 1, Fingerprints: [][]byte{{1}}, Derivation: "k1", Derivations: []string{"k1"}}
	if err := sound.Check(); err != nil {
		t.Errorf("a sound claim: %v", err)
	}
	for name, spoil := range map[string]func(*recordstore.Claim){
		"no holder":          func(c *recordstore.Claim) { c.Holder = "" },
		"no lease":           func(c *recordstore.Claim) { c.Lease = 0 },
		"no fingerprint":     func(c *recordstore.Claim) { c.Fingerprints = nil },
		"empty fingerprint":  func(c *recordstore.Claim) { c.Fingerprints = [][]byte{{1}, nil} },
		"unknown derivation": func(c *recordstore.Claim) { c.Derivation = "k2" },
	} {
		c := sound
		spoil(&c)
		if err := c.Check(); !errors.Is(err, recordstore.ErrInvalid) {
			t.Errorf("%s: error is %v, want ErrInvalid", name, err)
		}
	}
}

func TestPinsCompare(t *testing.T) {
	pinned := recordstore.Pins{Derivation: "k1", Secret: "none"}
	if err := pinned.Compare(pinned); err != nil {
		t.Errorf("the same pins: %v", err)
	}
	for _, with := range []recordstore.Pins{{Derivation: "k2", Secret: "none"}, {Derivation: "k1", Secret: "other"}} {
		if err := pinned.Compare(with); !errors.Is(err, recordstore.ErrPinned) {
			t.Errorf("%+v: error is %v, want ErrPinned", with, err)
		}
	}
}

// moment draws a time around start, and often exactly it.
func moment(rt *rapid.T, name string) time.Time {
	return rapid.SampledFrom([]time.Time{{}, start.Add(-time.Hour), start, start.Add(time.Microsecond), start.Add(time.Hour)}).Draw(rt, name)
}

func drawRecord(rt *rapid.T) recordstore.Record {
	rec := recordstore.Record{
		State:        rapid.SampledFrom(states).Draw(rt, "state"),
		TakenFrom:    rapid.SampledFrom(append([]recordstore.State{""}, states...)).Draw(rt, "taken from"),
		Doubt:        rapid.Bool().Draw(rt, "doubt"),
		Fingerprint:  rapid.SampledFrom([][]byte{{1, 1}, {1, 2}, {2, 1}, nil}).Draw(rt, "fingerprint"),
		Derivation:   rapid.SampledFrom([]string{"k1", "k2", recordstore.Foreign}).Draw(rt, "derivation"),
		Holder:       rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "holder"),
		Fence:        rapid.Int64Range(1, 2).Draw(rt, "fence"),
		LeaseEndsAt:  moment(rt, "lease ends"),
		WindowEndsAt: moment(rt, "window ends"),
		NotAfter:     moment(rt, "record not after"),
		DueAt:        moment(rt, "due"),
		FromPlan:     rapid.Bool().Draw(rt, "from a plan"),
		CreatedAt:    start.Add(-2 * time.Hour),
		ClaimedAt:    moment(rt, "claimed"),
		AnsweredAt:   moment(rt, "answered"),
		SealVersion:  rapid.IntRange(1, 2).Draw(rt, "seal"),
		Version:      7,

		ID:            recordstore.ID{Day: rapid.SampledFrom([]int32{0, startDay - 400, startDay - 2, startDay - 1, startDay}).Draw(rt, "day")},
		Provider:      "stripe",
		Account:       rapid.SampledFrom([]string{"acct_1/live", "acct_1/test"}).Draw(rt, "account"),
		ExternalRef:   rapid.SampledFrom([]string{"", "re_0"}).Draw(rt, "known reference"),
		ReplayUntil:   moment(rt, "replay until"),
		EvidenceUntil: moment(rt, "evidence until"),
		ResponseBody:  rapid.SampledFrom([][]byte{nil, []byte("answer")}).Draw(rt, "body"),
	}
	if !rec.State.Final() {
		rec.Request = rapid.SampledFrom([][]byte{nil, []byte("frozen")}).Draw(rt, "request")
	}
	if rec.State == recordstore.Sending {
		rec.Noted = rapid.SampledFrom([]recordstore.State{"", recordstore.Succeeded, recordstore.Refused}).Draw(rt, "noted")
	}
	return rec
}

// startDay is the day of start.
var startDay = int32(start.Unix() / 86400)

func drawQuery(rt *rapid.T) recordstore.DueQuery {
	return recordstore.DueQuery{
		Provider: "stripe", Mode: "live", Derivations: []string{"k1", recordstore.Foreign}, Fingerprints: []byte{1},
		SealVersion: 2, Holder: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "reconciler"), Lease: time.Minute, Limit: 1,
	}
}

func drawClaim(rt *rapid.T) recordstore.Claim {
	return recordstore.Claim{
		Holder:       rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "claimant"),
		Fingerprints: rapid.SampledFrom([][][]byte{{{1, 1}}, {{2, 1}, {1, 1}}}).Draw(rt, "fingerprints"),
		Derivation:   "k1",
		Derivations:  []string{"k1", recordstore.Foreign},
		SealVersion:  1,
		Request:      []byte("brought"),
		Lease:        time.Minute,
		Window:       rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(rt, "window"),
		NotAfter:     moment(rt, "claim not after"),
		LostBefore:   moment(rt, "lost before"),
	}
}

// Every step either changes nothing or makes one legal move, and counts it.
func TestMovesAreLegal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rec := drawRecord(rt)
		r := recordstore.Result{State: rapid.SampledFrom(states).Draw(rt, "to"), DueIn: time.Minute}
		var next recordstore.Record
		var err error
		switch rapid.SampledFrom([]string{
			"take", "settle", "report", "renew", "take due", "wake", "resolve", "abandon", "erase", "empty", "entomb",
		}).Draw(rt, "step") {
		case "take":
			next, _ = recordstore.Take(drawClaim(rt), &rec, 0, start)
		case "settle":
			s := recordstore.Settlement{Holder: "a", Fence: 2, Noted: rapid.SampledFrom([]recordstore.State{"", recordstore.Succeeded}).Draw(rt, "known note"), Result: r}
			if s.Check() != nil {
				rt.Skip("no store settles so")
			}
			next, err = recordstore.Settled(rec, s, start)
		case "report":
			next = recordstore.Reported(rec, r, start)
		case "renew":
			next, err = recordstore.Renewed(rec, "a", 2, time.Minute, start)
		case "take due":
			next, _ = recordstore.TakenDue(rec, drawQuery(rt), start)
		case "wake":
			next = recordstore.Woken(rec, rapid.SampledFrom([]string{"", "re_1"}).Draw(rt, "reference"), start)
		case "resolve":
			v := recordstore.Verdict{Version: rapid.Int64Range(6, 7).Draw(rt, "seen"), Result: r}
			v.Entry = &recordstore.Entry{Kind: "verdict", Actor: "Ada", Text: "seen"}
			if v.Check() != nil {
				rt.Skip("no store resolves so")
			}
			next, err = recordstore.Resolved(rec, v, start)
		case "abandon":
			next = recordstore.Abandonment(rec, start)
		case "erase":
			next = recordstore.Erased(rec, start)
		case "empty":
			next, _ = recordstore.Emptied(rec, start)
		case "entomb":
			next, _ = recordstore.Tombstone(rec, start)
		}
		if reflect.DeepEqual(next, rec) {
			return
		}
		if err != nil {
			rt.Fatalf("the record changed in spite of %v", err)
		}
		if next.State != rec.State && !recordstore.LegalMove(rec.State, next.State) {
			rt.Fatalf("moved from %q to %q", rec.State, next.State)
		}
		if next.Version != rec.Version+1 || next.Fence < rec.Fence {
			rt.Fatalf("version %d after %d, fence %d after %d", next.Version, rec.Version, next.Fence, rec.Fence)
		}
		if next.State.Final() && next.Request != nil {
			rt.Fatalf("a final record keeps its request")
		}
	})
}

// A claim that holds says so in the record; one that does not leaves it alone.
func TestTakeHoldsOrLeavesAlone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rec, c := drawRecord(rt), drawClaim(rt)
		next, d := recordstore.Take(c, &rec, 0, start)
		if d != recordstore.Send && d != recordstore.Lookup {
			if !reflect.DeepEqual(next, rec) {
				rt.Fatalf("%q changed the record", d)
			}
			return
		}
		if next.State != recordstore.Sending || next.Holder != c.Holder || recordstore.Held(next, start) != d {
			rt.Fatalf("%q with state %q and holder %q", d, next.State, next.Holder)
		}
		if !slices.ContainsFunc(c.Fingerprints, func(f []byte) bool { return slices.Equal(f, rec.Fingerprint) }) {
			rt.Fatalf("%q for another request", d)
		}
		maybe := rec.State == recordstore.Uncertain || rec.State == recordstore.Sending && rec.Holder != c.Holder
		if maybe && !next.Doubt {
			rt.Fatalf("taken from %q without doubt", rec.State)
		}
		if d == recordstore.Send && maybe && (!start.Before(rec.WindowEndsAt) || rec.Derivation == recordstore.Foreign) {
			rt.Fatalf("resent outside the window, or with a key that is not ours")
		}
		behind := recordstore.MayBeBehind(rec, c.LostBefore)
		if unsent := rec.State == recordstore.Planned || rec.State == recordstore.NotExecuted; behind && unsent && (d == recordstore.Send || !next.Doubt) {
			rt.Fatalf("%q, doubt %v: a restore brought the record back, it may have been sent since", d, next.Doubt)
		}
		// A restore lies in the past, also where the record is sent again.
		taken, past := rec.Version != next.Version, !c.LostBefore.After(start)
		if taken && behind && past && next.SentUntil.Before(c.LostBefore) {
			rt.Fatalf("sent until %v, a restore lost what was written before %v", next.SentUntil, c.LostBefore)
		}
	})
}

// The latest change that leaves a time tells whether a restore may have lost a later
// one.
func TestMayBeBehind(t *testing.T) {
	for name, rec := range map[string]recordstore.Record{
		"planned":  {CreatedAt: start},
		"claimed":  {CreatedAt: start.Add(-time.Hour), ClaimedAt: start},
		"answered": {CreatedAt: start.Add(-time.Hour), ClaimedAt: start.Add(-time.Minute), AnsweredAt: start},
	} {
		for lost, want := range map[time.Time]bool{{}: false, start: false, start.Add(time.Microsecond): true} {
			if got := recordstore.MayBeBehind(rec, lost); got != want {
				t.Errorf("%s at %v, lost before %v: %v, want %v", name, start, lost, got, want)
			}
		}
	}
}

// life is one record under random steps of three holders, with what they believe.
type life struct {
	rec     *recordstore.Record
	now     time.Time
	held    map[string]recordstore.Record // The record as each holder last claimed it.
	applied bool                          // An applied effect was written or noted.
}

func (l *life) claim(rt *rapid.T) {
	c := drawClaim(rt)
	c.Holder = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "holder")
	c.Fingerprints, c.NotAfter, c.Window, c.LostBefore = [][]byte{{1, 1}}, time.Time{}, time.Hour, time.Time{}
	var before recordstore.Record
	if l.rec != nil {
		before = *l.rec
	}
	next, d := recordstore.Take(c, l.rec, 0, l.now)
	if d != recordstore.Send && d != recordstore.Lookup {
		return
	}
	if before.State == recordstore.Sending && before.Holder != c.Holder && l.now.Before(before.LeaseEndsAt) {
		rt.Fatalf("R10: %s took the record from %s, whose lease is alive", c.Holder, before.Holder)
	}
	if l.applied && d == recordstore.Send {
		rt.Fatalf("sent although the effect is known to be applied")
	}
	l.rec, l.held[c.Holder] = &next, next
}

func (l *life) settle(rt *rapid.T) {
	holder := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "settler")
	claimed, ok := l.held[holder]
	if !ok {
		return
	}
	to := rapid.SampledFrom([]recordstore.State{
		recordstore.Succeeded, recordstore.Refused, recordstore.NotExecuted, recordstore.Uncertain, recordstore.ManualReview,
	}).Draw(rt, "settle to")
	before := *l.rec
	s := recordstore.Settlement{Holder: holder, Fence: claimed.Fence, Result: recordstore.Result{State: to}}
	next, err := recordstore.Settled(before, s, l.now)
	if before.Fence != claimed.Fence && err == nil {
		rt.Fatalf("C25: a stale holder settled")
	}
	if before.State == recordstore.Succeeded && !reflect.DeepEqual(next, before) {
		rt.Fatalf("C25: a success was undone")
	}
	if again, err2 := recordstore.Settled(next, s, l.now); err == nil && (err2 != nil || !reflect.DeepEqual(again, next)) {
		rt.Fatalf("a settlement is not repeatable: %v", err2)
	}
	l.rec = &next
	l.applied = l.applied || next.State == recordstore.Succeeded
}

func (l *life) report(rt *rapid.T) {
	if l.rec == nil {
		return
	}
	fact := rapid.SampledFrom([]recordstore.State{recordstore.Succeeded, recordstore.Refused}).Draw(rt, "fact")
	next := recordstore.Reported(*l.rec, recordstore.Result{State: fact}, l.now)
	l.rec = &next
	l.applied = l.applied || fact == recordstore.Succeeded
}

// takeDue takes the record for a reconciler, who then holds it as a caller would.
func (l *life) takeDue(rt *rapid.T) {
	if l.rec == nil {
		return
	}
	before := *l.rec
	q := drawQuery(rt)
	q.Provider, q.Accounts = before.Provider, []string{before.Account}
	next, ok := recordstore.TakenDue(before, q, l.now)
	if !ok {
		return
	}
	if before.State == recordstore.Sending && l.now.Before(before.LeaseEndsAt) {
		rt.Fatalf("R10: a reconciler took the record from %s, whose lease is alive", before.Holder)
	}
	if !next.SentUntil.Equal(before.SentUntil) || next.State == recordstore.Sending && !next.DueAt.Equal(next.LeaseEndsAt) {
		rt.Fatalf("taking moved SentUntil to %v, and the record is due again at %v", next.SentUntil, next.DueAt)
	}
	if next.State == recordstore.Sending {
		l.held[q.Holder] = next
	}
	l.rec = &next
}

// renew prolongs a lease. Until it ends a request may be written.
func (l *life) renew(rt *rapid.T) {
	holder := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "renewer")
	claimed, ok := l.held[holder]
	if !ok {
		return
	}
	next, err := recordstore.Renewed(*l.rec, holder, claimed.Fence, time.Minute, l.now)
	if err != nil {
		return
	}
	if !next.SentUntil.Equal(next.LeaseEndsAt) || next.DueAt.IsZero() {
		rt.Fatalf("a renewed lease until %v, sent until %v, due at %v", next.LeaseEndsAt, next.SentUntil, next.DueAt)
	}
	l.rec = &next
}

func (l *life) wake(*rapid.T) {
	if l.rec != nil {
		next := recordstore.Woken(*l.rec, "re_1", l.now)
		l.rec = &next
	}
}

func (l *life) abandon(*rapid.T) {
	if l.rec != nil {
		next := recordstore.Abandonment(*l.rec, l.now)
		l.rec = &next
	}
}

// resolve ends the record by a person's verdict. Only in review may they overrule
// what is known to be applied.
func (l *life) resolve(rt *rapid.T) {
	if l.rec == nil {
		return
	}
	before := *l.rec
	to := rapid.SampledFrom([]recordstore.State{recordstore.Succeeded, recordstore.Refused, recordstore.NotExecuted}).Draw(rt, "verdict")
	v := recordstore.Verdict{Version: before.Version, Result: recordstore.Result{State: to}}
	next, err := recordstore.Resolved(before, v, l.now)
	if err != nil {
		return
	}
	if l.applied && to != recordstore.Succeeded && before.State != recordstore.ManualReview {
		rt.Fatalf("a verdict %s on %q noted %q overruled an applied effect", to, before.State, before.Noted)
	}
	l.rec, l.applied = &next, to == recordstore.Succeeded
}

// check expects that an applied effect stays known.
func (l *life) check(rt *rapid.T) {
	if !l.applied {
		return
	}
	known := l.rec.State == recordstore.Succeeded || l.rec.State == recordstore.ManualReview || l.rec.Noted == recordstore.Succeeded
	if !known {
		rt.Fatalf("an applied effect was lost: state %q, noted %q", l.rec.State, l.rec.Noted)
	}
}

// Through any life of a record: one holder at a time, no stale settlement, and
// nothing is sent once the effect is known to be applied.
func TestLifeOfARecord(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := &life{now: start, held: map[string]recordstore.Record{}}
		rt.Repeat(map[string]func(*rapid.T){
			"":       l.check, // After every step.
			"claim":  l.claim,
			"settle": l.settle,
			"report": l.report,

			"take due": l.takeDue,
			"renew":    l.renew,
			"wake":     l.wake,
			"abandon":  l.abandon,
			"resolve":  l.resolve,
			"wait": func(rt *rapid.T) {
				l.now = l.now.Add(time.Duration(rapid.IntRange(1, 100).Draw(rt, "seconds")) * time.Second)
			},
		})
	})
}
