package stripe

import (
	"maps"
	"net/http"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// Error types of Stripe's API.
const (
	invalidRequest = "invalid_request_error"
	cardError      = "card_error"
	apiError       = "api_error"
	keyError       = "idempotency_error"
)

// failure is an answer that is no success.
type failure struct {
	status   int
	typ      string
	code     string
	param    string
	message  string
	decline  string
	with     object // further members of the error, such as the payment intent
	executed bool   // the endpoint had begun to execute: a v1 key remembers it
}

// body is the error object. Stripe leaves out the members that have no value.
func (f *failure) body() object {
	o := object{"type": f.typ, "message": f.message}
	for name, v := range map[string]string{"code": f.code, "param": f.param, "decline_code": f.decline} {
		if v != "" {
			o[name] = v
		}
	}
	if f.code != "" {
		o["doc_url"] = "https://stripe.com/docs/error-codes/" + f.code
	}
	maps.Copy(o, f.with)
	return o
}

func (f *failure) answer(x *exec) fakeprovider.Answer {
	o := f.body()
	if x != nil {
		o["request_log_url"] = "https://dashboard.stripe.com/logs/" + x.tx.RequestID
	}
	return fakeprovider.Answer{Status: f.status, Body: encode(object{"error": o})}
}

// invalid is a validation failure: nothing began to execute.
func invalid(param, message string) *failure {
	return &failure{status: http.StatusBadRequest, typ: invalidRequest, param: param, message: message}
}

func missing(param string) *failure {
	return &failure{status: http.StatusBadRequest, typ: invalidRequest, code: "parameter_missing", param: param,
		message: "Missing required param: " + param + "."}
}

func notFound(kind, param string) *failure {
	return &failure{status: http.StatusNotFound, typ: invalidRequest, code: "resource_missing", param: param,
		message: "No such " + kind + ".", executed: true}
}

// guard is the refusal of a state machine; the endpoint had begun to execute.
func guard(code, message string) *failure {
	return &failure{status: http.StatusBadRequest, typ: invalidRequest, code: code, message: message, executed: true}
}

// declined is the refusal of a card.
func declined(code, declineCode string) *failure {
	return &failure{status: http.StatusPaymentRequired, typ: cardError, code: code, decline: declineCode,
		message: "The card was declined (test token).", executed: true}
}

// Refuse words the engine's own decisions. The types and codes are those of
// Stripe's error reference; 424 and 503 have no published shape.
func (d *dialect) Refuse(_ *fakeprovider.Call, why fakeprovider.Refusal) fakeprovider.Answer {
	f := failure{typ: invalidRequest}
	header := http.Header{}
	switch why {
	case fakeprovider.InFlightConflict:
		f.status, f.code = http.StatusConflict, "idempotency_key_in_use"
		f.message = "Another request with this idempotency key is still running."
	case fakeprovider.Mismatch:
		f.status, f.typ = http.StatusBadRequest, keyError
		f.message = "This idempotency key was used with another endpoint or other parameters."
	case fakeprovider.RateLimited:
		f.status, f.code = http.StatusTooManyRequests, "rate_limit"
		f.message = "Too many requests."
		header.Set("Stripe-Rate-Limited-Reason", "global-rate")
	case fakeprovider.LockTimedOut:
		f.status, f.code = http.StatusTooManyRequests, "lock_timeout"
		f.message = "The object is locked by another request."
	case fakeprovider.NotAuthenticated:
		f.status, f.message = http.StatusUnauthorized, "The API key is not valid."
	case fakeprovider.Internal:
		f.status, f.typ, f.message = http.StatusInternalServerError, apiError, "An unknown error occurred."
	case fakeprovider.Unavailable:
		f.status, f.typ, f.message = http.StatusServiceUnavailable, apiError, "The service is not available."
	case fakeprovider.FailedDependency:
		f.status, f.typ, f.message = http.StatusFailedDependency, apiError, "An external dependency failed."
	case fakeprovider.TooLarge:
		f.status, f.message = http.StatusRequestEntityTooLarge, "The request's body is too large."
	case fakeprovider.UnreadableEncoding:
		f.status, f.message = http.StatusUnsupportedMediaType, "Send the body without a Content-Encoding."
	case fakeprovider.KeyMissing:
		f.status = http.StatusBadRequest
		f.message = "The fake is strict: send an Idempotency-Key with every write."
	case fakeprovider.MemoryFull:
		f.status, f.typ = http.StatusServiceUnavailable, apiError
		f.message = "The fake holds as much as it may. Reset it, or raise its limits on keys and objects."
	default:
		f.status, f.typ, f.message = http.StatusInternalServerError, apiError, "The fake has no answer for "+string(why)+"."
	}
	a := f.answer(nil)
	a.Header = header
	return a
}
