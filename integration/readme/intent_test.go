package readme_test

import (
	"context"
	"net/url"
	"testing"
	"testing/synctest"

	"github.com/seed-6b5e302b/samekey/integration/readme"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// Job is a job as a queue hands it to a worker.
type Job struct {
	Attempt int
	RunID   string
	Refund  readme.Row
}

// Worker is the service under test.
type Worker struct {
	payments *outbound.Client
	charge   string
}

// Work refunds the charge under the row's command.
func (w *Worker) Work(ctx context.Context, job Job) error {
	cmd := outbound.Command{ID: job.Refund.CommandID}
	_, err := w.payments.Do(ctx, stripe.RefundCreate(cmd, url.Values{"charge": {w.charge}}))
	return err
}

func newWorker(t *testing.T, fake *providertest.Fake) *Worker {
	t.Helper()
	payments, err := outbound.New(stripe.New(stripe.Config{
		Account: "acct_1FakeStripe", SecretKey: "sk_test_1", Test: true, BaseURL: fake.URL, Transport: fake.Transport(),
	}), memory.New(nil), &outbound.Options{Retry: outbound.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := payments.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &Worker{payments, fake.Seed(providertest.Charge{Amount: 1250, Currency: "eur"})}
}

func TestRefundIsOneIntent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := providertest.Stripe(t, &providertest.Options{InMemory: true})
		worker := newWorker(t, fake)
		row := readme.Row{CommandID: "shop-refund-42"} // as it was stored

		providertest.OneIntent(t, fake, 1, func(try providertest.Try) error {
			return worker.Work(t.Context(), Job{Attempt: try.Attempt, RunID: try.Run, Refund: row})
		})
	})
}
