package providertest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// A provider: POST /v1/transfers with a header, kept for a day, the first answer
// again under the same key, without a signal. Transfers of 0 are invalid, those
// to "blocked" are declined, and a declined one runs again. A webhook tells of each.
func bank() func() providertest.Dialect {
	return providertest.JSONDialect(providertest.JSONProvider{
		Key: rs.Header("Idempotency-Key"), KeyMax: 64, Window: 24 * time.Hour, Compare: true,
		Operations: []providertest.JSONOperation{{
			Name: "transfer.create", Path: "/v1/transfers", Status: http.StatusCreated, Prefix: "tr_", Event: "transfer.done",
			Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
				switch {
				case c.Body["cents"] == json.Number("0"):
					return c.Reject(http.StatusBadRequest, "amount_invalid")
				case c.Body["to"] == "blocked":
					return c.Refuse(http.StatusPaymentRequired, "account_blocked")
				}
				return c.Create(map[string]any{"cents": c.Body["cents"]})
			},
		}},
		Webhook: bankWebhook,
	})
}

// Its adapter: a row and a codec.
func transferCreate() rs.Operation {
	return rs.Operation{
		Name: "transfer.create", Method: "POST", Path: "/v1/transfers",
		Keys: []rs.Place{rs.Header("Idempotency-Key")}, KeyMax: 64, Window: 24 * time.Hour, Resend: rs.Original,
		ConclusiveEventTypes: []string{"transfer.done"},
		Facts: []rs.Fact{{
			States: "header Idempotency-Key, 64 characters, kept 24 h, the first answer comes back",
			URL:    "https://bank.example/docs/idempotency", Read: "2026-11-30", Grade: rs.Documented,
		}},
	}
}

func newBank(baseURL string, rt http.RoundTripper) outbound.Adapter {
	return httpadapter.New(bankCodec{}, httpadapter.Config{
		Provider: "bank", Account: "C1", Mode: "live", BaseURL: baseURL, Transport: rt,
		Operations: []rs.Operation{transferCreate()},
		Authorize: func(_ context.Context, _ string, _ []outbound.Field, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer token-of-the-bank")
			return nil
		},
	})
}

type bankCodec struct{}

func (bankCodec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	var a struct{ ID, Status string }
	if err := json.Unmarshal(x.Body, &a); err != nil {
		return outbound.Verdict{Again: true} // unreadable: unknown
	}
	switch x.Status {
	case http.StatusCreated:
		return outbound.Verdict{Effect: outbound.EffectApplied, ExternalRef: a.ID, ObjectStatus: a.Status}
	case http.StatusBadRequest:
		return outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRejected}
	case http.StatusUnauthorized:
		return outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrAuth}
	case http.StatusPaymentRequired:
		return outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRefused}
	case http.StatusTooManyRequests:
		return outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRateLimited, Again: true}
	case http.StatusUnprocessableEntity:
		return outbound.Verdict{Look: true} // the key is known with another body
	}
	return outbound.Verdict{Again: true} // a 500 may have moved money
}

// transfer makes calls of one content.
func transfer(to string, cents int64) func(outbound.Command, string) outbound.Call {
	return func(cmd outbound.Command, _ string) outbound.Call {
		return httpadapter.JSONCall(transferCreate(), cmd, nil, map[string]any{"to": to, "cents": cents})
	}
}

// The whole test of an adapter.
func ExampleRun() {
	_ = func(t *testing.T) { // as TestKit
		providertest.Run(t, bankKit())
	}
}

func bankKit() providertest.Kit {
	return providertest.Kit{
		New:      func(_ testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter { return newBank(baseURL, rt) },
		Provider: bank(),
		Samples: []providertest.Sample{{
			Call: transfer("x", 100), Other: transfer("x", 200), Refused: transfer("blocked", 100), Rejected: transfer("x", 0),
		}},
	}
}

func TestKitOfTheExample(t *testing.T) { providertest.Run(t, bankKit()) }
