package square_test

import (
	"context"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/square"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// A charge of an order. Calling it again with the same command, from any process,
// charges no second time.
func Example() {
	charge := func(ctx context.Context, ledger recordstore.Store, order outbound.Command) (*outbound.Reply, error) {
		payments, err := outbound.New(square.New(square.Config{Merchant: "MLEFBHHSJGVHD", Token: "…"}), ledger, nil)
		if err != nil {
			return nil, err
		}
		return payments.Do(ctx, square.PaymentCreate(order, map[string]any{
			"source_id":    "ccof:customer-card-id-ok",
			"amount_money": map[string]any{"amount": 1250, "currency": "USD"},
		}))
	}
	_ = charge
}

// An order is given up while nobody knows whether its payment was made.
func ExamplePaymentCancelByKey() {
	giveUp := func(ctx context.Context, payments *outbound.Client, order outbound.Command) error {
		key, err := payments.Key(order, "payment.create", "")
		if err != nil {
			return err
		}
		_, err = payments.Do(ctx, square.PaymentCancelByKey(order.Step("give-up"), key))
		return err
	}
	_ = giveUp
}
