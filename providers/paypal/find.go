package paypal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// search is one look-up. A finding needs the command's mark or key, or the id
// that an earlier answer told; a state counts without them only where it is the
// goal itself: void, cancel, a full capture, a full refund. An amount alone
// finds nothing.
type search struct {
	get httpadapter.Get
	*outbound.Lookup
}

// Find implements httpadapter.Finder. A look-up that is refused or fails is an
// error: nothing is known then, least of all a failure of the payment.
func (codec) Find(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	s := search{get, l}
	op, id := l.Operation.Name, pathID(l.Operation.Path, l.Message.Target)
	if path, goal, others := goalOf(op); path != "" {
		if id = cmp.Or(id, l.ExternalRef); !idForm.MatchString(id) {
			return outbound.Finding{}, nil
		}
		return s.state(ctx, path+id, goal, others...)
	}
	switch {
	case l.ExternalRef != "":
		return s.byReference(ctx)
	case op == payoutCreate.Name:
		return s.payout(ctx)
	case id == "":
		return outbound.Finding{}, nil
	case op == orderCapture.Name || op == orderAuthorize.Name:
		return s.orderState(ctx, id)
	case op == authorizationCapture.Name:
		return s.authorizationCapture(ctx, id)
	case op == captureRefund.Name:
		return s.captureRefund(ctx, id)
	}
	return outbound.Finding{}, nil
}

// goalOf is, for an operation that leads an object into a state and no more,
// where the object is read, that state, and the final states that exclude it.
func goalOf(operation string) (path, goal string, others []string) {
	const authorizations, subscriptions, invoices = "/v2/payments/authorizations/", "/v1/billing/subscriptions/", "/v2/invoicing/invoices/"
	switch operation {
	case authorizationVoid.Name:
		return authorizations, "VOIDED", []string{"CAPTURED", "DENIED"}
	case subscriptionActivate.Name:
		return subscriptions, "ACTIVE", nil // it may have been active before it ended
	case subscriptionSuspend.Name:
		return subscriptions, "SUSPENDED", nil
	case subscriptionCancel.Name:
		return subscriptions, "CANCELLED", []string{"EXPIRED"}
	case invoiceCancel.Name:
		return invoices, "CANCELLED", nil
	}
	return "", "", nil
}

var errUnreadable = errors.New("paypal: the look-up's answer cannot be read")

// read GETs one object.
func (s search) read(ctx context.Context, path string, into any) (*httpadapter.Exchange, error) {
	x, err := s.get(ctx, path, nil)
	if err != nil {
		return nil, fmt.Errorf("paypal: the look-up failed: %w", err)
	}
	if x.Status != http.StatusOK {
		return nil, fmt.Errorf("paypal: the look-up was answered %d", x.Status)
	}
	if err := decode(x.Body, into); err != nil {
		return nil, errUnreadable
	}
	return x, nil
}

// found is a finding of what r says, with body as its answer.
func found(x *httpadapter.Exchange, e rs.Evidence, r result, body []byte) outbound.Finding {
	f := outbound.Finding{
		Effect: outbound.EffectApplied, Evidence: e, Outcome: r.outcome,
		ExternalRef: r.ref, ObjectStatus: r.status,
		RequestID: x.Header.Get("Paypal-Debug-Id"),
		Answer:    jsonAnswer(http.StatusOK, body),
	}
	if r.refused {
		f.Effect, f.Code, f.ProviderCode = outbound.EffectNone, outbound.ErrRefused, r.why
	}
	return f
}

// missed is a final state that is not the goal.
func missed(x *httpadapter.Exchange, status string) outbound.Finding {
	return found(x, rs.ByStateGuard, result{refused: true, status: status, why: status}, x.Body)
}

func jsonAnswer(status int, body []byte) *outbound.Answer {
	return &outbound.Answer{Status: status, Header: []outbound.Field{{Name: "Content-Type", Value: "application/json"}}, Body: body}
}

// state compares the object's status with the goal, and with the final states
// that exclude it.
func (s search) state(ctx context.Context, path, goal string, others ...string) (outbound.Finding, error) {
	var o object
	x, err := s.read(ctx, path, &o)
	if err != nil {
		return outbound.Finding{}, err
	}
	if o.Status == goal {
		f := found(x, rs.ByStateGuard, result{ref: o.ID, status: o.Status, outcome: outbound.Done}, x.Body)
		if actsOnly(s.Operation.Name) {
			f.Answer = &outbound.Answer{Status: http.StatusNoContent}
		}
		return f, nil
	}
	if slices.Contains(others, o.Status) {
		return missed(x, o.Status), nil
	}
	return outbound.Finding{}, nil
}

// orderState looks for a capture or an authorization of the whole order.
func (s search) orderState(ctx context.Context, id string) (outbound.Finding, error) {
	var o order
	x, err := s.read(ctx, "/v2/checkout/orders/"+id, &o)
	if err != nil {
		return outbound.Finding{}, err
	}
	made := len(o.captures())
	if s.Operation.Name == orderAuthorize.Name {
		made = len(o.authorizations())
	}
	switch {
	case o.Status == "COMPLETED" && made > 0:
		return found(x, rs.ByStateGuard, o.result(s.Operation.Name), x.Body), nil
	case o.Status == "VOIDED" && made == 0:
		return missed(x, o.Status), nil
	}
	return outbound.Finding{}, nil
}

