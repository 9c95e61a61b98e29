package plutov_test

import (
	"context"
	"testing"
	"time"

	plutov "github.com/plutov/paypal/v4"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// operation is one row of samekey's table as plutov/paypal calls it.
type operation struct {
	name string
	// ready is what the call needs; nil for nothing.
	ready any
	call  func(ctx context.Context, pp *plutov.Client, id string) error

	lost outbound.Evidence // of an answer that was lost and asked for again; "" if nothing can find it
}

// Operations that plutov/paypal has no method for.
var absent = map[string]bool{
	"order.confirm_payment_source": true, "setup_token.create": true, "payment_token.create": true,
	"invoice.create": true, "invoice.send": true, "invoice.cancel": true,
}

func euros(value string) *plutov.Money { return &plutov.Money{Currency: "EUR", Value: value} }

func operations() []operation { return append(orders(), others()...) }

func orders() []operation {
	order := providertest.ApprovedOrder{Value: "12.50", Currency: "EUR"}
	held := providertest.ApprovedOrder{Value: "12.50", Currency: "EUR", Intent: "AUTHORIZE"}
	authorization := providertest.CreatedAuthorization{Value: "12.50", Currency: "EUR", Age: 4 * 24 * time.Hour}
	return []operation{
		{name: "order.create", lost: "status_code", call: func(ctx context.Context, pp *plutov.Client, _ string) error {
			_, err := pp.CreateOrder(ctx, plutov.OrderIntentCapture, []plutov.PurchaseUnitRequest{
				{Amount: &plutov.PurchaseUnitAmount{Currency: "EUR", Value: "12.50"}},
			}, nil, nil)
			return err
		}},
		{name: "order.patch", ready: order, call: func(ctx context.Context, pp *plutov.Client, id string) error {
			return pp.UpdateOrder(ctx, id, "replace", "/purchase_units/@reference_id=='default'/amount", map[string]string{"currency_code": "EUR", "value": "13.00"})
		}},
		{name: "order.authorize", ready: held, lost: "status_code", call: func(ctx context.Context, pp *plutov.Client, id string) error {
			_, err := pp.AuthorizeOrder(ctx, id, plutov.AuthorizeOrderRequest{})
			return err
		}},
		{name: "order.capture", ready: order, lost: "status_code", call: func(ctx context.Context, pp *plutov.Client, id string) error {
			_, err := pp.CaptureOrder(ctx, id, plutov.CaptureOrderRequest{})
			return err
		}},
		{name: "authorization.capture", ready: authorization, lost: "status_code", call: func(ctx context.Context, pp *plutov.Client, id string) error {
			_, err := pp.CaptureAuthorization(ctx, id, &plutov.PaymentCaptureRequest{Amount: euros("5.00")})
			return err
		}},
		{name: "authorization.reauthorize", ready: authorization, lost: "status_code", call: func(ctx context.Context, pp *plutov.Client, id string) error {
			_, err := pp.ReauthorizeAuthorization(ctx, id, &plutov.Amount{Currency: "EUR", Total: "12.50"})
			return err
		}},
		{name: "authorization.void", ready: authorization, lost: "status_code", call: func(ctx context.Context, pp *plutov.Client, id string) error {
			_, err := pp.VoidAuthorization(ctx, id)
			return err
		}},
		{name: "capture.refund", ready: providertest.CompletedCapture{Value: "12.50", Currency: "EUR"}, lost: "status_code", call: func(ctx context.Context, pp *plutov.Client, id string) error {
			_, err := pp.RefundCapture(ctx, id, plutov.RefundCaptureRequest{Amount: euros("5.00")})
			return err
		}},
	}
}

func others() []operation {
	subscription := providertest.ActiveSubscription{}
	return []operation{
		{name: "payout.create", lost: "lookup", call: func(ctx context.Context, pp *plutov.Client, _ string) error {
			_, err := pp.CreatePayout(ctx, plutov.Payout{
				SenderBatchHeader: &plutov.SenderBatchHeader{EmailSubject: "Your share"},
				Items:             []plutov.PayoutItem{{RecipientType: "EMAIL", Receiver: "seller@example.com", Amount: &plutov.AmountPayout{Currency: "EUR", Value: "9.00"}}},
			})
			return err
		}},
		{name: "product.create", lost: "status_code", call: func(ctx context.Context, pp *plutov.Client, _ string) error {
			_, err := pp.CreateProduct(ctx, plutov.Product{Name: "Box", Type: plutov.ProductTypePhysical})
			return err
		}},
		{name: "plan.create", ready: providertest.ActivePlan{}, lost: "status_code", call: func(ctx context.Context, pp *plutov.Client, id string) error {
			plan, err := pp.GetSubscriptionPlan(ctx, id) // a plan needs a product
			if err != nil {
				return err
			}
			_, err = pp.CreateSubscriptionPlan(ctx, plutov.SubscriptionPlan{
				ProductId: plan.ProductId, Name: "Monthly", Status: plutov.SubscriptionPlanStatusActive,
				BillingCycles: []plutov.BillingCycle{{
					PricingScheme: plutov.PricingScheme{FixedPrice: *euros("9.00")}, TenureType: plutov.TenureTypeRegular, Sequence: 1,
					Frequency: plutov.Frequency{IntervalUnit: plutov.IntervalUnitMonth, IntervalCount: 1},
				}},
			})
			return err
		}},
		{name: "subscription.create", ready: providertest.ActivePlan{}, lost: "status_code", call: func(ctx context.Context, pp *plutov.Client, id string) error {
			_, err := pp.CreateSubscription(ctx, plutov.SubscriptionBase{PlanID: id})
			return err
		}},
		{name: "subscription.activate", ready: providertest.ActiveSubscription{Status: "SUSPENDED"}, lost: "state_guard", call: func(ctx context.Context, pp *plutov.Client, id string) error {
			return pp.ActivateSubscription(ctx, id, "paid")
		}},
		{name: "subscription.suspend", ready: subscription, lost: "state_guard", call: func(ctx context.Context, pp *plutov.Client, id string) error {
			return pp.SuspendSubscription(ctx, id, "unpaid")
		}},
		{name: "subscription.cancel", ready: subscription, lost: "state_guard", call: func(ctx context.Context, pp *plutov.Client, id string) error {
			return pp.CancelSubscription(ctx, id, "moved")
		}},
	}
}

func (o operation) row(t *testing.T) replaysemantics.Operation {
	t.Helper()
	row, ok := replaysemantics.Find(paypal.Operations(), o.name)
	if !ok {
		t.Fatalf("%s is no operation", o.name)
	}
	return row
}

func (o operation) subject(f *providertest.Fake) string {
	if o.ready == nil {
		return ""
	}
	return f.Seed(o.ready)
}

// The table of this test names every operation that the SDK can call.
func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	tested := map[string]bool{}
	for _, op := range operations() {
		tested[op.name] = true
	}
	for _, op := range paypal.Operations() {
		if tested[op.Name] == absent[op.Name] {
			t.Errorf("%s: tested %t, absent from plutov/paypal %t", op.Name, tested[op.Name], absent[op.Name])
		}
	}
}

