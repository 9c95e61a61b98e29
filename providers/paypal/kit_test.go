package paypal_test

import (
	"net/http"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
)

// samples are an operation of each kind: found by its object's state, by its
// mark, deduplicated by its body, and without a key.
func samples() []providertest.Sample {
	refund := func(value string) func(outbound.Command, string) outbound.Call {
		return func(cmd outbound.Command, id string) outbound.Call {
			return paypal.CaptureRefund(cmd, id, paypal.RefundRequest{Amount: paypal.Money{Currency: "USD", Value: value}})
		}
	}
	return []providertest.Sample{
		{
			Seed: providertest.ApprovedOrder{},
			Call: func(cmd outbound.Command, id string) outbound.Call { return paypal.OrderCapture(cmd, id, nil) },
		},
		{Seed: providertest.CompletedCapture{}, Call: refund("4.00"), Other: refund("5.00"), Refused: refund("4000.00"), Rejected: func(cmd outbound.Command, _ string) outbound.Call {
			return refund("4.00")(cmd, "CAPTURE0NONE")
		}},
		{WeakLookup: true, Call: func(cmd outbound.Command, _ string) outbound.Call {
			return paypal.PayoutCreate(cmd, fields{
				"sender_batch_header": fields{},
				"items":               []any{fields{"recipient_type": "PAYPAL_ID", "receiver": "R1", "amount": fields{"currency": "USD", "value": "5.00"}}},
			})
		}},
		{
			Seed: providertest.ActiveSubscription{},
			Call: func(cmd outbound.Command, id string) outbound.Call {
				return paypal.SubscriptionCancel(cmd, id, "asked")
			},
		},
	}
}

func TestKit(t *testing.T) {
	providertest.Run(t, providertest.Kit{
		New: func(_ testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter {
			return paypal.New(paypal.Config{Account: "FAKEMERCHANT1", ClientID: "client-of-the-kit", Secret: "secret-of-the-kit", Sandbox: true, BaseURL: baseURL, Transport: rt})
		},
		Provider: providertest.PayPalDialect(nil),
		Samples:  samples(),
		Secrets:  []string{"secret-of-the-kit"},
	})
}
