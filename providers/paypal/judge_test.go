package paypal

import (
	"net/http"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	orderPaid      = `{"id":"5O190127TN364715T","status":"COMPLETED","purchase_units":[{"payments":{"captures":[{"id":"3C679366HH908993F","status":"COMPLETED","amount":{"currency_code":"EUR","value":"12.50"}}]}}]}`
	orderRefunded  = `{"id":"5O190127TN364715T","status":"COMPLETED","purchase_units":[{"payments":{"captures":[{"id":"3C679366HH908993F","status":"REFUNDED"}]}}]}`
	orderDeclined  = `{"id":"5O190127TN364715T","status":"COMPLETED","purchase_units":[{"payments":{"captures":[{"id":"3C679366HH908993F","status":"DECLINED"}]}}]}`
	orderPending   = `{"id":"5O190127TN364715T","status":"COMPLETED","purchase_units":[{"payments":{"captures":[{"id":"3C679366HH908993F","status":"PENDING"}]}}]}`
	orderPartly    = `{"id":"5O190127TN364715T","status":"COMPLETED","purchase_units":[{"payments":{"captures":[{"id":"3C679366HH908993F","status":"COMPLETED"}]}},{"payments":{"captures":[{"id":"4C679366HH908993F","status":"FAILED"}]}}]}`
	orderHeld      = `{"id":"5O190127TN364715T","status":"COMPLETED","purchase_units":[{"payments":{"authorizations":[{"id":"0AW2184448108334S","status":"CREATED"}]}}]}`
	orderDenied    = `{"id":"5O190127TN364715T","status":"COMPLETED","purchase_units":[{"payments":{"authorizations":[{"id":"0AW2184448108334S","status":"DENIED"}]}}]}`
	orderNew       = `{"id":"5O190127TN364715T","status":"CREATED","links":[]}`
	orderMinimal   = `{"id":"5O190127TN364715T","status":"COMPLETED","links":[]}`
	captured       = `{"id":"2GG279541U471931P","status":"COMPLETED","amount":{"currency_code":"EUR","value":"12.50"}}`
	captureFailed  = `{"id":"2GG279541U471931P","status":"FAILED"}`
	captureOdd     = `{"id":"2GG279541U471931P","status":"SOMETHING_NEW"}`
	voided         = `{"id":"0AW2184448108334S","status":"VOIDED"}`
	stillHeld      = `{"id":"0AW2184448108334S","status":"CREATED"}`
	refundDone     = `{"id":"1JU08902781691411","status":"COMPLETED"}`
	refundPending  = `{"id":"1JU08902781691411","status":"PENDING"}`
	refundFailed   = `{"id":"1JU08902781691411","status":"FAILED"}`
	payoutPending  = `{"batch_header":{"payout_batch_id":"5UXD2E8A7EBQJ","batch_status":"PENDING","sender_batch_header":{"sender_batch_id":"x"}}}`
	payoutDenied   = `{"batch_header":{"payout_batch_id":"5UXD2E8A7EBQJ","batch_status":"DENIED"}}`
	subscription   = `{"id":"I-BW452GLLEP1G","status":"APPROVAL_PENDING"}`
	invoiceAsLink  = `{"rel":"self","href":"https://api-m.paypal.com/v2/invoicing/invoices/INV2-C82X-JNN9-Y6S5-CNXW","method":"GET"}`
	duplicateBatch = `{"name":"USER_BUSINESS_ERROR","message":"m","debug_id":"d","details":[{"field":"SENDER_BATCH_ID","location":"body","issue":"Batch with given sender_batch_id already exists","link":[{"href":"https://api-m.paypal.com/v1/payments/payouts/5UXD2E8A7EBQJ","rel":"self"}]}]}`
	htmlPage       = `<html><body>Bad gateway</body></html>`
)

// withIssue is an error of PayPal with one issue.
func withIssue(issue string) string {
	return `{"name":"UNPROCCESSABLE_ENTITY","message":"m","debug_id":"d1","details":[{"issue":"` + issue + `","description":"d"}],"links":[]}`
}

type judgement struct {
	name   string
	op     rs.Operation
	status int
	body   string
	want   outbound.Verdict // RequestID and Err are looked at apart
}

func applied(ref, status string) outbound.Verdict {
	return outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Done, ExternalRef: ref, ObjectStatus: status}
}

