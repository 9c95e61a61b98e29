package recordstoretest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func queueCases() []testCase {
	return []testCase{
		{"due/takes", "C22: what is due is taken once, under doubt, with its check counted before the work", dueTakes},
		{"due/comes_back", "C22: the record of a reconciler that died is due again when its lease ends, or nobody would find out", dueComesBack},
		{"due/no_permission", "taking a record is no permission to send: what may still be on its way is counted from the last lease to send", dueNoPermission},
		{"due/planned", "a plan is only kept from others for a lease; an ordinary claim takes it, without doubt", duePlanned},
		{"due/not_held", "R10: what another sends right now is not taken from it, even when it is due", dueNotHeld},
		{"due/in_turn", "one owner's thousands must not keep another's one waiting", dueInTurn},
		{"due/oldest", "of one owner's records the oldest comes first", dueOldest},
		{"due/all", "what is due is taken in the end, however often only a part is asked for", dueAll},
		{"due/one_taker", "R10: of all reconcilers in all processes one takes a record", dueOneTaker},
		{"due/invalid", "a query without holder or lease would take records that nobody holds", dueInvalid},
		{"due/grid", "R23: a store that chooses in SQL must take what TakenDue does: no state, account or version that its reconciler does not know", dueGrid},
	}
}

// query asks for what claims of newClaim lead to.
func query(holder string, limit int) recordstore.DueQuery {
	return recordstore.DueQuery{
		Provider: "stripe", Accounts: []string{"acct_1Nv0/live", "acct_2/live"}, Mode: "live",
		Derivations: []string{"k1", "k0", recordstore.Foreign}, Fingerprints: []byte{1, 2}, SealVersion: 3,
		Holder: holder, Lease: lease, Limit: limit,
	}
}

// take takes due records and expects the ledger to hold what came back.
func (l *ledger) take(q recordstore.DueQuery) []recordstore.Record {
	l.Helper()
	got, now, err := l.Store.(recordstore.Queue).TakeDue(l.Context(), q)
	if err != nil {
		l.Fatalf("TakeDue: %v", err)
	}
	if !now.Equal(l.clock.Now()) {
		l.Errorf("TakeDue says that it is %v, the ledger's clock says %v", now, l.clock.Now())
	}
	if len(got) > q.Limit {
		l.Fatalf("TakeDue took %d records, asked for %d", len(got), q.Limit)
	}
	for _, rec := range got {
		l.same("the record that TakeDue returned, against the stored one", rec, l.stored(rec.ID))
	}
	return got
}

// takeOne takes due records and expects the one of id.
func (l *ledger) takeOne(holder string, id recordstore.ID) recordstore.Record {
	l.Helper()
	got := l.take(query(holder, 10))
	if len(got) != 1 || got[0].ID != id {
		l.Fatalf("TakeDue took %d records, want the one that is due", len(got))
	}
	return got[0]
}

// takeNone expects that nothing can be taken.
func (l *ledger) takeNone() {
	l.Helper()
	if got := l.take(query("nobody", 10)); len(got) != 0 {
		l.Fatalf("TakeDue took %d records, want none", len(got))
	}
}

// uncertain leads the n-th record to Uncertain, due in a minute.
func (l *ledger) uncertain(n int) recordstore.Record {
	l.Helper()
	r := result(recordstore.Uncertain)
	r.DueIn = time.Minute
	return l.settle(l.claim(newClaim(n), recordstore.Send), r)
}

func dueTakes(l *ledger) {
	want := l.uncertain(1)
	l.takeNone()
	l.clock.advance(time.Minute)
	now := l.clock.Now()
	want.State, want.TakenFrom, want.Doubt = recordstore.Sending, recordstore.Uncertain, true
	want.Holder, want.Fence, want.Version, want.Checks = "reconciler", 2, want.Version+1, 1
	want.ClaimedAt, want.LeaseEndsAt, want.DueAt = now, now.Add(lease), now.Add(lease)
	got := l.takeOne("reconciler", want.ID)
	l.same("the taken record", got, want)
	l.takeNone()
	l.claim(by(newClaim(1), "caller"), recordstore.InFlight)
	if got = l.settle(got, result(recordstore.Succeeded)); !got.DueAt.IsZero() || got.Checks != 1 {
		l.Errorf("the settled record is due at %v after %d checks", got.DueAt, got.Checks)
	}
	l.clock.advance(window)
	l.takeNone()
}

func dueComesBack(l *ledger) {
	id := l.uncertain(1).ID
	l.clock.advance(time.Minute)
	first := l.takeOne("dies", id)
	l.clock.advance(lease - time.Microsecond)
	l.takeNone()
	l.clock.advance(time.Microsecond)
	second := l.takeOne("survivor", id)
	if second.Checks != 2 || second.Fence != first.Fence+1 || second.TakenFrom != recordstore.Sending {
		l.Errorf("taken again: %d checks, fence %d after %d, taken from %q", second.Checks, second.Fence, first.Fence, second.TakenFrom)
	}
	l.lost(settlement(first, result(recordstore.NotExecuted)))
	l.settle(second, result(recordstore.Succeeded))
}

