package recordstoretest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func planCases() []testCase {
	return []testCase{
		{"plan/new", "a plan is written with the caller's change, due at once, its retention counted from now; nothing of a claim is in it", planNew},
		{"plan/alike", "a caller who runs twice plans once, and another request under the same command is a conflict", planAlike},
		{"plan/rollback", "a plan whose transaction was rolled back was never made", planRollback},
		{"plan/commit", "a plan is not seen, and not sent, before the change that it belongs to", planCommit},
		{"plan/with_others", "several plans of one transaction are made or not made together", planTogether},
		{"plan/claimed", "a plan is sent as what it is: a first send without doubt, its window counted from the claim", planClaimed},
		{"plan/due", "a plan whose caller died right after the commit is sent by the reconciler", planDue},
		{"plan/not_after", "what was planned and not sent in time is not sent late", planNotAfter},
		{"plan/invalid", "a plan without a fingerprint would write a row that nobody can send", planInvalid},
		{"plan/grid_new", "a store that plans in SQL must decide as Plan does where there is no record", planGridNew},
		{"plan/grid", "a store that plans in SQL must answer as Take does where there is a record, and take nothing", planGrid},
	}
}

// transaction is one of a caller, in which it plans.
type transaction struct {
	recordstore.Planner
	commit, rollback func() error
}

// begin starts a transaction. Where the store itself is the planner it has none.
func (l *ledger) begin() transaction {
	l.Helper()
	if h, ok := l.harness.(Transactor); ok {
		p, commit, rollback := h.Begin(l.TB, l.Store)
		return transaction{p, commit, rollback}
	}
	return transaction{Planner: l.Store.(recordstore.Planner), commit: func() error { return nil }}
}

// plan plans within tx and expects a decision.
func (l *ledger) plan(tx transaction, c recordstore.Claim, want recordstore.Decision) recordstore.Record {
	l.Helper()
	got, err := tx.Plan(l.Context(), c)
	if err != nil {
		l.Fatalf("Plan: %v", err)
	}
	if got.Decision != want {
		l.Fatalf("Plan decided %q, want %q", got.Decision, want)
	}
	if !got.Now.Equal(l.clock.Now()) {
		l.Errorf("Plan says that it is %v, the ledger's clock says %v", got.Now, l.clock.Now())
	}
	return got.Record
}

func (l *ledger) commit(tx transaction) {
	l.Helper()
	if err := tx.commit(); err != nil {
		l.Fatalf("commit: %v", err)
	}
}

// planned plans and commits.
func (l *ledger) planned(c recordstore.Claim) recordstore.Record {
	l.Helper()
	tx := l.begin()
	rec := l.plan(tx, c, recordstore.Send)
	l.commit(tx)
	return rec
}

func planNew(l *ledger) {
	c := newClaim(1)
	c.NotAfter = start.Add(time.Hour)
	want := recordstore.Record{
		ID: c.ID, Scope: c.Scope, Provider: c.Provider, Account: c.Account, Operation: c.Operation,
		CommandID: c.CommandID, Class: c.Class, Derivation: c.Derivation, Fingerprint: c.Fingerprints[0],
		State: recordstore.Planned, FromPlan: true, Version: 1, CreatedAt: start, DueAt: start,
		NotAfter: c.NotAfter, SealVersion: 3, Request: c.Request,
		ReplayUntil: start.Add(c.Replay), EvidenceUntil: start.Add(c.Evidence),
	}
	l.same("the returned record", l.planned(c), want)
	l.same("the stored record", l.stored(c.ID), want)
	bare := newClaim(2)
	bare.Request, bare.Holder, bare.Lease, bare.Window = nil, "", 0, 0
	if got := l.planned(bare); got.SealVersion != 0 || got.State != recordstore.Planned {
		l.Errorf("without a request: state %q, seal version %d", got.State, got.SealVersion)
	}
}