// authorizationCapture looks for the capture among those of the order.
func (s search) authorizationCapture(ctx context.Context, id string) (outbound.Finding, error) {
	var authorization object
	x, err := s.read(ctx, "/v2/payments/authorizations/"+id, &authorization)
	if err != nil {
		return outbound.Finding{}, err
	}
	if authorization.Status == "DENIED" {
		return missed(x, authorization.Status), nil
	}
	o, err := s.orderOf(ctx, &authorization)
	if err != nil || o == nil {
		return outbound.Finding{}, err
	}
	captures := under(o.captures(), "/v2/payments/authorizations/", id)
	if c := marked(captures, s.Mark); c != nil {
		return s.foundObject(x, rs.ByLookup, c)
	}
	switch authorization.Status {
	case "CAPTURED":
		if len(captures) == 1 && s.full(authorization.Amount) && captures[0].Amount.equal(authorization.Amount) {
			return s.foundObject(x, rs.ByStateGuard, &captures[0])
		}
	case "VOIDED":
		if len(captures) == 0 {
			return missed(x, authorization.Status), nil
		}
	}
	return outbound.Finding{}, nil
}

// captureRefund looks for the refund among those of the order.
func (s search) captureRefund(ctx context.Context, id string) (outbound.Finding, error) {
	var capture object
	x, err := s.read(ctx, "/v2/payments/captures/"+id, &capture)
	if err != nil {
		return outbound.Finding{}, err
	}
	o, err := s.orderOf(ctx, &capture)
	if err != nil {
		return outbound.Finding{}, err
	}
	var refunds []object
	if o != nil {
		refunds = under(o.refunds(), "/v2/payments/captures/", id)
	}
	if r := marked(refunds, s.Mark); r != nil {
		return s.foundObject(x, rs.ByLookup, r)
	}
	switch full := capture.Status == "REFUNDED" && s.full(capture.Amount); {
	case full && len(refunds) == 1 && refunds[0].Amount.equal(capture.Amount):
		return s.foundObject(x, rs.ByStateGuard, &refunds[0])
	case full && len(refunds) == 0: // the state is the goal, and no refund is listed that could be shown
		f := found(x, rs.ByStateGuard, result{outcome: outbound.Done}, nil)
		f.Answer = nil
		return f, nil
	}
	return outbound.Finding{}, nil
}

// foundObject is a finding of one object out of an order, which has the shape
// of the operation's own answer.
func (s search) foundObject(x *httpadapter.Exchange, e rs.Evidence, o *object) (outbound.Finding, error) {
	r, err := readResult(s.Operation.Name, o.raw)
	if err != nil {
		return outbound.Finding{}, err
	}
	return found(x, e, r, o.raw), nil
}

// orderOf reads the order that a payment belongs to; nil if it names none.
func (s search) orderOf(ctx context.Context, payment *object) (*order, error) {
	id := payment.SupplementaryData.RelatedIDs.OrderID
	for _, l := range payment.Links {
		if id == "" && l.Rel == "up" {
			id = linkID(l.Href, "/v2/checkout/orders/")
		}
	}
	if !idForm.MatchString(id) {
		return nil, nil
	}
	var o order
	if _, err := s.read(ctx, "/v2/checkout/orders/"+id, &o); err != nil {
		return nil, err
	}
	return &o, nil
}

// under keeps the payments that name their parent: by collection and id in a
// link, or among the related ids.
func under(payments []object, collection, id string) (kept []object) {
	for _, p := range payments {
		related := p.SupplementaryData.RelatedIDs
		names := id == related.AuthorizationID || id == related.CaptureID
		for _, l := range p.Links {
			names = names || l.Rel == "up" && linkID(l.Href, collection) == id
		}
		if names {
			kept = append(kept, p)
		}
	}
	return kept
}

// marked is the payment that carries the mark.
func marked(payments []object, mark string) *object {
	for i, p := range payments {
		if mark != "" && (p.CustomID == mark || p.InvoiceID == mark) {
			return &payments[i]
		}
	}
	return nil
}

// full reports whether the request asked for all of whole: then the parent's
// state is the goal itself.
func (s search) full(whole Money) bool {
	var asked struct {
		Amount *Money `json:"amount"`
	}
	if len(s.Message.Body) > 0 && json.Unmarshal(s.Message.Body, &asked) != nil {
		return false
	}
	return asked.Amount == nil || asked.Amount.equal(whole)
}

// idForm is what PayPal's ids look like; anything else stays out of a path.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// pathID is the id in target, a path that fits the row's; "" if it does not.
func pathID(row, target string) string {
	target, _, _ = strings.Cut(target, "?")
	before, after, _ := strings.Cut(row, "{id}")
	id, fits := strings.CutPrefix(target, before)
	if !fits || before == row {
		return ""
	}
	if id, fits = strings.CutSuffix(id, after); !fits || !idForm.MatchString(id) {
		return ""
	}
	return id
}

// linkID is the id that a link has in a collection; "" if it leads elsewhere.
func linkID(href, collection string) string {
	_, id, _ := strings.Cut(href, collection)
	id, _, _ = strings.Cut(id, "?")
	if !idForm.MatchString(id) {
		return ""
	}
	return id
}
