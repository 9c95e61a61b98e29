package direct_test

import (
	"context"

	"github.com/stripe/stripe-go/v86"
	"github.com/stripe/stripe-go/v86/payout"

	fake "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// write is a write of the fake as stripe-go makes it, with the caller's key.
type write struct {
	name string
	// ready puts in place what the call works on and returns its id; nil for nothing.
	ready func(*direct) string
	call  func(ctx context.Context, d *direct, id, key string) answer
}

func writes() []write {
	all := append(payments(), money()...)
	all = append(all, customers()...)
	all = append(all, invoices()...)
	return append(all, v2()...)
}

func planted(object any) func(*direct) string {
	return func(d *direct) string { return d.seed(object) }
}

// uncaptured is a charge that waits for its capture.
func uncaptured(d *direct) string {
	r, err := d.sc.V1Charges.Create(d.Context(), &stripe.ChargeCreateParams{
		Amount: count(900), Currency: text("eur"), Capture: stripe.Bool(false), Source: &stripe.PaymentSourceSourceParams{Token: text("tok_visa")},
	})
	if err != nil {
		d.Fatal(err)
	}
	return r.ID
}

// pendingRefund is a refund that can still be cancelled.
func pendingRefund(d *direct) string {
	charge := d.seed(fake.Charge{SlowRefund: true})
	r, err := d.sc.V1Refunds.Create(d.Context(), &stripe.RefundCreateParams{Charge: &charge})
	if err != nil {
		d.Fatal(err)
	}
	return r.ID
}

func payments() []write {
	return []write{
		{"payment_intent.create", nil, func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1PaymentIntents.Create(ctx, &stripe.PaymentIntentCreateParams{
				Params: keyed(key), Amount: count(1250), Currency: text("eur"), Confirm: stripe.Bool(true), PaymentMethod: text("pm_card_visa"),
				ReturnURL: text("https://example.com"), Metadata: map[string]string{"order": "o1"}, Expand: []*string{text("latest_charge")},
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"payment_intent.update", planted(fake.PaymentIntent{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1PaymentIntents.Update(ctx, id, &stripe.PaymentIntentUpdateParams{Params: keyed(key), Description: text("new")})
			return of(r.APIResource, r.ID, err)
		}},
		{"payment_intent.confirm", planted(fake.PaymentIntent{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1PaymentIntents.Confirm(ctx, id, &stripe.PaymentIntentConfirmParams{Params: keyed(key), ReturnURL: text("https://example.com")})
			return of(r.APIResource, r.ID, err)
		}},
		{"payment_intent.capture", planted(fake.PaymentIntent{Status: "requires_capture"}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1PaymentIntents.Capture(ctx, id, &stripe.PaymentIntentCaptureParams{Params: keyed(key), AmountToCapture: count(700)})
			return of(r.APIResource, r.ID, err)
		}},
		{"payment_intent.cancel", planted(fake.PaymentIntent{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1PaymentIntents.Cancel(ctx, id, &stripe.PaymentIntentCancelParams{Params: keyed(key), CancellationReason: text("duplicate")})
			return of(r.APIResource, r.ID, err)
		}},
		{"setup_intent.create", planted(fake.Customer{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1SetupIntents.Create(ctx, &stripe.SetupIntentCreateParams{Params: keyed(key), Customer: &id, PaymentMethod: text("pm_card_visa")})
			return of(r.APIResource, r.ID, err)
		}},
		{"setup_intent.update", planted(fake.SetupIntent{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1SetupIntents.Update(ctx, id, &stripe.SetupIntentUpdateParams{Params: keyed(key), Description: text("new")})
			return of(r.APIResource, r.ID, err)
		}},
		{"setup_intent.confirm", planted(fake.SetupIntent{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1SetupIntents.Confirm(ctx, id, &stripe.SetupIntentConfirmParams{Params: keyed(key), PaymentMethod: text("pm_card_visa")})
			return of(r.APIResource, r.ID, err)
		}},
		{"setup_intent.cancel", planted(fake.SetupIntent{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1SetupIntents.Cancel(ctx, id, &stripe.SetupIntentCancelParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
		{"checkout_session.create", nil, func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1CheckoutSessions.Create(ctx, &stripe.CheckoutSessionCreateParams{
				Params: keyed(key), Mode: text("payment"), SuccessURL: text("https://example.com/done"),
				LineItems: []*stripe.CheckoutSessionCreateLineItemParams{{Price: text("price_1"), Quantity: count(2)}},
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"checkout_session.update", planted(fake.CheckoutSession{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1CheckoutSessions.Update(ctx, id, &stripe.CheckoutSessionUpdateParams{Params: keyed(key), Metadata: map[string]string{"order": "o2"}})
			return of(r.APIResource, r.ID, err)
		}},
		{"checkout_session.expire", planted(fake.CheckoutSession{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1CheckoutSessions.Expire(ctx, id, &stripe.CheckoutSessionExpireParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
	}
}

func money() []write {
	return []write{
		{"charge.create", nil, func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Charges.Create(ctx, &stripe.ChargeCreateParams{
				Params: keyed(key), Amount: count(900), Currency: text("eur"), Source: &stripe.PaymentSourceSourceParams{Token: text("tok_visa")},
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"charge.update", planted(fake.Charge{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Charges.Update(ctx, id, &stripe.ChargeUpdateParams{Params: keyed(key), Description: text("new")})
			return of(r.APIResource, r.ID, err)
		}},
		{"charge.capture", uncaptured, func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Charges.Capture(ctx, id, &stripe.ChargeCaptureParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
		{"refund.create", planted(fake.Charge{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Refunds.Create(ctx, &stripe.RefundCreateParams{
				Params: keyed(key), Charge: &id, Amount: count(300), Reason: text("duplicate"), Expand: []*string{text("charge"), text("payment_intent")},
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"refund.update", pendingRefund, func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Refunds.Update(ctx, id, &stripe.RefundUpdateParams{Params: keyed(key), Metadata: map[string]string{"order": "o2"}})
			return of(r.APIResource, r.ID, err)
		}},
		{"refund.cancel", pendingRefund, func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Refunds.Cancel(ctx, id, &stripe.RefundCancelParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
		{"transfer.create", nil, func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Transfers.Create(ctx, &stripe.TransferCreateParams{
				Params: keyed(key), Amount: count(900), Currency: text("eur"), Destination: text("acct_seller"), TransferGroup: text("order-7"),
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"transfer.update", planted(fake.Transfer{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Transfers.Update(ctx, id, &stripe.TransferUpdateParams{Params: keyed(key), Description: text("new")})
			return of(r.APIResource, r.ID, err)
		}},
		{"transfer_reversal.create", planted(fake.Transfer{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1TransferReversals.Create(ctx, &stripe.TransferReversalCreateParams{Params: keyed(key), ID: &id, Amount: count(100)})
			return of(r.APIResource, r.ID, err)
		}},
		{"payout.create", nil, func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Payouts.Create(ctx, &stripe.PayoutCreateParams{Params: keyed(key), Amount: count(900), Currency: text("eur")})
			return of(r.APIResource, r.ID, err)
		}},
		{"payout.update", planted(fake.Payout{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Payouts.Update(ctx, id, &stripe.PayoutUpdateParams{Params: keyed(key), Metadata: map[string]string{"order": "o2"}})
			return of(r.APIResource, r.ID, err)
		}},
		{"payout.cancel", planted(fake.Payout{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := payout.Client{B: d.api, Key: secretKey}.Cancel(id, &stripe.PayoutParams{Params: keyed(key)}) //nolint:staticcheck // V1Payouts.Cancel of this version posts to /v1/topups
			return of(r.APIResource, r.ID, err)
		}},
		{"payout.reverse", planted(fake.Payout{Paid: true}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Payouts.Reverse(ctx, id, &stripe.PayoutReverseParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
	}
}
