package recordstoretest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func purgeCases() []testCase {
	return []testCase{
		{"purge/bodies", "R18: after the replay window the body goes; hash, state, reference and the time of deletion stay", purgeBodies},
		{"purge/forgotten", "R22: a command whose record was deleted is refused, never executed anew", purgeForgotten},
		{"purge/frontier", "a frontier that is raised further than records go would refuse commands that were never sent", purgeFrontier},
		{"purge/class", "R17: classes are kept for different times, so that one's purge forgets nothing of another", purgeClass},
		{"purge/today", "a client that declared a short retention must not make the ledger refuse the commands of today", purgeToday},
		{"purge/unresolved", "R21: what nobody has resolved is never purged, and never forgotten while it is there", purgeUnresolved},
		{"purge/tombstone", "nothing tells a command without a day from a new one: its record shrinks and stays", purgeTombstone},
		{"purge/limit", "a purge after a long time must not keep the ledger busy at one stretch", purgeLimit},
		{"purge/trail", "R18: what people wrote about a record goes with it", purgeTrail},
		{"purge/race", "R22: a purge that meets a claim of the same old command leads to no second execution", purgeRace},
		{"purge/grid", "a store that purges in SQL must remove exactly what Emptied, Purgeable and Tombstone say", purgeGrid},
	}
}

const evidence = 400 * 24 * time.Hour // Of the suite's claims.

// purge removes up to limit and expects so many.
func (l *ledger) purge(limit int, want recordstore.Purged) {
	l.Helper()
	got, err := l.Store.(recordstore.Purger).Purge(l.Context(), limit)
	if err != nil {
		l.Fatalf("Purge: %v", err)
	}
	if got != want {
		l.Errorf("Purge removed %+v, want %+v", got, want)
	}
}

// purgeAll purges until nothing is left to remove.
func (l *ledger) purgeAll(limit int) {
	l.Helper()
	for range 10_000 {
		got, err := l.Store.(recordstore.Purger).Purge(l.Context(), limit)
		if err != nil {
			l.Fatalf("Purge: %v", err)
		}
		if got.Bodies > limit || got.Records > limit {
			l.Fatalf("Purge removed %+v, asked for %d", got, limit)
		}
		if got == (recordstore.Purged{}) {
			return
		}
	}
	l.Fatalf("Purge never ends")
}

// outlived returns a record of the n-th command, so many days old, whose bodies
// went and whose evidence is over.
func outlived(n int, days int32, state recordstore.State) recordstore.Record {
	rec := found(old(n, days))
	rec.State = state
	rec.Request, rec.ResponseHeader, rec.ResponseBody = nil, nil, nil
	rec.ReplayUntil, rec.EvidenceUntil, rec.DueAt = start.Add(-evidence/2), start, time.Time{}
	return rec
}

func purgeBodies(l *ledger) {
	c := newClaim(1)
	want := l.settle(l.claim(c, recordstore.Send), result(recordstore.Succeeded))
	l.clock.advance(c.Replay - time.Microsecond)
	l.purge(10, recordstore.Purged{})
	l.clock.advance(time.Microsecond)
	l.purge(10, recordstore.Purged{Bodies: 1})
	want.ResponseHeader, want.ResponseBody = nil, nil
	want.BodyPurgedAt, want.Version = l.clock.Now(), want.Version+1
	l.same("the stored record", l.stored(c.ID), want)
	l.same("the replayed record", l.claim(by(c, "other"), recordstore.Replay), want)
	l.purge(10, recordstore.Purged{})
}

func purgeForgotten(l *ledger) {
	for n, state := range []recordstore.State{
		recordstore.Succeeded, recordstore.Refused, recordstore.NotExecuted, recordstore.Abandoned,
	} {
		c := newClaim(n)
		rec := l.claim(c, recordstore.Send)
		rec.State = state
		rec.Request = nil
		l.seed(rec)
	}
	l.clock.advance(evidence - time.Microsecond)
	l.purge(10, recordstore.Purged{})
	l.clock.advance(time.Microsecond)
	l.purge(10, recordstore.Purged{Records: 4})
	for n := range 4 {
		l.absent(newClaim(n).ID)
		l.claim(newClaim(n), recordstore.Forgotten)
	}
	other := *l
	other.Store = l.harness.Reopen(l.TB)
	other.claim(newClaim(1), recordstore.Forgotten)
	other.claim(newClaim(9), recordstore.Forgotten) // Of the same day, and never seen: nobody can tell.
}