func latest(v outbound.Verdict) outbound.Verdict {
	v.Label, v.Evidence = rs.LatestStatus, rs.ByStatusCode
	return v
}

func awaiting(v outbound.Verdict) outbound.Verdict {
	v.Outcome = outbound.Pending
	return v
}

func declined(ref, status string) outbound.Verdict {
	return outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRefused, ExternalRef: ref, ObjectStatus: status, ProviderCode: status, Look: true}
}

func none(code outbound.Code, issue string) outbound.Verdict {
	return outbound.Verdict{Effect: outbound.EffectNone, Code: code, ProviderCode: issue}
}

func look(issue string) outbound.Verdict { return outbound.Verdict{Look: true, ProviderCode: issue} }

var unknownAgain = outbound.Verdict{Again: true}

// The labels of successes: 200 where a new request gets 201 is an earlier run;
// 201 and 204 prove nothing, since PayPal's guide shows a replayed authorization
// capture answering 201 (R11, R12).
func TestJudgeSuccess(t *testing.T) {
	t.Parallel()
	judgeAll(t, []judgement{
		{"new order", orderCreate, 201, orderNew, applied("5O190127TN364715T", "CREATED")},
		{"replayed order", orderCreate, 200, orderNew, latest(applied("5O190127TN364715T", "CREATED"))},
		{"order that pays at once, declined", orderCreate, 201, orderDeclined, func() outbound.Verdict {
			v := declined("5O190127TN364715T", "COMPLETED")
			v.ProviderCode = "DECLINED"
			return v
		}()},
		{"order accepted", orderCreate, 202, orderNew, awaiting(applied("5O190127TN364715T", "CREATED"))},
		{"order accepted without a body", orderCreate, 202, "", outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Pending}},
		{"new order capture", orderCapture, 201, orderPaid, applied("3C679366HH908993F", "COMPLETED")},
		{"replayed order capture", orderCapture, 200, orderPaid, latest(applied("3C679366HH908993F", "COMPLETED"))},
		{"replayed and refunded since", orderCapture, 200, orderRefunded, latest(applied("3C679366HH908993F", "REFUNDED"))},
		{"declined inside a 201", orderCapture, 201, orderDeclined, declined("3C679366HH908993F", "DECLINED")},
		{"declined inside a replay", orderCapture, 200, orderDeclined, latest(declined("3C679366HH908993F", "DECLINED"))},
		{"pending inside a 201", orderCapture, 201, orderPending, awaiting(applied("3C679366HH908993F", "PENDING"))},
		{"some units paid", orderCapture, 201, orderPartly, func() outbound.Verdict {
			v := applied("3C679366HH908993F", "COMPLETED")
			v.Outcome = outbound.Partial
			return v
		}()},
		{"multi-status", orderCapture, 207, orderPartly, awaiting(applied("3C679366HH908993F", "COMPLETED"))},
		{"multi-status, all declined", orderCapture, 207, orderDeclined, declined("3C679366HH908993F", "DECLINED")},
		{"capture accepted", orderCapture, 202, orderNew, awaiting(applied("", "CREATED"))},
		{"minimal answer", orderCapture, 201, orderMinimal, applied("", "COMPLETED")},
		{"answer without a payment", orderCapture, 201, orderNew, awaiting(applied("", "CREATED"))},
		{"new authorization", orderAuthorize, 201, orderHeld, applied("0AW2184448108334S", "CREATED")},
		{"denied authorization", orderAuthorize, 201, orderDenied, declined("0AW2184448108334S", "DENIED")},
		{"new capture of an authorization", authorizationCapture, 201, captured, applied("2GG279541U471931P", "COMPLETED")},
		{"replayed capture of an authorization", authorizationCapture, 200, captured, latest(applied("2GG279541U471931P", "COMPLETED"))},
		{"failed capture", authorizationCapture, 201, captureFailed, declined("2GG279541U471931P", "FAILED")},
		{"a status that is not known", authorizationCapture, 201, captureOdd, awaiting(applied("2GG279541U471931P", "SOMETHING_NEW"))},
		{"reauthorized", authorizationReauthorize, 201, stillHeld, applied("0AW2184448108334S", "CREATED")},
		{"void without a body (C19)", authorizationVoid, 204, "", outbound.Verdict{Effect: outbound.EffectApplied}},
		{"void with a body", authorizationVoid, 200, voided, applied("0AW2184448108334S", "VOIDED")},
		{"refund", captureRefund, 201, refundDone, applied("1JU08902781691411", "COMPLETED")},
		{"replayed refund", captureRefund, 200, refundDone, latest(applied("1JU08902781691411", "COMPLETED"))},
		{"pending refund", captureRefund, 201, refundPending, awaiting(applied("1JU08902781691411", "PENDING"))},
		{"failed refund", captureRefund, 201, refundFailed, declined("1JU08902781691411", "FAILED")},
		{"payout", payoutCreate, 201, payoutPending, awaiting(applied("5UXD2E8A7EBQJ", "PENDING"))},
		{"denied payout", payoutCreate, 201, payoutDenied, declined("5UXD2E8A7EBQJ", "DENIED")},
		{"subscription, no signal", subscriptionCreate, 200, subscription, applied("I-BW452GLLEP1G", "APPROVAL_PENDING")},
		{"subscription cancelled", subscriptionCancel, 204, "", outbound.Verdict{Effect: outbound.EffectApplied}},
		{"plan", planCreate, 201, `{"id":"P-1","status":"ACTIVE"}`, applied("P-1", "ACTIVE")},
		{"product", productCreate, 201, `{"id":"PROD-1"}`, applied("PROD-1", "")},
		{"setup token", setupTokenCreate, 201, `{"id":"5C991763VB2781612","status":"APPROVED"}`, applied("5C991763VB2781612", "APPROVED")},
		{"replayed payment token", paymentTokenCreate, 200, `{"id":"8kk8451t"}`, latest(applied("8kk8451t", ""))},
		{"invoice", invoiceCreate, 201, `{"id":"INV2-1","status":"DRAFT"}`, applied("INV2-1", "DRAFT")},
		{"invoice as a link", invoiceCreate, 201, invoiceAsLink, applied("INV2-C82X-JNN9-Y6S5-CNXW", "")},
		{"invoice sent", invoiceSend, 200, `{}`, applied("", "")},
		{"invoice sent without a body", invoiceSend, 200, "", outbound.Verdict{Effect: outbound.EffectApplied}},
		{"invoice to be sent", invoiceSend, 202, "", outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Pending}},
		{"order patched", orderPatch, 204, "", outbound.Verdict{Effect: outbound.EffectApplied}},
	})
}

