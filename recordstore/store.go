package recordstore

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store is what an author of a ledger implements. Every method is one atomic
// step on the store's own clock and is safe for concurrent use by many
// processes. recordstoretest.Run judges an implementation.
type Store interface {
	// Attach compares p with what the ledger pinned at its first use, and pins it
	// then. It also checks the schema. A difference is ErrPinned, a schema that is
	// too old or too new ErrSchema; both say what to do.
	Attach(ctx context.Context, p Pins) error

	// Claim writes or takes the record of c, as Take decides, in one statement.
	// ErrInvalid for what Claim.Check refuses.
	Claim(ctx context.Context, c Claim) (Claimed, error)

	// Renew prolongs a lease that is still alive, as Renewed says. ErrNotHeld if
	// it ended or was taken over, ErrNotFound if there is no record.
	Renew(ctx context.Context, id ID, holder string, fence int64, lease time.Duration) error

	// Settle ends a claim, as Settled says, in one statement. ErrNotHeld if another
	// claim or a fact came first, or if the record carries a note; the returned
	// record is then what the ledger holds now. A lease that ended is no obstacle
	// as long as nobody took the record. ErrNotFound if there is no record,
	// ErrInvalid for what Settlement.Check refuses.
	Settle(ctx context.Context, s Settlement) (Record, error)

	// Report hands in a fact learned without holding the claim: a stale holder's
	// answer, Succeeded or Refused only. ReportMove decides what becomes of it. The
	// returned record is what the ledger holds afterwards. ErrNotFound if there is
	// no record, ErrInvalid for what Result.Check refuses.
	Report(ctx context.Context, id ID, r Result) (Record, error)

	// Get reads one record and the ledger's clock. ErrNotFound if there is none.
	Get(ctx context.Context, id ID) (Record, time.Time, error)
}

// Pins are what every user of one ledger must have in common.
type Pins struct {
	Derivation string
	Secret     string // Fingerprint of the secret, "none" without one.
}

// Compare compares the pinned p with what a user of the ledger brings. A
// difference is ErrPinned.
func (p Pins) Compare(with Pins) error {
	switch {
	case p.Derivation != with.Derivation:
		return fmt.Errorf("%w: it was made with derivation %q, this client uses %q; "+
			"use a build with the ledger's derivation, or another ledger", ErrPinned, p.Derivation, with.Derivation)
	case p.Secret != with.Secret:
		return fmt.Errorf("%w: the secrets differ; give this client the secret that the ledger was first used with, "+
			"or another ledger", ErrPinned)
	}
	return nil
}

// Durable is an optional ability of a Store: its records outlive the process,
// and outbound.New then wants a decision about bodies.
type Durable interface{ Durable() bool }

// Forgetter is an optional ability of a Store that may lose old evidence: it
// remembers, for each class, the day up to which evidence may be gone. The claims
// of a store without it are never Forgotten.
type Forgetter interface {
	// RaiseFrontier moves the frontier of class up to day, days since 1970. It is
	// never lowered: a smaller day changes nothing. When it returns nil every later
	// claim, of every process, compares with it. Day 0 is never forgotten.
	RaiseFrontier(ctx context.Context, class string, day int32) error
}

// Errors of a Store. All others mean that the ledger could not be asked, and
// that the step may or may not have been taken.
var (
	ErrNotFound = errors.New("recordstore: no such record")
	ErrNotHeld  = errors.New("recordstore: the claim is no longer held")
	ErrPinned   = errors.New("recordstore: the ledger was made with another secret or derivation")
	ErrSchema   = errors.New("recordstore: the ledger's schema does not fit this build")
	ErrInvalid  = errors.New("recordstore: invalid request to the ledger")

	// ErrOverloaded is the end of a claim that this process keeps from the ledger,
	// since too many wait already. Nothing was written: claim again later.
	ErrOverloaded = errors.New("recordstore: too many claims wait for the ledger in this process: claim again later")
)
