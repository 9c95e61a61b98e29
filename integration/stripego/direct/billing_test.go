package direct_test

import (
	"context"

	"github.com/stripe/stripe-go/v86"

	fake "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

func customers() []write {
	return []write{
		{"customer.create", nil, func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Customers.Create(ctx, &stripe.CustomerCreateParams{Params: keyed(key), Email: text("a@example.com")})
			return of(r.APIResource, r.ID, err)
		}},
		{"customer.update", planted(fake.Customer{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Customers.Update(ctx, id, &stripe.CustomerUpdateParams{Params: keyed(key), Name: text("Ann")})
			return of(r.APIResource, r.ID, err)
		}},
		{"customer.delete", planted(fake.Customer{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Customers.Delete(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
		{"customer_balance_transaction.create", planted(fake.Customer{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1CustomerBalanceTransactions.Create(ctx, &stripe.CustomerBalanceTransactionCreateParams{
				Params: keyed(key), Customer: &id, Amount: count(-500), Currency: text("eur"),
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"subscription.create", planted(fake.Customer{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Subscriptions.Create(ctx, &stripe.SubscriptionCreateParams{
				Params: keyed(key), Customer: &id, Items: []*stripe.SubscriptionCreateItemParams{{Price: text("price_1")}},
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"subscription.update", planted(fake.Subscription{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Subscriptions.Update(ctx, id, &stripe.SubscriptionUpdateParams{Params: keyed(key), CancelAtPeriodEnd: stripe.Bool(true)})
			return of(r.APIResource, r.ID, err)
		}},
		{"subscription.cancel", planted(fake.Subscription{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Subscriptions.Cancel(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
	}
}

func invoices() []write {
	return []write{
		{"invoice.create", planted(fake.Customer{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Invoices.Create(ctx, &stripe.InvoiceCreateParams{Params: keyed(key), Customer: &id})
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice.update", planted(fake.Invoice{Status: "draft"}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Invoices.Update(ctx, id, &stripe.InvoiceUpdateParams{Params: keyed(key), Description: text("new")})
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice.delete", planted(fake.Invoice{Status: "draft"}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Invoices.Delete(ctx, id, nil)
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice.finalize", planted(fake.Invoice{Status: "draft"}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Invoices.FinalizeInvoice(ctx, id, &stripe.InvoiceFinalizeInvoiceParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice.pay", planted(fake.Invoice{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Invoices.Pay(ctx, id, &stripe.InvoicePayParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice.void", planted(fake.Invoice{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Invoices.VoidInvoice(ctx, id, &stripe.InvoiceVoidInvoiceParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice.send", planted(fake.Invoice{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1Invoices.SendInvoice(ctx, id, &stripe.InvoiceSendInvoiceParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
		{"invoice_item.create", planted(fake.Customer{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1InvoiceItems.Create(ctx, &stripe.InvoiceItemCreateParams{Params: keyed(key), Customer: &id, Amount: count(400), Currency: text("eur")})
			return of(r.APIResource, r.ID, err)
		}},
		{"credit_note.create", planted(fake.Invoice{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1CreditNotes.Create(ctx, &stripe.CreditNoteCreateParams{Params: keyed(key), Invoice: &id, Amount: count(100)})
			return of(r.APIResource, r.ID, err)
		}},
		{"meter_event.create", planted(fake.Customer{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V1BillingMeterEvents.Create(ctx, &stripe.BillingMeterEventCreateParams{
				Params: keyed(key), EventName: text("calls"), Payload: map[string]string{"value": "25", "stripe_customer_id": id},
			})
			return of(r.APIResource, r.Identifier, err)
		}},
	}
}

func v2() []write {
	return []write{
		{"v2.account.create", nil, func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V2CoreAccounts.Create(ctx, &stripe.V2CoreAccountCreateParams{
				Params: keyed(key), DisplayName: text("Shop"), ContactEmail: text("a@example.com"),
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"v2.account.update", planted(fake.Account{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V2CoreAccounts.Update(ctx, id, &stripe.V2CoreAccountUpdateParams{Params: keyed(key), DisplayName: text("Other")})
			return of(r.APIResource, r.ID, err)
		}},
		{"v2.account.close", planted(fake.Account{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V2CoreAccounts.Close(ctx, id, &stripe.V2CoreAccountCloseParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
		{"v2.event_destination.create", nil, func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V2CoreEventDestinations.Create(ctx, &stripe.V2CoreEventDestinationCreateParams{
				Params: keyed(key), Name: text("hook"), Type: text("webhook_endpoint"), EventPayload: text("thin"),
				EnabledEvents:   []*string{text("v1.billing.meter.error_report_triggered")},
				WebhookEndpoint: &stripe.V2CoreEventDestinationCreateWebhookEndpointParams{URL: text("https://example.com/hook")},
			})
			return of(r.APIResource, r.ID, err)
		}},
		{"v2.event_destination.update", planted(fake.EventDestination{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V2CoreEventDestinations.Update(ctx, id, &stripe.V2CoreEventDestinationUpdateParams{Params: keyed(key), Description: text("new")})
			return of(r.APIResource, r.ID, err)
		}},
		{"v2.event_destination.disable", planted(fake.EventDestination{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V2CoreEventDestinations.Disable(ctx, id, &stripe.V2CoreEventDestinationDisableParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
		{"v2.event_destination.enable", planted(fake.EventDestination{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V2CoreEventDestinations.Enable(ctx, id, &stripe.V2CoreEventDestinationEnableParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
		{"v2.event_destination.delete", planted(fake.EventDestination{}), func(ctx context.Context, d *direct, id, key string) answer {
			r, err := d.sc.V2CoreEventDestinations.Delete(ctx, id, &stripe.V2CoreEventDestinationDeleteParams{Params: keyed(key)})
			return of(r.APIResource, r.ID, err)
		}},
	}
}
