package stripe

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

var (
	_ httpadapter.Codec         = codec{}
	_ httpadapter.Checker       = codec{}
	_ httpadapter.Refuser       = codec{}
	_ httpadapter.KeyRecogniser = codec{}
	_ httpadapter.BatchFinder   = codec{}
)

// Check refuses a message to API v2 without a version, which Stripe requires, and
// one to API v1 with an amount that is none.
func (codec) Check(op replaysemantics.Operation, m outbound.Message) error {
	if !isV2(op) {
		return checkAmounts(op, m)
	}
	for _, f := range m.Header {
		if strings.EqualFold(f.Name, headerVersion) && f.Value != "" {
			return nil
		}
	}
	return errors.New("stripe: API v2 needs a version: set Config.Version, as 2025-09-30.clover")
}

// randomKey is the form of the keys that stripe-go makes for each call.
var randomKey = regexp.MustCompile(`^[0-9]{19}_[A-Za-z0-9_-]{6}$`)

// RandomKey tells a key that stripe-go made for one call from one that the
// caller chose.
func (codec) RandomKey(key string) bool { return randomKey.MatchString(key) }

// Refuse shapes a refusal as Stripe words one. Stripe-Should-Retry keeps SDKs
// from sending again by themselves.
func (codec) Refuse(e *outbound.Error, status int) *outbound.Answer {
	typ, code := refusalOf(e, status)
	refusal := struct {
		Error struct {
			Type    string `json:"type"`
			Code    string `json:"code,omitempty"`
			Message string `json:"message"`
		} `json:"error"`
	}{}
	refusal.Error.Type, refusal.Error.Code, refusal.Error.Message = typ, code, e.Error()
	body, err := json.Marshal(refusal)
	if err != nil {
		body = []byte(`{"error":{"type":"api_error"}}`)
	}
	header := []outbound.Field{
		{Name: "Content-Type", Value: "application/json"},
		{Name: headerShouldRetry, Value: "false"},
	}
	if e.RequestID != "" {
		header = append(header, outbound.Field{Name: headerRequestID, Value: e.RequestID})
	}
	if e.RetryAfter > 0 {
		seconds := int64((e.RetryAfter + time.Second - 1) / time.Second)
		header = append(header, outbound.Field{Name: "Retry-After", Value: strconv.FormatInt(seconds, 10)})
	}
	return &outbound.Answer{Status: status, Header: header, Body: body}
}

// refusalOf chooses Stripe's type and code for a refusal.
func refusalOf(e *outbound.Error, status int) (typ, code string) {
	switch {
	case e.Code == outbound.ErrFingerprintConflict:
		return typeIdempotency, "" // the same command with another request: Stripe's words for it
	case status == http.StatusConflict:
		return "invalid_request_error", codeKeyInUse
	case status == http.StatusPaymentRequired:
		return "card_error", e.ProviderCode
	case status == http.StatusTooManyRequests:
		return "invalid_request_error", codeRateLimit
	case status >= http.StatusInternalServerError:
		return "api_error", ""
	}
	return "invalid_request_error", e.ProviderCode
}
