package recordstore

import (
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
// Taking is no permission to send: SentUntil stays, and Renewed moves it. A
// planned record is not claimed by it but only kept from others for a lease: it
// was never sent, and an ordinary Claim takes it.
func TakenDue(rec Record, q DueQuery, now time.Time) (Record, bool) {
	if rec.DueAt.IsZero() || now.Before(rec.DueAt) || !q.understands(rec) {
		return rec, false
	}
	switch {
	case rec.State == Planned:
		rec.Checks++
		rec.Version++
		rec.DueAt = now.Add(q.Lease)
		return rec, true
	case rec.State == Uncertain, rec.State == Sending && !now.Before(rec.LeaseEndsAt):
	default:
		return rec, false
	}
	rec.TakenFrom, rec.State, rec.Doubt = rec.State, Sending, true
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
func Crashed(rec Record, now time.Time) bool {
	return rec.State == Sending && rec.DueAt.IsZero() && !now.Before(rec.LeaseEndsAt)
}

// Woken returns rec as an event leaves it that named externalRef: due now if it
// waits for a check. Records in review, and settled ones, only note what they did
// not know: they are not sent again, and a fact about them is a Report.
func Woken(rec Record, externalRef string, now time.Time) Record {
	next := rec
	if next.ExternalRef == "" {
		next.ExternalRef = externalRef
	}
	if rec.State == Uncertain || rec.State == Sending && !now.Before(rec.LeaseEndsAt) {
		next.DueAt = now
	}
	if next.ExternalRef != rec.ExternalRef || !next.DueAt.Equal(rec.DueAt) {
		next.Version++
	}
	return next
}

// Resolved returns rec as a person's verdict leaves it, and ErrNotHeld where rec
// moved since they saw it, is settled by the provider's own word, or may be
// sending. NotExecuted lets the command be sent again.
func Resolved(rec Record, v Verdict, now time.Time) (Record, error) {
	sending := rec.State == Sending && now.Before(rec.LeaseEndsAt)
	if rec.Version != v.Version || sending || !resolvable(rec.State) {
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
