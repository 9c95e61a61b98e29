package paypal_test

import (
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

type fields = map[string]any

// Every operation of the table has a constructor whose request the fake takes:
// one effect, one delivery, and a second call from the ledger.
func TestEveryOperation(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		called := map[string]bool{}
		for _, call := range everyCall(w) {
			called[call.Operation] = true
			before := w.fake.Effects(call.Operation)
			first := w.do(call)
			w.labelled(first, rs.ByFirstDelivery)
			if first.Deliveries != 1 || first.RequestID == "" {
				w.Errorf("%s: %d deliveries, request %q", call.Operation, first.Deliveries, first.RequestID)
			}
			second := w.do(call)
			if call.Operation == "setup_token.create" { // answers to card data are not kept: looked up
				w.labelled(second, rs.ByLookup)
			} else {
				w.labelled(second, rs.ByOwnRecord)
			}
			if first.ExternalRef != second.ExternalRef {
				w.Errorf("%s: %q, then %q", call.Operation, first.ExternalRef, second.ExternalRef)
			}
			if got := w.fake.Effects(call.Operation) - before; got != 1 {
				w.Errorf("%s: effects = %d, want 1", call.Operation, got)
			}
		}
		for _, op := range paypal.Operations() {
			if !called[op.Name] {
				w.Errorf("%s was not called", op.Name)
			}
		}
	})
}

func everyCall(w world) []outbound.Call {
	amount := fields{"currency_code": "USD", "value": "10.00"}
	order := fields{"intent": "CAPTURE", "purchase_units": []any{fields{"amount": amount}}}
	plan := w.fake.Seed(providertest.ActivePlan{})
	subscription := w.fake.Seed(providertest.ActiveSubscription{})
	suspended := w.fake.Seed(providertest.ActiveSubscription{Status: "SUSPENDED"})
	invoice := fields{
		"detail": fields{"currency_code": "USD"},
		"items":  []any{fields{"name": "Hat", "quantity": "1", "unit_amount": amount}},
	}
	created := w.do(paypal.OrderCreate(cmd("o0"), order)).ExternalRef
	draft := w.do(paypal.InvoiceCreate(cmd("i0"), invoice)).ExternalRef
	product := w.do(paypal.ProductCreate(cmd("p0"), fields{"name": "Hats", "type": "PHYSICAL"})).ExternalRef
	return []outbound.Call{
		paypal.OrderCreate(cmd("o1"), order),
		paypal.OrderPatch(cmd("o2"), created, []any{fields{"op": "replace", "path": "/purchase_units/@reference_id=='default'/amount", "value": fields{"currency_code": "USD", "value": "11.00"}}}),
		paypal.OrderConfirmPaymentSource(cmd("o3"), created, fields{"payment_source": fields{"paypal": fields{"email_address": "payer@example.com"}}}),
		paypal.OrderAuthorize(cmd("o4"), w.fake.Seed(providertest.ApprovedOrder{Intent: "AUTHORIZE"}), nil),
		paypal.OrderCapture(cmd("o5"), w.fake.Seed(providertest.ApprovedOrder{}), nil),
		paypal.AuthorizationCapture(cmd("a1"), w.fake.Seed(providertest.CreatedAuthorization{}), nil),
		paypal.AuthorizationReauthorize(cmd("a2"), w.fake.Seed(providertest.CreatedAuthorization{Age: 4 * 24 * time.Hour}), nil),
		paypal.AuthorizationVoid(cmd("a3"), w.fake.Seed(providertest.CreatedAuthorization{})),
		paypal.CaptureRefund(cmd("r1"), w.fake.Seed(providertest.CompletedCapture{}), paypal.RefundRequest{Amount: paypal.Money{Currency: "USD", Value: "10.00"}}),
		paypal.PayoutCreate(cmd("b1"), fields{
			"sender_batch_header": fields{},
			"items":               []any{fields{"recipient_type": "PAYPAL_ID", "receiver": "R1", "amount": fields{"currency": "USD", "value": "5.00"}}},
		}),
		paypal.SubscriptionCreate(cmd("s1"), fields{"plan_id": plan}),
		paypal.SubscriptionActivate(cmd("s2"), suspended, ""),
		paypal.SubscriptionSuspend(cmd("s3"), subscription, "asked"),
		paypal.SubscriptionCancel(cmd("s4"), subscription, "asked"),
		paypal.ProductCreate(cmd("p1"), fields{"name": "Hats", "type": "PHYSICAL"}),
		paypal.PlanCreate(cmd("p2"), fields{
			"product_id": product, "name": "Hats", "payment_preferences": fields{},
			"billing_cycles": []any{fields{
				"frequency": fields{"interval_unit": "MONTH", "interval_count": 1}, "tenure_type": "REGULAR", "sequence": 1,
				"pricing_scheme": fields{"fixed_price": amount},
			}},
		}),
		paypal.SetupTokenCreate(cmd("v1"), fields{"payment_source": fields{"card": fields{"number": "4111111111111111", "expiry": "2030-02", "security_code": "123"}}}),
		paypal.PaymentTokenCreate(cmd("v2"), fields{"payment_source": fields{"token": fields{"id": w.fake.Seed(providertest.ApprovedSetupToken{}), "type": "SETUP_TOKEN"}}}),
		paypal.InvoiceCreate(cmd("i1"), invoice),
		paypal.InvoiceSend(cmd("i2"), draft, nil),
		paypal.InvoiceCancel(cmd("i3"), draft, nil),
	}
}
