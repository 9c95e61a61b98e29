package stripego_test

import (
	"context"

	"github.com/stripe/stripe-go/v86"
	"github.com/stripe/stripe-go/v86/payout"

	"github.com/seed-6b5e302b/samekey/providers/providertest"
)

// operation is one row of samekey's table as stripe-go calls it.
type operation struct {
	name string
	// ready puts in place what the call needs and returns its id; nil for nothing.
	ready func(*providertest.Fake) string
	call  func(ctx context.Context, b *bench, id string) answer
}

func seeding(object any) func(*providertest.Fake) string {
	return func(f *providertest.Fake) string { return f.Seed(object) }
}

func text(s string) *string { return stripe.String(s) }
func count(n int64) *int64  { return stripe.Int64(n) }

// operations are all that the fake has.
func operations() []operation {
	return append(append(append(payments(), billing()...), transfers()...), v2()...)
}

func payments() []operation {
	return []operation{
		{"payment_intent.create", nil, func(ctx context.Context, b *bench, _ string) answer {
			r, err := b.sc.V1PaymentIntents.Create(ctx, &stripe.PaymentIntentCreateParams{
				Amount: count(1250), Currency: text("eur"), Confirm: stripe.Bool(true), PaymentMethod: text("pm_card_visa"),
				ReturnURL: text("https://example.com"), Metadata: map[string]string{"order": "o1", "basket": "b1"},
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"payment_intent.confirm", seeding(providertest.PaymentIntent{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1PaymentIntents.Confirm(ctx, id, &stripe.PaymentIntentConfirmParams{ReturnURL: text("https://example.com")})
			return of(r.APIResource, r.ID, err)
		}},
		{"payment_intent.capture", seeding(providertest.PaymentIntent{Status: "requires_capture"}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1PaymentIntents.Capture(ctx, id, &stripe.PaymentIntentCaptureParams{AmountToCapture: count(700)})
			return of(r.APIResource, r.ID, err)
		}},
		{"payment_intent.cancel", seeding(providertest.PaymentIntent{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1PaymentIntents.Cancel(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
		{"refund.create", seeding(providertest.Charge{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1Refunds.Create(ctx, &stripe.RefundCreateParams{Charge: &id, Amount: count(300)})
			return of(r.APIResource, r.ID, err)
		}},
		{"setup_intent.create", seeding(providertest.Customer{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1SetupIntents.Create(ctx, &stripe.SetupIntentCreateParams{Customer: &id, PaymentMethod: text("pm_card_visa")})
			return of(r.APIResource, r.ID, err)
		}},
		{"setup_intent.confirm", seeding(providertest.SetupIntent{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1SetupIntents.Confirm(ctx, id, &stripe.SetupIntentConfirmParams{PaymentMethod: text("pm_card_visa")})
			return of(r.APIResource, r.ID, err)
		}},
		{"setup_intent.cancel", seeding(providertest.SetupIntent{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1SetupIntents.Cancel(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
		{"customer.create", nil, func(ctx context.Context, b *bench, _ string) answer {
			r, err := b.sc.V1Customers.Create(ctx, &stripe.CustomerCreateParams{Email: text("a@example.com")})
			return of(r.APIResource, r.ID, err)
		}},
		{"customer_balance_transaction.create", seeding(providertest.Customer{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1CustomerBalanceTransactions.Create(ctx, &stripe.CustomerBalanceTransactionCreateParams{
				Customer: &id, Amount: count(-500), Currency: text("eur"),
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"checkout_session.create", nil, func(ctx context.Context, b *bench, _ string) answer {
			r, err := b.sc.V1CheckoutSessions.Create(ctx, &stripe.CheckoutSessionCreateParams{
				Mode: text("payment"), SuccessURL: text("https://example.com/done"),
				LineItems: []*stripe.CheckoutSessionCreateLineItemParams{{Price: text("price_1"), Quantity: count(2)}},
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"checkout_session.expire", seeding(providertest.CheckoutSession{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1CheckoutSessions.Expire(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
	}
}

func billing() []operation {
	return []operation{
		{"subscription.create", seeding(providertest.Customer{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1Subscriptions.Create(ctx, &stripe.SubscriptionCreateParams{
				Customer: &id, Items: []*stripe.SubscriptionCreateItemParams{{Price: text("price_1")}},
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"subscription.update", seeding(providertest.StripeSubscription{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1Subscriptions.Update(ctx, id, &stripe.SubscriptionUpdateParams{CancelAtPeriodEnd: stripe.Bool(true)})
			return of(r.APIResource, r.ID, err)
		}},
		{"subscription.cancel", seeding(providertest.StripeSubscription{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1Subscriptions.Cancel(ctx, id, &stripe.SubscriptionCancelParams{Prorate: stripe.Bool(true)})
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice.create", seeding(providertest.Customer{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1Invoices.Create(ctx, &stripe.InvoiceCreateParams{Customer: &id})
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice.finalize", seeding(providertest.StripeInvoice{Status: "draft"}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1Invoices.FinalizeInvoice(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice.pay", seeding(providertest.StripeInvoice{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1Invoices.Pay(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice.void", seeding(providertest.StripeInvoice{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1Invoices.VoidInvoice(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice.send", seeding(providertest.StripeInvoice{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1Invoices.SendInvoice(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice_item.create", seeding(providertest.Customer{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1InvoiceItems.Create(ctx, &stripe.InvoiceItemCreateParams{Customer: &id, Amount: count(400), Currency: text("eur")})
			return of(r.APIResource, r.ID, err)
		}},
		{"credit_note.create", seeding(providertest.StripeInvoice{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1CreditNotes.Create(ctx, &stripe.CreditNoteCreateParams{Invoice: &id, Amount: count(100)})
			return of(r.APIResource, r.ID, err)
		}},
		{"meter_event.create", seeding(providertest.Customer{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1BillingMeterEvents.Create(ctx, &stripe.BillingMeterEventCreateParams{
				EventName: text("calls"), Payload: map[string]string{"value": "25", "stripe_customer_id": id},
			})
			return of(r.APIResource, r.EventName, err)
		}},
	}
}

func transfers() []operation {
	return []operation{
		{"transfer.create", nil, func(ctx context.Context, b *bench, _ string) answer {
			r, err := b.sc.V1Transfers.Create(ctx, &stripe.TransferCreateParams{
				Amount: count(900), Currency: text("eur"), Destination: text("acct_seller"), TransferGroup: text("order-7"),
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"transfer_reversal.create", seeding(providertest.Transfer{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1TransferReversals.Create(ctx, &stripe.TransferReversalCreateParams{ID: &id, Amount: count(100)})
			return of(r.APIResource, r.ID, err)
		}},
		{"payout.create", nil, func(ctx context.Context, b *bench, _ string) answer {
			r, err := b.sc.V1Payouts.Create(ctx, &stripe.PayoutCreateParams{Amount: count(900), Currency: text("eur")})
			return of(r.APIResource, r.ID, err)
		}},
		{"payout.cancel", seeding(providertest.StripePayout{}), func(ctx context.Context, b *bench, id string) answer {
			p := &stripe.PayoutParams{}
			p.Context = ctx
			r, err := payout.Client{B: b.backends.API, Key: secretKey}.Cancel(id, p) //nolint:staticcheck // V1Payouts.Cancel of this version posts to /v1/topups
			return of(r.APIResource, r.ID, err)
		}},
		{"payout.reverse", seeding(providertest.StripePayout{Paid: true}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V1Payouts.Reverse(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
	}
}

func v2() []operation {
	return []operation{
		{"v2.account.create", nil, func(ctx context.Context, b *bench, _ string) answer {
			r, err := b.sc.V2CoreAccounts.Create(ctx, &stripe.V2CoreAccountCreateParams{DisplayName: text("Shop"), ContactEmail: text("a@example.com")})
			return of(r.APIResource, r.ID, err)
		}},
		{"v2.account.update", seeding(providertest.Account{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V2CoreAccounts.Update(ctx, id, &stripe.V2CoreAccountUpdateParams{DisplayName: text("Other")})
			return of(r.APIResource, r.ID, err)
		}},
		{"v2.account.close", seeding(providertest.Account{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V2CoreAccounts.Close(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
		{"v2.event_destination.create", nil, func(ctx context.Context, b *bench, _ string) answer {
			r, err := b.sc.V2CoreEventDestinations.Create(ctx, &stripe.V2CoreEventDestinationCreateParams{
				Name: text("hook"), Type: text("webhook_endpoint"), EventPayload: text("thin"), EnabledEvents: []*string{text("v1.billing.meter.error_report_triggered")},
				WebhookEndpoint: &stripe.V2CoreEventDestinationCreateWebhookEndpointParams{URL: text("https://example.com/hook")},
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"v2.event_destination.update", seeding(providertest.EventDestination{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V2CoreEventDestinations.Update(ctx, id, &stripe.V2CoreEventDestinationUpdateParams{Description: text("new")})
			return of(r.APIResource, r.ID, err)
		}},
		{"v2.event_destination.delete", seeding(providertest.EventDestination{}), func(ctx context.Context, b *bench, id string) answer {
			r, err := b.sc.V2CoreEventDestinations.Delete(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
	}
}
