package bank_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/integration/readme/bank"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

func TestKit(t *testing.T) {
	transfer := func(to string, cents int64) func(outbound.Command, string) outbound.Call {
		return func(cmd outbound.Command, _ string) outbound.Call {
			return bank.TransferCreate(cmd, bank.Transfer{To: to, Cents: cents, Currency: "EUR"})
		}
	}
	providertest.Run(t, providertest.Kit{
		New: func(_ testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter {
			return bank.New(bank.Config{Account: "C1", Token: "token-of-the-bank", BaseURL: baseURL, Transport: rt})
		},
		Provider: providertest.JSONDialect(providertest.JSONProvider{
			Key: rs.Header("Idempotency-Key"), KeyMax: 64, Window: 24 * time.Hour,
			Operations: []providertest.JSONOperation{{
				Name: "transfer.create", Path: "/v1/transfers", Status: http.StatusCreated, Prefix: "tr_",
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					switch {
					case c.Body["cents"] == json.Number("0"):
						return c.Reject(http.StatusBadRequest, "amount_invalid")
					case c.Body["to"] == "blocked":
						return c.Refuse(http.StatusUnprocessableEntity, "account_blocked")
					}
					return c.Create(map[string]any{"reference": c.Body["reference"]})
				},
			}},
			ErrorBody: func(e providertest.JSONError) any { return map[string]any{"error": e.Code} },
		}),
		Samples: []providertest.Sample{{
			Call: transfer("x", 100), Other: transfer("x", 200), Refused: transfer("blocked", 100), Rejected: transfer("x", 0),
		}},
	})
}
