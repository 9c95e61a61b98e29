package paypal

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// object is a capture, an authorization, a refund, a subscription or a token:
// what PayPal's objects have in common. raw is the JSON it was read from.
type object struct {
	ID        string `json:"id"`
	Status    string `json:"status"`
	Amount    Money  `json:"amount"`
	CustomID  string `json:"custom_id"`
	InvoiceID string `json:"invoice_id"`
	Payee     payee  `json:"payee"`
	Href      string `json:"href"` // of an invoice that is answered as a link
	Links     []struct {
		Href string `json:"href"`
		Rel  string `json:"rel"`
	} `json:"links"`
	SupplementaryData struct {
		RelatedIDs struct {
			OrderID         string `json:"order_id"`
			AuthorizationID string `json:"authorization_id"`
			CaptureID       string `json:"capture_id"`
		} `json:"related_ids"`
	} `json:"supplementary_data"`
	StatusUpdateTime string `json:"status_update_time"` // of a subscription
	Customer         struct {
		ID string `json:"id"`
	} `json:"customer"` // of a token
	Detail invoiceDetail `json:"detail"` // of an invoice

	raw json.RawMessage
}

// payee is whose account a payment goes to.
type payee struct {
	MerchantID string `json:"merchant_id"`
}

// invoiceDetail is what an invoice says of itself.
type invoiceDetail struct {
	InvoiceNumber string `json:"invoice_number"`
	Metadata      struct {
		CreateTime    string `json:"create_time"`
		FirstSentTime string `json:"first_sent_time"`
		LastSentTime  string `json:"last_sent_time"`
	} `json:"metadata"`
}

// UnmarshalJSON keeps the bytes beside what they say.
func (o *object) UnmarshalJSON(b []byte) error {
	type plain object
	*o = object{raw: bytes.Clone(b)}
	return json.Unmarshal(b, (*plain)(o))
}

// id is the object's own, or that of the link that stands for it.
func (o *object) id() string {
	if o.ID == "" && o.Href != "" {
		return lastSegment(o.Href)
	}
	return o.ID
}

// order is an order with the payments under it.
type order struct {
	ID            string `json:"id"`
	Status        string `json:"status"`
	PurchaseUnits []struct {
		CustomID string `json:"custom_id"`
		Payee    payee  `json:"payee"`
		Payments struct {
			Authorizations []object `json:"authorizations"`
			Captures       []object `json:"captures"`
			Refunds        []object `json:"refunds"`
		} `json:"payments"`
	} `json:"purchase_units"`

	raw json.RawMessage
}

// UnmarshalJSON keeps the bytes beside what they say.
func (o *order) UnmarshalJSON(b []byte) error {
	type plain order
	*o = order{raw: bytes.Clone(b)}
	return json.Unmarshal(b, (*plain)(o))
}

func (o *order) authorizations() (all []object) {
	for _, u := range o.PurchaseUnits {
		all = append(all, u.Payments.Authorizations...)
	}
	return all
}

func (o *order) captures() (all []object) {
	for _, u := range o.PurchaseUnits {
		all = append(all, u.Payments.Captures...)
	}
	return all
}

func (o *order) refunds() (all []object) {
	for _, u := range o.PurchaseUnits {
		all = append(all, u.Payments.Refunds...)
	}
	return all
}

// batch is a payout batch.
type batch struct {
	Header struct {
		ID                string `json:"payout_batch_id"`
		Status            string `json:"batch_status"`
		SenderBatchHeader struct {
			SenderBatchID string `json:"sender_batch_id"`
		} `json:"sender_batch_header"`
	} `json:"batch_header"`
}

// fate is what a state says of the effect that led to it.
type fate int

const (
	pending fate = iota // Also every state that is not known here: applied is not paid.
	done
	refused
)

func captureFate(status string) fate {
	switch status {
	case "COMPLETED", "PARTIALLY_REFUNDED", "REFUNDED":
		return done
	case "DECLINED", "FAILED":
		return refused
	}
	return pending
}

func authorizationFate(status string) fate {
	switch status {
	case "CREATED", "PARTIALLY_CAPTURED", "CAPTURED", "VOIDED":
		return done
	case "DENIED":
		return refused
	}
	return pending
}

func refundFate(status string) fate {
	switch status {
	case "COMPLETED":
		return done
	case "CANCELLED", "FAILED":
		return refused
	}
	return pending
}

