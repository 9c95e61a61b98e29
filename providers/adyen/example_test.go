package adyen_test

import (
	"context"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/adyen"
)

// A refund that a job may ask for twice.
func Example() {
	refund := func(ctx context.Context, payments *outbound.Client, cmd outbound.Command, payment string) (*outbound.Reply, error) {
		return payments.Do(ctx, adyen.PaymentRefund(cmd, payment, map[string]any{
			"merchantAccount": "ShopECOM",
			"amount":          map[string]any{"value": 500, "currency": "EUR"},
		}))
	}
	_ = refund
}
