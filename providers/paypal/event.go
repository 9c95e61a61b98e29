package paypal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
)

// maxEvent bounds the body of a webhook, in bytes.
const maxEvent = 1 << 20

// The event types that settle a record by themselves. Each holds the object that
// the command made, with the command's own mark or key.
const (
	eventRefunded     = "PAYMENT.CAPTURE.REFUNDED"
	eventPayoutDone   = "PAYMENT.PAYOUTSBATCH.SUCCESS"
	eventPayoutDenied = "PAYMENT.PAYOUTSBATCH.DENIED"
)

// event is the envelope of a webhook.
type event struct {
	ID         string          `json:"id"`
	Type       string          `json:"event_type"`
	CreateTime string          `json:"create_time"`
	Resource   json.RawMessage `json:"resource"`
	Links      []struct {
		Href string `json:"href"`
	} `json:"links"`
}

var errNoEvent = errors.New("paypal: the webhook's body is no event: pass it as it came, after Verifier.Verify")

// Event reads the body of a webhook that Verifier.Verify has accepted; what it
// returns is for outbound.Client.Observe. ok is false for an event that says
// nothing of a call of ours, as of a payment without a mark. The error is of a
// body that is no event, or larger than 1 MiB.
//
// The mark or the key in an event leads to the command: the mark in custom_id of
// orders, refunds and subscriptions, and in invoice_id of captures
// (Config.MarkInvoices), the key in sender_batch_id of payouts.
func Event(body []byte) (o outbound.Observation, ok bool, err error) {
	if len(body) > maxEvent {
		return o, false, fmt.Errorf("paypal: the webhook's body has more than %d bytes", maxEvent)
	}
	var e event
	if decode(body, &e) != nil || e.ID == "" || e.Type == "" {
		return o, false, errNoEvent
	}
	o = outbound.Observation{
		Provider: "paypal", Mode: e.mode(),
		EventID: e.ID, EventType: e.Type, At: readTime(e.CreateTime),
	}
	switch {
	case strings.HasPrefix(e.Type, "CHECKOUT.ORDER."):
		ok, err = e.order(&o)
	case strings.HasPrefix(e.Type, "PAYMENT.AUTHORIZATION."):
		ok, err = e.authorization(&o)
	case e.Type == eventRefunded:
		ok, err = e.refund(&o)
	case e.Type == "PAYMENT.CAPTURE.REVERSED": // a chargeback is nobody's call
	case strings.HasPrefix(e.Type, "PAYMENT.CAPTURE."):
		ok, err = e.capture(&o)
	case strings.HasPrefix(e.Type, "PAYMENT.PAYOUTSBATCH."):
		ok, err = e.payout(&o)
	case strings.HasPrefix(e.Type, "PAYMENT.PAYOUTS-ITEM."):
		ok, err = e.payoutItem(&o)
	case strings.HasPrefix(e.Type, "BILLING.SUBSCRIPTION."):
		ok, err = e.subscription(&o)
	}
	if err != nil || !ok {
		return outbound.Observation{}, false, err
	}
	return o, true, nil
}

// mode is that of the host that the event's own links lead to, "" for another.
func (e *event) mode() string {
	for _, l := range e.Links {
		u, err := url.Parse(l.Href)
		if err != nil {
			continue
		}
		switch strings.ToLower(u.Hostname()) {
		case "api.paypal.com", "api-m.paypal.com":
			return "live"
		case "api.sandbox.paypal.com", "api-m.sandbox.paypal.com":
			return "sandbox"
		}
	}
	return ""
}

// read decodes the event's resource, which must have an id.
func (e *event) read(o *outbound.Observation) (object, error) {
	var r object
	if decode(e.Resource, &r) != nil || r.ID == "" {
		return r, fmt.Errorf("paypal: the resource of the event %s cannot be read", e.ID)
	}
	o.Account, o.ExternalRef, o.ObjectStatus = r.Payee.MerchantID, r.ID, r.Status
	return r, nil
}

// by sets what the event is about, if text is a mark.
func by(o *outbound.Observation, text, operation string) bool {
	if _, _, err := keyderive.ParseMark(text); err != nil {
		return false
	}
	o.Mark, o.Operations = text, []string{operation}
	return true
}

