package recordstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Whatever waits, nobody gets two turns more than another who still waits, and of
// each owner the oldest come first.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		due := make([]recordstore.Record, rapid.IntRange(0, 40).Draw(rt, "due"))
		waiting := map[[32]byte]int{}
		for i := range due {
			due[i].ID.Day = int32(i)
			due[i].Scope[0] = byte(rapid.IntRange(0, 4).Draw(rt, "scope"))
			due[i].DueAt = start.Add(time.Duration(rapid.IntRange(0, 9).Draw(rt, "age")) * -time.Minute)
			waiting[due[i].Scope]++
		}
		limit := rapid.IntRange(1, 50).Draw(rt, "limit")
		got := recordstore.Turns(due, limit)
		if len(got) != min(limit, len(due)) {
			rt.Fatalf("%d of %d were taken, asked for %d", len(got), len(due), limit)
		}
		taken := map[[32]byte]int{}
		for _, rec := range got {
			taken[rec.Scope]++
			for _, other := range due {
				older := other.Scope == rec.Scope && other.DueAt.Before(rec.DueAt)
				if older && !slices.ContainsFunc(got, func(g recordstore.Record) bool { return g.ID == other.ID }) {
					rt.Fatalf("an owner's older record was left waiting")
				}
			}
		}
		for scope, n := range waiting {
			for _, m := range taken {
				if taken[scope] < n && taken[scope] < m-1 {
					rt.Fatalf("one owner got %d, another %d of %d", m, taken[scope], n)
				}
			}
		}
	})
}

func TestPercentile95(t *testing.T) {
	for n, want := range map[int]int{1: 0, 2: 1, 19: 18, 20: 18, 21: 19, 40: 37, 100: 94, 1000: 949} {
		if got := recordstore.Percentile95(n); got != want {
			t.Errorf("Percentile95(%d) is %d, want %d", n, got, want)
		}
	}
}

func TestCheckQuery(t *testing.T) {
	sound := recordstore.DueQuery{Holder: "a", Lease: 1, Limit: 1, Mode: "live"}
	if err := sound.Check(); err != nil {
		t.Errorf("a sound query: %v", err)
	}
	for name, spoil := range map[string]func(*recordstore.DueQuery){
		"no holder":        func(q *recordstore.DueQuery) { q.Holder = "" },
		"no lease":         func(q *recordstore.DueQuery) { q.Lease = 0 },
		"no limit":         func(q *recordstore.DueQuery) { q.Limit = 0 },
		"too much":         func(q *recordstore.DueQuery) { q.Limit = recordstore.MaxTake + 1 },
		"nobody's records": func(q *recordstore.DueQuery) { q.Mode = "" },
	} {
		q := sound
		spoil(&q)
		if err := q.Check(); !errors.Is(err, recordstore.ErrInvalid) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v, want ErrInvalid in one line", name, err)
		}
	}
}

func TestCheckEntry(t *testing.T) {
	for _, e := range []recordstore.Entry{
		{Kind: "verdict", Actor: "Ada", Text: "seen"}, {Kind: "webhook"}, {Kind: "erase", Text: strings.Repeat("ö", 1000)},
	} {
		if err := e.Check(); err != nil {
			t.Errorf("%.40q: %v", e.Text, err)
		}
	}
	for _, e := range []recordstore.Entry{
		{}, {Kind: "a\nb"}, {Kind: "verdict", Actor: "a\x00"}, {Kind: "verdict", Text: "a\rb"}, {Kind: "verdict", Text: "\xff"},
		{Kind: "verdict", Text: "a\u0085b"}, {Kind: "verdict", Text: strings.Repeat("x", 2001)}, {Kind: "verdict", Actor: strings.Repeat("x", 256)},
	} {
		if err := e.Check(); !errors.Is(err, recordstore.ErrInvalid) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: error is %v, want ErrInvalid in one line", e.Text, err)
		}
	}
}

