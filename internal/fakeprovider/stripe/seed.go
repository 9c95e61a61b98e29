package stripe

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// PaymentIntent seeds a payment intent; the id is its own.
type PaymentIntent struct {
	Amount   int64  `json:"amount"`   // defaults to 1000
	Currency string `json:"currency"` // defaults to "eur"
	// Status is requires_payment_method, requires_confirmation (the default),
	// requires_action, requires_capture, processing, succeeded or canceled.
	Status   string            `json:"status"`
	Customer string            `json:"customer"`
	Metadata map[string]string `json:"metadata"`
}

// Charge seeds a captured, unrefunded charge with its payment intent; the id is
// the charge's.
type Charge struct {
	Amount   int64  `json:"amount"`   // defaults to 1000
	Currency string `json:"currency"` // defaults to "eur"
	Customer string `json:"customer"`
	// SlowRefund makes refunds of it pending.
	SlowRefund bool `json:"slow_refund"`
}

// Customer seeds a customer who has a default payment method.
type Customer struct {
	Email string `json:"email"`
	Name  string `json:"name"`
	// PaymentMethod defaults to pm_card_visa.
	PaymentMethod string `json:"payment_method"`
}

// SetupIntent seeds a setup intent that waits for its confirmation.
type SetupIntent struct {
	Customer string `json:"customer"`
}

// Invoice seeds an invoice of one line, with a customer who can pay it.
type Invoice struct {
	Amount   int64  `json:"amount"`   // defaults to 1000
	Currency string `json:"currency"` // defaults to "eur"
	Status   string `json:"status"`   // draft, open (the default), paid or void
	Customer string `json:"customer"` // defaults to a new one
}

// Subscription seeds an active subscription with a customer.
type Subscription struct {
	Customer string `json:"customer"` // defaults to a new one
	Price    string `json:"price"`    // defaults to "price_seeded"
}

// CheckoutSession seeds an open session in payment mode.
type CheckoutSession struct {
	Amount   int64  `json:"amount"`   // defaults to 1000
	Currency string `json:"currency"` // defaults to "eur"
}

// Transfer seeds a transfer that was not reversed.
type Transfer struct {
	Amount      int64  `json:"amount"`      // defaults to 1000
	Currency    string `json:"currency"`    // defaults to "eur"
	Destination string `json:"destination"` // defaults to "acct_seeded"
}

// Payout seeds a pending payout, or a paid one.
type Payout struct {
	Amount   int64  `json:"amount"`   // defaults to 1000
	Currency string `json:"currency"` // defaults to "eur"
	Paid     bool   `json:"paid"`
}

// EventDestination seeds a v2 webhook endpoint.
type EventDestination struct {
	URL string `json:"url"` // defaults to "https://example.com/hook"
}

// Account seeds a v2 account.
type Account struct {
	DisplayName string `json:"display_name"`
}

// In seeds Object in another account than the key's own, or in live mode.
type In struct {
	Account string // as in Stripe-Account; "" for the key's own
	Live    bool
	Object  any
}

// Seeds implements fakeprovider.Seeder.
func (d *dialect) Seeds() map[string]any {
	return map[string]any{
		"payment_intent": PaymentIntent{}, "charge": Charge{}, "customer": Customer{}, "setup_intent": SetupIntent{},
		"invoice": Invoice{}, "subscription": Subscription{}, "checkout_session": CheckoutSession{},
		"transfer": Transfer{}, "payout": Payout{}, "event_destination": EventDestination{}, "account": Account{},
	}
}

// Seed implements fakeprovider.Seeder.
func (d *dialect) Seed(tx *fakeprovider.Tx, what any) (string, error) {
	in, ok := what.(In)
	if !ok {
		in = In{Object: what}
	}
	name := account(map[string][]string{"Stripe-Account": {in.Account}}, in.Live)
	g := &gardener{x: exec{d: d, s: d.state(name), tx: tx, live: in.Live, account: name, quiet: true}}
	id := g.plant(in.Object)
	if g.failed != nil {
		return "", fmt.Errorf("seed %T: %s", in.Object, g.failed.message)
	}
	return id, nil
}

// gardener puts objects in place through the operations themselves, without
// effects and events.
type gardener struct {
	x      exec
	failed *failure
}

// run performs a handler and returns the object, nil after a failure.
func (g *gardener) run(do handler, p params, ids ...string) object {
	if g.failed != nil {
		return nil
	}
	x := g.x
	x.p, x.ids = p, ids
	o, f := do(&x)
	g.failed = f
	return o
}

