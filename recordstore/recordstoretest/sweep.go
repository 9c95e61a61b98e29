package recordstoretest

import (
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func sweepCases() []testCase {
	return []testCase{
		{"crashed/found", "R20: a sender that died tells nobody, so that its record must be found and becomes due", crashedFound},
		{"crashed/watermark", "R20: a sweep that passes over a call that is still running must find it later, should its sender die", crashedWatermark},
		{"crashed/limit", "R20: after the crash of many senders all are found, in parts", crashedLimit},
		{"crashed/full", "a full sweep finds what no watermark knows of, as after a restore", crashedFull},
		{"crashed/renewed", "R20: who renewed is due when the lease ends, and needs no sweep", crashedRenewed},
		{"crashed/grid", "a store that sweeps in SQL must find exactly what Crashed does", crashedGrid},
		{"backlog/grid", "R26: what waits is counted for one provider, in every state", backlogGrid},
		{"backlog/percentile", "R26: the age of uncertain records is watched by its 95th percentile", backlogPercentile},
		{"backlog/swept", "R26: a dead sender counts as uncertain before and after it is found", backlogSwept},
	}
}

// sweep finds crashed senders and expects so many.
func (l *ledger) sweep(full bool, limit, want int) {
	l.Helper()
	got, err := l.Store.(recordstore.Queue).FindCrashed(l.Context(), full, limit)
	if err != nil || got != want {
		l.Fatalf("FindCrashed(full %v, limit %d) found %d, %v; want %d", full, limit, got, err, want)
	}
}

func crashedFound(l *ledger) {
	l.sweep(false, 10, 0)
	want := l.claim(newClaim(1), recordstore.Send)
	l.settle(l.claim(newClaim(2), recordstore.Send), result(recordstore.Succeeded))
	l.sweep(false, 10, 0)
	l.clock.advance(lease)
	l.takeNone()
	l.sweep(false, 10, 1)
	want.DueAt, want.Version = l.clock.Now(), 2
	l.same("the record that was found", l.stored(want.ID), want)
	l.sweep(false, 10, 0)
	l.takeOne("reconciler", want.ID)
}

func crashedWatermark(l *ledger) {
	long := newClaim(1)
	long.Lease = time.Hour
	l.claim(long, recordstore.Send)
	for n := range 5 { // Later calls that end, one of which crashes.
		l.clock.advance(lease)
		rec := l.claim(newClaim(n+2), recordstore.Send)
		if n != 2 {
			l.settle(rec, result(recordstore.Succeeded))
		}
		l.sweep(false, 10, map[int]int{3: 1}[n])
	}
	l.clock.advance(time.Hour)
	l.sweep(false, 10, 1)
	if l.stored(long.ID).DueAt.IsZero() {
		l.Errorf("the long call is not due although its sender died")
	}

	same := l.claim(newClaim(8), recordstore.Send) // Claimed at the very time of the last sweep.
	l.sweep(false, 10, 0)
	other := l.claim(newClaim(9), recordstore.Send)
	l.settle(same, result(recordstore.Succeeded))
	l.sweep(false, 10, 0)
	l.clock.advance(lease)
	l.sweep(false, 10, 1)
	if l.stored(other.ID).DueAt.IsZero() {
		l.Errorf("the call that was claimed at the time of a sweep is not due although its sender died")
	}
}

func crashedLimit(l *ledger) {
	const crashed = 25
	for n := range crashed {
		l.claim(newClaim(n), recordstore.Send)
	}
	l.clock.advance(lease)
	l.settle(l.claim(newClaim(crashed), recordstore.Send), result(recordstore.Succeeded))
	for _, want := range []int{10, 10, 5, 0} {
		l.sweep(false, 10, want)
	}
	if got := l.take(query("reconciler", 100)); len(got) != crashed {
		l.Errorf("%d records are due, want all %d whose senders died", len(got), crashed)
	}
}

func crashedFull(l *ledger) {
	l.settle(l.claim(newClaim(1), recordstore.Send), result(recordstore.Succeeded))
	l.sweep(false, 10, 0)
	rec := found(newClaim(2)) // Older than all that was swept.
	rec.ClaimedAt, rec.LeaseEndsAt, rec.DueAt = start.Add(-24*time.Hour), start.Add(-23*time.Hour), time.Time{}
	l.seed(rec)
	l.sweep(true, 10, 1)
	l.takeOne("reconciler", rec.ID)
}

func crashedRenewed(l *ledger) {
	rec := l.claim(newClaim(1), recordstore.Send)
	l.clock.advance(lease / 2)
	l.renew(rec, nil)
	l.clock.advance(lease)
	l.sweep(false, 10, 0)
	l.sweep(true, 10, 0)
	l.takeOne("reconciler", rec.ID)
}

func crashedGrid(l *ledger) {
	recs := dueRecords()
	l.seed(recs...)
	want := 0
	for _, rec := range recs {
		if recordstore.Crashed(rec, start) {
			want++
		}
	}
	l.sweep(true, len(recs), want)
	wrong := 0
	for _, rec := range recs {
		about := fmt.Sprintf("%s due %v, lease %v", rec.State, rec.DueAt, rec.LeaseEndsAt)
		if recordstore.Crashed(rec, start) {
			rec.DueAt = start
			rec.Version++
		}
		if !l.same(about, l.stored(rec.ID), rec) {
			if wrong++; wrong == enough {
				return
			}
		}
	}
}

// backlog compares what waits with what recordstore counts among the records.
func (l *ledger) backlog(provider string, want recordstore.Backlog) {
	l.Helper()
	got, err := l.Store.(recordstore.Queue).Backlog(l.Context(), provider)
	if err != nil {
		l.Fatalf("Backlog: %v", err)
	}
	if got != want {
		l.Errorf("the backlog of %s is %+v, want %+v", provider, got, want)
	}
}

func backlogGrid(l *ledger) {
	recs := dueRecords()
	for i := range recs {
		recs[i].ClaimedAt = start.Add(-time.Duration(i%97) * time.Second)
	}
	l.seed(recs...)
	for _, provider := range []string{"stripe", "paypal", "unheard"} {
		var own []recordstore.Record
		for _, rec := range recs {
			if rec.Provider == provider {
				own = append(own, rec)
			}
		}
		l.backlog(provider, recordstore.BacklogOf(own, start))
	}
}

func backlogPercentile(l *ledger) {
	for n, hours := range map[int]int{1: 1, 19: 19, 20: 19, 21: 20, 100: 95} {
		recs := make([]recordstore.Record, n)
		for i := range recs {
			recs[i] = found(newClaim(1000*n + i))
			recs[i].Provider = fmt.Sprint("provider-", n)
			recs[i].State, recs[i].DueAt = recordstore.Uncertain, time.Time{}
			recs[i].ClaimedAt = start.Add(-time.Duration((i*11)%n+1) * time.Hour) // Each age once, in no order.
		}
		l.seed(recs...)
		l.backlog(recs[0].Provider, recordstore.Backlog{Uncertain: n, UncertainP95: time.Duration(hours) * time.Hour})
	}
}

func backlogSwept(l *ledger) {
	l.claim(newClaim(1), recordstore.Send)
	l.backlog("stripe", recordstore.Backlog{})
	l.clock.advance(lease)
	l.backlog("stripe", recordstore.Backlog{Uncertain: 1, UncertainP95: lease})
	l.sweep(false, 10, 1)
	l.backlog("stripe", recordstore.Backlog{Due: 1, Uncertain: 1, UncertainP95: lease})
	l.take(query("reconciler", 10))
	l.backlog("stripe", recordstore.Backlog{})
}
