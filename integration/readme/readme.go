// Package readme is the program around the snippets of the README and the docs.
// A test holds that they are the same code.
package readme

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stripe/stripe-go/v86"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	skstripe "github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// Row is the service's own row of what it wants to happen. The command's ID was
// stored with it before the first call.
type Row struct{ CommandID string }

// Refund refunds a charge through stripe-go and says what its answer is. All but
// its end is done once, at start.
func Refund(ctx context.Context, pool *pgxpool.Pool, secretKey string, sealKey []byte, refund Row, charge string) (outbound.Label, error) {
	payments, err := outbound.New(
		skstripe.New(skstripe.Config{Account: "acct_1Nv0FG", SecretKey: secretKey}),
		postgres.New(pool, nil),
		&outbound.Options{Bodies: outbound.Seal(outbound.SealKey{ID: "2026", Bytes: sealKey})},
	)
	if err != nil {
		return "", err
	}
	transport, err := dropin.New(payments, nil)
	if err != nil {
		return "", err
	}
	sc := stripe.NewClient(secretKey, stripe.WithBackends(stripe.NewBackendsWithConfig(
		&stripe.BackendConfig{HTTPClient: transport.Client()})))

	// The new line at a call: the name of the intent, stored in your own row before.
	ctx = outbound.WithCommand(ctx, outbound.Command{ID: refund.CommandID})
	r, err := sc.V1Refunds.Create(ctx, &stripe.RefundCreateParams{Charge: stripe.String(charge)})
	if err != nil {
		return "", err
	}

	label, _ := dropin.Read(r.LastResponse.Header) // new_execution, original_replay, latest_status
	return label, nil
}

// Capture captures an order without an SDK. book is told of a capture that was
// applied, later of when to call again.
func Capture(ctx context.Context, pp *outbound.Client, capture Row, orderID string,
	book func(paypal.Capture, error) error, later func(time.Duration)) error {
	reply, err := pp.Do(ctx, paypal.OrderCapture(outbound.Command{ID: capture.CommandID}, orderID, nil))
	switch {
	case err == nil:
		return book(paypal.CaptureOf(reply)) // applied is not paid: look at its Status
	case errors.Is(err, outbound.ErrRefused):
		// declined: an outcome, final for this command
	default:
		if after, again := outbound.RetryAfter(err); again {
			later(after) // unknown is not failed: ask again, same command
		}
	}
	return err
}

// Work is a job of a queue.
func Work(ctx context.Context, client *outbound.Client, call outbound.Call, snooze func(time.Duration) error, stop func(error) error) error {
	_, err := client.Do(ctx, call) // the command is in the job's arguments
	if err == nil || errors.Is(err, outbound.ErrRefused) {
		return nil // an outcome, not a failed job
	}
	if after, again := outbound.RetryAfter(err); again {
		return snooze(after)
	}
	return stop(err) // another attempt changes nothing
}
