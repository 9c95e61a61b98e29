package toss_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/toss"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

func adapter(_ testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter {
	return toss.New(toss.Config{Account: "tosspayments", SecretKey: "test_sk_conformance", Test: true, BaseURL: baseURL, Transport: rt})
}

func confirm(order string, amount int64) func(outbound.Command, string) outbound.Call {
	return func(cmd outbound.Command, _ string) outbound.Call {
		return toss.PaymentConfirm(cmd, toss.Confirmation{PaymentKey: "tgen_1", OrderID: order, Amount: amount})
	}
}

func bill(customer string, amount int64) func(outbound.Command, string) outbound.Call {
	return func(cmd outbound.Command, _ string) outbound.Call {
		return toss.BillingCharge(cmd, "billing_1", toss.Billing{CustomerKey: customer, Amount: amount, OrderName: "subscription"})
	}
}

func cancel(amount int64) func(outbound.Command, string) outbound.Call {
	return func(cmd outbound.Command, payment string) outbound.Call {
		return toss.PaymentCancel(cmd, payment, toss.Cancellation{Reason: "changed mind", Amount: amount})
	}
}

func payment(o *providertest.JSONObject) any {
	key, ok := o.Fields["paymentKey"]
	if !ok {
		key = o.ID
	}
	return map[string]any{"paymentKey": key, "orderId": o.Fields["orderId"], "status": o.Fields["status"]}
}

// find returns the payment with this paymentKey or, with none, this orderId.
func find(c *providertest.JSONCall, key, order any) *providertest.JSONObject {
	for _, o := range c.Objects() {
		shown := payment(o).(map[string]any)
		if key != nil && shown["paymentKey"] == key || key == nil && shown["orderId"] == order {
			return o
		}
	}
	return nil
}

func take(c *providertest.JSONCall) providertest.JSONAnswer {
	switch {
	case c.Body["amount"] == json.Number("0"):
		return c.Reject(http.StatusBadRequest, "INVALID_REQUEST")
	case c.Body["orderId"] == "declined", c.Body["customerKey"] == "declined":
		return c.Refuse(http.StatusForbidden, "REJECT_CARD_COMPANY")
	case c.Body["paymentKey"] != nil && find(c, c.Body["paymentKey"], nil) != nil:
		return c.Reject(http.StatusBadRequest, "ALREADY_PROCESSED_PAYMENT")
	}
	fields := map[string]any{"orderId": c.Body["orderId"], "status": "DONE"}
	if key := c.Body["paymentKey"]; key != nil {
		fields["paymentKey"] = key
	}
	return c.Create(fields)
}

func giveBack(c *providertest.JSONCall) providertest.JSONAnswer {
	o := find(c, c.IDs[0], nil)
	switch {
	case o == nil:
		return c.Reject(http.StatusNotFound, "NOT_FOUND_PAYMENT")
	case o.Fields["status"] == "CANCELED":
		return c.Reject(http.StatusBadRequest, "ALREADY_CANCELED_PAYMENT")
	}
	o.Fields["status"] = "CANCELED"
	if c.Body["cancelAmount"] != nil {
		o.Fields["status"] = "PARTIAL_CANCELED"
	}
	return c.Changed(o)
}

func show(key bool) func(c *providertest.JSONCall) providertest.JSONAnswer {
	return func(c *providertest.JSONCall) providertest.JSONAnswer {
		o := find(c, nil, c.IDs[0])
		if key {
			o = find(c, c.IDs[0], nil)
		}
		if o == nil {
			return c.Reject(http.StatusNotFound, "NOT_FOUND_PAYMENT")
		}
		return c.Show(o)
	}
}

// fake answers as Toss's pages say: a key's body is not compared.
func fake() providertest.JSONProvider {
	return providertest.JSONProvider{
		Key: rs.Header("Idempotency-Key"), KeyMax: 300, Window: 15 * 24 * time.Hour,
		Errors: map[providertest.Refusal]providertest.JSONError{
			providertest.InFlightConflict: {Status: http.StatusConflict, Code: "IDEMPOTENT_REQUEST_PROCESSING"},
			providertest.Internal:         {Status: http.StatusInternalServerError, Code: "FAILED_INTERNAL_SYSTEM_PROCESSING"},
		},
		ErrorBody: func(e providertest.JSONError) any { return map[string]any{"code": e.Code, "message": "no"} },
		Operations: []providertest.JSONOperation{
			{Name: "payment.confirm", Path: "/v1/payments/confirm", Shape: payment, Handle: take},
			{Name: "payment.cancel", Path: "/v1/payments/{key}/cancel", Shape: payment, Handle: giveBack},
			{Name: "billing.charge", Path: "/v1/billing/{key}", Shape: payment, Handle: take},
			{Name: "payment.by_order", Path: "/v1/payments/orders/{order}", Read: true, Shape: payment, Handle: show(false)},
			{Name: "payment.read", Path: "/v1/payments/{key}", Read: true, Shape: payment, Handle: show(true)},
		},
	}
}

func TestKit(t *testing.T) {
	taken := providertest.JSONSeed{Operation: "payment.confirm", Fields: map[string]any{"orderId": "order-1", "status": "DONE"}}
	providertest.Run(t, providertest.Kit{
		New: adapter, Provider: providertest.JSONDialect(fake()),
		Samples: []providertest.Sample{
			{Call: confirm("order-1", 15000), Other: confirm("order-1", 16000), Refused: confirm("declined", 15000), Rejected: confirm("order-1", 0)},
			{Call: bill("c1", 9900), Other: bill("c1", 8800), Refused: bill("declined", 9900), Rejected: bill("c1", 0)},
			{Call: cancel(0), Other: cancel(100), Seed: taken},
			{Call: cancel(100), Other: cancel(200), Seed: taken, WeakLookup: true},
		},
	})
}