func dueNoPermission(l *ledger) {
	before := l.uncertain(1)
	l.clock.advance(time.Hour)
	taken := l.takeOne("reconciler", before.ID)
	if !taken.SentUntil.Equal(before.SentUntil) || !taken.WindowEndsAt.Equal(before.WindowEndsAt) {
		l.Errorf("taking moved SentUntil to %v, WindowEndsAt to %v", taken.SentUntil, taken.WindowEndsAt)
	}
	l.clock.advance(time.Second)
	l.renew(taken, nil) // Before it resends.
	if got := l.stored(taken.ID); !got.SentUntil.Equal(l.clock.Now().Add(lease)) {
		l.Errorf("after the renewal SentUntil is %v, want the end of the new lease", got.SentUntil)
	}
}

func duePlanned(l *ledger) {
	rec := found(newClaim(1))
	rec.State, rec.Doubt, rec.TakenFrom, rec.Holder, rec.Fence = recordstore.Planned, false, "", "", 0
	rec.ClaimedAt, rec.LeaseEndsAt, rec.WindowEndsAt, rec.DueAt = time.Time{}, time.Time{}, time.Time{}, start
	l.seed(rec)
	got := l.takeOne("reconciler", rec.ID)
	rec.DueAt, rec.Checks, rec.Version = start.Add(lease), rec.Checks+1, rec.Version+1
	l.same("the plan that was taken", got, rec)
	l.takeNone()
	if got := l.claim(newClaim(1), recordstore.Send); got.Doubt || !got.DueAt.IsZero() {
		l.Errorf("the claimed plan has doubt %v and is due at %v", got.Doubt, got.DueAt)
	}

	l.seed(rec)
	l.clock.advance(lease) // Its reconciler died before it claimed.
	l.takeOne("other", rec.ID)
}

func dueNotHeld(l *ledger) {
	c := newClaim(1)
	rec := l.claim(c, recordstore.Send)
	l.renew(rec, nil)
	rec = l.stored(c.ID)
	rec.LeaseEndsAt = rec.LeaseEndsAt.Add(lease)
	l.seed(rec)
	l.clock.advance(lease)
	l.takeNone()
	l.clock.advance(lease)
	l.takeOne("reconciler", c.ID)
}

// waiting seeds uncertain records of one scope that are due since so long.
func (l *ledger) waiting(first, n int, scope string, since time.Duration) {
	l.Helper()
	recs := make([]recordstore.Record, n)
	for i := range recs {
		c := newClaim(first + i)
		c.Scope = sha256.Sum256([]byte(scope))
		recs[i] = found(c)
		recs[i].State = recordstore.Uncertain
		recs[i].DueAt = start.Add(-since).Add(time.Duration(i) * time.Microsecond)
	}
	l.seed(recs...)
}

// scopes counts records by the name of their scope.
func scopes(recs []recordstore.Record, names ...string) map[string]int {
	count := map[string]int{}
	for _, rec := range recs {
		i := slices.IndexFunc(names, func(name string) bool { return rec.Scope == sha256.Sum256([]byte(name)) })
		count[names[i]]++
	}
	return count
}

func dueInTurn(l *ledger) {
	l.waiting(0, 60, "large", time.Hour)
	l.waiting(100, 5, "small", time.Minute)
	l.waiting(200, 1, "single", 0)
	names := []string{"large", "small", "single"}
	for i, want := range []map[string]int{
		{"large": 1, "small": 1, "single": 1},
		{"large": 3, "small": 3},
		{"large": 9, "small": 1},
	} {
		n := 0
		for _, share := range want {
			n += share
		}
		got := scopes(l.take(query(fmt.Sprint("reconciler-", i), n)), names...)
		for _, name := range names {
			if got[name] != want[name] {
				l.Errorf("of %d records %s got %d, want %d", n, name, got[name], want[name])
			}
		}
	}
}

func dueOldest(l *ledger) {
	l.waiting(0, 30, "tenant-7", time.Hour)
	seen := map[recordstore.ID]bool{}
	for i := range 3 {
		for _, rec := range l.take(query(fmt.Sprint("reconciler-", i), 10)) {
			seen[rec.ID] = true
		}
		for n := range 30 {
			if older := n < 10*(i+1); seen[newClaim(n).ID] != older {
				l.Errorf("after %d records the one that is the %d. by age was taken: %v, want %v", 10*(i+1), n+1, !older, older)
			}
		}
	}
}

func dueAll(l *ledger) {
	const owners = 40
	for i := range owners {
		l.waiting(10*i, 1+i%3, fmt.Sprint("tenant-", i), time.Duration(i)*time.Second)
	}
	left := 0
	for i := range owners {
		left += 1 + i%3
	}
	for i := 0; left > 0; i++ {
		got := l.take(query(fmt.Sprint("reconciler-", i), 7))
		if len(got) != min(7, left) {
			l.Fatalf("TakeDue took %d of %d records, asked for 7", len(got), left)
		}
		left -= len(got)
	}
	l.takeNone()
}

