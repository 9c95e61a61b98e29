package providertest

// PaymentIntent seeds a Stripe payment intent.
type PaymentIntent struct {
	Amount   int64  // in the smallest unit; defaults to 1000
	Currency string // defaults to "eur"
	// Status is requires_payment_method, requires_confirmation (the default),
	// requires_action, requires_capture, processing, succeeded or canceled.
	Status   string
	Customer string // an existing customer's id, or ""
	Metadata map[string]string
}

// Charge seeds a captured, unrefunded Stripe charge with its payment intent; the
// id is the charge's.
type Charge struct {
	Amount     int64  // in the smallest unit; defaults to 1000
	Currency   string // defaults to "eur"
	Customer   string // an existing customer's id, or ""
	SlowRefund bool   // refunds of it stay pending
}

// Customer seeds a Stripe customer who has a default payment method.
type Customer struct {
	Email         string
	Name          string
	PaymentMethod string // defaults to pm_card_visa
}

// SetupIntent seeds a Stripe setup intent that waits for its confirmation.
type SetupIntent struct {
	Customer string // an existing customer's id, or ""
}

// StripeInvoice seeds a Stripe invoice of one line, with a customer who can pay it.
type StripeInvoice struct {
	Amount   int64  // in the smallest unit; defaults to 1000
	Currency string // defaults to "eur"
	Status   string // draft, open (the default), paid or void
	Customer string // defaults to a new one
}

// StripeSubscription seeds an active Stripe subscription with a customer.
type StripeSubscription struct {
	Customer string // defaults to a new one
	Price    string // defaults to "price_seeded"
}

// CheckoutSession seeds an open Stripe session in payment mode.
type CheckoutSession struct {
	Amount   int64  // in the smallest unit; defaults to 1000
	Currency string // defaults to "eur"
}

// Transfer seeds a Stripe transfer that was not reversed.
type Transfer struct {
	Amount      int64  // in the smallest unit; defaults to 1000
	Currency    string // defaults to "eur"
	Destination string // defaults to "acct_seeded"
}

// StripePayout seeds a pending Stripe payout, or a paid one.
type StripePayout struct {
	Amount   int64  // in the smallest unit; defaults to 1000
	Currency string // defaults to "eur"
	Paid     bool
}

// EventDestination seeds a Stripe v2 webhook endpoint.
type EventDestination struct {
	URL string // defaults to "https://example.com/hook"
}

// Account seeds a Stripe v2 account.
type Account struct {
	DisplayName string // defaults to "Seeded"
}

// InAccount seeds Object in another Stripe account than the key's own, or in
// live mode, whose objects are separate.
type InAccount struct {
	Account string // as in the Stripe-Account header; "" for the key's own
	Live    bool
	Object  any // another seed of this package
}
