package recordstore

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// TakenDue returns rec as a reconciler takes it that asks with q, and false
// where it may not: it is not due, somebody holds it, or q's build does not
// understand it. The check is counted before the work, so that a record that
// kills its reconciler ends in review and not in a loop. Should the reconciler
// die, the record is due again when the lease ends.
//
// Taking is no permission to send: SentUntil stays, and Renewed moves it; only a
// restore that may have lost what was sent later does too. A planned record, and one
// of a plan that was not executed, is not claimed by it but only kept from others
// for a lease: an ordinary Claim takes it.
func TakenDue(rec Record, q DueQuery, now time.Time) (Record, bool) {
	if rec.DueAt.IsZero() || now.Before(rec.DueAt) || !q.understands(rec) {
		return rec, false
	}
	switch {
	case rec.State == Planned, rec.State == NotExecuted:
		rec.Checks++
		rec.Version++
		rec.DueAt = now.Add(q.Lease)
		return rec, true
	case rec.State == Uncertain, rec.State == Sending && !now.Before(rec.LeaseEndsAt):
	default:
		return rec, false
	}
	rec = broughtBack(doubted(rec), &rec, q.LostBefore)
	rec.TakenFrom, rec.State = rec.State, Sending
	rec.Holder = q.Holder
	rec.Fence++
	rec.Version++
	rec.Checks++
	rec.ClaimedAt = now
	rec.LeaseEndsAt = now.Add(q.Lease)
	rec.DueAt = rec.LeaseEndsAt
	return rec, true
}

func (q DueQuery) understands(rec Record) bool {
	account := slices.Contains(q.Accounts, rec.Account) ||
		len(q.Accounts) == 0 && strings.HasSuffix(rec.Account, "/"+q.Mode)
	return account && rec.Provider == q.Provider && slices.Contains(q.Derivations, rec.Derivation) &&
		len(rec.Fingerprint) > 0 && slices.Contains(q.Fingerprints, rec.Fingerprint[0]) && rec.SealVersion <= q.SealVersion
}

// Crashed reports whether the sender of rec died without anybody being told.
// Queue.FindCrashed makes such a record due now.
func Crashed(rec Record, now time.Time) bool {
	return rec.State == Sending && rec.DueAt.IsZero() && !now.Before(rec.LeaseEndsAt)
}

// Woken returns rec as an event leaves it that named externalRef: due now if it
// waits for a check; one that is due keeps its turn, so that an event that is
// repeated for ever neither holds it up nor writes. Records in review, and settled ones, only note what they did
// not know: they are not sent again, and a fact about them is a Report.
func Woken(rec Record, externalRef string, now time.Time) Record {
	next := rec
	if next.ExternalRef == "" {
		next.ExternalRef = externalRef
	}
	waits := rec.State == Uncertain || rec.State == Sending && !now.Before(rec.LeaseEndsAt)
	if waits && !past(rec.DueAt, now) {
		next.DueAt = now
	}
	if next.ExternalRef != rec.ExternalRef || !next.DueAt.Equal(rec.DueAt) {
		next.Version++
	}
	return next
}

// Resolved returns rec as a person's verdict leaves it, and ErrNotHeld where rec
// moved since they saw it, is settled by the provider's own word, or may be
// sending. NotExecuted lets the command be sent again; it is refused where the
// record was abandoned or carries a note that the effect is applied.
func Resolved(rec Record, v Verdict, now time.Time) (Record, error) {
	sending := rec.State == Sending && now.Before(rec.LeaseEndsAt)
	contradicts := rec.Noted == Succeeded && v.State != Succeeded
	if rec.Version != v.Version || sending || contradicts || !resolvable(rec.State) || !LegalMove(rec.State, v.State) {
		return rec, ErrNotHeld
	}
	return v.Result.apply(rec, v.State, now), nil
}

func resolvable(s State) bool {
	return s == ManualReview || s == Uncertain || s == Sending || s == Abandoned
}

// Abandonment returns rec with sending forbidden. What was never sent, or
// provably not executed, is Abandoned. Where a delivery may have been applied the
// record is only barred (NotAfter is now) and looking up goes on. Settled records
// stay as they are.
func Abandonment(rec Record, now time.Time) Record {
	switch {
	case rec.State == Planned, rec.State == NotExecuted:
		rec.State, rec.DueAt = Abandoned, time.Time{}
	case rec.State == Sending, rec.State == Uncertain, rec.State == ManualReview:
		rec.NotAfter = earlier(rec.NotAfter, now)
	default:
		return rec
	}
	rec.Version++
	return rec
}

// Turns returns up to limit of the records that TakeDue may take, in the order of
// its turns: of each scope the oldest, then of each scope the next, and so on;
// within one turn the oldest first. Stores that choose in SQL need not visit all
// scopes at once where more of them wait than are taken.
func Turns(due []Record, limit int) []Record {
	due = slices.Clone(due)
	slices.SortStableFunc(due, func(a, b Record) int { return a.DueAt.Compare(b.DueAt) })
	turn := make([]int, len(due)) // Of each record, among those of its scope.
	order := make([]int, len(due))
	taken := map[[32]byte]int{}
	for i, rec := range due {
		order[i], turn[i] = i, taken[rec.Scope]
		taken[rec.Scope]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(turn[a], turn[b]) })
	out := make([]Record, 0, min(limit, len(due)))
	for _, i := range order[:min(limit, len(due))] {
		out = append(out, due[i])
	}
	return out
}

// BacklogOf counts what waits among recs.
func BacklogOf(recs []Record, now time.Time) Backlog {
	var b Backlog
	var ages []time.Duration
	for _, rec := range recs {
		if past(rec.DueAt, now) {
			b.Due++
		}
		switch {
		case rec.State == ManualReview:
			b.Review++
		case rec.State == Uncertain, rec.State == Sending && !now.Before(rec.LeaseEndsAt):
			ages = append(ages, now.Sub(rec.ClaimedAt))
		}
	}
	slices.Sort(ages)
	b.Uncertain = len(ages)
	if len(ages) > 0 {
		b.UncertainP95 = ages[Percentile95(len(ages))]
	}
	return b
}

// Percentile95 returns the index of the 95th percentile among n > 0 values in
// rising order: the first that at least 95 of 100 values do not exceed.
func Percentile95(n int) int { return (95*n+99)/100 - 1 }
