package stripe

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// codec reads Stripe's answers.
type codec struct {
	owners *owners // nil: nobody knows whose a credential is, and nothing is proved absent
}

const (
	headerReplayed    = "Idempotent-Replayed"
	headerShouldRetry = "Stripe-Should-Retry"
	headerRequestID   = "Request-Id"
)

// lockWait is how long to wait for an object that another request has locked.
const lockWait = 500 * time.Millisecond

// Codes and types of Stripe's errors.
const (
	typeIdempotency = "idempotency_error"
	codeKeyInUse    = "idempotency_key_in_use"
	codeLockTimeout = "lock_timeout"
	codeRateLimit   = "rate_limit"
)

// guardCodes say that the object is in another state than the operation needs,
// which an earlier delivery of this command may have brought about.
var guardCodes = []string{
	"payment_intent_unexpected_state",
	"setup_intent_unexpected_state",
	"charge_already_captured",
	"charge_already_refunded",
	"resource_already_exists",
}

// answer is what Judge reads of a body: an object or an error.
type answer struct {
	ID               string    `json:"id"`
	Object           string    `json:"object"`
	Status           string    `json:"status"`
	AmountReceived   int64     `json:"amount_received"` // Of a payment intent.
	LastPaymentError *apiError `json:"last_payment_error"`
	LastSetupError   *apiError `json:"last_setup_error"`
	FailureCode      string    `json:"failure_code"`   // Of a payout.
	FailureReason    string    `json:"failure_reason"` // Of a refund.
	Error            *apiError `json:"error"`
}

type apiError struct {
	Type string `json:"type"`
	Code string `json:"code"`
}

// name is the code, or the type of an error that has no code.
func (e *apiError) name() string {
	if e.Code != "" {
		return e.Code
	}
	return e.Type
}

// codeForm is what a code of Stripe's looks like. Codes are logged and stored in
// clear, so that text which may repeat the request is none.
var codeForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// Judge says what one answer teaches, taken alone.
func (c codec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	v := judge(x)
	v.RequestID = x.Header.Get(headerRequestID)
	if v.ProviderCode != "" && !codeForm.MatchString(v.ProviderCode) {
		v.ProviderCode = ""
	}
	if v.Effect == outbound.EffectUnknown && !x.Operation.HasKey() {
		v.Again = false // without a key a resend is a second request
	}
	return v
}

func judge(x *httpadapter.Exchange) outbound.Verdict {
	success := x.Status/100 == 2
	if x.Status == http.StatusNoContent && x.Operation.Method == http.MethodDelete {
		return labelled(x, outbound.Verdict{Effect: outbound.EffectApplied})
	}
	var a answer
	if err := a.decode(x.Body); err != nil {
		return outbound.Verdict{Again: true} // even where a header forbids: a resend replays the whole answer
	}
	switch {
	case success && a.Error == nil && a.unpaid():
		return labelled(x, declined(&a)) // confirmed by this very request
	case success && a.Error == nil && a.identified():
		return labelled(x, judgeObject(x.Operation.Name, &a))
	case !success && a.Error != nil && a.Error.name() != "":
		v := judgeError(x, a.Error)
		v.ProviderCode = a.Error.name()
		return v
	}
	return outbound.Verdict{Again: true} // JSON, but none of Stripe's answers
}

// unknown is what an answer teaches that proves nothing. again is whether
// another attempt is worth it where Stripe does not say.
func unknown(x *httpadapter.Exchange, again bool) outbound.Verdict {
	return outbound.Verdict{Again: mayRetry(x, again)}
}

// identified reports whether a success says what it created or changed. A meter
// event has no id, and its identifier is the key.
func (a *answer) identified() bool {
	return a.ID != "" || a.Object == "billing.meter_event"
}

// judgeError judges an error object, its provider code apart.
func judgeError(x *httpadapter.Exchange, e *apiError) outbound.Verdict {
	switch {
	case e.Type == typeIdempotency || e.Code == typeIdempotency:
		// The key was used with other bytes: what that request did is not known.
		return outbound.Verdict{Look: true}
	case e.Code == codeKeyInUse:
		// Another delivery of the key is running: it may be our own first one.
		return unknown(x, true)
	case slices.Contains(guardCodes, e.Code):
		return outbound.Verdict{Look: true}
	case replayed(x):
		return judgeReplayedError(x)
	}
	return judgeStatus(x, e)
}

// judgeReplayedError judges the stored failure of the first execution. A stored
// 500 stays what it is, whatever became of the work.
func judgeReplayedError(x *httpadapter.Exchange) outbound.Verdict {
	switch x.Status {
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound:
		return labelled(x, outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRefused})
	}
	return labelled(x, outbound.Verdict{Look: true})
}

// judgeStatus judges an error that is no replay.
func judgeStatus(x *httpadapter.Exchange, e *apiError) outbound.Verdict {
	none := func(code outbound.Code) outbound.Verdict {
		return outbound.Verdict{Effect: outbound.EffectNone, Code: code}
	}
	switch x.Status {
	case http.StatusPaymentRequired:
		return labelled(x, none(outbound.ErrRefused))
	case http.StatusUnauthorized:
		return none(outbound.ErrAuth)
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return none(outbound.ErrRejected)
	case http.StatusTooManyRequests:
		v := none(outbound.ErrRateLimited)
		v.Again = mayRetry(x, true)
		if e.Code == codeLockTimeout && x.Header.Get("Retry-After") == "" {
			v.RetryAfter = lockWait
		}
		return v
	case http.StatusInternalServerError:
		// API v1 has stored it: a resend gives the same answer again.
		return unknown(x, isV2(x.Operation))
	}
	return unknown(x, true)
}

// labelled adds the label that Stripe's replay header gives. API v2 documents no
// such header, and without a key it means nothing: those labels are the core's.
func labelled(x *httpadapter.Exchange, v outbound.Verdict) outbound.Verdict {
	switch {
	case isV2(x.Operation) || !x.Operation.HasKey():
		return v
	case replayed(x):
		v.Evidence = rs.ByReplayHeader
	default:
		v.Evidence = rs.ByNoReplayHeader
	}
	v.Label = v.Evidence.Label()
	return v
}

func replayed(x *httpadapter.Exchange) bool {
	return !isV2(x.Operation) && x.Operation.HasKey() && strings.EqualFold(x.Header.Get(headerReplayed), "true")
}

// mayRetry is Stripe's own word on another attempt; otherwise without one.
func mayRetry(x *httpadapter.Exchange, otherwise bool) bool {
	if says, err := strconv.ParseBool(x.Header.Get(headerShouldRetry)); err == nil {
		return says
	}
	return otherwise
}
