package recordstore

import (
	"context"
	"errors"
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
	Claim(ctx context.Context, c Claim) (Claimed, error)

	// Renew prolongs a lease that is still held. ErrNotHeld if it is not.
	Renew(ctx context.Context, id ID, holder string, fence int64, lease time.Duration) error

	// Settle ends a claim, in one statement. ErrNotHeld if another claim or a fact
	// came first, or if the record carries a note; the returned record is then
	// what the ledger holds now.
	Settle(ctx context.Context, s Settlement) (Record, error)

	// Report hands in a fact learned without holding the claim: a stale holder's
	// answer, Succeeded or Refused only. ReportMove decides what becomes of it. The
	// returned record is what the ledger holds afterwards.
	Report(ctx context.Context, id ID, r Result) (Record, error)

	// Get reads one record and the ledger's clock. ErrNotFound if there is none.
	Get(ctx context.Context, id ID) (Record, time.Time, error)
}

// Pins are what every user of one ledger must have in common.
type Pins struct {
	Derivation string
	Secret     string // Fingerprint of the secret, "none" without one.
}

// Durable is an optional ability of a Store: its records outlive the process,
// and outbound.New then wants a decision about bodies.
type Durable interface{ Durable() bool }

// Errors of a Store. All others mean that the ledger could not be asked, and
// that the step may or may not have been taken.
var (
	ErrNotFound = errors.New("recordstore: no such record")
	ErrNotHeld  = errors.New("recordstore: the claim is no longer held")
	ErrPinned   = errors.New("recordstore: the ledger was made with another secret or derivation")
	ErrSchema   = errors.New("recordstore: the ledger's schema does not fit this build")
)
