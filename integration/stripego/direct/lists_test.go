package direct_test

import (
	"context"

	"github.com/stripe/stripe-go/v86"

	fake "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

func billingLookups() []lookup {
	return []lookup{
		{"subscription.get", planted(fake.Subscription{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1Subscriptions.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"subscription.list", planted(fake.Subscription{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1Subscriptions.List(ctx, &stripe.SubscriptionListParams{}).All(ctx), func(r *stripe.Subscription) string { return r.ID })
		}},
		{"subscription.search", planted(fake.Subscription{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1Subscriptions.Search(ctx, &stripe.SubscriptionSearchParams{SearchParams: everything}).All(ctx), func(r *stripe.Subscription) string { return r.ID })
		}},
		{"invoice.get", planted(fake.Invoice{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1Invoices.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"invoice.list", planted(fake.Invoice{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1Invoices.List(ctx, &stripe.InvoiceListParams{}).All(ctx), func(r *stripe.Invoice) string { return r.ID })
		}},
		{"invoice.search", planted(fake.Invoice{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1Invoices.Search(ctx, &stripe.InvoiceSearchParams{SearchParams: everything}).All(ctx), func(r *stripe.Invoice) string { return r.ID })
		}},
		{"invoice_item.get", invoiceItem, func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1InvoiceItems.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"invoice_item.list", invoiceItem, func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1InvoiceItems.List(ctx, &stripe.InvoiceItemListParams{}).All(ctx), func(r *stripe.InvoiceItem) string { return r.ID })
		}},
		{"credit_note.get", creditNote, func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1CreditNotes.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"credit_note.list", creditNote, func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1CreditNotes.List(ctx, &stripe.CreditNoteListParams{}).All(ctx), func(r *stripe.CreditNote) string { return r.ID })
		}},
		{"customer.get", planted(fake.Customer{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1Customers.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"customer.list", planted(fake.Customer{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1Customers.List(ctx, &stripe.CustomerListParams{}).All(ctx), func(r *stripe.Customer) string { return r.ID })
		}},
		{"customer.search", planted(fake.Customer{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1Customers.Search(ctx, &stripe.CustomerSearchParams{SearchParams: everything}).All(ctx), func(r *stripe.Customer) string { return r.ID })
		}},
		{"customer_balance_transaction.get", credit, func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1CustomerBalanceTransactions.Retrieve(ctx, id, &stripe.CustomerBalanceTransactionRetrieveParams{Customer: &d.parent})
			return []string{r.ID}, err
		}},
		{"customer_balance_transaction.list", credit, func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1CustomerBalanceTransactions.List(ctx, &stripe.CustomerBalanceTransactionListParams{Customer: &d.parent}).All(ctx), func(r *stripe.CustomerBalanceTransaction) string { return r.ID })
		}},
		{"account.get", nil, func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1Accounts.GetByID(ctx, account, nil)
			return []string{r.ID}, err
		}},
		{"event.get", event, func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1Events.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"event.list", event, func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1Events.List(ctx, &stripe.EventListParams{}).All(ctx), func(r *stripe.Event) string { return r.ID })
		}},
		{"v2.account.get", planted(fake.Account{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V2CoreAccounts.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"v2.account.list", planted(fake.Account{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V2CoreAccounts.List(ctx, &stripe.V2CoreAccountListParams{}).All(ctx), func(r *stripe.V2CoreAccount) string { return r.ID })
		}},
		{"v2.event_destination.get", planted(fake.EventDestination{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V2CoreEventDestinations.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"v2.event_destination.list", planted(fake.EventDestination{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V2CoreEventDestinations.List(ctx, &stripe.V2CoreEventDestinationListParams{}).All(ctx), func(r *stripe.V2CoreEventDestination) string { return r.ID })
		}},
		{"balance.get", nil, func(ctx context.Context, d *direct, _ string) ([]string, error) {
			r, err := d.sc.V1Balance.Retrieve(ctx, nil)
			return []string{r.Object}, err
		}},
	}
}