// C18: a success that cannot be read is not "not paid".
func TestJudgeUnreadableSuccess(t *testing.T) {
	t.Parallel()
	judgeAll(t, []judgement{
		{"empty", orderCapture, 201, "", unknownAgain},
		{"blank", orderCapture, 201, " \n", unknownAgain},
		{"no content", orderCapture, 204, "", unknownAgain},
		{"a page", captureRefund, 200, htmlPage, unknownAgain},
		{"a list", captureRefund, 200, `[{"id":"1"}]`, unknownAgain},
		{"half an answer", captureRefund, 201, `{"id":"1JU089`, unknownAgain},
		{"no id", captureRefund, 201, `{"status":"COMPLETED"}`, unknownAgain},
		{"a number for an id", captureRefund, 201, `{"id":5}`, unknownAgain},
		{"a payout without its header", payoutCreate, 201, `{"links":[]}`, unknownAgain},
		{"void with a body but not void", authorizationVoid, 200, stillHeld, unknownAgain},
		{"void 200 without a body", authorizationVoid, 200, "", unknownAgain},
		{"another 2xx", orderCapture, 206, orderPaid, unknownAgain},
		{"no key: never again by itself", subscriptionCancel, 200, htmlPage, outbound.Verdict{}},
	})
}

func TestJudgeFailure(t *testing.T) {
	t.Parallel()
	rows := []judgement{
		{"malformed", orderCapture, 400, withIssue("MISSING_REQUIRED_PARAMETER"), none(outbound.ErrRejected, "MISSING_REQUIRED_PARAMETER")},
		{"without a request id", orderCreate, 400, withIssue("PAYPAL_REQUEST_ID_REQUIRED"), none(outbound.ErrRejected, "PAYPAL_REQUEST_ID_REQUIRED")},
		{"v1 validation in a sentence", payoutCreate, 400, `{"name":"VALIDATION_ERROR","details":[{"field":"items[1].receiver","issue":"Receiver is invalid: jane@example.com"}]}`, none(outbound.ErrRejected, "VALIDATION_ERROR")},
		{"duplicate payout (C17)", payoutCreate, 400, duplicateBatch, look("USER_BUSINESS_ERROR")},
		{"another business error of payouts", payoutCreate, 400, `{"name":"USER_BUSINESS_ERROR","details":[{"field":"items[0].receiver","issue":"RECEIVER_UNCONFIRMED"}]}`, none(outbound.ErrRejected, "RECEIVER_UNCONFIRMED")},
		{"token refused", orderCapture, 401, `{"error":"invalid_token","error_description":"d"}`, none(outbound.ErrAuth, "invalid_token")},
		{"not authenticated", orderCapture, 401, `{"name":"AUTHENTICATION_FAILURE","message":"m"}`, none(outbound.ErrAuth, "AUTHENTICATION_FAILURE")},
		{"not allowed", orderCapture, 403, withIssue("PERMISSION_DENIED"), none(outbound.ErrRejected, "PERMISSION_DENIED")},
		{"not found", orderCapture, 404, withIssue("INVALID_RESOURCE_ID"), none(outbound.ErrRejected, "INVALID_RESOURCE_ID")},
		{"media type", orderCapture, 415, `{"name":"UNSUPPORTED_MEDIA_TYPE"}`, none(outbound.ErrRejected, "UNSUPPORTED_MEDIA_TYPE")},
		{"in progress", orderCapture, 409, withIssue("PREVIOUS_REQUEST_IN_PROGRESS"), outbound.Verdict{Code: outbound.ErrInFlight, Again: true, ProviderCode: "PREVIOUS_REQUEST_IN_PROGRESS"}},
		{"in progress under another status", orderCapture, 422, withIssue("PREVIOUS_REQUEST_IN_PROGRESS"), outbound.Verdict{Code: outbound.ErrInFlight, Again: true, ProviderCode: "PREVIOUS_REQUEST_IN_PROGRESS"}},
		{"conflict", captureRefund, 409, `{"name":"RESOURCE_CONFLICT"}`, outbound.Verdict{Code: outbound.ErrInFlight, Again: true, ProviderCode: "RESOURCE_CONFLICT"}},
		{"conflict without a key", invoiceCancel, 409, `{"name":"RESOURCE_CONFLICT"}`, outbound.Verdict{Code: outbound.ErrInFlight, ProviderCode: "RESOURCE_CONFLICT"}},
		{"declined", orderCapture, 422, withIssue("INSTRUMENT_DECLINED"), none(outbound.ErrRefused, "INSTRUMENT_DECLINED")},
		{"business rule", captureRefund, 422, withIssue("REFUND_AMOUNT_EXCEEDED"), none(outbound.ErrRefused, "REFUND_AMOUNT_EXCEEDED")},
		{"undecided and decided at once", orderCapture, 422, `{"name":"X","details":[{"issue":"ORDER_NOT_APPROVED"},{"issue":"INSTRUMENT_DECLINED"}]}`, none(outbound.ErrRefused, "ORDER_NOT_APPROVED")},
		{"422 without details", orderCapture, 422, `{"name":"ORDER_NOT_APPROVED"}`, none(outbound.ErrRefused, "ORDER_NOT_APPROVED")},
		{"v1 without details", subscriptionCreate, 400, `{"name":"DUPLICATE_REQUEST_ID","message":"m"}`, look("DUPLICATE_REQUEST_ID")},
		{"v1 with a sentence", subscriptionCreate, 400, `{"name":"DUPLICATE_REQUEST_ID","details":[{"issue":"already used"}]}`, look("DUPLICATE_REQUEST_ID")},
		{"rate limit", orderCapture, 429, `{"name":"RATE_LIMIT_REACHED","message":"m"}`, outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRateLimited, ProviderCode: "RATE_LIMIT_REACHED", Again: true}},
		{"the issue that forbids wins", captureRefund, 422, `{"name":"X","details":[{"issue":"SOMETHING"},{"issue":"CAPTURE_FULLY_REFUNDED"}]}`, look("CAPTURE_FULLY_REFUNDED")},
		{"500", orderCapture, 500, `{"name":"INTERNAL_SERVER_ERROR"}`, unknownAgain},
		{"500 that repeats an issue", orderCapture, 500, withIssue("INSTRUMENT_DECLINED"), unknownAgain},
		{"502 page", orderCapture, 502, htmlPage, unknownAgain},
		{"503", orderCapture, 503, `{"name":"SERVICE_UNAVAILABLE"}`, unknownAgain},
		{"503 without a key", subscriptionCancel, 503, `{"name":"SERVICE_UNAVAILABLE"}`, outbound.Verdict{}},
		{"424", orderCapture, 424, `{"name":"FAILED_DEPENDENCY"}`, outbound.Verdict{Again: true, ProviderCode: "FAILED_DEPENDENCY"}},
		{"a proxy's 403", orderCapture, 403, htmlPage, unknownAgain},
		{"a proxy's 429", orderCapture, 429, "", unknownAgain},
		{"somebody else's JSON", orderCapture, 400, `{"code":7}`, unknownAgain},
	}
	for _, issue := range []string{
		"ORDER_ALREADY_CAPTURED", "ORDER_ALREADY_AUTHORIZED", "ORDER_COMPLETION_IN_PROGRESS",
		"AUTHORIZATION_ALREADY_CAPTURED", "PREVIOUSLY_VOIDED", "PREVIOUSLY_CAPTURED",
		"CAPTURE_FULLY_REFUNDED", "DUPLICATE_INVOICE_ID", "SUBSCRIPTION_STATUS_INVALID",
		"PAYPAL_REQUEST_ID_PREVIOUSLY_USED", "DUPLICATE_REQUEST_ID",
	} {
		rows = append(rows, judgement{issue, captureRefund, 422, withIssue(issue), look(issue)})
	}
	for _, issue := range []string{
		"ORDER_NOT_APPROVED", "PAYER_ACTION_REQUIRED", "DECIMAL_PRECISION", "CANNOT_BE_NEGATIVE", "CANNOT_BE_ZERO_OR_NEGATIVE",
		"INVALID_CURRENCY_CODE", "AMOUNT_MISMATCH", "ITEM_TOTAL_MISMATCH", "ITEM_TOTAL_REQUIRED", "MULTI_CURRENCY_ORDER",
	} {
		rows = append(rows, judgement{issue, orderCapture, 422, withIssue(issue), none(outbound.ErrRejected, issue)})
	}
	judgeAll(t, rows)
}