func purgeFrontier(l *ledger) {
	l.seed(outlived(1, 500, recordstore.Succeeded), outlived(2, 410, recordstore.Refused))
	kept := outlived(3, 405, recordstore.Succeeded)
	kept.EvidenceUntil = start.Add(time.Microsecond)
	l.seed(kept)
	l.purge(10, recordstore.Purged{Records: 2})
	l.claim(old(4, 411), recordstore.Forgotten)
	l.claim(old(5, 410), recordstore.Forgotten)
	l.claim(old(6, 409), recordstore.Send)
	l.claim(old(3, 405), recordstore.Replay)
}

func purgeClass(l *ledger) {
	rec := outlived(1, 40, recordstore.Succeeded)
	rec.Class = "notification"
	l.seed(rec)
	l.purge(10, recordstore.Purged{Records: 1})
	c := old(2, 40)
	l.claim(c, recordstore.Send)
	c = old(3, 40)
	c.Class = "notification"
	l.claim(c, recordstore.Forgotten)
}

func purgeToday(l *ledger) {
	l.seed(outlived(1, 0, recordstore.Succeeded), outlived(2, 1, recordstore.Succeeded), outlived(3, -1, recordstore.Succeeded))
	l.purge(10, recordstore.Purged{})
	l.claim(old(4, 1), recordstore.Send)
	l.claim(old(1, 0), recordstore.Replay)
	l.clock.advance(24 * time.Hour)
	l.purge(10, recordstore.Purged{Records: 1})
	l.claim(old(2, 1), recordstore.Forgotten)
	l.claim(newClaim(5), recordstore.Send)
}

func purgeUnresolved(l *ledger) {
	unresolved := []recordstore.State{
		recordstore.Planned, recordstore.Sending, recordstore.Uncertain, recordstore.ManualReview, recordstore.NotExecuted,
	}
	waits := func(n int, state recordstore.State, day int32) recordstore.Record {
		rec := outlived(n, 0, state)
		rec.ID.Day = day
		rec.Request, rec.ResponseBody = []byte("frozen request"), []byte("earlier body")
		if state == recordstore.NotExecuted { // A plan that is to be sent again.
			rec.FromPlan, rec.DueAt = true, start
		}
		return rec
	}
	for n, state := range unresolved {
		for _, day := range []int32{identity(n).Day - 450, 0} {
			l.seed(waits(n, state, day))
		}
	}
	l.seed(outlived(9, 440, recordstore.Succeeded))
	l.purge(10, recordstore.Purged{Records: 1})
	for n, state := range unresolved {
		for _, day := range []int32{identity(n).Day - 450, 0} {
			want := waits(n, state, day)
			l.same("the unresolved record", l.stored(want.ID), want)
		}
		want := map[recordstore.State]recordstore.Decision{
			recordstore.Planned: recordstore.Send, recordstore.ManualReview: recordstore.Review,
		}[state]
		if got, err := l.Claim(l.Context(), old(n, 450)); err != nil || got.Decision == recordstore.Forgotten || want != "" && got.Decision != want {
			l.Errorf("the claim of a record that is there decided %q (%v)", got.Decision, err)
		}
	}
}

func purgeTombstone(l *ledger) {
	c := newClaim(1)
	c.ID.Day = 0
	rec := l.settle(l.claim(c, recordstore.Send), result(recordstore.Refused))
	l.clock.advance(evidence)
	l.purge(10, recordstore.Purged{Bodies: 1, Records: 1})
	want := rec
	want.ResponseHeader, want.ResponseBody, want.BodyPurgedAt = nil, nil, l.clock.Now()
	want.ObjectStatus, want.RequestID, want.EvidenceUntil = "", "", time.Time{}
	want.Version += 2 // Its bodies, then the rest.
	l.same("the tombstone", l.stored(c.ID), want)
	l.same("the replayed tombstone", l.claim(by(c, "other"), recordstore.Replay), want)
	conflict := by(c, "other")
	conflict.Fingerprints = [][]byte{fingerprint(2, "amount=50")}
	l.claim(conflict, recordstore.Conflict)
	l.clock.advance(10 * evidence)
	l.purge(10, recordstore.Purged{})
	l.same("the stored tombstone", l.stored(c.ID), want)
}

func purgeLimit(l *ledger) {
	var recs []recordstore.Record
	for n := range 12 {
		rec := outlived(n, 450, recordstore.Succeeded)
		if n%2 == 0 {
			rec.EvidenceUntil = start.Add(time.Hour)
			rec.ResponseBody = []byte("a body")
		} else if n%3 == 0 {
			rec.ID.Day = 0
		}
		recs = append(recs, rec)
	}
	l.seed(recs...)
	for _, want := range []recordstore.Purged{{Bodies: 4, Records: 4}, {Bodies: 2, Records: 2}, {}} {
		l.purge(4, want)
	}
}

