package square_test

import (
	"net/http"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/square"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

func TestJudge(t *testing.T) {
	a := square.New(square.Config{Merchant: "ML1"})
	for _, c := range []struct {
		operation string
		status    int
		body      string
		want      outbound.Verdict
	}{
		{"payment.create", 200, `{"payment":{"id":"p1","status":"COMPLETED"}}`, outbound.Verdict{Effect: outbound.EffectApplied, ExternalRef: "p1", ObjectStatus: "COMPLETED"}},
		{"payment.create", 200, `{"payment":{"id":"p1","status":"PENDING"}}`, outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Pending, ExternalRef: "p1", ObjectStatus: "PENDING"}},
		{"payment.create", 200, `{"payment":{"id":"p1","status":"CANCELED"}}`, outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRefused, ExternalRef: "p1", ObjectStatus: "CANCELED"}},
		{"payment.create", 200, `{}`, outbound.Verdict{Again: true}},
		{"payment.cancel_by_key", 200, `{}`, outbound.Verdict{Effect: outbound.EffectApplied}},
		{"payment.create", 400, `{"errors":[{"category":"INVALID_REQUEST_ERROR","code":"IDEMPOTENCY_KEY_REUSED"}]}`, outbound.Verdict{Look: true, ProviderCode: "IDEMPOTENCY_KEY_REUSED"}},
		{"payment.create", 402, `{"errors":[{"category":"PAYMENT_METHOD_ERROR","code":"CVV_FAILURE"}]}`, outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRefused, ProviderCode: "CVV_FAILURE"}},
		{"payment.create", 500, `{"errors":[{"category":"PAYMENT_METHOD_ERROR","code":"TEMPORARY_ERROR"}]}`, outbound.Verdict{Again: true, ProviderCode: "TEMPORARY_ERROR"}},
		{"payment.create", 400, `{}`, outbound.Verdict{Again: true}},
	} {
		row, _ := rs.Find(square.Operations(), c.operation)
		got := a.Codec().Judge(&httpadapter.Exchange{Operation: row, Status: c.status, Header: http.Header{}, Body: []byte(c.body)})
		if got != c.want {
			t.Errorf("%s %d %s: %+v, want %+v", c.operation, c.status, c.body, got, c.want)
		}
	}
}
