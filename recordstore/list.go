package recordstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Lister is an optional ability of a Store: it shows people what a ledger holds.
// It takes no claim, changes nothing and keeps no call waiting.
type Lister interface {
	// List returns the records that q asks for, as ListingOf says, without their
	// sealed fields. ErrInvalid for what ListQuery.Check refuses, ErrTooLong where
	// they are not found in time.
	List(ctx context.Context, q ListQuery) (Listing, error)

	// Tally counts the records that f lets through, as TallyOf says. It reads all of
	// them; ErrTooLong where that takes too long.
	Tally(ctx context.Context, f Filter) ([]Tally, error)

	// About tells what the ledger says of itself. ErrSchema where there is no ledger
	// that this build can read.
	About(ctx context.Context) (About, error)
}

// ErrTooLong says that a list or a tally was given up, so that people's questions
// do not weigh on payments.
var ErrTooLong = errors.New("recordstore: the ledger is too large to answer this in time: narrow the question, " +
	"as to a command, a provider with a state, or a span of time")

// Filter says which records are asked for. The zero value lets all through.
type Filter struct {
	States    []State // Empty: any.
	Open      bool    // Only what IsOpen reports. Stores find these quickly, however many others there are.
	Provider  string
	Account   string // With its mode, "acct_1Nv0/live".
	Operation string
	Class     string

	// CommandID asks for the records of a command and of its steps. Day is the one
	// that the ID carries, as in ID.Day, and counts only with it: what is read is
	// that day's part of the ledger.
	CommandID string
	Day       int32

	ExternalRef string // The provider's id of the object, in full.
	RequestID   string // The provider's id of the exchange, in full.

	// After and Before bound Since: not before After, and before Before. Zero: no
	// bound.
	After, Before time.Time
}

// Since returns when the last claim of rec began or, where nobody ever claimed it,
// when it was planned: what lists of records are sorted by.
func Since(rec Record) time.Time {
	if rec.ClaimedAt.IsZero() {
		return rec.CreatedAt
	}
	return rec.ClaimedAt
}

// IsOpen reports whether the outcome of rec is still open and nobody is at work on
// it: planned, of a plan that was turned away and is due again, uncertain, in review,
// or being sent by somebody whose lease is over.
func IsOpen(rec Record, now time.Time) bool {
	switch rec.State {
	case Planned, Uncertain, ManualReview:
		return true
	case NotExecuted:
		return !rec.DueAt.IsZero()
	case Sending:
		return !now.Before(rec.LeaseEndsAt)
	}
	return false
}

