package stripe

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// ID is the id of another object. It decodes from an expanded object too.
type ID string

// UnmarshalJSON reads "ch_1", {"id":"ch_1",…} or null.
func (id *ID) UnmarshalJSON(b []byte) error {
	var expanded struct {
		ID string `json:"id"`
	}
	if len(b) > 0 && b[0] == '{' {
		err := json.Unmarshal(b, &expanded)
		*id = ID(expanded.ID)
		return err
	}
	return json.Unmarshal(b, (*string)(id))
}

// PaymentIntent is what most callers want to know of one. Amounts are in the
// currency's smallest unit.
type PaymentIntent struct {
	ID               string            `json:"id"`
	Status           string            `json:"status"` // "succeeded", "processing", "requires_action", …
	Amount           int64             `json:"amount"`
	AmountCapturable int64             `json:"amount_capturable"`
	AmountReceived   int64             `json:"amount_received"`
	Currency         string            `json:"currency"`
	ClientSecret     string            `json:"client_secret"`
	Customer         ID                `json:"customer"`
	LatestCharge     ID                `json:"latest_charge"`
	Metadata         map[string]string `json:"metadata"`
}

// PaymentIntentOf reads the answer to a payment_intent operation.
func PaymentIntentOf(r *outbound.Reply) (PaymentIntent, error) {
	return read[PaymentIntent](r, "payment_intent")
}

// Refund is what most callers want to know of one. Amounts are in the
// currency's smallest unit.
type Refund struct {
	ID            string            `json:"id"`
	Status        string            `json:"status"` // "succeeded", "pending", …
	Amount        int64             `json:"amount"`
	Currency      string            `json:"currency"`
	Charge        ID                `json:"charge"`
	PaymentIntent ID                `json:"payment_intent"`
	Metadata      map[string]string `json:"metadata"`
}

// RefundOf reads the answer to refund.create.
func RefundOf(r *outbound.Reply) (Refund, error) { return read[Refund](r, "refund") }

// SetupIntent is what most callers want to know of one.
type SetupIntent struct {
	ID            string            `json:"id"`
	Status        string            `json:"status"`
	ClientSecret  string            `json:"client_secret"`
	Customer      ID                `json:"customer"`
	PaymentMethod ID                `json:"payment_method"`
	Metadata      map[string]string `json:"metadata"`
}

// SetupIntentOf reads the answer to a setup_intent operation.
func SetupIntentOf(r *outbound.Reply) (SetupIntent, error) {
	return read[SetupIntent](r, "setup_intent")
}

// Customer is what most callers want to know of one.
type Customer struct {
	ID       string            `json:"id"`
	Email    string            `json:"email"`
	Metadata map[string]string `json:"metadata"`
}

// CustomerOf reads the answer to customer.create.
func CustomerOf(r *outbound.Reply) (Customer, error) { return read[Customer](r, "customer") }

// CheckoutSession is what most callers want to know of one.
type CheckoutSession struct {
	ID            string            `json:"id"`
	Status        string            `json:"status"`
	PaymentStatus string            `json:"payment_status"`
	URL           string            `json:"url"`
	PaymentIntent ID                `json:"payment_intent"`
	Metadata      map[string]string `json:"metadata"`
}

// CheckoutSessionOf reads the answer to a checkout_session operation.
func CheckoutSessionOf(r *outbound.Reply) (CheckoutSession, error) {
	return read[CheckoutSession](r, "checkout.session")
}

// Subscription is what most callers want to know of one.
type Subscription struct {
	ID            string            `json:"id"`
	Status        string            `json:"status"`
	Customer      ID                `json:"customer"`
	LatestInvoice ID                `json:"latest_invoice"`
	Metadata      map[string]string `json:"metadata"`
}

// SubscriptionOf reads the answer to a subscription operation.
func SubscriptionOf(r *outbound.Reply) (Subscription, error) {
	return read[Subscription](r, "subscription")
}

// Invoice is what most callers want to know of one. Amounts are in the
// currency's smallest unit.
type Invoice struct {
	ID         string            `json:"id"`
	Status     string            `json:"status"`
	AmountDue  int64             `json:"amount_due"`
	AmountPaid int64             `json:"amount_paid"`
	Currency   string            `json:"currency"`
	Customer   ID                `json:"customer"`
	Metadata   map[string]string `json:"metadata"`
}

// InvoiceOf reads the answer to an invoice operation.
func InvoiceOf(r *outbound.Reply) (Invoice, error) { return read[Invoice](r, "invoice") }

// Transfer is what most callers want to know of one. Amounts are in the
// currency's smallest unit.
type Transfer struct {
	ID             string            `json:"id"`
	Amount         int64             `json:"amount"`
	AmountReversed int64             `json:"amount_reversed"`
	Currency       string            `json:"currency"`
	Destination    ID                `json:"destination"`
	Metadata       map[string]string `json:"metadata"`
}

// TransferOf reads the answer to transfer.create.
func TransferOf(r *outbound.Reply) (Transfer, error) { return read[Transfer](r, "transfer") }

// Payout is what most callers want to know of one. Amounts are in the
// currency's smallest unit.
type Payout struct {
	ID          string            `json:"id"`
	Status      string            `json:"status"` // "pending", "in_transit", "paid", …
	Amount      int64             `json:"amount"`
	Currency    string            `json:"currency"`
	Destination ID                `json:"destination"`
	Metadata    map[string]string `json:"metadata"`
}

// PayoutOf reads the answer to a payout operation.
func PayoutOf(r *outbound.Reply) (Payout, error) { return read[Payout](r, "payout") }

// read decodes the object of an answer. It refuses another object than the one
// asked for, so that no caller reads zeros out of it.
func read[T any](r *outbound.Reply, object string) (T, error) {
	var v T
	if r == nil {
		return v, errors.New("stripe: there is no reply to read")
	}
	if len(r.Body) == 0 {
		return v, fmt.Errorf("stripe: the reply has no body any more: ask Stripe for %q", r.ExternalRef)
	}
	var a answer
	if err := r.Decode(&a); err != nil {
		return v, fmt.Errorf("stripe: the reply is no %s: %w", object, err)
	}
	if a.Object != object {
		return v, fmt.Errorf("stripe: the reply to %s is a %q, not a %s", r.Operation, a.Object, object)
	}
	if err := r.Decode(&v); err != nil {
		return v, fmt.Errorf("stripe: the reply is no %s: %w", object, err)
	}
	return v, nil
}