func purgeTrail(l *ledger) {
	if !l.can("Desk") {
		return
	}
	gone, shrunk, kept := outlived(1, 450, recordstore.Succeeded), outlived(2, 0, recordstore.Succeeded), outlived(3, 450, recordstore.Succeeded)
	shrunk.ID.Day = 0
	kept.EvidenceUntil, kept.ResponseBody = start.Add(time.Hour), []byte("a body")
	l.seed(gone, shrunk, kept)
	for _, rec := range []recordstore.Record{gone, shrunk, kept} {
		if _, err := l.desk().Erase(l.Context(), rec.ID, *entry("erase", "asked for by the customer")); err != nil {
			l.Fatalf("Erase: %v", err)
		}
	}
	l.purge(10, recordstore.Purged{Records: 2})
	if _, err := l.desk().Trail(l.Context(), gone.ID); !errors.Is(err, recordstore.ErrNotFound) {
		l.Errorf("Trail of a deleted record: error is %v, want ErrNotFound", err)
	}
	l.seed(gone) // Not a call's way: it shows whether the trail was left behind.
	l.trail(gone.ID)
	l.trail(shrunk.ID)
	if got, err := l.desk().Trail(l.Context(), kept.ID); err != nil || len(got) != 1 {
		l.Errorf("a record whose evidence is not over has %d entries (%v), want 1", len(got), err)
	}
}

func purgeRace(l *ledger) {
	const records = 30
	stores := l.handles()
	for n := range records {
		l.seed(outlived(n, 450, []recordstore.State{recordstore.Succeeded, recordstore.NotExecuted}[n%2]))
	}
	var mu sync.Mutex
	sent := map[int]string{}
	race(racers, func(i int) {
		for n := range records {
			if i < 4 {
				if _, err := stores[i%2].(recordstore.Purger).Purge(l.Context(), 3); err != nil {
					l.Errorf("Purge: %v", err)
					return
				}
				continue
			}
			c := by(old(n, 450), fmt.Sprint("racer-", i))
			got, err := stores[i%2].Claim(l.Context(), c)
			if err != nil {
				l.Errorf("Claim: %v", err)
				return
			}
			if got.Decision == recordstore.Send {
				mu.Lock()
				if first := sent[n]; first != "" || n%2 == 0 || got.Record.TakenFrom != recordstore.NotExecuted {
					l.Errorf("record %d: sent by %s from %q after %q sent it", n, c.Holder, got.Record.TakenFrom, first)
				}
				sent[n] = c.Holder
				mu.Unlock()
			}
		}
	})
	l.purgeAll(10)
	for n := range records {
		want := recordstore.Forgotten
		if sent[n] != "" {
			want = recordstore.InFlight
		}
		l.claim(by(old(n, 450), "afterwards"), want)
	}
}

// ages returns records in every combination of what decides whether they go.
func ages() []recordstore.Record {
	var recs []recordstore.Record
	for _, state := range states {
		each(func(pick []int) {
			rec := found(newClaim(len(recs)))
			rec.State, rec.BodyPurgedAt = state, time.Time{}
			rec.ID.Day = []int32{0, today(start) - 500, today(start) - 2, today(start) - 1, today(start)}[pick[0]]
			rec.ReplayUntil = start.Add(time.Duration(pick[1]) * time.Microsecond)
			rec.EvidenceUntil = []time.Time{start, start.Add(time.Microsecond), {}}[pick[2]]
			bodies := []int{0, 1, 2, 4, 7}[pick[3]]
			if bodies&1 == 0 || state.Final() {
				rec.Request = nil
			}
			if bodies&2 == 0 {
				rec.ResponseHeader = nil
			}
			if bodies&4 == 0 {
				rec.ResponseBody = nil
			}
			recs = append(recs, rec)
		}, 5, 2, 3, 5)
	}
	return recs
}

func purgeGrid(l *ledger) {
	recs := ages()
	l.seed(recs...)
	l.purgeAll(len(recs))
	wrong := 0
	for _, rec := range recs {
		about := fmt.Sprintf("%s, day %d, replay until %v, evidence until %v", rec.State, rec.ID.Day-today(start), rec.ReplayUntil, rec.EvidenceUntil)
		want, _ := recordstore.Emptied(rec, start)
		want, _ = recordstore.Tombstone(want, start)
		ok := false
		if recordstore.Purgeable(want, start) {
			if ok = l.absent(rec.ID); !ok {
				l.Errorf("%s: should be gone", about)
			}
		} else if got, _, err := l.Get(l.Context(), rec.ID); err != nil {
			l.Errorf("%s: %v", about, err)
		} else {
			ok = l.same(about, got, want)
		}
		if !ok {
			if wrong++; wrong == enough {
				return
			}
		}
	}
	l.claim(old(len(recs), 2), recordstore.Forgotten)
	l.claim(old(len(recs)+1, 1), recordstore.Send)
}
