package paypal

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Where PayPal's objects are read by id.
const (
	authorizationsPath = "/v2/payments/authorizations/"
	capturesPath       = "/v2/payments/captures/"
	refundsPath        = "/v2/payments/refunds/"
	ordersPath         = "/v2/checkout/orders/"
	subscriptionsPath  = "/v1/billing/subscriptions/"
	invoicesPath       = "/v2/invoicing/invoices/"
	payoutsPath        = "/v1/payments/payouts/"
	setupTokensPath    = "/v3/vault/setup-tokens/"
	paymentTokensPath  = "/v3/vault/payment-tokens/"
)

// goal is what the states of an object say of an operation that leads it into a
// state and does no more.
type goal struct {
	at      string   // where the object is read
	reached []string // the goal
	missed  []string // final states that exclude it
	before  []string // states that nothing comes back to from the goal
	leaves  bool     // the goal can be left again: only a status older than the first send excludes it
}

// goalOf returns the goal of an operation, if it has one. A subscription that is
// active, suspended or ended may have been in the goal meanwhile; a cancelled
// one stays cancelled. So does an invoice, and one that is sent is never a draft
// again.
func goalOf(operation string) (goal, bool) {
	switch operation {
	case authorizationVoid.Name:
		return goal{at: authorizationsPath, reached: []string{"VOIDED"}, missed: []string{"CAPTURED", "DENIED"},
			before: []string{"CREATED", "PARTIALLY_CAPTURED"}}, true
	case subscriptionActivate.Name:
		return goal{at: subscriptionsPath, reached: []string{"ACTIVE"}, leaves: true}, true
	case subscriptionSuspend.Name:
		return goal{at: subscriptionsPath, reached: []string{"SUSPENDED"}, leaves: true}, true
	case subscriptionCancel.Name:
		return goal{at: subscriptionsPath, reached: []string{"CANCELLED"}, missed: []string{"EXPIRED"},
			before: []string{"APPROVAL_PENDING", "APPROVED", "ACTIVE", "SUSPENDED"}}, true
	case invoiceSend.Name:
		return goal{at: invoicesPath, before: []string{"DRAFT"}, reached: []string{
			"SENT", "SCHEDULED", "UNPAID", "PAYMENT_PENDING", "PARTIALLY_PAID", "PAID", "MARKED_AS_PAID",
			"PARTIALLY_REFUNDED", "REFUNDED", "MARKED_AS_REFUNDED"}}, true
	case invoiceCancel.Name:
		return goal{at: invoicesPath, reached: []string{"CANCELLED"},
			before: []string{"DRAFT", "SCHEDULED", "SENT", "UNPAID"}}, true
	}
	return goal{}, false
}

// state compares an object's status with the goal.
func (s search) state(ctx context.Context, id string, g goal) (outbound.Finding, error) {
	if id = cmp.Or(id, s.ExternalRef); !idForm.MatchString(id) {
		return outbound.Finding{}, nil
	}
	var o object
	x, err := s.read(ctx, g.at+id, nil, &o)
	if err != nil || o.ID != id {
		return outbound.Finding{}, err
	}
	switch {
	case slices.Contains(g.reached, o.Status):
		if s.Operation.Name == invoiceSend.Name && !s.sentSince(x, &o) {
			return outbound.Finding{}, nil // an earlier sending
		}
		r := result{ref: o.ID, status: o.Status, outcome: outbound.Done}
		if o.Status == "SCHEDULED" {
			r.outcome = outbound.Pending
		}
		f := found(x, rs.ByStateGuard, r, x.Body)
		if actsOnly(s.Operation.Name) {
			f.Answer = &outbound.Answer{Status: http.StatusNoContent}
		}
		return f, nil
	case slices.Contains(g.missed, o.Status):
		return missed(x, o.Status), nil
	case slices.Contains(g.before, o.Status), g.leaves && s.unmoved(x, &o):
		return absentIf(s.holds(ctx, &o, g))
	}
	return outbound.Finding{}, nil
}

// holds reports whether the object belongs to the record's account.
func (s search) holds(ctx context.Context, o *object, g goal) (bool, error) {
	if g.at != authorizationsPath {
		return s.ownAccount(ctx)
	}
	parent, err := s.orderOf(ctx, o)
	return err == nil && parent != nil && parent.paidTo(s.Account), err
}

// unmoved reports whether the status is older than the first send: the operation
// would have changed it.
func (s search) unmoved(x *httpadapter.Exchange, o *object) bool {
	at := readTime(o.StatusUpdateTime)
	return !at.IsZero() && s.agrees(x, statusMargin) && s.sent.known() && at.Before(s.sent.from)
}

// sentSince reports whether an invoice was sent after our first send.
func (s search) sentSince(x *httpadapter.Exchange, o *object) bool {
	at := readTime(cmp.Or(o.Detail.Metadata.LastSentTime, o.Detail.Metadata.FirstSentTime))
	return !at.IsZero() && s.agrees(x, statusMargin) && s.sent.known() && !at.Before(s.sent.from)
}

// readTime reads a time of PayPal's; zero if it is none.
func readTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	return time.Time{}
}
