package recordstore

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

// Take is the decision table of a claim, the one place where it is written.
// rec is the record that c finds, nil for none; frontier is the day up to which
// evidence of c's class may be gone. When the claim holds (Send, Lookup) next is
// the record to write; otherwise next is rec unchanged.
//
// Stores that decide in SQL are held to this function by recordstoretest.
func Take(c Claim, rec *Record, frontier int32, now time.Time) (next Record, d Decision) {
	if rec == nil {
		d = takeNew(&c, frontier, now, &next)
		return next, d
	}
	next = *rec
	if d := c.refuses(rec, now); d != "" {
		return next, d
	}
	if rec.Holder == c.Holder && rec.State == Sending { // our own claim, after an unknown commit
		return next, Held(next, now)
	}
	next.TakenFrom = rec.State
	switch rec.State {
	case Planned, NotExecuted:
		next.Doubt = false
		next.WindowEndsAt = after(now, c.Window)
		next.ReplayUntil = later(rec.ReplayUntil, now.Add(c.Replay))
		next.EvidenceUntil = later(rec.EvidenceUntil, now.Add(c.Evidence))
	default: // Sending with a dead lease, Uncertain
		next = doubted(next)
	}
	next = broughtBack(next, rec, c.LostBefore)
	next.State = Sending
	next.Holder = c.Holder
	next.Fence++
	next.Version++
	next.ClaimedAt = now
	next.LeaseEndsAt = now.Add(c.Lease)
	if rec.State != Uncertain { // its next check stays where it is, however often it is asked for
		next.DueAt = time.Time{}
	}
	next.NotAfter = earlier(rec.NotAfter, c.NotAfter)
	if len(next.Request) == 0 && len(c.Request) > 0 && rec.BodyPurgedAt.IsZero() {
		next.Request, next.SealVersion = c.Request, c.SealVersion
	}
	d = Held(next, now)
	if d == Send {
		next.SentUntil = next.LeaseEndsAt
	}
	return next, d
}

// doubted returns rec with doubt. A ladder of checks begins where the doubt does.
func doubted(rec Record) Record {
	if !rec.Doubt {
		rec.Doubt, rec.Checks = true, 0
	}
	return rec
}

// MayBeBehind reports whether rec was last written before a restore that may have
// lost what was written before lostBefore: then more may have happened to it than
// it says. What counts is the latest of the times that a claim (ClaimedAt), a
// settlement, a report or a verdict (AnsweredAt) and the first write (CreatedAt)
// leave: nothing is sent, and nothing learned, without one of them.
func MayBeBehind(rec Record, lostBefore time.Time) bool {
	return later(later(rec.CreatedAt, rec.ClaimedAt), rec.AnsweredAt).Before(lostBefore)
}

// broughtBack returns next, which is taken from rec, with what a restore makes of
// it: a request may have been written until then, that rec does not know of. A
// record that says that nothing was, or that nothing was accepted, is not believed:
// only a look-up may speak, since the window of what was sent is not known.
func broughtBack(next Record, rec *Record, lostBefore time.Time) Record {
	if !MayBeBehind(*rec, lostBefore) {
		return next
	}
	next.SentUntil = later(rec.SentUntil, lostBefore)
	if rec.State == Planned || rec.State == NotExecuted {
		next = doubted(next)
		next.LookOnly, next.WindowEndsAt = true, time.Time{}
	}
	return next
}

// refuses returns the decision of a claim that may not take rec, or "".
func (c Claim) refuses(rec *Record, now time.Time) Decision {
	known := len(rec.Fingerprint) > 0 && slices.ContainsFunc(c.Fingerprints, func(f []byte) bool {
		return bytes.HasPrefix(f, rec.Fingerprint[:1])
	})
	if !known || !slices.Contains(c.Derivations, rec.Derivation) || rec.SealVersion > c.SealVersion {
		return Newer
	}
	if !slices.ContainsFunc(c.Fingerprints, func(f []byte) bool { return bytes.Equal(f, rec.Fingerprint) }) {
		return Conflict
	}
	switch rec.State {
	case Succeeded, Refused:
		return Replay
	case ManualReview:
		return Review
	case Abandoned:
		return Ended
	case Sending:
		if rec.Holder != c.Holder && now.Before(rec.LeaseEndsAt) {
			return InFlight
		}
	case Planned, NotExecuted:
		if past(earlier(rec.NotAfter, c.NotAfter), now) && !MayBeBehind(*rec, c.LostBefore) {
			return Expired
		}
	}
	return ""
}

