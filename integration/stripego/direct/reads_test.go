package direct_test

import (
	"context"

	"github.com/stripe/stripe-go/v86"

	fake "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// lookup is a look-up of the fake as stripe-go makes it: what it found by id.
type lookup struct {
	name string
	// ready puts in place what is looked for and returns its id; nil for what is
	// always there.
	ready func(*direct) string
	call  func(ctx context.Context, d *direct, id string) ([]string, error)
}

func lookups() []lookup { return append(moneyLookups(), billingLookups()...) }

// everything is a search that finds all objects.
var everything = stripe.SearchParams{Query: "created>0"}

// ids collects what a list or a search yields, over all pages.
func ids[T any](all stripe.Seq2[T, error], id func(T) string) ([]string, error) {
	var found []string
	for r, err := range all {
		if err != nil {
			return nil, err
		}
		found = append(found, id(r))
	}
	return found, nil
}

// made returns the id of an object that the SDK itself has put in place.
func (d *direct) made(a answer) string {
	d.Helper()
	if a.err != nil {
		d.Fatal(a.err)
	}
	return a.id
}

func invoiceItem(d *direct) string {
	customer := d.seed(fake.Customer{})
	r, err := d.sc.V1InvoiceItems.Create(d.Context(), &stripe.InvoiceItemCreateParams{Customer: &customer, Amount: count(400), Currency: text("eur")})
	return d.made(of(r.APIResource, r.ID, err))
}

func creditNote(d *direct) string {
	invoice := d.seed(fake.Invoice{})
	r, err := d.sc.V1CreditNotes.Create(d.Context(), &stripe.CreditNoteCreateParams{Invoice: &invoice, Amount: count(100)})
	return d.made(of(r.APIResource, r.ID, err))
}

func reversal(d *direct) string {
	d.parent = d.seed(fake.Transfer{})
	r, err := d.sc.V1TransferReversals.Create(d.Context(), &stripe.TransferReversalCreateParams{ID: &d.parent, Amount: count(100)})
	return d.made(of(r.APIResource, r.ID, err))
}

func credit(d *direct) string {
	d.parent = d.seed(fake.Customer{})
	r, err := d.sc.V1CustomerBalanceTransactions.Create(d.Context(), &stripe.CustomerBalanceTransactionCreateParams{
		Customer: &d.parent, Amount: count(-500), Currency: text("eur"),
	})
	return d.made(of(r.APIResource, r.ID, err))
}

func event(d *direct) string {
	pendingRefund(d)
	events := d.fake.Events()
	return events[len(events)-1].ID
}

func moneyLookups() []lookup {
	return []lookup{
		{"payment_intent.get", planted(fake.PaymentIntent{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1PaymentIntents.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"payment_intent.list", planted(fake.PaymentIntent{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1PaymentIntents.List(ctx, &stripe.PaymentIntentListParams{}).All(ctx), func(r *stripe.PaymentIntent) string { return r.ID })
		}},
		{"payment_intent.search", planted(fake.PaymentIntent{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1PaymentIntents.Search(ctx, &stripe.PaymentIntentSearchParams{SearchParams: everything}).All(ctx), func(r *stripe.PaymentIntent) string { return r.ID })
		}},
		{"charge.get", planted(fake.Charge{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1Charges.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"charge.list", planted(fake.Charge{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1Charges.List(ctx, &stripe.ChargeListParams{}).All(ctx), func(r *stripe.Charge) string { return r.ID })
		}},
		{"charge.search", planted(fake.Charge{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1Charges.Search(ctx, &stripe.ChargeSearchParams{SearchParams: everything}).All(ctx), func(r *stripe.Charge) string { return r.ID })
		}},
		{"refund.get", pendingRefund, func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1Refunds.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"refund.list", pendingRefund, func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1Refunds.List(ctx, &stripe.RefundListParams{}).All(ctx), func(r *stripe.Refund) string { return r.ID })
		}},
		{"transfer.get", planted(fake.Transfer{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1Transfers.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"transfer.list", planted(fake.Transfer{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1Transfers.List(ctx, &stripe.TransferListParams{}).All(ctx), func(r *stripe.Transfer) string { return r.ID })
		}},
		{"payout.get", planted(fake.Payout{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1Payouts.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"payout.list", planted(fake.Payout{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1Payouts.List(ctx, &stripe.PayoutListParams{}).All(ctx), func(r *stripe.Payout) string { return r.ID })
		}},
		{"setup_intent.get", planted(fake.SetupIntent{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1SetupIntents.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"setup_intent.list", planted(fake.SetupIntent{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1SetupIntents.List(ctx, &stripe.SetupIntentListParams{}).All(ctx), func(r *stripe.SetupIntent) string { return r.ID })
		}},
		{"checkout_session.get", planted(fake.CheckoutSession{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1CheckoutSessions.Retrieve(ctx, id, nil)
			return []string{r.ID}, err
		}},
		{"checkout_session.list", planted(fake.CheckoutSession{}), func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1CheckoutSessions.List(ctx, &stripe.CheckoutSessionListParams{}).All(ctx), func(r *stripe.CheckoutSession) string { return r.ID })
		}},
		{"transfer_reversal.get", reversal, func(ctx context.Context, d *direct, id string) ([]string, error) {
			r, err := d.sc.V1TransferReversals.Retrieve(ctx, id, &stripe.TransferReversalRetrieveParams{ID: &d.parent})
			return []string{r.ID}, err
		}},
		{"transfer_reversal.list", reversal, func(ctx context.Context, d *direct, id string) ([]string, error) {
			return ids(d.sc.V1TransferReversals.List(ctx, &stripe.TransferReversalListParams{ID: &d.parent}).All(ctx), func(r *stripe.TransferReversal) string { return r.ID })
		}},
	}
}
