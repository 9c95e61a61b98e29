package toss_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/toss"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

func TestJudge(t *testing.T) {
	a := toss.New(toss.Config{Account: "m", Test: true})
	for _, c := range []struct {
		operation string
		status    int
		body      string
		want      outbound.Verdict
	}{
		{"payment.confirm", 200, `{"paymentKey":"k","status":"DONE"}`, outbound.Verdict{Effect: outbound.EffectApplied, ExternalRef: "k", ObjectStatus: "DONE"}},
		{"payment.confirm", 200, `{"paymentKey":"k","status":"WAITING_FOR_DEPOSIT"}`, outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Pending, ExternalRef: "k", ObjectStatus: "WAITING_FOR_DEPOSIT"}},
		{"payment.confirm", 200, `{"paymentKey":"k","status":"ABORTED"}`, outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRefused, ExternalRef: "k", ObjectStatus: "ABORTED"}},
		{"payment.confirm", 200, `{"paymentKey":"k","status":"IN_PROGRESS"}`, outbound.Verdict{Again: true, ExternalRef: "k", ObjectStatus: "IN_PROGRESS"}},
		{"payment.cancel", 200, `{"paymentKey":"k","status":"DONE"}`, outbound.Verdict{Again: true, ExternalRef: "k", ObjectStatus: "DONE"}},
		{"payment.confirm", 400, `{"code":"ALREADY_PROCESSED_PAYMENT"}`, outbound.Verdict{Look: true, ProviderCode: "ALREADY_PROCESSED_PAYMENT"}},
		{"billing.charge", 400, `{"code":"DUPLICATED_ORDER_ID"}`, outbound.Verdict{Look: true, ProviderCode: "DUPLICATED_ORDER_ID"}},
		{"payment.confirm", 400, `{"code":"PROVIDER_ERROR"}`, outbound.Verdict{Again: true, ProviderCode: "PROVIDER_ERROR"}},
		{"payment.confirm", 400, `{"code":"REJECT_CARD_PAYMENT"}`, outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRefused, ProviderCode: "REJECT_CARD_PAYMENT"}},
		{"payment.confirm", 500, `{"code":"UNKNOWN_PAYMENT_ERROR"}`, outbound.Verdict{Again: true, ProviderCode: "UNKNOWN_PAYMENT_ERROR"}},
		{"payment.confirm", 400, `{}`, outbound.Verdict{Again: true}},
	} {
		row, _ := rs.Find(toss.Operations(), c.operation)
		got := a.Codec().Judge(&httpadapter.Exchange{Operation: row, Status: c.status, Header: http.Header{}, Body: []byte(c.body)})
		if got != c.want {
			t.Errorf("%s %d %s: %+v, want %+v", c.operation, c.status, c.body, got, c.want)
		}
	}
}

// A secret key of the other mode would move real money in a test, or none in
// production.
func TestModeOfSecretKey(t *testing.T) {
	for _, cfg := range []toss.Config{{Account: "m", SecretKey: "live_sk_x", Test: true}, {Account: "m", SecretKey: "test_sk_x"}} {
		if _, err := toss.New(cfg).Profile(); err == nil || !strings.Contains(err.Error(), "SecretKey is not of the mode") || strings.Contains(err.Error(), "_sk_x") {
			t.Errorf("test %v: the error is %v", cfg.Test, err)
		}
	}
}
