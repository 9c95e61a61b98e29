// Package temporal refunds in an activity of Temporal. The command is an argument
// of the workflow: neither the run's id, which a reset changes, nor the activity's
// attempt.
package temporal

import (
	"context"
	"errors"
	"net/url"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// Refund is what a workflow is started with.
type Refund struct {
	CommandID string // Stored with the refund's own row.
	Charge    string
}

// Result is what a refund came to.
type Result struct {
	ExternalRef string // Empty where it was refused.
	Refused     string // The provider's code.
}

// RefundWorkflow refunds one charge.
func RefundWorkflow(ctx workflow.Context, r Refund) (Result, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		// Longer than a whole call (45 s by default). A worker that hangs longer is
		// still protected: the next attempt meets its lease.
		StartToCloseTimeout: time.Minute,
		// No MaximumAttempts: attempts are cheap, and giving up would leave the
		// outcome unknown. The activity says when the next one is worth it.
	})
	var a *Activities
	var result Result
	err := workflow.ExecuteActivity(ctx, a.Refund, r).Get(ctx, &result)
	return result, err
}

// Activities are the activities of RefundWorkflow.
type Activities struct{ Payments *outbound.Client }

// Refund makes one try.
func (a *Activities) Refund(ctx context.Context, r Refund) (Result, error) {
	reply, err := a.Payments.Do(ctx, stripe.RefundCreate(outbound.Command{ID: r.CommandID}, url.Values{"charge": {r.Charge}}))
	if err == nil {
		return Result{ExternalRef: reply.ExternalRef}, nil
	}
	e, ok := errors.AsType[*outbound.Error](err)
	if ok && e.Code == outbound.ErrRefused {
		return Result{Refused: e.ProviderCode}, nil // an outcome, not a failed activity
	}
	after, again := outbound.RetryAfter(err)
	return Result{}, temporal.NewApplicationErrorWithOptions(err.Error(), "samekey", temporal.ApplicationErrorOptions{
		NonRetryable: !again, NextRetryDelay: after, Cause: err,
	})
}