func (g *gardener) plant(what any) string {
	switch s := what.(type) {
	case PaymentIntent:
		return g.paymentIntent(s)
	case Charge:
		pm := "pm_card_visa"
		if s.SlowRefund {
			pm = "pm_card_pendingRefund"
		}
		p := money(s.Amount, s.Currency)
		maps.Copy(p, params{"customer": s.Customer, "payment_method": pm, "confirm": "true"})
		return text(g.run(paymentIntentCreate, p), "latest_charge")
	case Customer:
		return text(g.run(customerCreate, params{"email": s.Email, "name": s.Name,
			"payment_method": either(s.PaymentMethod, "pm_card_visa")}), "id")
	case SetupIntent:
		return text(g.run(setupIntentCreate, params{"customer": s.Customer, "payment_method": "pm_card_visa"}), "id")
	case Invoice:
		return g.invoice(s)
	case Subscription:
		item := params{"price": either(s.Price, "price_seeded")}
		return text(g.run(subscriptionCreate, params{"customer": g.customer(s.Customer), "items": params{"0": item},
			"default_payment_method": "pm_card_visa"}), "id")
	case CheckoutSession:
		price := money(s.Amount, s.Currency)
		price["unit_amount"] = price["amount"]
		line := params{"quantity": "1", "price_data": price}
		return text(g.run(sessionCreate, params{"mode": "payment", "success_url": "https://example.com/done",
			"line_items": params{"0": line}}), "id")
	case Transfer:
		p := money(s.Amount, s.Currency)
		p["destination"] = either(s.Destination, "acct_seeded")
		return text(g.run(transferCreate, p), "id")
	case Payout:
		p := money(s.Amount, s.Currency)
		if s.Paid {
			p["method"] = "instant"
		}
		return text(g.run(payoutCreate, p), "id")
	case EventDestination:
		return text(g.run(destinationCreate, params{"name": "seeded", "type": "webhook_endpoint", "event_payload": "thin",
			"enabled_events":   []any{"v1.billing.meter.error_report_triggered"},
			"webhook_endpoint": params{"url": either(s.URL, "https://example.com/hook")}}), "id")
	case Account:
		return text(g.run(accountCreate, params{"display_name": either(s.DisplayName, "Seeded")}), "id")
	}
	g.failed = invalid("", "The Stripe fake has no such seed.")
	return ""
}

func (g *gardener) paymentIntent(s PaymentIntent) string {
	p := money(s.Amount, s.Currency)
	meta := params{}
	for k, v := range s.Metadata {
		meta[k] = v
	}
	maps.Copy(p, params{"customer": s.Customer, "payment_method": "pm_card_visa", "metadata": meta})
	status := either(s.Status, "requires_confirmation")
	switch status {
	case "requires_payment_method":
		delete(p, "payment_method")
	case "requires_action":
		p["payment_method"], p["confirm"] = "pm_card_authenticationRequired", "true"
	case "requires_capture":
		p["capture_method"], p["confirm"] = "manual", "true"
	case "processing":
		p["payment_method"], p["confirm"] = "pm_usBankAccount_success", "true"
	case "succeeded":
		p["confirm"] = "true"
	}
	o := g.run(paymentIntentCreate, p)
	if status == "canceled" {
		o = g.run(paymentIntentCancel, params{}, text(o, "id"))
	}
	if g.failed == nil && text(o, "status") != status {
		g.failed = invalid("status", "A payment intent cannot be seeded with status "+strconv.Quote(status)+".")
	}
	return text(o, "id")
}

func (g *gardener) invoice(s Invoice) string {
	customer := g.customer(s.Customer)
	p := money(s.Amount, s.Currency)
	o := g.run(invoiceCreate, params{"customer": customer, "currency": p["currency"]})
	id := text(o, "id")
	maps.Copy(p, params{"customer": customer, "invoice": id, "description": "Seeded line"})
	g.run(invoiceItemCreate, p)
	switch status := either(s.Status, "open"); status {
	case "draft":
	case "open":
		g.run(invoiceFinalize, params{}, id)
	case "paid":
		g.run(invoicePay, params{}, id)
	case "void":
		g.run(invoiceFinalize, params{}, id)
		g.run(invoiceVoid, params{}, id)
	default:
		g.failed = invalid("status", "An invoice is draft, open, paid or void.")
	}
	return id
}

// customer returns the id of a customer, new if none is given.
func (g *gardener) customer(id string) string {
	if id != "" {
		return id
	}
	return g.plant(Customer{Email: "seeded@example.com"})
}

func money(amount int64, currency string) params {
	if amount == 0 {
		amount = 1000
	}
	return params{"amount": strconv.FormatInt(amount, 10), "currency": strings.ToLower(either(currency, "eur"))}
}

func either(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

var _ fakeprovider.Seeder = (*dialect)(nil)