// judged sets what a state says of the effect.
func judged(o *outbound.Observation, f fate) {
	switch f {
	case done:
		o.Effect, o.Outcome = outbound.EffectApplied, outbound.Done
	case pending:
		o.Effect, o.Outcome = outbound.EffectApplied, outbound.Pending
	case refused:
		o.Effect, o.ProviderCode = outbound.EffectNone, o.ObjectStatus
	}
}

// order is an event of an order: that it exists, and was not refused its payment,
// is the create's effect.
func (e *event) order(o *outbound.Observation) (bool, error) {
	if _, err := e.read(o); err != nil {
		return false, err
	}
	var of order
	if decode(e.Resource, &of) != nil {
		return false, fmt.Errorf("paypal: the order of the event %s cannot be read", e.ID)
	}
	for _, u := range of.PurchaseUnits {
		if by(o, u.CustomID, orderCreate.Name) {
			o.Account = u.Payee.MerchantID
			if !of.result(orderCreate.Name).refused {
				judged(o, done)
			}
			return true, nil
		}
	}
	return false, nil
}

// authorization is an event of an authorization. Its custom_id is that of the
// purchase unit, so that it speaks of the order.
func (e *event) authorization(o *outbound.Observation) (bool, error) {
	r, err := e.read(o)
	if err != nil {
		return false, err
	}
	return ofOrder(o, &r), nil
}

// capture is an event of a capture: of the order, whose custom_id it has, unless
// the capture has a mark of its own.
func (e *event) capture(o *outbound.Observation) (bool, error) {
	r, err := e.read(o)
	if err != nil {
		return false, err
	}
	if by(o, r.InvoiceID, authorizationCapture.Name) {
		judged(o, captureFate(r.Status))
		return true, nil
	}
	return ofOrder(o, &r), nil
}

// ofOrder says of a payment only that its order is there: a payment that is
// declined later was no part of the create.
func ofOrder(o *outbound.Observation, r *object) bool {
	id := r.orderID()
	if id == "" || !by(o, r.CustomID, orderCreate.Name) {
		return false
	}
	o.ExternalRef, o.ObjectStatus = id, ""
	if captureFate(r.Status) != refused && authorizationFate(r.Status) != refused {
		judged(o, done)
	}
	return true
}

// refund is an event of a refund. One that failed proves nothing: a resend may
// have made another, and a look-up finds out.
func (e *event) refund(o *outbound.Observation) (bool, error) {
	r, err := e.read(o)
	if err != nil || !by(o, r.CustomID, captureRefund.Name) {
		return false, err
	}
	if f := refundFate(r.Status); f != refused {
		judged(o, f)
	}
	return true, nil
}

func (e *event) payout(o *outbound.Observation) (bool, error) {
	var b batch
	if decode(e.Resource, &b) != nil || b.Header.ID == "" {
		return false, fmt.Errorf("paypal: the batch of the event %s cannot be read", e.ID)
	}
	o.ExternalRef, o.ObjectStatus = b.Header.ID, b.Header.Status
	judged(o, batchFate(b.Header.Status))
	return byBatch(o, b.Header.SenderBatchHeader.SenderBatchID), nil
}

// payoutItem is an event of one payment of a batch: that PayPal took the batch.
func (e *event) payoutItem(o *outbound.Observation) (bool, error) {
	var item struct {
		BatchID       string `json:"payout_batch_id"`
		SenderBatchID string `json:"sender_batch_id"`
	}
	if decode(e.Resource, &item) != nil || item.BatchID == "" {
		return false, fmt.Errorf("paypal: the payout of the event %s cannot be read", e.ID)
	}
	o.ExternalRef = item.BatchID
	judged(o, pending)
	return byBatch(o, item.SenderBatchID), nil
}

// byBatch sets the key that sender_batch_id is, if we made it.
func byBatch(o *outbound.Observation, id string) bool {
	key, err := keyderive.Parse(id)
	o.Key, o.Operations = key, []string{payoutCreate.Name}
	return err == nil
}

// subscription is an event of a subscription: that it exists is the create's
// effect.
func (e *event) subscription(o *outbound.Observation) (bool, error) {
	r, err := e.read(o)
	if err != nil || !by(o, r.CustomID, subscriptionCreate.Name) {
		return false, err
	}
	judged(o, done)
	return true, nil
}
