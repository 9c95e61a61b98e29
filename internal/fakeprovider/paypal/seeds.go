package paypal

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// ApprovedOrder is an order that a payer has approved. Its seed's id is the
// order's.
type ApprovedOrder struct {
	Value    string // Defaults to "10.00".
	Currency string // Defaults to "USD".
	Intent   string // "CAPTURE" or "AUTHORIZE". Defaults to "CAPTURE".

	CustomID, InvoiceID string

	// Outcome is what its payment ends in: "DECLINED", "FAILED" or "PENDING" for a
	// capture, "DENIED" or "PENDING" for an authorization, "INSTRUMENT_DECLINED"
	// for a 422 that leaves the order open. Defaults to success.
	Outcome string
}

// CreatedAuthorization is an authorized payment. Its seed's id is the
// authorization's.
type CreatedAuthorization struct {
	Value    string // Defaults to "10.00".
	Currency string // Defaults to "USD".

	CustomID, InvoiceID string

	// Age is how long ago it was authorized. Reauthorizing needs three days.
	Age time.Duration
	// Outcome is what its captures end in, as in ApprovedOrder. Defaults to
	// success.
	Outcome string
}

// CompletedCapture is a captured payment. Its seed's id is the capture's.
type CompletedCapture struct {
	Value    string // Defaults to "10.00".
	Currency string // Defaults to "USD".

	CustomID, InvoiceID string

	// RefundOutcome is what its refunds end in: "PENDING", "FAILED" or
	// "CANCELLED". Defaults to success.
	RefundOutcome string
}

// ActivePlan is a billing plan with its product. Its seed's id is the plan's.
type ActivePlan struct {
	Name string // Defaults to "Plan".
}

// ActiveSubscription is a subscription that is being paid. Its seed's id is the
// subscription's.
type ActiveSubscription struct {
	PlanID   string // Defaults to a new plan.
	CustomID string
	Status   string // "ACTIVE", "SUSPENDED" or "APPROVED". Defaults to "ACTIVE".
}

// ApprovedSetupToken is a setup token that can become a payment token. Its
// seed's id is the token's.
type ApprovedSetupToken struct {
	CustomerID string // Defaults to a new one.
}

// Approval is what a payer does at PayPal: it approves an order, a subscription
// or a setup token that waits for that. Its seed's id is the object's.
type Approval struct{ ID string }

// RevokedTokens takes access tokens away on PayPal's side: what was issued so
// far gets 401 from now on. Its seed has no id.
type RevokedTokens struct {
	Token string // Defaults to all.
}

// Seeds returns a zero value of each seed by its name in the admin API.
func (d *dialect) Seeds() map[string]any {
	return map[string]any{
		"approved_order":        ApprovedOrder{},
		"created_authorization": CreatedAuthorization{},
		"completed_capture":     CompletedCapture{},
		"active_plan":           ActivePlan{},
		"active_subscription":   ActiveSubscription{},
		"approved_setup_token":  ApprovedSetupToken{},
		"approval":              Approval{},
		"revoked_tokens":        RevokedTokens{},
	}
}