// Held returns the decision of the claim that holds rec: Send, or Lookup where
// only a look-up may speak. A key that another maker chose is never sent again by
// us, not even after a proof that nothing was accepted: its maker may still try.
func Held(rec Record, now time.Time) Decision {
	if rec.Noted != "" || rec.LookOnly {
		return Lookup
	}
	if rec.TakenFrom == "" {
		return Send
	}
	if rec.Derivation == Foreign {
		return Lookup
	}
	switch rec.TakenFrom {
	case Planned, NotExecuted:
		return Send
	}
	if !now.Before(rec.WindowEndsAt) || past(rec.NotAfter, now) {
		return Lookup
	}
	return Send
}

// takeNew writes what Take makes of a new command into the zero rec. It hands
// pointers on, as create does, because thousands of callers may wait on the stacks
// that this is called on.
func takeNew(c *Claim, frontier int32, now time.Time, rec *Record) Decision {
	d := c.create(frontier, now, rec)
	if d == Send {
		rec.State, rec.Holder, rec.Fence = Sending, c.Holder, 1
		rec.ClaimedAt, rec.LeaseEndsAt, rec.SentUntil = now, now.Add(c.Lease), now.Add(c.Lease)
		rec.WindowEndsAt = after(now, c.Window)
		if !c.LostBefore.IsZero() { // an earlier record, and what was sent under it, may be lost
			rec.Doubt, rec.LookOnly = true, true
			rec.SentUntil, rec.WindowEndsAt = c.LostBefore, time.Time{}
		}
		d = Held(*rec, now)
	}
	return d
}

// Plan is the decision table of Planner.Plan. A new command becomes a Planned
// record that is due now; its retention counts from the plan. For a record that is
// there the decision is Take's and next is rec unchanged.
func Plan(c Claim, rec *Record, frontier int32, now time.Time) (next Record, d Decision) {
	if rec != nil {
		_, d = Take(c, rec, frontier, now)
		return *rec, d
	}
	d = c.create(frontier, now, &next)
	if d == Send {
		next.State, next.DueAt, next.FromPlan = Planned, now, true
	}
	return next, d
}

// create writes what a new record holds however it begins into the zero rec, or
// returns why there is none.
func (c *Claim) create(frontier int32, now time.Time, rec *Record) Decision {
	switch {
	case c.ID.Day > dayOf(now)+1:
		return Future
	case c.ID.Day != 0 && c.ID.Day <= frontier:
		return Forgotten
	case past(c.NotAfter, now):
		return Expired
	}
	*rec = Record{
		ID: c.ID, Scope: c.Scope, Provider: c.Provider, Account: c.Account,
		Operation: c.Operation, CommandID: c.CommandID, Class: c.Class,
		Derivation: c.Derivation, Fingerprint: c.Fingerprints[0],
		NotAfter: c.NotAfter, CreatedAt: now, Version: 1,
		ReplayUntil: now.Add(c.Replay), EvidenceUntil: now.Add(c.Evidence),
	}
	if len(c.Request) > 0 {
		rec.Request, rec.SealVersion = c.Request, c.SealVersion
	}
	return Send
}

// Settled returns rec as s leaves it, and ErrNotHeld where s may not move it. A
// settlement that was already done returns rec unchanged. It is the one place
// where a settlement is written; stores that settle in SQL are held to it by
// recordstoretest.
func Settled(rec Record, s Settlement, now time.Time) (Record, error) {
	mine := rec.Holder == s.Holder && rec.Fence == s.Fence
	switch {
	case mine && rec.State == Sending && rec.Noted == s.Noted:
		if s.Uncounted {
			rec.Checks = max(0, rec.Checks-1)
		}
		return s.Result.apply(rec, s.State, now), nil
	case mine && rec.State == s.State: // done before, its commit was not known
		return rec, nil
	}
	return rec, ErrNotHeld
}

// Renewed returns rec with its lease prolonged, and ErrNotHeld where holder and
// fence do not hold a live lease. A lease is never shortened. The record becomes
// due when the new lease ends, so that the reconciler finds it should its sender
// die: the sweep behind the newest claims may have passed it by then. One whose
// check was due already when it was taken keeps that. A request may be written as
// long as the new lease lives: whoever took a record to look up only renews before
// it sends.
func Renewed(rec Record, holder string, fence int64, lease time.Duration, now time.Time) (Record, error) {
	if rec.State != Sending || rec.Holder != holder || rec.Fence != fence || !now.Before(rec.LeaseEndsAt) {
		return rec, ErrNotHeld
	}
	waits := hasTurn(rec)
	rec.LeaseEndsAt = later(rec.LeaseEndsAt, now.Add(lease))
	if !waits {
		rec.DueAt = rec.LeaseEndsAt
	}
	rec.SentUntil = rec.LeaseEndsAt
	rec.Version++
	return rec, nil
}