func batchFate(status string) fate {
	switch status {
	case "SUCCESS":
		return done
	case "DENIED", "CANCELED":
		return refused
	}
	return pending
}

// result is what a success answer of one operation says.
type result struct {
	ref     string // What the operation created; "" if the answer does not name it.
	status  string
	refused bool   // No money moved.
	why     string // What says so: the state of the payment that was refused.
	outcome outbound.Outcome
}

var (
	errNoObject = errors.New("the answer is a success without the object that it should hold")
	errNotVoid  = errors.New("the answer is a success, but the authorization is not VOIDED")
)

// readResult reads the success answer of an operation.
func readResult(operation string, body []byte) (result, error) {
	switch operation {
	case orderCreate.Name, orderAuthorize.Name, orderCapture.Name, orderConfirmPaymentSource.Name:
		return readOrderResult(operation, body)
	case payoutCreate.Name:
		var b batch
		if err := decode(body, &b); err != nil || b.Header.ID == "" {
			return result{}, errNoObject
		}
		return b.result(), nil
	}
	var o object
	if err := decode(body, &o); err != nil || o.id() == "" && !actsOnly(operation) {
		return result{}, errNoObject
	}
	r := result{ref: o.id(), status: o.Status, why: o.Status, outcome: outbound.Done}
	switch operation {
	case authorizationCapture.Name:
		r.fates(captureFate(o.Status))
	case authorizationReauthorize.Name:
		r.fates(authorizationFate(o.Status))
	case captureRefund.Name:
		r.fates(refundFate(o.Status))
	case authorizationVoid.Name:
		if o.Status != "VOIDED" {
			return result{}, errNotVoid
		}
	}
	return r, nil
}

func (b *batch) result() result {
	r := result{ref: b.Header.ID, status: b.Header.Status, why: b.Header.Status}
	r.fates(batchFate(b.Header.Status))
	return r
}

// readOrderResult reads an order for what the operation did to it.
func readOrderResult(operation string, body []byte) (result, error) {
	var o order
	if err := decode(body, &o); err != nil || o.ID == "" {
		return result{}, errNoObject
	}
	return o.result(operation), nil
}

func (o *order) result(operation string) result {
	var made []object
	var judge func(string) fate
	switch operation {
	case orderCapture.Name:
		made, judge = o.captures(), captureFate
	case orderAuthorize.Name:
		made, judge = o.authorizations(), authorizationFate
	case orderCreate.Name: // with a payment_source it may pay at once
		if made, judge = o.captures(), captureFate; len(made) == 0 {
			made, judge = o.authorizations(), authorizationFate
		}
	}
	fates := make([]fate, len(made))
	for i, p := range made {
		fates[i] = judge(p.Status)
	}
	r := result{ref: o.ID, status: o.Status, outcome: outbound.Done}
	switch paying := operation == orderCapture.Name || operation == orderAuthorize.Name; {
	case len(made) > 0:
		if paying {
			r.ref, r.status = made[0].ID, made[0].Status
		}
		r.fates(fates...)
		r.why = made[0].Status
	case paying:
		r.ref = ""
		if o.Status != "COMPLETED" {
			r.outcome = outbound.Pending
		}
	}
	return r
}

// fates folds the fates of all that one operation made; there is at least one.
func (r *result) fates(all ...fate) {
	var count [refused + 1]int
	for _, f := range all {
		count[f]++
	}
	switch {
	case count[refused] == len(all):
		r.refused, r.outcome = true, ""
	case count[pending] > 0:
		r.outcome = outbound.Pending
	case count[refused] > 0:
		r.outcome = outbound.Partial
	default:
		r.outcome = outbound.Done
	}
}

// decode reads one JSON object.
func decode(body []byte, v any) error {
	if b := bytes.TrimSpace(body); len(b) == 0 || b[0] != '{' {
		return errNoObject
	}
	return json.Unmarshal(body, v)
}

// actsOnly reports whether the operation changes an object and need not answer
// with one: 204, or 200 with little in it.
func actsOnly(operation string) bool {
	switch operation {
	case orderPatch.Name, invoiceSend.Name, invoiceCancel.Name,
		subscriptionActivate.Name, subscriptionSuspend.Name, subscriptionCancel.Name:
		return true
	}
	return false
}

// lastSegment is the last segment of a link's path, "" if there is none.
func lastSegment(href string) string {
	href, _, _ = strings.Cut(href, "?")
	return href[strings.LastIndexByte(href, '/')+1:]
}
