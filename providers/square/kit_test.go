package square_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/square"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

func adapter(_ testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter {
	return square.New(square.Config{Merchant: "ML1", Token: "token-of-square", Sandbox: true, BaseURL: baseURL, Transport: rt})
}

func errorBody(e providertest.JSONError) any {
	category := "INVALID_REQUEST_ERROR"
	if e.Code == "CARD_DECLINED" {
		category = "PAYMENT_METHOD_ERROR"
	}
	return map[string]any{"errors": []any{map[string]any{"category": category, "code": e.Code}}}
}

func pay(source string, cents int64) func(outbound.Command, string) outbound.Call {
	return func(cmd outbound.Command, _ string) outbound.Call {
		return square.PaymentCreate(cmd, map[string]any{
			"source_id": source, "location_id": "L1", "amount_money": map[string]any{"amount": cents, "currency": "USD"},
		})
	}
}

// fake takes payments as Square's pages say.
func fake() providertest.JSONProvider {
	return providertest.JSONProvider{
		Key: rs.JSON("/idempotency_key"), KeyMax: 45, KeyRequired: true, Compare: true, ErrorBody: errorBody,
		Errors: map[providertest.Refusal]providertest.JSONError{
			providertest.Mismatch:    {Status: http.StatusBadRequest, Code: "IDEMPOTENCY_KEY_REUSED"},
			providertest.RateLimited: {Status: http.StatusTooManyRequests, Code: "RATE_LIMITED"},
		},
		Operations: []providertest.JSONOperation{
			{
				Name: "payment.create", Path: "/v2/payments",
				Shape: func(o *providertest.JSONObject) any { return map[string]any{"payment": o.Fields} },
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					money, _ := c.Body["amount_money"].(map[string]any)
					switch {
					case money["amount"] == json.Number("0"):
						return c.Reject(http.StatusBadRequest, "VALUE_TOO_LOW")
					case c.Body["source_id"] == "cnon:card-nonce-declined":
						return c.Refuse(http.StatusBadRequest, "CARD_DECLINED")
					}
					return c.Create(map[string]any{
						"status": "COMPLETED", "reference_id": c.Body["reference_id"], "location_id": c.Body["location_id"],
					})
				},
			},
			{
				Name: "payment.list", Path: "/v2/payments", Read: true,
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					var found []any
					for _, o := range c.Objects() {
						if o.Fields["location_id"] == c.Query.Get("location_id") {
							found = append(found, o.Fields)
						}
					}
					return c.Answer(map[string]any{"payments": found})
				},
			},
		},
	}
}

func TestKit(t *testing.T) {
	providertest.Run(t, providertest.Kit{
		New: adapter, Provider: providertest.JSONDialect(fake()),
		Samples: []providertest.Sample{{
			Call: pay("cnon:card-nonce-ok", 1250), Other: pay("cnon:card-nonce-ok", 1300),
			Refused: pay("cnon:card-nonce-declined", 1250), Rejected: pay("cnon:card-nonce-ok", 0),
		}},
	})
}

// A cancellation by key has no key of its own: the one in it is the payment's, and
// the ledger stores it nowhere.
func TestKitCancelByKey(t *testing.T) {
	payment, err := keyderive.Secret{}.Derive(keyderive.Input{Provider: "square", Account: "ML1/sandbox", Operation: "payment.create", CommandID: "cmd_1"})
	if err != nil {
		t.Fatal(err)
	}
	providertest.Run(t, providertest.Kit{
		New: adapter,
		Provider: providertest.JSONDialect(providertest.JSONProvider{
			ErrorBody: errorBody,
			Operations: []providertest.JSONOperation{{
				Name: "payment.cancel_by_key", Path: "/v2/payments/cancel",
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					for _, o := range c.Objects() {
						if c.Body["idempotency_key"] == payment.Raw() {
							o.Fields["status"] = "CANCELED"
							a := c.Changed(o)
							a.Body = map[string]any{}
							return a
						}
					}
					return c.Answer(map[string]any{})
				},
			}},
		}),
		Samples: []providertest.Sample{{
			Seed: providertest.JSONSeed{Operation: "payment.cancel_by_key", Fields: map[string]any{"status": "APPROVED"}},
			Call: func(cmd outbound.Command, _ string) outbound.Call { return square.PaymentCancelByKey(cmd, payment) },
		}},
		Secrets: []string{payment.Raw()},
	})
}
