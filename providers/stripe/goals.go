package stripe

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// goal says which states of an object prove that an operation was done, which
// final ones that it never was, and in which it is still to be done: those that
// no object returns to from the goal.
type goal struct{ reached, missed, before []string }

// goals are those of the operations whose object's state guards them. Source:
// the life cycles at https://docs.stripe.com/api.
var goals = map[string]goal{
	// A declined payment waits for confirmation again: that state proves nothing.
	"payment_intent.confirm": {reached: []string{"succeeded", "requires_capture", "processing"}, missed: []string{"canceled"}},
	"payment_intent.capture": {reached: []string{"succeeded"}, missed: []string{"canceled"}, before: []string{"requires_capture"}},
	"payment_intent.cancel": {
		reached: []string{"canceled"}, missed: []string{"succeeded"},
		before: []string{"requires_payment_method", "requires_confirmation", "requires_action", "requires_capture", "processing"},
	},
	"setup_intent.confirm": {reached: []string{"succeeded", "processing"}, missed: []string{"canceled"}},
	"setup_intent.cancel": {
		reached: []string{"canceled"}, missed: []string{"succeeded"},
		before: []string{"requires_payment_method", "requires_confirmation", "requires_action", "processing"},
	},
	"checkout_session.expire": {reached: []string{"expired"}, missed: []string{"complete"}, before: []string{"open"}},
	"subscription.cancel": {
		reached: []string{"canceled"}, missed: []string{"incomplete_expired"},
		before: []string{"active", "trialing", "past_due", "unpaid", "paused", "incomplete"},
	},
	"invoice.finalize": {reached: []string{"open", "paid", "uncollectible", "void"}, before: []string{"draft"}},
	"invoice.pay":      {reached: []string{"paid"}, missed: []string{"void"}}, // a payment of an open one may be under way
	"invoice.void":     {reached: []string{"void"}, missed: []string{"paid"}, before: []string{"draft", "open", "uncollectible"}},
	"payout.cancel":    {reached: []string{"canceled"}, missed: []string{"paid", "failed"}, before: []string{"pending", "in_transit"}},
}

// states reads the objects that the operation works on.
func (b *batch) states(ctx context.Context) {
	b.each(func(s *search) error {
		at := s.target()
		if at == "" || b.op.Lookup == "" || !b.readable() {
			return nil
		}
		var used credential
		if b.owners != nil {
			var err error
			if used, err = b.owners.credential(ctx, s.Lookup); err != nil {
				return err
			}
		}
		x, err := b.read(ctx, at, nil)
		if err != nil {
			return err
		}
		var o object
		if err := json.Unmarshal(x.Body, &o); err != nil {
			return errUnreadable
		}
		if before, err := s.state(x, o); err != nil || !before || b.owners == nil {
			return err
		}
		if err := b.owners.check(ctx, b.get, s.Lookup, used); err != nil {
			return err
		}
		s.absent()
		return nil
	})
}

// readable reports whether the object itself can show that the operation was done.
func (b *batch) readable() bool {
	_, guarded := goals[b.op.Name]
	return guarded || len(b.op.Marks) > 0 || b.op.Name == "v2.account.close"
}

// target is the path of the object that the operation works on; "" if its id is
// not known any more.
func (s *search) target() string {
	at, _, _ := strings.Cut(s.Operation.Path, "{id}")
	if id := s.targetID(); id != "" {
		return at + id
	}
	if s.ExternalRef != "" {
		return at + url.PathEscape(s.ExternalRef)
	}
	return ""
}

// state compares an object with the goal. It reports whether the goal was never
// reached so far.
func (s *search) state(x *httpadapter.Exchange, o object) (before bool, err error) {
	g := goals[s.Operation.Name]
	untouched := s.Operation.Name != "payment_intent.capture" || o.AmountReceived == 0
	switch {
	case o.carries(s.Operation, s.Mark):
		return false, s.found(x, x.Body, rs.ByLookup)
	case s.Operation.Name == "v2.account.close" && o.Closed:
		return false, s.found(x, x.Body, rs.ByStateGuard)
	case slices.Contains(g.reached, o.Status) && s.whole(o):
		return false, s.found(x, x.Body, rs.ByStateGuard)
	case slices.Contains(g.missed, o.Status) && untouched:
		v := outbound.Verdict{
			Effect: outbound.EffectNone, Code: outbound.ErrRefused, ProviderCode: o.Status,
			ExternalRef: o.ID, ObjectStatus: o.Status,
		}
		s.conclude(v, rs.ByStateGuard, x.Header.Get(headerRequestID), x.Body)
	case slices.Contains(g.before, o.Status):
		return untouched, nil
	}
	return false, nil
}

// whole reports whether the state alone can be the operation's goal. That of a
// capture can where it captures everything and nobody else's mark is on it.
func (s *search) whole(o object) bool {
	if s.Operation.Name != "payment_intent.capture" {
		return true
	}
	return s.Message.Target != "" && !s.form.Has("amount_to_capture") && s.form.Get("final_capture") != "false" && o.Metadata[onCapture] == ""
}
