package stripe

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

func TestRandomKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"1796054400000000000_aB3-_z":            true,
		"1796054400000000000_aB3-_":             false,
		"179605440000000000_aB3-_zz":            false,
		"1796054400000000000_aB3-_z\n":          false,
		"order-42":                              false,
		"":                                      false,
		"00000000-0000-4000-8000-000000000000":  false,
		"x1796054400000000000_aB3-_z":           false,
		"1796054400000000000_aB3-_zrefund":      false,
		"01234567-89ab-8def-8123-456789abcdef0": false,
	} {
		if got := (codec{}).RandomKey(key); got != want {
			t.Errorf("RandomKey(%q) = %v", key, got)
		}
	}
}

// TestRefuse holds that a synthetic answer is Stripe's JSON, keeps the SDK from
// sending again, and means for the SDK what it means for us.
func TestRefuse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err       outbound.Error
		status    int
		typ, code string
	}{
		{outbound.Error{Code: outbound.ErrInFlight, RetryAfter: 1500 * time.Millisecond}, 409, "invalid_request_error", "idempotency_key_in_use"},
		{outbound.Error{Code: outbound.ErrFingerprintConflict}, 400, "idempotency_error", ""},
		{outbound.Error{Code: outbound.ErrInvalid}, 400, "invalid_request_error", ""},
		{outbound.Error{Code: outbound.ErrRefused, ProviderCode: "card_declined"}, 402, "card_error", "card_declined"},
		{outbound.Error{Code: outbound.ErrRateLimited, RetryAfter: 2 * time.Second}, 429, "invalid_request_error", "rate_limit"},
		{outbound.Error{Code: outbound.ErrUncertain, RequestID: "req_1"}, 500, "api_error", ""},
		{outbound.Error{Code: outbound.ErrStore}, 503, "api_error", ""},
	} {
		a := codec{}.Refuse(&c.err, c.status)
		var body struct {
			Error struct{ Type, Code, Message string }
		}
		if err := json.Unmarshal(a.Body, &body); err != nil {
			t.Fatalf("%s: %v", c.err.Code, err)
		}
		if a.Status != c.status || body.Error.Type != c.typ || body.Error.Code != c.code || body.Error.Message == "" {
			t.Errorf("%s: got %d %+v", c.err.Code, a.Status, body.Error)
		}
		h := map[string]string{}
		for _, f := range a.Header {
			h[f.Name] = f.Value
		}
		if h["Stripe-Should-Retry"] != "false" || h["Content-Type"] != "application/json" || h["Request-Id"] != c.err.RequestID {
			t.Errorf("%s: headers %v", c.err.Code, h)
		}
		if wait, want := h["Retry-After"], map[time.Duration]string{1500 * time.Millisecond: "2", 2 * time.Second: "2"}[c.err.RetryAfter]; wait != want {
			t.Errorf("%s: Retry-After %q, want %q", c.err.Code, wait, want)
		}
		if v := judgeRefusal(a); v.Effect == outbound.EffectApplied {
			t.Errorf("%s: our own answer reads as an effect: %+v", c.err.Code, v)
		}
	}
}

func TestCheckWantsAVersionForV2(t *testing.T) {
	t.Parallel()
	v2, v1 := operations["v2.account.create"], operations["refund.create"]
	versioned := outbound.Message{Header: []outbound.Field{{Name: "stripe-version", Value: "2025-09-30.clover"}}}
	if err := (codec{}).Check(v2, outbound.Message{}); err == nil {
		t.Error("a message to API v2 without a version passed")
	}
	for _, err := range []error{
		codec{}.Check(v1, outbound.Message{}),
		codec{}.Check(v2, versioned),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

// judgeRefusal reads a synthetic answer as if Stripe had given it.
func judgeRefusal(a *outbound.Answer) outbound.Verdict {
	h := http.Header{}
	for _, f := range a.Header {
		h.Set(f.Name, f.Value)
	}
	return codec{}.Judge(&httpadapter.Exchange{Operation: operations["refund.create"], Status: a.Status, Header: h, Body: a.Body})
}