// Every operation succeeds, is labelled, and is replayed from the ledger.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, setting{})
			id := op.subject(b.fake)
			ctx, call := b.track("cmd_1")
			first := b.wantLabel(call, op.call(ctx, b.pp, id), "first_delivery", outbound.FromProvider)
			ctx, call = b.track("cmd_1")
			again := b.wantLabel(call, op.call(ctx, b.pp, id), "own_record", outbound.FromLedger)
			if again.ExternalRef != first.ExternalRef {
				t.Errorf("got %q and then %q, want one object", first.ExternalRef, again.ExternalRef)
			}
			b.wantTrips(2)
			b.wantSent("cmd_1", op.name, 1, 1, len(op.row(t).Keys) > 0)
		})
	}
}

// After a lost answer every operation with a request id is resent with the same
// id and bytes; the others are looked up or stay unknown, and are never sent
// again (R8, R9). A payout's second batch is refused with a link to the first,
// which is followed (C17). One effect in all cases.
func TestEveryOperationLost(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, setting{})
			id := op.subject(b.fake)
			b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: op.name})
			keyed := len(op.row(t).Keys) > 0
			ctx, call := b.track("cmd_1")
			err := op.call(ctx, b.pp, id)
			b.wantTrips(1)
			if keyed {
				b.wantLabel(call, err, op.lost, outbound.FromProvider)
				b.wantSent("cmd_1", op.name, 1, 2, true)
				return
			}
			b.wantError(call, err, 500, outbound.ErrUncertain, outbound.EffectUnknown)
			ctx, call = b.track("cmd_1")
			err = op.call(ctx, b.pp, id)
			if op.lost != "" {
				b.wantLabel(call, err, op.lost, outbound.FromProvider)
			} else if err == nil {
				t.Error("nothing can find this effect, and the call succeeded")
			}
			b.wantSent("cmd_1", op.name, 1, 1, false)
		})
	}
}
