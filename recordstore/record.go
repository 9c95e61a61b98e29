// Package recordstore is the ledger's contract. Services use one of its stores
// (memory, sqlite, postgres) through package outbound; authors of stores
// implement Store and prove it with package recordstoretest.
package recordstore

import (
	"time"
)

// ID is a record's identity and primary key. A provider's key and the mark on
// its object both lead to it without an index.
type ID struct {
	Day     int32    // Days since 1970 of the command's own time; 0 if it carries none.
	KeyHash [16]byte // Of the provider key, which is stored nowhere.
}

// State is where a record stands.
type State string

// The states of a record. Legal moves between them: LegalMove.
const (
	Planned      State = "planned"       // Written with the caller's change, never sent.
	Sending      State = "sending"       // Claimed: a delivery may be on its way.
	Succeeded    State = "succeeded"     // The effect is applied. Final.
	Refused      State = "refused"       // The provider decided against it. Final.
	NotExecuted  State = "not_executed"  // Proved that no delivery was accepted: may be sent again.
	Uncertain    State = "uncertain"     // A delivery may have been applied.
	ManualReview State = "manual_review" // Nobody but a person can tell.
	Abandoned    State = "abandoned"     // A person forbade sending.
)

// Record is one row of the ledger. What is known of the effect is a function of
// State and Doubt and is stored nowhere. Sealed fields are opaque to stores.
// Zero times stand for NULL, all others are UTC and whole microseconds: finer
// parts are cut off. Empty and nil bytes are the same.
type Record struct {
	ID          ID
	Scope       [32]byte // SHA-256 of the scope.
	Provider    string
	Account     string // The provider's account id and mode, "acct_1Nv0/live".
	Operation   string
	CommandID   string // With its step.
	Class       string // "money", "object", "notification": decides retention.
	Derivation  string // How the key was made; Foreign for a key that is not ours.
	Fingerprint []byte // Version byte first.

	State     State
	Doubt     bool   // An earlier claim may have delivered, its answer is not known.
	TakenFrom State  // The state that the last claim found; "" for a new record.
	FromPlan  bool   // It began as a plan: while it is NotExecuted it is due, and the reconciler sends it again.
	Noted     State  // While Sending: Succeeded or Refused, a fact handed in by somebody who does not hold the claim.
	LookOnly  bool   // The answers so far teach nothing more by a resend: only a look-up may speak.
	Blurred   bool   // An answer so far makes absence no proof: a stored 500, or one that spoke of another delivery.
	Evidence  string // What the answer's label rests on.
	Outcome   string // What the provider made of an applied effect: done, pending, partial.

	Holder       string    // Claim id of the last claim.
	Fence        int64     // Raised by every claim.
	ClaimedAt    time.Time // Of the last claim.
	LeaseEndsAt  time.Time
	Deliveries   int       // Of all claims, as far as they were settled.
	WindowEndsAt time.Time // Until then the provider deduplicates; zero: not known, never resent later.
	SentUntil    time.Time // End of the last lease under which a request may have been written, or the restore that may have lost later ones; zero: none was.

	SealVersion int    // Format of the sealed fields; 0 where there are none.
	Request     []byte // Sealed; cleared by the final settle.

	ResponseStatus int
	ResponseHeader []byte // Sealed.
	ResponseBody   []byte // Sealed.
	ExternalRef    string // The provider's id of the object.
	ObjectStatus   string // In the provider's words.
	RequestID      string // The provider's id of the exchange.
	ErrorCode      string // Our code of a refusal and the provider's, "refused:card_declined".
	AnsweredAt     time.Time

	DueAt         time.Time // When the reconciler looks next; zero through an ordinary call. While Sending: the lease's end, or the check that was due when a call took the record over.
	Checks        int       // Of the reconciler, since the doubt or the plan began.
	NotAfter      time.Time // Never sent after it.
	ReplayUntil   time.Time
	EvidenceUntil time.Time // Zero in a tombstone.
	BodyPurgedAt  time.Time
	CreatedAt     time.Time
	Version       int64 // Raised by every change.
}

