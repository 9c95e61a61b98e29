package stripe_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// samples are one operation of each kind: money that is found by its mark, by
// its object's state, and through API v2.
func samples() []providertest.Sample {
	refund := func(amount string) func(outbound.Command, string) outbound.Call {
		return func(cmd outbound.Command, charge string) outbound.Call {
			return stripe.RefundCreate(cmd, url.Values{"charge": {charge}, "amount": {amount}})
		}
	}
	pay := func(amount, method string) func(outbound.Command, string) outbound.Call {
		return func(cmd outbound.Command, _ string) outbound.Call {
			return stripe.PaymentIntentCreate(cmd, url.Values{
				"amount": {amount}, "currency": {"eur"}, "confirm": {"true"}, "payment_method": {method},
				"return_url": {"https://example.com"},
			})
		}
	}
	return []providertest.Sample{
		{Seed: providertest.Charge{Amount: 2000}, Call: refund("500"), Other: refund("600"), Rejected: func(cmd outbound.Command, _ string) outbound.Call {
			return stripe.RefundCreate(cmd, url.Values{"charge": {"ch_none"}})
		}},
		{
			Call: pay("2000", "pm_card_visa"), Other: pay("2100", "pm_card_visa"),
			Refused: pay("2000", "pm_card_chargeDeclinedInsufficientFunds"), Rejected: func(cmd outbound.Command, _ string) outbound.Call {
				return stripe.PaymentIntentCreate(cmd, url.Values{"amount": {"2000"}})
			},
		},
		{
			Seed: providertest.PaymentIntent{Status: "requires_capture"},
			Call: func(cmd outbound.Command, id string) outbound.Call { return stripe.PaymentIntentCapture(cmd, id, nil) },
		},
	}
}

func TestKit(t *testing.T) {
	providertest.Run(t, providertest.Kit{
		New: func(_ testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter {
			return stripe.New(stripe.Config{Account: "acct_1FakeStripe", Test: true, SecretKey: "sk_test_conformance", BaseURL: baseURL, Transport: rt})
		},
		Provider: providertest.StripeDialect(nil),
		Samples:  samples(),
	})
}
