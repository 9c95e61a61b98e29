// Package audit compares a ledger with the lists that the provider itself keeps. It
// reads on both sides and changes neither. It compares identities, never amounts: the
// key where the provider states it, the mark on the object, the object's id, and the
// provider's id of the request. What a list cannot show it does not assert.
package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Ledger is what is read of a ledger.
type Ledger interface {
	List(ctx context.Context, q recordstore.ListQuery) (recordstore.Listing, error)
	Get(ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error)
}

// Lister is what is read of a provider. An httpadapter.Adapter is one.
type Lister interface {
	ListEffects(ctx context.Context, q httpadapter.EffectQuery, show func(httpadapter.ListedEffect) error) ([]httpadapter.Coverage, error)
}

// Bounds.
const (
	// DefaultLimit is how many effects, and how many records, are held at once. Each
	// takes about 500 bytes.
	DefaultLimit = 200_000

	maxFindings = 1_000 // of one class that are named; the others are counted

	// margin is how far apart the clocks of ledger, provider and this machine may be.
	// So much more is read on both sides, so that nothing at an edge looks lonely.
	margin = 2 * time.Hour

	// claimMargin is how long before an effect the claim may have begun that made it:
	// longer than any lease, and what comes late of it.
	claimMargin = 6 * time.Hour
)

// ErrTooMany says that the period holds more than is held at once.
var ErrTooMany = errors.New("audit: more than can be held at once")

// Options say what is compared.
type Options struct {
	Provider string
	Account  string // The provider's own id.
	Mode     string // "live", "test", "sandbox".

	// Since and Until are the period, by the ledger's clock. Findings are named for it
	// only, though more is read.
	Since, Until time.Time

	About recordstore.About // Of the ledger.
	Limit int               // Defaults to DefaultLimit.

	// Progress is told what is read and how much of it so far; nil: nobody.
	Progress func(what string, n int)
}

// Class says what a finding is.
type Class string

// The classes of findings.
const (
	Duplicate    Class = "duplicate"    // Two effects of one command, or two records with one effect.
	Foreign      Class = "foreign"      // An effect in this account whose record names another account.
	Unrecorded   Class = "unrecorded"   // An effect bears a ledger's mark or key, and this ledger has no record of it.
	Contradicted Class = "contradicted" // An effect whose record says that there is none.
	Missing      Class = "missing"      // A record says applied, and the provider's complete list has no such effect.
	Unsettled    Class = "unsettled"    // The record's outcome is open, and the effect is there.
	Outside      Class = "outside"      // An effect that nothing connects with a ledger: made by somebody else.
)

// Classes returns all classes, the most alarming first.
func Classes() []Class {
	return []Class{Duplicate, Foreign, Unrecorded, Contradicted, Missing, Unsettled, Outside}
}

// Finding is one disagreement.
type Finding struct {
	Class     Class     `json:"class"`
	Operation string    `json:"operation,omitempty"` // Of the record or, without one, that it can be.
	Command   string    `json:"command,omitempty"`
	Record    string    `json:"record,omitempty"` // The mark, which leads to the record.
	State     string    `json:"state,omitempty"`  // Of the record.
	Refs      []string  `json:"refs,omitempty"`   // The provider's ids of the objects.
	At        time.Time `json:"at,omitzero"`      // Of the effect or, without one, of the claim.
	Why       string    `json:"why"`
}

// Report is what an audit found.
type Report struct {
	Provider string    `json:"provider"`
	Account  string    `json:"account"` // With its mode.
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"`

	Effects  int `json:"effects"`   // Objects of the period that the provider shows.
	Matched  int `json:"matched"`   // Of these with a record that agrees.
	InFlight int `json:"in_flight"` // Of these with a record whose sender is at work.
	Records  int `json:"records"`   // Claimed in the period.

	Findings []Finding     `json:"findings"`
	Counts   map[Class]int `json:"counts"` // Of all findings, those that are not named too.

	NotYetKnown map[string]int `json:"not_yet_known"`  // Applied records that nothing was said of, by the reason.
	NotCompared map[string]int `json:"not_compared"`   // Applied records, by operation, whose effects are in no list.
	Accounts    map[string]int `json:"other_accounts"` // Records of other accounts, that were left alone.

	Lists    []List `json:"lists"`
	Complete bool   `json:"complete"` // Every list was read to its end.
}

// List says what a list of the provider's covered.
type List struct {
	Name       string    `json:"list"`
	Effects    int       `json:"effects"`
	Incomplete string    `json:"incomplete,omitempty"`
	Doubt      string    `json:"doubt,omitempty"`
	UpTo       time.Time `json:"up_to"`
}

// Run compares. An incomplete list is no error: the report says so, and draws no
// conclusion from what the list lacks. It fails where a side cannot be read at all,
// and with ErrTooMany.
func Run(ctx context.Context, ledger Ledger, lists Lister, o Options) (*Report, error) {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.Progress == nil {
		o.Progress = func(string, int) {}
	}
	if !o.Since.Before(o.Until) {
		return nil, fmt.Errorf("audit: the period from %s to %s is empty", o.Since.Format(time.RFC3339), o.Until.Format(time.RFC3339))
	}
	c := newComparison(ledger, o)
	q := httpadapter.EffectQuery{Account: o.Account, From: o.Since.Add(-margin), Until: o.Until.Add(margin)}
	if latest := o.About.Now.Add(margin); q.Until.After(latest) { // the provider's clock may be ahead
		q.Until = latest
	}
	coverage, err := lists.ListEffects(ctx, q, c.effect)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = c.records(ctx)
	}
	if err == nil {
		err = c.fetch(ctx)
	}
	if err != nil {
		return nil, err
	}
	c.judge(coverage)
	return &c.report, nil
}

func (o *Options) account() string { return o.Account + "/" + o.Mode }

// within reports whether a time belongs to the period; one that is not known does.
func (o *Options) within(t time.Time) bool {
	return t.IsZero() || !t.Before(o.Since) && t.Before(o.Until)
}

// shown reports whether an effect belongs to the period by its own time. Where the
// period ends now, a provider whose clock is ahead dates effects after its end.
func (o *Options) shown(at time.Time) bool {
	return o.within(at) || !at.Before(o.Until) && !o.Until.Before(o.About.Now)
}

func tooMany(what string, limit int) error {
	return fmt.Errorf("%w: over %d %s: ask for a shorter time, or raise the limit", ErrTooMany, limit, what)
}