// Foreign is the Derivation of a record whose key another maker chose: it is
// replayed or looked up, never resent.
const Foreign = "foreign"

// Claim asks for the right to send. It is repeatable: the same Claim after an
// unknown commit finds its own Holder and gets the same answer.
type Claim struct {
	ID           ID
	Scope        [32]byte
	Provider     string
	Account      string
	Operation    string
	CommandID    string
	Class        string
	Derivation   string
	Derivations  []string // All that this build knows, Foreign included.
	Fingerprints [][]byte // All versions that count as the same request, the one to write first.
	SealVersion  int      // Of Request, the newest that this build knows.
	Request      []byte   // Sealed frozen request; nil: keep none.
	Holder       string   // Random claim id.
	Lease        time.Duration
	Window       time.Duration // From now, the margin taken off; 0: none.
	NotAfter     time.Time     // Zero: none.
	LostBefore   time.Time     // What was written before may be lost, whole records too, so that what is older begins in doubt; zero: nothing was.
	Replay       time.Duration // Retention, from now: of a new record, and at least that of one that is sent anew.
	Evidence     time.Duration
}

// Decision is what a claim found.
type Decision string

// The decisions of a claim. Send and Lookup hold the claim; all others hold
// nothing and changed nothing.
const (
	Send      Decision = "send"      // The record is claimed: send.
	Lookup    Decision = "lookup"    // The record is claimed, but only a look-up may speak: the window is closed, there is no key, or time is up.
	Replay    Decision = "replay"    // Succeeded or Refused: the recorded answer.
	Conflict  Decision = "conflict"  // Another fingerprint.
	Newer     Decision = "newer"     // Written by a build that this one does not understand.
	InFlight  Decision = "in_flight" // Claimed by another, its lease alive.
	Review    Decision = "review"    // In manual review.
	Ended     Decision = "abandoned" // Abandoned.
	Forgotten Decision = "forgotten" // No record, and older than the ledger remembers.
	Future    Decision = "future"    // More than one day ahead of the ledger's clock.
	Expired   Decision = "expired"   // Past NotAfter and not sent before.
)

// Claimed is a claim's answer.
type Claimed struct {
	Decision Decision
	Record   Record    // After the claim; zero for Forgotten, Future and a new command that is Expired.
	Now      time.Time // The ledger's clock.
}

// Settlement is what a holder learned. It moves a Sending record by
// compare-and-set on Holder and Fence, and is repeatable: once done, the same
// Settlement succeeds again and changes nothing.
type Settlement struct {
	ID     ID
	Holder string
	Fence  int64
	Noted  State // The note that this settlement takes into account; "" in an ordinary call.

	// Uncounted takes back the check that TakeDue counted: it did not come to it.
	Uncounted bool

	Result
}

// Result is what a Settlement or a Report writes.
type Result struct {
	State          State // Succeeded, Refused, NotExecuted, Uncertain or ManualReview.
	Evidence       string
	Outcome        string
	Deliveries     int // To be added.
	ResponseStatus int
	SealVersion    int    // Of the sealed fields; not lowered.
	ResponseHeader []byte // Sealed.
	ResponseBody   []byte // Sealed.
	ExternalRef    string // "" keeps what is known; so for the next two.
	ObjectStatus   string
	RequestID      string
	ErrorCode      string
	LookOnly       bool          // For Uncertain; once true it stays.
	Blurred        bool          // Once true it stays.
	DueIn          time.Duration // From now, for Uncertain, and for NotExecuted of a plan; 0: not due. A check that was due before a call took the record over stays where it was.
	Entry          *Entry        // Appended to the trail in the same step; nil: none.
}

// Final reports whether a settlement to s ends the record, so that its frozen
// request goes.
func (s State) Final() bool { return s == Succeeded || s == Refused }
