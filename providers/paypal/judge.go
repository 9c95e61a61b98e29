package paypal

import (
	"bytes"
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// codec reads PayPal's answers. It has no state of its own.
type codec struct{}

// failure is the body of an error: {"name","message","debug_id","details"}, or
// {"error"} where the token is refused.
type failure struct {
	Name    string          `json:"name"`
	DebugID string          `json:"debug_id"`
	Error   string          `json:"error"`
	Details []failureDetail `json:"details"`
}

type failureDetail struct {
	Field string `json:"field"`
	Issue string `json:"issue"`
}

const issueInProgress = "PREVIOUS_REQUEST_IN_PROGRESS"

// alreadyDone are issues of which nobody can tell from the answer whether they
// speak of this command's own effect: they lead to a look-up.
func alreadyDone(issue string) bool {
	switch issue {
	case "ORDER_ALREADY_CAPTURED", "ORDER_ALREADY_AUTHORIZED", "ORDER_COMPLETION_IN_PROGRESS",
		"AUTHORIZATION_ALREADY_CAPTURED", "PREVIOUSLY_VOIDED", "PREVIOUSLY_CAPTURED",
		"CAPTURE_FULLY_REFUNDED", "DUPLICATE_INVOICE_ID", "SUBSCRIPTION_STATUS_INVALID",
		"PAYPAL_REQUEST_ID_PREVIOUSLY_USED", "DUPLICATE_REQUEST_ID":
		return true
	}
	return false
}

// undecidedIssue are issues of a 422 by which nothing was decided about the
// payment: the payer has still to act, so that the same request can succeed later,
// or the request contradicts itself and was not looked at further. All others,
// known or not, are decisions. Source: the 422 issues of Orders v2 and Payments v2.
func undecidedIssue(issue string) bool {
	switch issue {
	case "ORDER_NOT_APPROVED", "PAYER_ACTION_REQUIRED", // the payer's turn
		"DECIMAL_PRECISION", "CANNOT_BE_NEGATIVE", "CANNOT_BE_ZERO_OR_NEGATIVE", "INVALID_CURRENCY_CODE", // no amount
		"AMOUNT_MISMATCH", "ITEM_TOTAL_MISMATCH", "ITEM_TOTAL_REQUIRED", "MULTI_CURRENCY_ORDER": // no sum
		return true
	}
	return false
}

// undecided reports whether all issues are such: one decision among them decides.
func (f *failure) undecided() bool {
	return len(f.Details) > 0 && !slices.ContainsFunc(f.Details, func(d failureDetail) bool { return !undecidedIssue(d.Issue) })
}

// Judge implements httpadapter.Codec.
func (codec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	var v outbound.Verdict
	if x.Status < 300 {
		v = judgeSuccess(x)
	} else {
		v = judgeFailure(x)
	}
	v.RequestID = cmp.Or(x.Header.Get("Paypal-Debug-Id"), v.RequestID)
	return v
}

// judgeSuccess judges a 2xx. 201 and 204 say nothing of a replay, since a
// replayed authorization capture answers 201 in PayPal's own guide: the core
// labels them by what it sent.
func judgeSuccess(x *httpadapter.Exchange) outbound.Verdict {
	op := x.Operation
	empty := len(bytes.TrimSpace(x.Body)) == 0
	switch x.Status {
	case http.StatusOK, http.StatusCreated, http.StatusMultiStatus:
		if empty && actsOnly(op.Name) {
			return outbound.Verdict{Effect: outbound.EffectApplied}
		}
	case http.StatusAccepted:
		if empty {
			return outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Pending}
		}
	case http.StatusNoContent:
		if actsOnly(op.Name) || op.Name == authorizationVoid.Name {
			return outbound.Verdict{Effect: outbound.EffectApplied}
		}
		return outbound.Verdict{Again: op.HasKey(), Err: errNoObject}
	default:
		return outbound.Verdict{Again: op.HasKey()}
	}
	r, err := readResult(op.Name, x.Body)
	if err != nil { // an answer that cannot be read is not "not paid"
		return outbound.Verdict{Again: op.HasKey(), Err: err}
	}
	v := outbound.Verdict{
		Effect: outbound.EffectApplied, Outcome: r.outcome,
		ExternalRef: r.ref, ObjectStatus: r.status,
	}
	if x.Status == http.StatusOK && replaysAs200(op.Name) {
		v.Label, v.Evidence = rs.LatestStatus, rs.ByStatusCode
	}
	switch {
	case r.refused:
		v.Effect, v.Code, v.ProviderCode = outbound.EffectNone, outbound.ErrRefused, r.why
		v.Look = true // where an earlier delivery is open, the object tells more than a resend
	case x.Status == http.StatusAccepted || x.Status == http.StatusMultiStatus:
		v.Outcome = outbound.Pending
	}
	return v
}

