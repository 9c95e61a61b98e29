package paypal

import (
	"fmt"
	"slices"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// Capture is what OrderCapture and AuthorizationCapture reply with.
type Capture struct {
	ID     string `json:"id"`
	Status string `json:"status"` // COMPLETED is paid; PENDING is not yet.
	Amount Money  `json:"amount"`
}

// Authorization is what OrderAuthorize and AuthorizationReauthorize reply with.
type Authorization struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Amount Money  `json:"amount"`
}

// Refund is what CaptureRefund replies with.
type Refund struct {
	ID     string `json:"id"`
	Status string `json:"status"` // COMPLETED is paid back; PENDING is not yet.
	Amount Money  `json:"amount"`
}

// Order is an order with the payments of all its purchase units.
type Order struct {
	ID             string
	Status         string
	Authorizations []Authorization
	Captures       []Capture
	Refunds        []Refund
}

// Payout is a batch of payouts. Its items are read from PayPal.
type Payout struct {
	ID     string // payout_batch_id
	Status string // SUCCESS is done; PENDING and PROCESSING are not yet.
}

// CaptureOf reads the capture out of a reply, whether it came as an order or as
// the capture itself. An order with several captures is an error: read it with
// OrderOf.
func CaptureOf(r *outbound.Reply) (Capture, error) {
	if !answersOrder(r) {
		return one(r, "capture", func(c Capture) string { return c.ID }, authorizationCapture.Name)
	}
	o, err := OrderOf(r)
	if err != nil {
		return Capture{}, err
	}
	return only(o.Captures, "capture")
}

// AuthorizationOf reads the authorization out of a reply, whether it came as an
// order or as the authorization itself. An order with several authorizations is
// an error: read it with OrderOf. A void that was answered without a body holds
// none.
func AuthorizationOf(r *outbound.Reply) (Authorization, error) {
	if !answersOrder(r) {
		return one(r, "authorization", func(a Authorization) string { return a.ID }, authorizationReauthorize.Name, authorizationVoid.Name)
	}
	o, err := OrderOf(r)
	if err != nil {
		return Authorization{}, err
	}
	return only(o.Authorizations, "authorization")
}

// RefundOf reads the refund out of the reply of CaptureRefund.
func RefundOf(r *outbound.Reply) (Refund, error) {
	return one(r, "refund", func(f Refund) string { return f.ID }, captureRefund.Name)
}

// OrderOf reads the order out of a reply of the Orders API.
func OrderOf(r *outbound.Reply) (Order, error) {
	if !answersOrder(r) {
		return Order{}, errOther("order")
	}
	var o order
	if err := decode(r.Body, &o); err != nil || o.ID == "" {
		return Order{}, errMissing("order")
	}
	read := Order{ID: o.ID, Status: o.Status}
	for _, p := range o.authorizations() {
		read.Authorizations = append(read.Authorizations, Authorization{p.ID, p.Status, p.Amount})
	}
	for _, p := range o.captures() {
		read.Captures = append(read.Captures, Capture{p.ID, p.Status, p.Amount})
	}
	for _, p := range o.refunds() {
		read.Refunds = append(read.Refunds, Refund{p.ID, p.Status, p.Amount})
	}
	return read, nil
}

// PayoutOf reads the batch out of the reply of PayoutCreate.
func PayoutOf(r *outbound.Reply) (Payout, error) {
	if r == nil || r.Operation != payoutCreate.Name {
		return Payout{}, errOther("payout")
	}
	var b batch
	if err := decode(r.Body, &b); err != nil || b.Header.ID == "" {
		return Payout{}, errMissing("payout")
	}
	return Payout{ID: b.Header.ID, Status: b.Header.Status}, nil
}

func answersOrder(r *outbound.Reply) bool {
	if r == nil {
		return false
	}
	switch r.Operation {
	case orderCreate.Name, orderAuthorize.Name, orderCapture.Name, orderConfirmPaymentSource.Name:
		return true
	}
	return false
}

// one reads the object that the reply of one of operations is.
func one[T any](r *outbound.Reply, what string, id func(T) string, operations ...string) (read T, err error) {
	if r == nil || !slices.Contains(operations, r.Operation) {
		return read, errOther(what)
	}
	if err := decode(r.Body, &read); err != nil || id(read) == "" {
		return read, errMissing(what)
	}
	return read, nil
}

// only is the single one of an order's payments of one kind.
func only[T any](list []T, what string) (single T, err error) {
	switch len(list) {
	case 1:
		return list[0], nil
	case 0:
		return single, errMissing(what)
	}
	return single, fmt.Errorf("paypal: the order holds %d objects of the kind %s: read them with OrderOf", len(list), what)
}

func errMissing(what string) error {
	return fmt.Errorf("paypal: the reply's body holds no %s: look at Outcome and ExternalRef", what)
}

func errOther(what string) error {
	return fmt.Errorf("paypal: the reply is of an operation that does not answer with this object: %s", what)
}
