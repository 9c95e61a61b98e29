package providertest

import "time"

// ApprovedOrder seeds a PayPal order that a payer has approved.
type ApprovedOrder struct {
	Value    string // defaults to "10.00"
	Currency string // defaults to "USD"
	Intent   string // "CAPTURE" (the default) or "AUTHORIZE"

	CustomID, InvoiceID string

	// Outcome is what its payment ends in: "DECLINED", "FAILED" or "PENDING" for a
	// capture, "DENIED" or "PENDING" for an authorization, "INSTRUMENT_DECLINED"
	// for a 422 that leaves the order open. Defaults to success.
	Outcome string
}

// CreatedAuthorization seeds a PayPal authorization; the id is its own.
type CreatedAuthorization struct {
	Value    string // defaults to "10.00"
	Currency string // defaults to "USD"

	CustomID, InvoiceID string

	// Age is how long ago it was authorized. Reauthorizing needs three days.
	Age time.Duration
	// Outcome is what its captures end in, as in ApprovedOrder.
	Outcome string
}

// CompletedCapture seeds a captured PayPal payment; the id is the capture's.
type CompletedCapture struct {
	Value    string // defaults to "10.00"
	Currency string // defaults to "USD"

	CustomID, InvoiceID string

	// RefundOutcome is what its refunds end in: "PENDING", "FAILED" or
	// "CANCELLED". Defaults to success.
	RefundOutcome string
}

// ActivePlan seeds a PayPal billing plan with its product; the id is the plan's.
type ActivePlan struct {
	Name string // defaults to "Plan"
}

// ActiveSubscription seeds a PayPal subscription.
type ActiveSubscription struct {
	PlanID   string // defaults to a new plan
	CustomID string
	Status   string // "ACTIVE" (the default), "SUSPENDED" or "APPROVED"
}

// ApprovedSetupToken seeds a PayPal setup token that can become a payment token.
type ApprovedSetupToken struct {
	CustomerID string // defaults to a new one
}

// Approval is what a payer does at PayPal: it approves the order, subscription
// or setup token with this id.
type Approval struct{ ID string }

// RevokedTokens takes access tokens away on PayPal's side (C21): what was issued
// so far gets 401 from now on. Seed returns no id.
type RevokedTokens struct {
	Token string // defaults to all
}