func dueOneTaker(l *ledger) {
	const records = 60
	l.waiting(0, records/2, "tenant-7", time.Hour)
	l.waiting(records/2, records/2, "tenant-8", time.Minute)
	stores := l.handles()
	var mu sync.Mutex
	taken := map[recordstore.ID]int{}
	race(racers, func(i int) {
		for round := range records {
			got, _, err := stores[i%2].(recordstore.Queue).TakeDue(l.Context(), query(fmt.Sprintf("reconciler-%d-%d", i, round), 5))
			if err != nil {
				l.Errorf("TakeDue: %v", err)
				return
			}
			mu.Lock()
			for _, rec := range got {
				taken[rec.ID]++
			}
			done := len(taken) == records
			mu.Unlock()
			if done {
				return
			}
		}
	})
	for n := range records {
		if got := taken[identity(n)]; got != 1 {
			l.Fatalf("record %d was taken %d times by reconcilers at once, want once", n, got)
		}
	}
}

func dueInvalid(l *ledger) {
	l.waiting(1, 1, "tenant-7", 0)
	for n, spoil := range []func(*recordstore.DueQuery){
		func(q *recordstore.DueQuery) { q.Holder = "" },
		func(q *recordstore.DueQuery) { q.Lease = 0 },
		func(q *recordstore.DueQuery) { q.Limit = 0 },
		func(q *recordstore.DueQuery) { q.Limit = recordstore.MaxTake + 1 },
		func(q *recordstore.DueQuery) { q.Accounts, q.Mode = nil, "" },
	} {
		q := query("reconciler", 10)
		spoil(&q)
		if _, _, err := l.Store.(recordstore.Queue).TakeDue(l.Context(), q); !errors.Is(err, recordstore.ErrInvalid) {
			l.Errorf("query %d: error is %v, want ErrInvalid", n, err)
		}
	}
	l.takeOne("reconciler", identity(1))
}

// dueRecords returns every combination of what decides whether a record is taken.
func dueRecords() []recordstore.Record {
	var recs []recordstore.Record
	for _, state := range states {
		each(func(pick []int) {
			rec := found(newClaim(len(recs)))
			rec.State = state
			rec.DueAt = []time.Time{{}, start, start.Add(time.Microsecond)}[pick[0]]
			rec.LeaseEndsAt = start.Add(time.Duration(pick[1]) * time.Microsecond)
			rec.Account = []string{"acct_1Nv0/live", "acct_3/live", "acct_1Nv0/test"}[pick[2]]
			rec.Doubt = pick[3] == 0
			if pick[4] == 1 && state == recordstore.Sending {
				rec.Noted, rec.LookOnly = recordstore.Succeeded, true
			}
			recs = append(recs, rec)
		}, 3, 2, 3, 2, 2)
		for _, strange := range []func(*recordstore.Record){
			func(r *recordstore.Record) { r.Provider = "paypal" },
			func(r *recordstore.Record) { r.Derivation = "k9" },
			func(r *recordstore.Record) { r.Derivation = recordstore.Foreign },
			func(r *recordstore.Record) { r.Fingerprint = fingerprint(1, "older") },
			func(r *recordstore.Record) { r.Fingerprint = fingerprint(9, "newer") },
			func(r *recordstore.Record) { r.SealVersion = 3 },
			func(r *recordstore.Record) { r.SealVersion = 4 },
			func(r *recordstore.Record) { r.Account = "acct_1Nv0_live" },
		} {
			rec := found(newClaim(len(recs)))
			rec.State, rec.DueAt = state, start
			strange(&rec)
			recs = append(recs, rec)
		}
	}
	return recs
}

func dueGrid(l *ledger) {
	recs := dueRecords()
	byAccount := query("by account", recordstore.MaxTake)
	byMode := query("by mode", recordstore.MaxTake)
	byMode.Accounts = nil
	byMode.LostBefore = start.Add(-time.Second) // After each record's last change.
	for _, q := range []recordstore.DueQuery{byAccount, byMode} {
		l.seed(recs...)
		taken := map[recordstore.ID]bool{}
		for _, rec := range l.take(q) {
			taken[rec.ID] = true
		}
		wrong := 0
		for _, rec := range recs {
			want, ok := recordstore.TakenDue(rec, q, start)
			about := fmt.Sprintf("%s: %s due %v, lease %v, %s, derivation %s, seal %d", q.Holder, rec.State,
				rec.DueAt, rec.LeaseEndsAt, rec.Account, rec.Derivation, rec.SealVersion)
			if taken[rec.ID] != ok {
				l.Errorf("%s: taken %v, want %v", about, taken[rec.ID], ok)
			}
			if !l.same(about, l.stored(rec.ID), want) || taken[rec.ID] != ok {
				if wrong++; wrong == enough {
					return
				}
			}
		}
	}
}
