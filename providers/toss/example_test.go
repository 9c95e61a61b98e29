package toss_test

import (
	"context"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/toss"
)

// The page that a customer comes back to. Reloading it confirms no second time.
func Example() {
	confirm := func(ctx context.Context, payments *outbound.Client, order outbound.Command, c toss.Confirmation) (*outbound.Reply, error) {
		return payments.Do(ctx, toss.PaymentConfirm(order, c))
	}
	_ = confirm
}