// hasTurn reports whether a check of rec was due already when its holder took it.
// A due time that is the end of the lease only guards the holder.
func hasTurn(rec Record) bool { return !rec.DueAt.IsZero() && !rec.DueAt.Equal(rec.LeaseEndsAt) }

// Reported returns rec as a fact leaves it that is handed in without the claim.
func Reported(rec Record, r Result, now time.Time) Record {
	to, note := ReportMove(rec, r.State, now)
	if to == "" {
		return rec
	}
	next := r.apply(rec, to, now)
	if note {
		next.Noted, next.Request, next.DueAt, next.LookOnly = r.State, rec.Request, rec.DueAt, rec.LookOnly
	}
	return next
}

func (r Result) apply(rec Record, to State, now time.Time) Record {
	rec.DueAt = r.dueAt(rec, to, now)
	rec.State, rec.Noted = to, ""
	rec.LookOnly, rec.Blurred = to == Uncertain && (rec.LookOnly || r.LookOnly), rec.Blurred || r.Blurred
	if to == NotExecuted {
		rec.Doubt = false // settled only on a proof
	}
	rec.Evidence, rec.Outcome, rec.ErrorCode = r.Evidence, r.Outcome, r.ErrorCode
	rec.Deliveries += r.Deliveries
	rec.ResponseStatus, rec.ResponseHeader, rec.ResponseBody = r.ResponseStatus, nil, nil
	if rec.BodyPurgedAt.IsZero() { // what was erased does not come back
		rec.ResponseHeader, rec.ResponseBody = r.ResponseHeader, r.ResponseBody
	}
	rec.SealVersion = max(rec.SealVersion, r.SealVersion)
	rec.ExternalRef = cmp.Or(r.ExternalRef, rec.ExternalRef)
	rec.ObjectStatus = cmp.Or(r.ObjectStatus, rec.ObjectStatus)
	rec.RequestID = cmp.Or(r.RequestID, rec.RequestID)
	rec.AnsweredAt = now
	if to.Final() {
		rec.Request = nil
	}
	rec.Version++
	return rec
}

// dueAt is when rec is due that moves to a state. Asking again puts no check off:
// one that was due when rec was taken over stays due then. What was not executed is
// its caller's to send again, but for a plan, which has none.
func (r Result) dueAt(rec Record, to State, now time.Time) time.Time {
	switch {
	case r.DueIn <= 0, to == NotExecuted && !rec.FromPlan:
		return time.Time{}
	case to == Uncertain && hasTurn(rec):
		return rec.DueAt
	}
	return now.Add(r.DueIn)
}

// ReportMove decides what becomes of a fact that is handed in without the
// claim: the state that the record moves to, and whether the fact is only noted
// because another holder's lease is alive. to is "" where nothing changes.
//
// Applied outranks every None, a noted one included; a refusal outranks only what
// is not settled, or was settled as applied by a person's verdict alone. What is
// neither Succeeded nor Refused is no fact.
func ReportMove(rec Record, fact State, now time.Time) (to State, note bool) {
	if !fact.Final() {
		return "", false
	}
	switch rec.State {
	case Sending:
		live := now.Before(rec.LeaseEndsAt)
		switch {
		case rec.Noted == Succeeded && fact != Succeeded, live && rec.Noted == fact:
			return "", false
		case live:
			return Sending, true
		}
		return fact, false
	case Uncertain, NotExecuted:
		return fact, false
	case ManualReview, Abandoned:
		if fact == Succeeded {
			return Succeeded, false
		}
	case Refused:
		if fact == Succeeded {
			return ManualReview, false
		}
	case Succeeded: // a person may have been wrong
		if fact == Refused && rec.Evidence == byOperator {
			return ManualReview, false
		}
	}
	return "", false
}

// byOperator is the Evidence of a person's verdict, replaysemantics.ByOperator.
const byOperator = "operator"

// LegalMove reports whether a record may go from one state to another. "" stands
// for a record that is not there yet.
func LegalMove(from, to State) bool {
	return slices.Contains(legal[from], to)
}

// legal is the table of legal moves. It never changes at run time.
var legal = map[State][]State{
	"":           {Planned, Sending},
	Planned:      {Sending, Abandoned},
	Sending:      {Sending, Succeeded, Refused, NotExecuted, Uncertain, ManualReview},
	NotExecuted:  {Sending, Succeeded, Refused, Abandoned},
	Uncertain:    {Sending, Succeeded, Refused, NotExecuted, ManualReview, Abandoned},
	ManualReview: {Succeeded, Refused, NotExecuted, Abandoned},
	Refused:      {ManualReview},
	Abandoned:    {Succeeded, Refused},
	Succeeded:    {ManualReview},
}

func after(now time.Time, d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return now.Add(d)
}

func past(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