func planAlike(l *ledger) {
	want := l.planned(newClaim(1))
	l.clock.advance(time.Second)
	tx := l.begin()
	l.same("the record planned alike before", l.plan(tx, newClaim(1), recordstore.Send), want)
	changed := newClaim(1)
	changed.Fingerprints = [][]byte{fingerprint(2, "amount=50")}
	l.same("the record in conflict", l.plan(tx, changed, recordstore.Conflict), want)
	twice := l.plan(tx, newClaim(2), recordstore.Send)
	l.same("the record planned alike in the same transaction", l.plan(tx, newClaim(2), recordstore.Send), twice)
	l.commit(tx)
	l.same("the stored record", l.stored(want.ID), want)
}

func planRollback(l *ledger) {
	tx := l.begin()
	if tx.rollback == nil {
		return // What is planned is there at once: nothing can be rolled back.
	}
	l.plan(tx, newClaim(1), recordstore.Send)
	if err := tx.rollback(); err != nil {
		l.Fatalf("rollback: %v", err)
	}
	l.absent(identity(1))
	l.clock.advance(time.Second)
	l.planned(newClaim(1))
	l.claim(newClaim(1), recordstore.Send)
}

func planCommit(l *ledger) {
	tx := l.begin()
	want := l.plan(tx, newClaim(1), recordstore.Send)
	if tx.rollback != nil {
		other := *l
		other.Store = l.harness.Reopen(l.TB)
		other.absent(want.ID)
		l.absent(want.ID)
	}
	l.commit(tx)
	l.same("the stored record", l.stored(want.ID), want)
}

func planTogether(l *ledger) {
	for n, end := range []func(transaction) error{
		func(tx transaction) error { return tx.commit() },
		func(tx transaction) error { return tx.rollback() },
	} {
		tx := l.begin()
		if n == 1 && tx.rollback == nil {
			return // As above.
		}
		for i := range 3 {
			l.plan(tx, newClaim(10*n+i), recordstore.Send)
		}
		if err := end(tx); err != nil {
			l.Fatalf("the end of the transaction: %v", err)
		}
		for i := range 3 {
			if n == 0 {
				l.stored(identity(i))
			} else {
				l.absent(identity(10 + i))
			}
		}
	}
}

func planClaimed(l *ledger) {
	c := newClaim(1)
	want := l.planned(c)
	l.clock.advance(time.Hour)
	now := l.clock.Now()
	want.State, want.TakenFrom, want.Holder, want.Fence, want.Version = recordstore.Sending, recordstore.Planned, c.Holder, 1, 2
	want.ClaimedAt, want.LeaseEndsAt, want.SentUntil, want.DueAt = now, now.Add(lease), now.Add(lease), time.Time{}
	want.WindowEndsAt, want.ReplayUntil, want.EvidenceUntil = now.Add(window), now.Add(c.Replay), now.Add(c.Evidence)
	got := l.claim(c, recordstore.Send)
	l.same("the claimed plan", got, want)
	tx := l.begin()
	l.same("the plan that is being sent", l.plan(tx, by(c, "other"), recordstore.InFlight), want)
	l.commit(tx)
	settled := l.settle(got, result(recordstore.Succeeded))
	tx = l.begin()
	l.same("the plan that was sent", l.plan(tx, c, recordstore.Replay), settled)
	l.commit(tx)
}

func planDue(l *ledger) {
	if !l.can("Queue") {
		return
	}
	id := l.planned(newClaim(1)).ID
	got := l.takeOne("reconciler", id)
	if got.State != recordstore.Planned || got.Checks != 1 {
		l.Errorf("the plan was taken in state %q with %d checks", got.State, got.Checks)
	}
	l.claim(by(newClaim(1), "reconciler"), recordstore.Send)
}

func planNotAfter(l *ledger) {
	c := newClaim(1)
	c.NotAfter = start.Add(time.Hour)
	want := l.planned(c)
	l.clock.advance(time.Hour)
	l.same("the plan that is late", l.claim(newClaim(1), recordstore.Expired), want)
	tx := l.begin()
	l.same("the late plan, planned again", l.plan(tx, newClaim(1), recordstore.Expired), want)
	late := newClaim(2)
	late.NotAfter = start
	l.plan(tx, late, recordstore.Expired)
	l.commit(tx)
	l.absent(identity(2))
}