func judgeAll(t *testing.T, rows []judgement) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := codec{}.Judge(&httpadapter.Exchange{
				Operation: row.op, Status: row.status, Body: []byte(row.body),
				Header: http.Header{"Paypal-Debug-Id": {"f0e1d2"}},
			})
			if got.RequestID != "f0e1d2" {
				t.Errorf("RequestID = %q, want Paypal-Debug-Id", got.RequestID)
			}
			got.RequestID, got.Err = "", nil
			if got != row.want {
				t.Errorf("%s %d\n got %+v\nwant %+v", row.op.Name, row.status, got, row.want)
			}
		})
	}
}

// The body's debug_id serves where the header is missing.
func TestRequestIDFromBody(t *testing.T) {
	t.Parallel()
	got := codec{}.Judge(&httpadapter.Exchange{Operation: orderCapture, Status: 422, Header: http.Header{}, Body: []byte(withIssue("INSTRUMENT_DECLINED"))})
	if got.RequestID != "d1" {
		t.Errorf("RequestID = %q, want d1", got.RequestID)
	}
}

// No answer, however it is built, panics or proves what it does not hold.
func FuzzJudge(f *testing.F) {
	for _, body := range []string{orderPaid, orderPartly, captured, payoutPending, duplicateBatch, htmlPage, "", "{", "null", `{"details":[null]}`} {
		for _, status := range []int{200, 201, 204, 400, 409, 422, 500} {
			f.Add(status, body)
		}
	}
	rows := Operations()
	f.Fuzz(func(t *testing.T, status int, body string) {
		for _, op := range rows {
			v := codec{}.Judge(&httpadapter.Exchange{Operation: op, Status: status, Header: http.Header{}, Body: []byte(body)})
			switch {
			case v.Effect == outbound.EffectApplied && v.Code != "":
				t.Errorf("%s: applied with the code %s", op.Name, v.Code)
			case v.Effect == outbound.EffectApplied && (status < 200 || status > 299):
				t.Errorf("%s: %d is applied", op.Name, status)
			case v.Effect == outbound.EffectNone && v.Code == "":
				t.Errorf("%s: %d is None without a code", op.Name, status)
			case v.Effect == outbound.EffectNone && status >= 500:
				t.Errorf("%s: %d is None", op.Name, status)
			case v.Look && v.Effect == outbound.EffectApplied:
				t.Errorf("%s: a look-up is asked for where the effect is known", op.Name)
			}
		}
	})
}
