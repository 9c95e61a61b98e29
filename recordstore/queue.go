package recordstore

import (
	"context"
	"time"
)

// Queue is an optional ability of a Store: it hands records to the reconciler
// and tells how much waits. outbound.NewReconciler wants it.
type Queue interface {
	// TakeDue takes up to q.Limit records that are due, as TakenDue says, in one
	// step that commits before it returns: oldest first, in turn over scopes as Turns
	// says, so that one owner's thousands do not keep another's one waiting. Records
	// that another process is taking right now are passed over, not waited for. The
	// records come back in no order. ErrInvalid for what DueQuery.Check refuses.
	TakeDue(ctx context.Context, q DueQuery) ([]Record, time.Time, error)

	// FindCrashed makes records due now whose sender died, as Crashed says: Sending,
	// the lease over, not due. Version is raised, nothing else changes. It looks at
	// what was claimed since a watermark that the ledger keeps, and with full at all
	// records. It returns how many it found, at most limit; a full answer means
	// that there may be more.
	FindCrashed(ctx context.Context, full bool, limit int) (int, error)

	// Wake makes a record due now that waits for a check, as Woken says: Uncertain,
	// or Sending with a dead lease. Every record notes externalRef where it knew
	// none. The returned record is what the ledger holds afterwards. ErrNotFound if
	// there is none.
	Wake(ctx context.Context, id ID, externalRef string) (Record, error)

	// Backlog tells how much waits, for one provider, as BacklogOf counts. It may
	// miss a dead sender that was claimed before FindCrashed's watermark.
	Backlog(ctx context.Context, provider string) (Backlog, error)
}

// DueQuery asks for work that the asking build understands.
type DueQuery struct {
	Provider     string
	Accounts     []string // With mode, "acct_1Nv0/live". Empty: every account of Mode.
	Mode         string
	Derivations  []string
	Fingerprints []byte    // Versions.
	SealVersion  int       // The highest.
	LostBefore   time.Time // As a Claim's.
	Holder       string    // Random claim id for all that are taken.
	Lease        time.Duration
	Limit        int // At most MaxTake.
}

// Backlog is what waits in a ledger.
type Backlog struct {
	Due          int           // Records that are due now.
	Uncertain    int           // Uncertain, or Sending with a dead lease.
	UncertainP95 time.Duration // Their age since the last claim, 95th percentile.
	Review       int           // In manual review.
}

// MaxTake bounds what one TakeDue takes.
const MaxTake = 10_000

// Desk is an optional ability of a Store: what people do with records, and the
// trail that shows it. A store that has it also appends Result.Entry of a
// settlement, a report and a verdict. An entry is appended in the step that it
// tells of, and only if that step changed the record. ErrNotFound if there is no
// record, ErrInvalid for what Verdict.Check and Entry.Check refuse.
type Desk interface {
	// Resolve moves a record by a person's verdict, as Resolved says. ErrNotHeld,
	// with the record, if it moved since the version that the person saw.
	Resolve(ctx context.Context, v Verdict) (Record, error)

	// Abandon forbids sending, as Abandonment says, and notes e in the trail.
	Abandon(ctx context.Context, id ID, e Entry) (Record, error)

	// Erase removes the sealed bodies of a record now, as Erased says, and notes e
	// in the trail. The evidence stays.
	Erase(ctx context.Context, id ID, e Entry) (Record, error)

	// Trail returns the entries of a record, oldest first, at most the last MaxTrail.
	Trail(ctx context.Context, id ID) ([]Entry, error)
}

// MaxTrail is how many entries of a record's trail are shown.
const MaxTrail = 1_000

// Verdict is a person's decision about a record that they saw in Version.
type Verdict struct {
	ID      ID
	Version int64
	Result  // State Succeeded, Refused or NotExecuted; Entry is required.
}

// Entry is one line of a record's trail: what happened to it beyond an ordinary
// call. Stores set At, From, To and Version.
type Entry struct {
	At       time.Time
	Version  int64 // Of the record afterwards.
	From, To State
	Kind     string // "takeover", "plan", "resend", "lookup", "report", "webhook", "verdict", "abandon", "erase", "purge".
	Actor    string // A person's name, or what part of the software.
	Text     string // The reason, or what was seen; one line, no bodies.
}

// Stamped returns e as it stands in the trail of a record that a step at now
// moved from before to after.
func (e Entry) Stamped(before, after Record, now time.Time) Entry {
	e.At, e.Version, e.From, e.To = now, after.Version, before.State, after.State
	return e
}

// Purger is an optional ability of a Store: it removes what retention allows.
type Purger interface {
	// Purge removes up to limit bodies, as Emptied says, and then up to limit records
	// whose time is over, in short steps that hold no lock for long. Before a record
	// goes, as Purgeable says, the frontier of its class is raised to its day, and to
	// no later one, in a transaction of its own; its trail goes with it. Records that
	// are not settled stay. Records of day 0 shrink to a Tombstone without a trail.
	Purge(ctx context.Context, limit int) (Purged, error)
}

// Purged counts what one Purge removed; both zero means that nothing is left to
// remove now.
type Purged struct {
	Bodies  int // Records whose bodies went.
	Records int // Records that were deleted or shrank to a tombstone.
}

// Restorer is an optional ability of a Store: it remembers that the ledger was
// restored from a backup, so that records may be lost.
type Restorer interface {
	// MarkRestored notes that records written before t may be lost; the zero time
	// lifts it.
	MarkRestored(ctx context.Context, t time.Time) error

	// Restored returns what was noted, or the zero time.
	Restored(ctx context.Context) (time.Time, error)
}

// Planner writes a planned record inside a transaction of the caller. Stores
// make one of a transaction: postgres.Store.Tx, sqlite.Store.Tx.
type Planner interface {
	// Plan writes a record in state Planned, due now, as function Plan says, unless
	// one is there: then the decision says what was found, as Take would, and nothing
	// changes; Send stands for a record that was planned alike before, and its
	// Record tells it from a new one. Holder, Lease and Window of c do not matter.
	// ErrInvalid for what Claim.CheckPlan refuses.
	Plan(ctx context.Context, c Claim) (Claimed, error)
}