func planInvalid(l *ledger) {
	tx := l.begin()
	for n, spoil := range []func(*recordstore.Claim){
		func(c *recordstore.Claim) { c.Fingerprints = nil },
		func(c *recordstore.Claim) { c.Fingerprints = [][]byte{{}} },
		func(c *recordstore.Claim) { c.Derivations = nil },
	} {
		c := newClaim(n)
		spoil(&c)
		if _, err := tx.Plan(l.Context(), c); !errors.Is(err, recordstore.ErrInvalid) {
			l.Errorf("plan %d: error is %v, want ErrInvalid", n, err)
		}
	}
	l.plan(tx, newClaim(9), recordstore.Send) // The transaction is not spoiled.
	l.commit(tx)
	for n := range 3 {
		l.absent(identity(n))
	}
	l.stored(identity(9))

	ended, cancel := context.WithCancel(l.Context())
	cancel()
	tx = l.begin()
	if _, err := tx.Plan(ended, newClaim(10)); !errors.Is(err, context.Canceled) {
		l.Errorf("Plan with an ended context: error is %v, want context.Canceled", err)
	}
	if tx.rollback != nil {
		_ = tx.rollback() // The driver may have ended it.
	}
	l.absent(identity(10))
}

func planGridNew(l *ledger) {
	frontier := int32(0)
	if l.can("Forgetter") {
		frontier = today(start) - 10
		l.raise("money", frontier)
	}
	tx := l.begin()
	var wants []recordstore.Record
	n := 0
	each(func(pick []int) {
		c := newClaim(n)
		n++
		day := today(start)
		c.ID.Day = []int32{0, 1, day - 11, day - 10, day - 9, day, day + 1, day + 2}[pick[0]]
		c.NotAfter = []time.Time{{}, start.Add(time.Microsecond), start, start.Add(-time.Hour)}[pick[1]]
		if pick[2] == 1 {
			c.Request = nil
		}
		want, decision := recordstore.Plan(c, nil, frontier, start)
		l.comparePlan(tx, fmt.Sprintf("no record, day %d, not after %d", c.ID.Day-day, pick[1]), c, want, decision)
		want.ID = c.ID
		wants = append(wants, want)
	}, 8, 4, 2)
	l.commit(tx)
	for _, want := range wants {
		if want.State == "" {
			l.absent(want.ID)
		} else {
			l.same("the stored plan", l.stored(want.ID), want)
		}
	}
}

// comparePlan plans and compares the answer with what function Plan said.
func (l *ledger) comparePlan(tx transaction, about string, c recordstore.Claim, want recordstore.Record, decision recordstore.Decision) bool {
	l.Helper()
	got, err := tx.Plan(l.Context(), c)
	if err != nil {
		l.Fatalf("%s: Plan: %v", about, err)
	}
	if got.Decision != decision {
		l.Errorf("%s: decided %q, want %q", about, got.Decision, decision)
	}
	return l.same(about+": returned record", got.Record, want) && got.Decision == decision
}

func planGrid(l *ledger) {
	var all []meeting // One in seven: Plan asks Take, whose every combination another case has asked.
	var recs []recordstore.Record
	for i, m := range meetings() {
		if i%7 == 0 {
			all, recs = append(all, m), append(recs, m.rec)
		}
	}
	l.seed(recs...)
	tx := l.begin()
	wrong := 0
	for _, m := range all {
		want, decision := recordstore.Plan(m.claim, &m.rec, 0, start)
		if !l.comparePlan(tx, m.about, m.claim, want, decision) {
			if wrong++; wrong == enough {
				break
			}
		}
	}
	l.commit(tx)
	for i := 0; i < len(recs) && wrong < enough; i++ {
		if !l.same(all[i].about+": stored record", l.stored(recs[i].ID), recs[i]) {
			wrong++
		}
	}
}