// Matches reports whether f lets rec through.
func (f Filter) Matches(rec Record, now time.Time) bool {
	for _, pair := range [][2]string{
		{f.Provider, rec.Provider}, {f.Account, rec.Account}, {f.Operation, rec.Operation}, {f.Class, rec.Class},
		{f.ExternalRef, rec.ExternalRef}, {f.RequestID, rec.RequestID},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	since := Since(rec)
	switch {
	case len(f.States) > 0 && !slices.Contains(f.States, rec.State),
		f.Open && !IsOpen(rec, now),
		!f.After.IsZero() && since.Before(f.After),
		!f.Before.IsZero() && !since.Before(f.Before):
		return false
	case f.CommandID == "":
		return true
	}
	return f.Day == rec.ID.Day && (rec.CommandID == f.CommandID || strings.HasPrefix(rec.CommandID, f.CommandID+"/"))
}

// Order is what a list begins with.
type Order string

// The orders. Records of one time stand by their identity.
const (
	OldestFirst Order = ""         // By Since.
	NewestFirst Order = "newest"   // By Since, and by identity, backwards.
	ByIdentity  Order = "identity" // By day and key hash: to read a whole ledger page by page.
)

// MaxList bounds one page of a list.
const MaxList = 1_000

// ListQuery asks for one page of a list.
type ListQuery struct {
	Filter
	Order Order
	From  *Place // Where the page begins, Listing.Next of the page before; nil: at the beginning.
	Limit int    // 1 to MaxList.
}

// Waiting returns the states of a query that asks only for such as are few in a
// ledger, whatever its size, so that a store may read them along its indexes; false
// for every other query.
func (q ListQuery) Waiting() ([]State, bool) {
	few := []State{Planned, Sending, Uncertain, ManualReview}
	if q.Open {
		few = append(few, NotExecuted)
	}
	if q.Order == ByIdentity || q.CommandID != "" {
		return nil, false
	}
	if len(q.States) == 0 {
		return few, q.Open
	}
	var asked []State
	for _, state := range slices.Compact(slices.Sorted(slices.Values(q.States))) {
		if slices.Contains(few, state) {
			asked = append(asked, state)
		} else if !q.Open {
			return nil, false
		}
	}
	return asked, len(asked) > 0
}

// Place is a place in a list. It stays one when records come and go; a record that
// is claimed again moves to the place of its new claim.
type Place struct {
	Since time.Time
	ID    ID
}

// Check returns ErrInvalid for a query that no store can answer.
func (q ListQuery) Check() error {
	switch {
	case q.Limit < 1 || q.Limit > MaxList:
		return fmt.Errorf("%w: a page of a list has 1 to %d records, not %d", ErrInvalid, MaxList, q.Limit)
	case q.Order != OldestFirst && q.Order != NewestFirst && q.Order != ByIdentity:
		return fmt.Errorf("%w: there is no order %q", ErrInvalid, q.Order)
	}
	return nil
}

// Listing is one page of a list.
type Listing struct {
	Records []Listed
	Next    *Place    // Of the last record, where more follow; nil: these were the last.
	Now     time.Time // The ledger's clock.
}

// Listed is a record without its sealed fields, which may be large; Store.Get has
// them.
type Listed struct {
	Record
	Sealed int // Bytes of the sealed fields.
}

// Unsealed returns rec as a list shows it.
func Unsealed(rec Record) Listed {
	l := Listed{rec, len(rec.Request) + len(rec.ResponseHeader) + len(rec.ResponseBody)}
	l.Request, l.ResponseHeader, l.ResponseBody = nil, nil, nil
	return l
}

// ListingOf returns the page of recs that q asks for: what stores are held to.
func ListingOf(recs []Record, q ListQuery, now time.Time) Listing {
	list := Listing{Now: now}
	for _, rec := range recs {
		if q.Matches(rec, now) && (q.From == nil || q.Order.compare(*q.From, placeOf(rec)) < 0) {
			list.Records = append(list.Records, Unsealed(rec))
		}
	}
	slices.SortFunc(list.Records, func(a, b Listed) int { return q.Order.compare(placeOf(a.Record), placeOf(b.Record)) })
	return list.Cut(q.Limit)
}

// Cut returns l with at most limit records, and with the place where the next page
// begins if there were more. Stores read one record more than they are asked for.
func (l Listing) Cut(limit int) Listing {
	if len(l.Records) > limit {
		l.Records = l.Records[:limit]
		next := placeOf(l.Records[limit-1].Record)
		l.Next = &next
	}
	return l
}

func placeOf(rec Record) Place { return Place{Since(rec), rec.ID} }

func (o Order) compare(a, b Place) int {
	byID := cmp.Or(cmp.Compare(a.ID.Day, b.ID.Day), bytes.Compare(a.ID.KeyHash[:], b.ID.KeyHash[:]))
	switch o {
	case ByIdentity:
		return byID
	case NewestFirst:
		return -cmp.Or(a.Since.Compare(b.Since), byID)
	}
	return cmp.Or(a.Since.Compare(b.Since), byID)
}

// Tally counts the records of one provider, operation, class and state.
type Tally struct {
	Provider, Operation, Class string

	State          State
	Records        int
	Open           int       // Of these what IsOpen reports.
	Oldest, Newest time.Time // By Since.
	Sealed         int64     // Bytes of the sealed fields.
}

// TallyOf counts those of recs that f lets through, sorted by provider, operation,
// class and state: what stores are held to.
func TallyOf(recs []Record, f Filter, now time.Time) []Tally {
	type group struct {
		provider, operation, class string
		state                      State
	}
	counts := map[group]*Tally{}
	for _, rec := range recs {
		if !f.Matches(rec, now) {
			continue
		}
		g, since := group{rec.Provider, rec.Operation, rec.Class, rec.State}, Since(rec)
		t := counts[g]
		if t == nil {
			t = &Tally{Provider: g.provider, Operation: g.operation, Class: g.class, State: g.state, Oldest: since, Newest: since}
			counts[g] = t
		}
		t.Records++
		t.Sealed += int64(Unsealed(rec).Sealed)
		if IsOpen(rec, now) {
			t.Open++
		}
		if since.Before(t.Oldest) {
			t.Oldest = since
		}
		if since.After(t.Newest) {
			t.Newest = since
		}
	}
	var all []Tally
	for _, t := range counts {
		all = append(all, *t)
	}
	SortTallies(all)
	return all
}

// SortTallies sorts by provider, operation, class and state, byte by byte.
func SortTallies(all []Tally) {
	slices.SortFunc(all, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Operation, b.Operation),
			cmp.Compare(a.Class, b.Class), cmp.Compare(a.State, b.State))
	})
}

// About is what a ledger says of itself.
type About struct {
	Now      time.Time        // The ledger's clock.
	Schema   int              // Version of the schema; 0 where there is none.
	Pins     *Pins            // What all users have in common; nil: nobody used the ledger yet.
	Frontier map[string]int32 // By class, the day up to which evidence may be gone.
	SweptTo  time.Time        // Dead senders claimed before were found by FindCrashed; zero: nobody looked, or the store keeps no mark.
	Restored time.Time        // As Restorer says.
	Bytes    int64            // On disk, with indexes and trails; 0 where nothing is.
}
