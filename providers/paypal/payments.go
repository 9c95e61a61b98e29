package paypal

import (
	"context"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// orderState looks for a capture or an authorization of the whole order. An
// order that is read shows all that was paid on it, and PayPal deletes none of
// that.
func (s search) orderState(ctx context.Context, id string) (outbound.Finding, error) {
	var o order
	x, err := s.read(ctx, ordersPath+id, nil, &o)
	if err != nil || o.ID != id {
		return outbound.Finding{}, err
	}
	made := len(o.captures())
	if s.Operation.Name == orderAuthorize.Name {
		made = len(o.authorizations())
	}
	switch o.Status {
	case "COMPLETED":
		if made > 0 {
			return found(x, rs.ByStateGuard, o.result(s.Operation.Name), x.Body), nil
		}
	case "VOIDED":
		if made == 0 {
			return missed(x, o.Status), nil
		}
	case "CREATED", "SAVED", "APPROVED", "PAYER_ACTION_REQUIRED":
		return absentIf(made == 0 && o.paidTo(s.Account), nil)
	}
	return outbound.Finding{}, nil
}

// authorizationCapture looks for the capture among those of the order.
func (s search) authorizationCapture(ctx context.Context, id string) (outbound.Finding, error) {
	var authorization object
	x, err := s.read(ctx, authorizationsPath+id, nil, &authorization)
	if err != nil || authorization.ID != id {
		return outbound.Finding{}, err
	}
	if authorization.Status == "DENIED" {
		return missed(x, authorization.Status), nil
	}
	o, err := s.orderOf(ctx, &authorization)
	if err != nil {
		return outbound.Finding{}, err
	}
	if o == nil {
		return s.captureByTransaction(ctx, id)
	}
	captures, strays := under(o.captures(), authorizationsPath, id)
	if c := marked(captures, s.Mark, captureFate); c != nil {
		return s.foundObject(x, rs.ByLookup, c)
	}
	unseen := strays == 0 && o.paidTo(s.Account)
	switch authorization.Status {
	case "CAPTURED":
		if len(captures) == 1 && s.full(authorization.Amount) && captures[0].Amount.equal(authorization.Amount) {
			return s.foundObject(x, rs.ByStateGuard, &captures[0])
		}
	case "VOIDED":
		if len(captures) == 0 && strays == 0 {
			return missed(x, authorization.Status), nil
		}
	case "CREATED":
		return absentIf(unseen && len(captures) == 0, nil)
	case "PARTIALLY_CAPTURED":
		all := func(c object) string { return c.InvoiceID }
		return absentIf(unseen && len(captures) > 0 && s.stamped() && othersCarry(captures, all), nil)
	}
	return outbound.Finding{}, nil
}

// captureRefund looks for the refund among those of the order.
func (s search) captureRefund(ctx context.Context, id string) (outbound.Finding, error) {
	var capture object
	x, err := s.read(ctx, capturesPath+id, nil, &capture)
	if err != nil || capture.ID != id {
		return outbound.Finding{}, err
	}
	o, err := s.orderOf(ctx, &capture)
	if err != nil {
		return outbound.Finding{}, err
	}
	full := capture.Status == "REFUNDED" && s.full(capture.Amount)
	if o == nil {
		if full { // the state is the goal, and no refund is listed that could be shown
			return foundState(x), nil
		}
		return s.refundByTransaction(ctx, id)
	}
	refunds, strays := under(o.refunds(), capturesPath, id)
	if r := marked(refunds, s.Mark, refundFate); r != nil {
		return s.foundObject(x, rs.ByLookup, r)
	}
	unseen := strays == 0 && o.paidTo(s.Account)
	all := func(r object) string { return r.CustomID }
	others := s.stamped() && othersCarry(refunds, all)
	switch {
	case full && len(refunds) == 1 && refunds[0].Amount.equal(capture.Amount):
		return s.foundObject(x, rs.ByStateGuard, &refunds[0])
	case full && len(refunds) == 0:
		return foundState(x), nil
	case capture.Status == "COMPLETED":
		return absentIf(unseen && (len(refunds) == 0 || others), nil)
	case capture.Status == "PARTIALLY_REFUNDED":
		return absentIf(unseen && len(refunds) > 0 && others, nil)
	}
	return outbound.Finding{}, nil
}

// orderOf reads the order that a payment belongs to; nil if it names none.
func (s search) orderOf(ctx context.Context, payment *object) (*order, error) {
	id := payment.orderID()
	if id == "" {
		return nil, nil
	}
	var o order
	if _, err := s.read(ctx, ordersPath+id, nil, &o); err != nil {
		return nil, err
	}
	return &o, nil
}

// orderID is the id of the order that a payment names, "" for none.
func (o *object) orderID() string {
	id := o.SupplementaryData.RelatedIDs.OrderID
	for _, l := range o.Links {
		if id == "" && l.Rel == "up" {
			id = linkID(l.Href, ordersPath)
		}
	}
	if !idForm.MatchString(id) {
		return ""
	}
	return id
}

// paidTo reports whether PayPal names account as the payee of every purchase
// unit: the credential that reads them is the account's, or acts for it.
func (o *order) paidTo(account string) bool {
	for _, u := range o.PurchaseUnits {
		if account == "" || u.Payee.MerchantID != account {
			return false
		}
	}
	return len(o.PurchaseUnits) > 0
}

// under keeps the payments that name their parent: by collection and id in a
// link, or among the related ids. strays name no parent at all.
func under(payments []object, collection, id string) (kept []object, strays int) {
	for _, p := range payments {
		switch parent := p.parent(collection); parent {
		case id:
			kept = append(kept, p)
		case "":
			strays++
		}
	}
	return kept, strays
}

// parent is the id in collection that a payment names as its parent, "" for
// none.
func (o *object) parent(collection string) string {
	for _, l := range o.Links {
		if l.Rel == "up" {
			if id := linkID(l.Href, collection); id != "" {
				return id
			}
		}
	}
	if collection == capturesPath {
		return o.SupplementaryData.RelatedIDs.CaptureID
	}
	return o.SupplementaryData.RelatedIDs.AuthorizationID
}

// marked is the payment that carries the mark. Where a refused one was tried
// again with the same key, two do: the other counts.
func marked(payments []object, mark string, judge func(status string) fate) (m *object) {
	for i := range payments {
		if p := &payments[i]; p.carries(mark) && (m == nil || judge(m.Status) == refused) {
			m = p
		}
	}
	return m
}

func (o *object) carries(mark string) bool {
	return mark != "" && (o.CustomID == mark || o.InvoiceID == mark)
}

// othersCarry reports whether each payment fills the place where ours, which is
// not among them, would have its mark. One that shows nothing there might be it.
func othersCarry(payments []object, place func(object) string) bool {
	for _, p := range payments {
		if place(p) == "" {
			return false
		}
	}
	return true
}

// full reports whether the request asked for all of whole: then the parent's
// state is the goal itself.
func (s search) full(whole Money) bool {
	var asked struct {
		Amount *Money `json:"amount"`
	}
	if len(s.Message.Body) > 0 && !s.asked(&asked) {
		return false
	}
	return asked.Amount == nil || asked.Amount.equal(whole)
}
