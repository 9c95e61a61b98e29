// Package river works refunds as jobs of River. The command travels in the job's
// arguments: it is the refund's, not the job's, attempt's or run's.
package river

import (
	"context"
	"errors"
	"net/url"

	"github.com/riverqueue/river"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// RefundArgs are a refund's job. CommandID is stored with the refund's own row.
type RefundArgs struct {
	CommandID string `json:"command_id" river:"unique"`
	Charge    string `json:"charge"`
}

// Kind names the jobs.
func (RefundArgs) Kind() string { return "refund" }

// RefundWorker sends refunds.
type RefundWorker struct {
	river.WorkerDefaults[RefundArgs]

	Payments *outbound.Client
	Book     func(ctx context.Context, commandID string, reply *outbound.Reply, refusal error) error // in your own tables, once
}

// Work makes one try. River's attempts are not samekey's: this returns an error
// only where another attempt can help, and then says when.
func (w *RefundWorker) Work(ctx context.Context, job *river.Job[RefundArgs]) error {
	cmd := outbound.Command{ID: job.Args.CommandID}
	reply, err := w.Payments.Do(ctx, stripe.RefundCreate(cmd, url.Values{"charge": {job.Args.Charge}}))
	if err == nil || errors.Is(err, outbound.ErrRefused) {
		return w.Book(ctx, cmd.ID, reply, err) // both are outcomes
	}
	if after, again := outbound.RetryAfter(err); again {
		return river.JobSnooze(after) // costs no attempt
	}
	return river.JobCancel(err) // another attempt changes nothing: a person looks at it
}
