package failures

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// step is one call of a store: what it asks, at which time of its clock.
type step struct {
	kind       string // "claim", "settle", "renew", "report" or "get".
	now        time.Time
	id         recordstore.ID
	claim      recordstore.Claim
	settlement recordstore.Settlement
	result     recordstore.Result // Of a report.
	holder     string             // Of a renewal, and the next two.
	fence      int64
	lease      time.Duration
}

// answer is what a call of a store returns.
type answer struct {
	decision recordstore.Decision
	record   recordstore.Record
	now      time.Time
	err      error // nil, or one of the contract's, unwrapped.
}

// contractError returns which of the contract's errors err is, and false where it
// is none of them.
func contractError(err error) (known bool, e error) {
	for _, e := range []error{nil, recordstore.ErrNotHeld, recordstore.ErrNotFound} {
		if errors.Is(err, e) {
			return true, e
		}
	}
	return false, err
}

// expected is what a ledger does that takes one step after another: rec is the
// record it holds, nil for none. It is written with the functions of package
// recordstore, which are the contract.
func expected(rec *recordstore.Record, s step) (*recordstore.Record, answer) {
	if s.kind == "claim" {
		next, d := recordstore.Take(s.claim, rec, 0, s.now)
		if rec == nil && d != recordstore.Send {
			return nil, answer{decision: d, now: s.now}
		}
		return &next, answer{decision: d, record: next, now: s.now}
	}
	if rec == nil {
		return nil, answer{err: recordstore.ErrNotFound}
	}
	switch s.kind {
	case "settle":
		next, err := recordstore.Settled(*rec, s.settlement, s.now)
		return &next, answer{record: next, err: err}
	case "renew":
		next, err := recordstore.Renewed(*rec, s.holder, s.fence, s.lease, s.now)
		return &next, answer{err: err}
	case "report":
		next := recordstore.Reported(*rec, s.result, s.now)
		return &next, answer{record: next}
	}
	return rec, answer{record: *rec, now: s.now}
}

// sequential is the model that histories are checked against: one ledger that
// does one step at a time. Records do not meet each other.
func sequential() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			of := map[recordstore.ID]int{}
			var parts [][]porcupine.Operation
			for _, o := range history {
				id := o.Input.(step).id
				i, known := of[id]
				if !known {
					i, parts = len(parts), append(parts, nil)
					of[id] = i
				}
				parts[i] = append(parts[i], o)
			}
			return parts
		},
		Init: func() any { return (*recordstore.Record)(nil) },
		Step: func(state, input, output any) (bool, any) {
			next, want := expected(state.(*recordstore.Record), input.(step))
			return reflect.DeepEqual(output, plain(want)), next
		},
		Equal: func(a, b any) bool { return reflect.DeepEqual(a, b) },
		DescribeOperation: func(input, output any) string {
			s, a := input.(step), output.(answer)
			return fmt.Sprintf("%s → %s", s, a)
		},
		DescribeState: func(state any) string {
			if rec := state.(*recordstore.Record); rec != nil {
				return brief(*rec)
			}
			return "no record"
		},
	}
}

// plain makes answers comparable: empty and nil bytes are the same.
func plain(a answer) answer {
	v := reflect.ValueOf(&a.record).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice && f.Len() == 0 {
			f.SetZero()
		}
	}
	return a
}

func (s step) String() string {
	at := s.now.Format("05.000000")
	switch s.kind {
	case "claim":
		return fmt.Sprintf("%s claim by %s", at, s.claim.Holder)
	case "settle":
		return fmt.Sprintf("%s settle %s/%d noted %q to %s", at, s.settlement.Holder, s.settlement.Fence, s.settlement.Noted, s.settlement.State)
	case "renew":
		return fmt.Sprintf("%s renew %s/%d", at, s.holder, s.fence)
	case "report":
		return fmt.Sprintf("%s report %s", at, s.result.State)
	}
	return at + " " + s.kind
}

func (a answer) String() string { return fmt.Sprintf("%s %s %v", a.decision, brief(a.record), a.err) }

func brief(rec recordstore.Record) string {
	return fmt.Sprintf("[%s %s/%d noted %q v%d, lease to %s]", rec.State, rec.Holder, rec.Fence, rec.Noted, rec.Version, rec.LeaseEndsAt.Format("05.000000"))
}
