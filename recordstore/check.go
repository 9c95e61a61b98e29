package recordstore

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Check returns ErrInvalid for a claim that no ledger may write. Stores call it
// first: it is cheaper than a row that nobody can take again.
func (c Claim) Check() error {
	switch {
	case c.Holder == "":
		return fmt.Errorf("%w: the claim has no holder", ErrInvalid)
	case c.Lease <= 0:
		return fmt.Errorf("%w: the claim has no lease", ErrInvalid)
	}
	return c.CheckPlan()
}

// CheckPlan returns ErrInvalid for a claim that no ledger may write as a plan.
func (c Claim) CheckPlan() error {
	switch {
	case len(c.Fingerprints) == 0 || slices.ContainsFunc(c.Fingerprints, func(f []byte) bool { return len(f) == 0 }):
		return fmt.Errorf("%w: the claim has no fingerprint, or an empty one", ErrInvalid)
	case !slices.Contains(c.Derivations, c.Derivation):
		return fmt.Errorf("%w: the claim's own derivation is not among those it knows", ErrInvalid)
	}
	return nil
}

// Check returns ErrInvalid for a state that no claim can settle to, and for an
// entry that no trail takes.
func (s Settlement) Check() error {
	if s.State == Sending || !LegalMove(Sending, s.State) {
		return fmt.Errorf("%w: a claim cannot settle to state %q", ErrInvalid, s.State)
	}
	return s.Result.Check()
}

// Check returns ErrInvalid for a result with an entry that no trail takes. A
// report of what is no fact is no error: it changes nothing.
func (r Result) Check() error {
	if r.Entry == nil {
		return nil
	}
	return r.Entry.Check()
}

// Check returns ErrInvalid for a query that would take nothing, or records that
// nobody could hold.
func (q DueQuery) Check() error {
	switch {
	case q.Holder == "":
		return fmt.Errorf("%w: the query for due records has no holder", ErrInvalid)
	case q.Lease <= 0:
		return fmt.Errorf("%w: the query for due records has no lease", ErrInvalid)
	case q.Limit < 1 || q.Limit > MaxTake:
		return fmt.Errorf("%w: the query for due records takes between 1 and %d, not %d", ErrInvalid, MaxTake, q.Limit)
	case len(q.Accounts) == 0 && q.Mode == "":
		return fmt.Errorf("%w: the query for due records names neither accounts nor a mode", ErrInvalid)
	}
	return nil
}

// Check returns ErrInvalid for a verdict that is none, or that nobody answers for.
func (v Verdict) Check() error {
	switch {
	case v.State != Succeeded && v.State != Refused && v.State != NotExecuted:
		return fmt.Errorf("%w: a verdict says succeeded, refused or not_executed, not %q", ErrInvalid, v.State)
	case v.Entry == nil || v.Entry.Actor == "" || v.Entry.Text == "":
		return fmt.Errorf("%w: a verdict needs a name and a reason", ErrInvalid)
	}
	return v.Entry.Check()
}

const (
	maxActor = 255   // Bytes.
	maxText  = 2_000 // Bytes.
)

// Check returns ErrInvalid for an entry that is not one line of bounded length.
func (e Entry) Check() error {
	switch {
	case e.Kind == "" || len(e.Kind) > maxActor || !oneLine(e.Kind):
		return fmt.Errorf("%w: the entry for the trail has no kind", ErrInvalid)
	case len(e.Actor) > maxActor || !oneLine(e.Actor):
		return fmt.Errorf("%w: the actor in the trail is one line of at most %d bytes", ErrInvalid, maxActor)
	case len(e.Text) > maxText || !oneLine(e.Text):
		return fmt.Errorf("%w: the text in the trail is one line of at most %d bytes", ErrInvalid, maxText)
	}
	return nil
}

// oneLine reports whether s can be shown on one line and kept by any database.
func oneLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