// Seed puts a seed in place. It takes values and pointers.
func (d *dialect) Seed(tx *fakeprovider.Tx, seed any) (string, error) {
	x := &exec{request: &request{full: true, base: "http://provider.test"}, cfg: d.cfg, s: d.state, tx: tx}
	if d.state.size() >= d.cfg.MaxObjects {
		return "", errors.New("the fake holds as many objects as it may: reset it, or raise MaxObjects")
	}
	switch s := seed.(type) {
	case ApprovedOrder:
		return x.seedOrder(s)
	case *ApprovedOrder:
		return x.seedOrder(*s)
	case CreatedAuthorization:
		return x.seedAuthorization(s)
	case *CreatedAuthorization:
		return x.seedAuthorization(*s)
	case CompletedCapture:
		return x.seedCapture(s)
	case *CompletedCapture:
		return x.seedCapture(*s)
	case ActivePlan:
		return x.seedPlan(s), nil
	case *ActivePlan:
		return x.seedPlan(*s), nil
	case ActiveSubscription:
		return x.seedSubscription(s)
	case *ActiveSubscription:
		return x.seedSubscription(*s)
	case ApprovedSetupToken:
		return x.seedSetupToken(s), nil
	case *ApprovedSetupToken:
		return x.seedSetupToken(*s), nil
	case Approval:
		return x.approve(s.ID)
	case *Approval:
		return x.approve(s.ID)
	case RevokedTokens:
		return x.revoke(s.Token)
	case *RevokedTokens:
		return x.revoke(s.Token)
	}
	return "", fmt.Errorf("the PayPal fake has no seed %T", seed)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (x *exec) newOrder(s ApprovedOrder) (*order, error) {
	value, currency, intent := or(s.Value, "10.00"), or(s.Currency, "USD"), or(s.Intent, "CAPTURE")
	amount, problem := parseMoney(value, currency)
	if problem != "" {
		return nil, fmt.Errorf("seed: the amount %q %q is refused by PayPal: %s", value, currency, problem)
	}
	allowed := []string{"", instrumentDeclined, "PENDING", "DECLINED", "FAILED"}
	switch intent {
	case "CAPTURE":
	case "AUTHORIZE":
		allowed = []string{"", instrumentDeclined, "PENDING", "DENIED"}
	default:
		return nil, fmt.Errorf("seed: intent %q is neither CAPTURE nor AUTHORIZE", intent)
	}
	if !slices.Contains(allowed, s.Outcome) {
		return nil, fmt.Errorf("seed: outcome %q is none of %q", s.Outcome, allowed)
	}
	f := object{"reference_id": "default", "amount": amount.view()}
	put(f, "custom_id", s.CustomID)
	put(f, "invoice_id", s.InvoiceID)
	o := &order{id: paymentID(x.tx), intent: intent, outcome: s.Outcome, created: x.tx.Now,
		units: []*unit{{fields: f, reference: "default", amount: amount}}}
	o.approve(x.tx)
	x.s.orders[o.id] = o
	return o, nil
}

func (x *exec) seedOrder(s ApprovedOrder) (string, error) {
	o, err := x.newOrder(s)
	if err != nil {
		return "", err
	}
	return o.id, nil
}

func (x *exec) seedAuthorization(s CreatedAuthorization) (string, error) {
	if s.Age < 0 {
		return "", errors.New("seed: an authorization's age must not be negative")
	}
	if !slices.Contains([]string{"", instrumentDeclined, "PENDING", "DECLINED", "FAILED"}, s.Outcome) {
		return "", fmt.Errorf("seed: a capture does not end in %q", s.Outcome)
	}
	o, err := x.newOrder(ApprovedOrder{Value: s.Value, Currency: s.Currency, Intent: "AUTHORIZE", CustomID: s.CustomID, InvoiceID: s.InvoiceID})
	if err != nil {
		return "", err
	}
	x.pay(o)
	a := o.units[0].authorizations[0]
	a.created, a.updated, a.outcome = a.created.Add(-s.Age), a.updated.Add(-s.Age), s.Outcome
	return a.id, nil
}

func (x *exec) seedCapture(s CompletedCapture) (string, error) {
	if !slices.Contains([]string{"", "PENDING", "FAILED", "CANCELLED"}, s.RefundOutcome) {
		return "", fmt.Errorf("seed: a refund does not end in %q", s.RefundOutcome)
	}
	o, err := x.newOrder(ApprovedOrder{Value: s.Value, Currency: s.Currency, CustomID: s.CustomID, InvoiceID: s.InvoiceID})
	if err != nil {
		return "", err
	}
	x.pay(o)
	c := o.units[0].captures[0]
	c.refundOutcome = s.RefundOutcome
	return c.id, nil
}

func (x *exec) seedPlan(s ActivePlan) string {
	name := or(s.Name, "Plan")
	product := x.add(x.s.products, &x.s.productList, &record{id: "PROD-" + x.tx.Token(17, upperDigits),
		fields: object{"name": name, "type": "SERVICE"}})
	return x.add(x.s.plans, &x.s.planList, &record{id: "P-" + x.tx.Token(24, upperDigits), status: "ACTIVE",
		fields: object{"name": name, "product_id": product.id, "billing_cycles": []object{{"sequence": 1, "tenure_type": "REGULAR",
			"frequency":      object{"interval_unit": "MONTH", "interval_count": 1},
			"pricing_scheme": object{"fixed_price": money{"USD", 1000}.view()}}}}}).id
}

func (x *exec) seedSubscription(s ActiveSubscription) (string, error) {
	status := or(s.Status, "ACTIVE")
	if !slices.Contains([]string{"ACTIVE", "SUSPENDED", "APPROVED"}, status) {
		return "", fmt.Errorf("seed: status %q is none of ACTIVE, SUSPENDED, APPROVED", status)
	}
	plan := s.PlanID
	if plan == "" {
		plan = x.seedPlan(ActivePlan{})
	} else if x.s.plans[plan] == nil {
		return "", fmt.Errorf("seed: there is no plan %q", plan)
	}
	f := object{"plan_id": plan, "start_time": stamp(x.tx.Now)}
	put(f, "custom_id", s.CustomID)
	return x.add(x.s.subscriptions, &x.s.subscriptionList, &record{id: subscriptionID(x), status: status, fields: f}).id, nil
}

func (x *exec) seedSetupToken(s ApprovedSetupToken) string {
	return x.add(x.s.setupTokens, nil, &record{id: paymentID(x.tx), status: "APPROVED", fields: object{
		"payment_source": object{"paypal": object{"email_address": "payer@example.com"}},
		"customer":       object{"id": or(s.CustomerID, x.tx.Token(10, base62))}}}).id
}

// approve is what the payer does at PayPal. An order whose payment was refused
// gets another way to pay.
func (x *exec) approve(id string) (string, error) {
	if o := x.s.orders[id]; o != nil {
		if o.status == "COMPLETED" {
			return "", fmt.Errorf("seed: order %s is completed", id)
		}
		o.outcome = ""
		o.approve(x.tx)
		x.publish("CHECKOUT.ORDER.APPROVED", viewOrder(x, id))
		return id, nil
	}
	if r := x.s.subscriptions[id]; r != nil && r.status == "APPROVAL_PENDING" {
		r.status, r.updated = "ACTIVE", x.tx.Now
		x.publish("BILLING.SUBSCRIPTION.ACTIVATED", showSubscription(x, r))
		return id, nil
	}
	if r := x.s.setupTokens[id]; r != nil && r.status == "PAYER_ACTION_REQUIRED" {
		r.status, r.updated = "APPROVED", x.tx.Now
		return id, nil
	}
	return "", fmt.Errorf("seed: nothing with the id %q waits for a payer", id)
}

func (x *exec) revoke(value string) (string, error) {
	if value == "" {
		clear(x.s.tokens)
		return "", nil
	}
	if _, known := x.s.tokens[value]; !known {
		return "", errors.New("seed: this access token is not known")
	}
	delete(x.s.tokens, value)
	return "", nil
}
