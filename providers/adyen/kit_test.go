package adyen_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/adyen"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const apiKey = "AQE-api-key-of-adyen"

func adapter(_ testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter {
	return adyen.New(adyen.Config{Account: "ShopECOM", APIKey: apiKey, Test: true, BaseURL: baseURL, Transport: rt})
}

type amount struct {
	Value    int64  `json:"value"`
	Currency string `json:"currency"`
}

func pay(holder string, cents int64) func(outbound.Command, string) outbound.Call {
	return func(cmd outbound.Command, _ string) outbound.Call {
		return adyen.PaymentCreate(cmd, map[string]any{
			"merchantAccount": "ShopECOM", "reference": "order 1", "amount": amount{cents, "EUR"},
			"paymentMethod": map[string]any{"type": "scheme", "holderName": holder, "encryptedCardNumber": "test_4111"},
		})
	}
}

func refund(cents int64) func(outbound.Command, string) outbound.Call {
	return func(cmd outbound.Command, payment string) outbound.Call {
		return adyen.PaymentRefund(cmd, payment, map[string]any{"merchantAccount": "ShopECOM", "amount": amount{cents, "EUR"}})
	}
}

// fake answers as Adyen's pages say: it repeats the key on every answer.
func fake(inFlight int) providertest.JSONProvider {
	cents := func(c *providertest.JSONCall) json.Number {
		a, _ := c.Body["amount"].(map[string]any)
		n, _ := a["value"].(json.Number)
		return n
	}
	return providertest.JSONProvider{
		Key: rs.Header("Idempotency-Key"), KeyMax: 64, Window: 7 * 24 * time.Hour, EchoHeader: "Idempotency-Key",
		RequestIDHeader: "pspReference", Credential: "X-API-Key", Token: apiKey,
		Errors: map[providertest.Refusal]providertest.JSONError{providertest.InFlightConflict: {Status: inFlight, Code: "704"}},
		ErrorBody: func(e providertest.JSONError) any {
			return map[string]any{"status": e.Status, "errorCode": e.Code, "message": "no", "errorType": "validation"}
		},
		Operations: []providertest.JSONOperation{
			{
				Name: "payment.create", Path: "/payments",
				Shape: func(o *providertest.JSONObject) any {
					return map[string]any{"pspReference": o.ID, "resultCode": "Authorised"}
				},
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					method, _ := c.Body["paymentMethod"].(map[string]any)
					switch {
					case cents(c) == "0":
						return c.Reject(http.StatusUnprocessableEntity, "137")
					case method["holderName"] == "DECLINED":
						a := c.Refuse(http.StatusOK, "Refused")
						a.Body = map[string]any{"pspReference": "NC6HT9CRT65ZGN82", "resultCode": "Refused", "refusalReasonCode": "2"}
						return a
					}
					return c.Create(nil)
				},
			},
			{
				Name: "payment.refund", Path: "/payments/{id}/refunds", Status: http.StatusCreated,
				Shape: func(o *providertest.JSONObject) any {
					return map[string]any{"pspReference": o.ID, "status": "received"}
				},
			},
		},
	}
}

// The second delivery of a key meanwhile gets 422 or 409: Adyen's pages name both.
func TestKit(t *testing.T) {
	for _, inFlight := range []int{http.StatusUnprocessableEntity, http.StatusConflict} {
		t.Run(http.StatusText(inFlight), func(t *testing.T) {
			providertest.Run(t, providertest.Kit{
				New: adapter, Provider: providertest.JSONDialect(fake(inFlight)), Secrets: []string{apiKey},
				Samples: []providertest.Sample{
					{
						Call: pay("A. Shopper", 1250), Other: pay("A. Shopper", 1300),
						Refused: pay("DECLINED", 1250), Rejected: pay("A. Shopper", 0),
					},
					{
						Seed: providertest.JSONSeed{Operation: "payment.create"},
						Call: refund(500), Other: refund(600),
					},
				},
			})
		})
	}
}
