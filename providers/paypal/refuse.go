package paypal

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Check implements httpadapter.Checker: a refund states its amount.
func (codec) Check(op rs.Operation, m outbound.Message) error {
	if op.Name != captureRefund.Name {
		return nil
	}
	var r struct {
		Amount Money `json:"amount"`
	}
	if len(m.Body) == 0 {
		return errNoAmount
	}
	if err := json.Unmarshal(m.Body, &r); err != nil {
		return errors.New(`the refund's body cannot be read: it is a JSON object whose amount holds two strings, currency_code and value`)
	}
	return r.Amount.check()
}

// Refuse implements httpadapter.Refuser: what is answered in PayPal's place has
// the shape of PayPal's errors. The issue is ours and names the code.
func (codec) Refuse(e *outbound.Error, status int) *outbound.Answer {
	type detail struct {
		Issue       string `json:"issue"`
		Description string `json:"description"`
	}
	issue := "SAMEKEY_" + strings.ToUpper(string(e.Code))
	if status == http.StatusConflict {
		issue = issueInProgress
	}
	body, err := json.Marshal(struct {
		Name    string   `json:"name"`
		Message string   `json:"message"`
		DebugID string   `json:"debug_id"`
		Details []detail `json:"details"`
		Links   []string `json:"links"`
	}{errorName(status), e.Error(), e.RequestID, []detail{{issue, e.Error()}}, []string{}})
	if err != nil {
		return &outbound.Answer{Status: status} // strings always encode
	}
	return jsonAnswer(status, body)
}

// errorName is PayPal's name for errors of a status.
func errorName(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "INVALID_REQUEST"
	case http.StatusUnauthorized:
		return "AUTHENTICATION_FAILURE"
	case http.StatusForbidden:
		return "NOT_AUTHORIZED"
	case http.StatusNotFound:
		return "RESOURCE_NOT_FOUND"
	case http.StatusConflict:
		return "RESOURCE_CONFLICT"
	case http.StatusUnprocessableEntity:
		return "UNPROCESSABLE_ENTITY"
	case http.StatusTooManyRequests:
		return "RATE_LIMIT_REACHED"
	case http.StatusServiceUnavailable:
		return "SERVICE_UNAVAILABLE"
	}
	return "INTERNAL_SERVER_ERROR"
}
