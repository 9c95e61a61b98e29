package readme

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// FindOut has unknown outcomes found out until ctx ends.
//
//nolint:errcheck // Run returns nil then
func FindOut(ctx context.Context, payments, pp *outbound.Client) error {
	r, err := outbound.NewReconciler(nil, payments, pp)
	if err != nil {
		return err
	}
	go r.Run(ctx)
	return nil
}

// maxEvent bounds a webhook's body, in bytes.
const maxEvent = 1 << 20

// Webhook hands in what an event of Stripe's shows.
func Webhook(ctx context.Context, payments *outbound.Client, r *http.Request, secrets ...string) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxEvent))
	if err != nil {
		return err
	}
	if err := stripe.Verify(body, r.Header.Get("Stripe-Signature"), 5*time.Minute, secrets...); err != nil {
		return err
	}
	seen, ok, err := stripe.Event(body)
	if err != nil {
		return err // not an event of Stripe's shape
	}
	if ok { // false: it is about no call of ours
		err = payments.Observe(ctx, seen) // an error: let the provider deliver again
	}
	return err
}
