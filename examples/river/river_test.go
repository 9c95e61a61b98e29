package river

import (
	"context"
	"errors"
	"testing"

	"github.com/riverqueue/river"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// C09: a job that runs again after a lost answer refunds once. It is snoozed
// meanwhile, and cancelled where another attempt can change nothing.
func TestRefundWorker(t *testing.T) {
	t.Parallel()
	fake := providertest.Stripe(t, nil)
	charge := fake.Seed(providertest.Charge{Amount: 500, Currency: "eur"})
	payments, err := outbound.New(
		stripe.New(stripe.Config{Account: "acct_1Nv0FG", SecretKey: "sk_test_1", Test: true, BaseURL: fake.URL}),
		memory.New(nil), &outbound.Options{Retry: outbound.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	booked := 0
	w := &RefundWorker{Payments: payments, Book: func(context.Context, string, *outbound.Reply, error) error { booked++; return nil }}
	job := &river.Job[RefundArgs]{Args: RefundArgs{CommandID: outbound.NewCommandID(), Charge: charge}}

	fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"})
	if err := w.Work(t.Context(), job); !errors.As(err, new(*river.JobSnoozeError)) {
		t.Errorf("a lost answer ended in %v, want a snooze", err)
	}
	if err := w.Work(t.Context(), job); err != nil {
		t.Errorf("the next run ended in %v", err)
	}
	if n := fake.Effects("refund.create"); n != 1 || booked != 1 {
		t.Errorf("%d refunds, booked %d times, want one each", n, booked)
	}

	job.Args.Charge = "ch_other"
	if err := w.Work(t.Context(), job); !errors.As(err, new(*river.JobCancelError)) {
		t.Errorf("the same command for another charge ended in %v, want it cancelled", err)
	}
}