// replaysAs200 reports whether 201 is the operation's answer to a new request,
// and 200 that of an earlier run.
func replaysAs200(operation string) bool {
	switch operation {
	case orderCreate.Name, orderAuthorize.Name, orderCapture.Name,
		authorizationCapture.Name, authorizationReauthorize.Name, captureRefund.Name,
		setupTokenCreate.Name, paymentTokenCreate.Name:
		return true
	}
	return false
}

// judgeFailure judges by status and issue. Anything that is not PayPal's own
// error comes from something in between, and proves nothing.
func judgeFailure(x *httpadapter.Exchange) outbound.Verdict {
	var f failure
	again := x.Operation.HasKey()
	if x.Status >= 500 || decode(x.Body, &f) != nil || f.Name == "" && f.Error == "" && len(f.Details) == 0 {
		return outbound.Verdict{Again: again}
	}
	issue := f.issue()
	look := alreadyDone(issue) || x.Operation.Name == payoutCreate.Name && f.duplicatePayout()
	v := outbound.Verdict{ProviderCode: nameForm.FindString(issue), RequestID: f.DebugID}
	switch {
	case look:
		v.Look = true
	case issue == issueInProgress || x.Status == http.StatusConflict:
		v.Code, v.Again = outbound.ErrInFlight, again
	case x.Status == http.StatusUnprocessableEntity:
		v.Effect, v.Code = outbound.EffectNone, outbound.ErrRefused
		if f.undecided() {
			v.Code = outbound.ErrRejected
		}
	case x.Status == http.StatusUnauthorized:
		v.Effect, v.Code = outbound.EffectNone, outbound.ErrAuth
	case x.Status == http.StatusTooManyRequests:
		v.Effect, v.Code, v.Again = outbound.EffectNone, outbound.ErrRateLimited, true
	case notAccepted(x.Status):
		v.Effect, v.Code = outbound.EffectNone, outbound.ErrRejected
	default:
		v.Again = again
	}
	return v
}

// notAccepted reports whether PayPal answers with status before it executes.
func notAccepted(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound,
		http.StatusPreconditionFailed, http.StatusUnsupportedMediaType:
		return true
	}
	return false
}

// issue is the one that decides: of several, one that forbids to call the
// request "not executed". Only the v1 APIs' errors without details are known by
// their name; elsewhere the name is not matched, since PayPal misspells it.
func (f *failure) issue() string {
	for _, d := range f.Details {
		if d.Issue == issueInProgress || alreadyDone(d.Issue) {
			return d.Issue
		}
	}
	if f.Name == "DUPLICATE_REQUEST_ID" || len(f.Details) == 0 {
		return cmp.Or(f.Name, f.Error)
	}
	if issue := f.Details[0].Issue; issueForm.MatchString(issue) {
		return issue
	}
	return f.Name // v1 words its issues as sentences, and they may repeat the request
}

// issueForm is what an issue looks like, where it is no sentence.
var issueForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]{1,127}$`)

// nameForm is what a name or an issue looks like that may be logged and stored in
// clear: a word, no text that may repeat the request.
var nameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{1,127}$`)

// duplicatePayout reports whether the batch id is refused because an earlier
// send was accepted. The issue is a sentence there, and the field the signal.
func (f *failure) duplicatePayout() bool {
	return slices.ContainsFunc(f.Details, func(d failureDetail) bool {
		return strings.EqualFold(d.Field, "SENDER_BATCH_ID")
	})
}
