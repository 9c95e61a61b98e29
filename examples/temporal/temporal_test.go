package temporal

import (
	"errors"
	"testing"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

func activities(t *testing.T) (*Activities, *providertest.Fake) {
	t.Helper()
	fake := providertest.Stripe(t, nil)
	payments, err := outbound.New(
		stripe.New(stripe.Config{Account: "acct_1Nv0FG", SecretKey: "sk_test_1", Test: true, BaseURL: fake.URL}),
		memory.New(nil), &outbound.Options{Retry: outbound.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return &Activities{Payments: payments}, fake
}

// C09: a workflow whose first activity loses its answer refunds once.
func TestRefundWorkflow(t *testing.T) {
	t.Parallel()
	a, fake := activities(t)
	refund := Refund{CommandID: outbound.NewCommandID(), Charge: fake.Seed(providertest.Charge{Amount: 500, Currency: "eur"})}
	fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"})
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	env.RegisterActivity(a)
	env.ExecuteWorkflow(RefundWorkflow, refund)
	var result Result
	if err := env.GetWorkflowResult(&result); err != nil || result.ExternalRef == "" {
		t.Errorf("result %+v, %v, want a refund", result, err)
	}
	if n, sent := fake.Effects("refund.create"), len(fake.Requests("refund.create")); n != 1 || sent != 2 {
		t.Errorf("%d refunds by %d requests, want 1 by 2", n, sent)
	}
}

// An unknown outcome is asked again at its time; another content never.
func TestRefundErrors(t *testing.T) {
	t.Parallel()
	a, fake := activities(t)
	refund := Refund{CommandID: outbound.NewCommandID(), Charge: fake.Seed(providertest.Charge{Amount: 500, Currency: "eur"})}
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(a)
	fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"})
	_, err := env.ExecuteActivity(a.Refund, refund)
	if e, ok := errors.AsType[*temporal.ApplicationError](err); !ok || e.NonRetryable() || e.NextRetryDelay() <= 0 {
		t.Errorf("a lost answer ended in %v, want a later attempt", err)
	}
	refund.Charge = "ch_other"
	_, err = env.ExecuteActivity(a.Refund, refund)
	if e, ok := errors.AsType[*temporal.ApplicationError](err); !ok || !e.NonRetryable() {
		t.Errorf("another charge under the same command ended in %v, want no other attempt", err)
	}
}