// C22, R10: one column for each of states, in their order; x may be taken when it
// is due, l only when its lease is dead.
func TestTakenDue(t *testing.T) {
	q := recordstore.DueQuery{Provider: "stripe", Mode: "live", Derivations: []string{"k1"}, Fingerprints: []byte{1}, Holder: "b", Lease: time.Minute, Limit: 1}
	for i, may := range "xl..xx.." {
		for _, live := range []bool{false, true} {
			rec := recordstore.Record{State: states[i], Provider: "stripe", Account: "acct_1/live", Derivation: "k1", Fingerprint: []byte{1}, DueAt: start, LeaseEndsAt: start}
			if live {
				rec.LeaseEndsAt = start.Add(1)
			}
			next, ok := recordstore.TakenDue(rec, q, start)
			if want := may == 'x' || may == 'l' && !live; ok != want {
				t.Errorf("%s, lease alive %v: taken %v, want %v", rec.State, live, ok, want)
			}
			if ok && (next.Checks != 1 || next.DueAt.IsZero() || next.Doubt == (rec.State == recordstore.Planned || rec.State == recordstore.NotExecuted)) {
				t.Errorf("%s was taken with doubt %v, %d checks, due again at %v", rec.State, next.Doubt, next.Checks, next.DueAt)
			}
			rec.DueAt = start.Add(1)
			if _, ok := recordstore.TakenDue(rec, q, start); ok {
				t.Errorf("%s was taken before it was due", rec.State)
			}
		}
	}
}

// R21: one column for each of states, in their order; x a person may settle.
func TestResolved(t *testing.T) {
	for verdict, row := range map[recordstore.State]string{
		recordstore.Succeeded:   ".x...xxx",
		recordstore.Refused:     ".x...xxx",
		recordstore.NotExecuted: ".x...xx.",
	} {
		for i, may := range row {
			rec := recordstore.Record{State: states[i], Version: 7, Doubt: true, LeaseEndsAt: start}
			v := recordstore.Verdict{Version: 7, Result: recordstore.Result{State: verdict}}
			resolve := func(what string, want bool) {
				t.Helper()
				next, err := recordstore.Resolved(rec, v, start)
				if got := err == nil; got != want || !got && !errors.Is(err, recordstore.ErrNotHeld) {
					t.Errorf("%s resolved to %s, %s: %v", rec.State, verdict, what, err)
				}
				if want && (next.State != verdict || verdict == recordstore.NotExecuted && next.Doubt) {
					t.Errorf("%s resolved to %s became %q with doubt %v", rec.State, verdict, next.State, next.Doubt)
				}
			}
			resolve("as it was seen", may == 'x')
			v.Version = 6
			resolve("moved since", false)
			v.Version, rec.Noted = 7, recordstore.Succeeded
			resolve("known to be applied", may == 'x' && verdict == recordstore.Succeeded)
			if rec.State == recordstore.Sending {
				rec.LeaseEndsAt = start.Add(1)
				resolve("being sent", false)
			}
		}
	}
}

// C26: what waits is due at once, and keeps its turn if it was due before.
func TestWoken(t *testing.T) {
	for i, waits := range ".x...x.." {
		rec := recordstore.Record{State: states[i], LeaseEndsAt: start, Version: 7}
		next := recordstore.Woken(rec, "", start)
		if due := next.DueAt.Equal(start); due != (waits == 'x') || next.State != rec.State {
			t.Errorf("%s became %q, due at %v", rec.State, next.State, next.DueAt)
		}
		if again := recordstore.Woken(next, "", start.Add(time.Hour)); again.Version != next.Version || !again.DueAt.Equal(next.DueAt) {
			t.Errorf("%s lost its turn to an event that was repeated", rec.State)
		}
		if known := recordstore.Woken(next, "re_1", start); known.ExternalRef != "re_1" || known.Version != next.Version+1 {
			t.Errorf("%s did not note the reference", rec.State)
		}
	}
}
