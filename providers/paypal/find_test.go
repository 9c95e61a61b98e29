package paypal

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// answers is what GETs give; a path that is missing is not found.
type answers map[string]string

func (a answers) get(_ context.Context, target string, _ url.Values) (*httpadapter.Exchange, error) {
	x := &httpadapter.Exchange{Status: http.StatusOK, Header: http.Header{"Paypal-Debug-Id": {"abc"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}, Body: []byte(a[target])}
	if _, ok := a[target]; !ok {
		x.Status, x.Body = http.StatusNotFound, []byte(withIssue("INVALID_RESOURCE_ID"))
	}
	return x, nil
}

const (
	testMark = "4d2a00112233445566778899aabbccddeeff"
	testKey  = "4d2a0011-2233-8455-8677-8899aabbccdd"

	orderPath   = "/v2/checkout/orders/5O190127TN364715T"
	authPath    = "/v2/payments/authorizations/0AW2184448108334S"
	capturePath = "/v2/payments/captures/3C679366HH908993F"
	payoutPath  = "/v1/payments/payouts/5UXD2E8A7EBQJ"
	subPath     = "/v1/billing/subscriptions/I-BW452GLLEP1G"

	authCaptured = `{"id":"0AW2184448108334S","status":"CAPTURED","amount":{"currency_code":"EUR","value":"12.50"},"links":[{"rel":"up","href":"https://api-m.paypal.com/v2/checkout/orders/5O190127TN364715T"}]}`
	capRefunded  = `{"id":"3C679366HH908993F","status":"REFUNDED","amount":{"currency_code":"EUR","value":"12.50"},"supplementary_data":{"related_ids":{"order_id":"5O190127TN364715T"}}}`
)

func captureUnder(id, mark, value string) string {
	return `{"id":"` + id + `","status":"COMPLETED","invoice_id":"` + mark + `","amount":{"currency_code":"EUR","value":"` + value + `"},"supplementary_data":{"related_ids":{"authorization_id":"0AW2184448108334S"}}}`
}

func refundUnder(id, mark, value string) string {
	return `{"id":"` + id + `","status":"COMPLETED","custom_id":"` + mark + `","amount":{"currency_code":"EUR","value":"` + value + `"},"links":[{"rel":"up","href":"https://api-m.paypal.com/v2/payments/captures/3C679366HH908993F"}]}`
}

func orderWith(kind string, payments ...string) string {
	return `{"id":"5O190127TN364715T","status":"COMPLETED","purchase_units":[{"payments":{"` + kind + `":[` + strings.Join(payments, ",") + `]}}]}`
}

func payoutOf(status, sender string) string {
	return `{"total_items":1,"batch_header":{"payout_batch_id":"5UXD2E8A7EBQJ","batch_status":"` + status + `","sender_batch_header":{"sender_batch_id":"` + sender + `"}},"items":[{"payout_item_id":"x"}],"links":[]}`
}

func with(a *outbound.Answer) func(*outbound.Lookup) {
	return func(l *outbound.Lookup) { l.Answer = a }
}

func known(ref string) func(*outbound.Lookup) {
	return func(l *outbound.Lookup) { l.ExternalRef = ref }
}

func asked(body string) func(*outbound.Lookup) {
	return func(l *outbound.Lookup) { l.Message.Body = []byte(body) }
}

func forgotten(ref string) func(*outbound.Lookup) {
	return func(l *outbound.Lookup) { l.Message, l.ExternalRef = outbound.Message{}, ref }
}

// What may be found, by what, and what may not: an amount alone finds nothing
// (C17, C20, C24).
func TestFind(t *testing.T) {
	t.Parallel()
	const unknown = outbound.EffectUnknown
	duplicate := &outbound.Answer{Status: 400, Body: []byte(duplicateBatch)}
	escaped := &outbound.Answer{Status: 400, Body: []byte(strings.ReplaceAll(duplicateBatch, "/", `\/`))}
	for name, c := range map[string]struct {
		op       rs.Operation
		id       string
		how      func(*outbound.Lookup)
		holds    answers
		effect   outbound.Effect
		evidence outbound.Evidence
		outcome  outbound.Outcome
		ref      string
		status   int // of the answer; 0 for none
	}{
		"captured order":             {op: orderCapture, id: "5O190127TN364715T", holds: answers{orderPath: orderPaid}, effect: outbound.EffectApplied, evidence: rs.ByStateGuard, outcome: outbound.Done, ref: "3C679366HH908993F", status: 200},
		"captured, pending":          {op: orderCapture, id: "5O190127TN364715T", holds: answers{orderPath: orderPending}, effect: outbound.EffectApplied, evidence: rs.ByStateGuard, outcome: outbound.Pending, ref: "3C679366HH908993F", status: 200},
		"captured, declined":         {op: orderCapture, id: "5O190127TN364715T", holds: answers{orderPath: orderDeclined}, effect: outbound.EffectNone, evidence: rs.ByStateGuard, ref: "3C679366HH908993F", status: 200},
		"order not captured (C20)":   {op: orderCapture, id: "5O190127TN364715T", holds: answers{orderPath: `{"id":"5O190127TN364715T","status":"APPROVED"}`}, effect: unknown},
		"order void":                 {op: orderCapture, id: "5O190127TN364715T", holds: answers{orderPath: `{"id":"5O190127TN364715T","status":"VOIDED"}`}, effect: outbound.EffectNone, evidence: rs.ByStateGuard, status: 200},
		"authorized order":           {op: orderAuthorize, id: "5O190127TN364715T", holds: answers{orderPath: orderHeld}, effect: outbound.EffectApplied, evidence: rs.ByStateGuard, outcome: outbound.Done, ref: "0AW2184448108334S", status: 200},
		"order by its capture":       {op: orderCapture, how: forgotten("3C679366HH908993F"), holds: answers{capturePath: capRefunded, orderPath: orderRefunded}, effect: outbound.EffectApplied, evidence: rs.ByLookup, outcome: outbound.Done, ref: "3C679366HH908993F", status: 200},
		"order by a foreign one":     {op: orderCapture, how: forgotten("3C679366HH908993F"), holds: answers{capturePath: capRefunded, orderPath: orderHeld}, effect: unknown},
		"created order":              {op: orderCreate, how: known("5O190127TN364715T"), holds: answers{orderPath: orderNew}, effect: outbound.EffectApplied, evidence: rs.ByLookup, outcome: outbound.Done, ref: "5O190127TN364715T", status: 200},
		"created order, no id":       {op: orderCreate, holds: answers{}, effect: unknown},
		"void":                       {op: authorizationVoid, id: "0AW2184448108334S", holds: answers{authPath: voided}, effect: outbound.EffectApplied, evidence: rs.ByStateGuard, outcome: outbound.Done, ref: "0AW2184448108334S", status: 200},
		"captured, never void":       {op: authorizationVoid, id: "0AW2184448108334S", holds: answers{authPath: authCaptured}, effect: outbound.EffectNone, evidence: rs.ByStateGuard, status: 200},
		"not void yet":               {op: authorizationVoid, id: "0AW2184448108334S", holds: answers{authPath: stillHeld}, effect: unknown},
		"full capture":               {op: authorizationCapture, id: "0AW2184448108334S", how: asked(`{}`), holds: answers{authPath: authCaptured, orderPath: orderWith("captures", captureUnder("2GG", "", "12.5"))}, effect: outbound.EffectApplied, evidence: rs.ByStateGuard, outcome: outbound.Done, ref: "2GG", status: 200},
		"full capture, stated":       {op: authorizationCapture, id: "0AW2184448108334S", how: asked(`{"amount":{"currency_code":"EUR","value":"12.50"}}`), holds: answers{authPath: authCaptured, orderPath: orderWith("captures", captureUnder("2GG", "", "12.50"))}, effect: outbound.EffectApplied, evidence: rs.ByStateGuard, outcome: outbound.Done, ref: "2GG", status: 200},
		"part of a full capture":     {op: authorizationCapture, id: "0AW2184448108334S", how: asked(`{"amount":{"currency_code":"EUR","value":"5.00"}}`), holds: answers{authPath: authCaptured, orderPath: orderWith("captures", captureUnder("2GG", "", "12.50"))}, effect: unknown},
		"two captures":               {op: authorizationCapture, id: "0AW2184448108334S", how: asked(`{}`), holds: answers{authPath: authCaptured, orderPath: orderWith("captures", captureUnder("2GG", "", "6.25"), captureUnder("3GG", "", "6.25"))}, effect: unknown},
		"final, but partial":         {op: authorizationCapture, id: "0AW2184448108334S", how: asked(`{}`), holds: answers{authPath: authCaptured, orderPath: orderWith("captures", captureUnder("2GG", "", "6.25"))}, effect: unknown},
		"partial, marked":            {op: authorizationCapture, id: "0AW2184448108334S", how: asked(`{"amount":{"currency_code":"EUR","value":"5.00"}}`), holds: answers{authPath: strings.ReplaceAll(authCaptured, "CAPTURED", "PARTIALLY_CAPTURED"), orderPath: orderWith("captures", captureUnder("1GG", "other", "5.00"), captureUnder("2GG", testMark, "5.00"))}, effect: outbound.EffectApplied, evidence: rs.ByLookup, outcome: outbound.Done, ref: "2GG", status: 200},
		"partial, equal amount":      {op: authorizationCapture, id: "0AW2184448108334S", how: asked(`{"amount":{"currency_code":"EUR","value":"5.00"}}`), holds: answers{authPath: strings.ReplaceAll(authCaptured, "CAPTURED", "PARTIALLY_CAPTURED"), orderPath: orderWith("captures", captureUnder("1GG", "other", "5.00"))}, effect: unknown},
		"void, never captured":       {op: authorizationCapture, id: "0AW2184448108334S", holds: answers{authPath: strings.ReplaceAll(authCaptured, "CAPTURED", "VOIDED"), orderPath: orderWith("captures")}, effect: outbound.EffectNone, evidence: rs.ByStateGuard, status: 200},
		"void after a capture":       {op: authorizationCapture, id: "0AW2184448108334S", holds: answers{authPath: strings.ReplaceAll(authCaptured, "CAPTURED", "VOIDED"), orderPath: orderWith("captures", captureUnder("1GG", "other", "5.00"))}, effect: unknown},
		"full refund":                {op: captureRefund, id: "3C679366HH908993F", how: asked(`{"amount":{"currency_code":"EUR","value":"12.50"}}`), holds: answers{capturePath: capRefunded, orderPath: orderWith("refunds", refundUnder("1JU", "theirs", "12.50"))}, effect: outbound.EffectApplied, evidence: rs.ByStateGuard, outcome: outbound.Done, ref: "1JU", status: 200},
		"full refund, not listed":    {op: captureRefund, id: "3C679366HH908993F", how: asked(`{"amount":{"currency_code":"EUR","value":"12.50"}}`), holds: answers{capturePath: capRefunded, orderPath: orderWith("refunds")}, effect: outbound.EffectApplied, evidence: rs.ByStateGuard, outcome: outbound.Done},
		"refunded in parts":          {op: captureRefund, id: "3C679366HH908993F", how: asked(`{"amount":{"currency_code":"EUR","value":"12.50"}}`), holds: answers{capturePath: capRefunded, orderPath: orderWith("refunds", refundUnder("1JU", "a", "6.25"), refundUnder("2JU", "b", "6.25"))}, effect: unknown},
		"partial refund, marked":     {op: captureRefund, id: "3C679366HH908993F", how: asked(`{"amount":{"currency_code":"EUR","value":"6.25"}}`), holds: answers{capturePath: capRefunded, orderPath: orderWith("refunds", refundUnder("1JU", "a", "6.25"), refundUnder("2JU", testMark, "6.25"))}, effect: outbound.EffectApplied, evidence: rs.ByLookup, outcome: outbound.Done, ref: "2JU", status: 200},
		"refund failed, tried again": {op: captureRefund, id: "3C679366HH908993F", how: asked(`{"amount":{"currency_code":"EUR","value":"6.25"}}`), holds: answers{capturePath: capRefunded, orderPath: orderWith("refunds", strings.Replace(refundUnder("1JU", testMark, "6.25"), "COMPLETED", "FAILED", 1), refundUnder("2JU", testMark, "6.25"))}, effect: outbound.EffectApplied, evidence: rs.ByLookup, outcome: outbound.Done, ref: "2JU", status: 200},
		"refund failed":              {op: captureRefund, id: "3C679366HH908993F", how: asked(`{"amount":{"currency_code":"EUR","value":"6.25"}}`), holds: answers{capturePath: capRefunded, orderPath: orderWith("refunds", strings.Replace(refundUnder("1JU", testMark, "6.25"), "COMPLETED", "FAILED", 1))}, effect: outbound.EffectNone, evidence: rs.ByLookup, ref: "1JU", status: 200},
		"partial refund, unmarked":   {op: captureRefund, id: "3C679366HH908993F", how: asked(`{"amount":{"currency_code":"EUR","value":"6.25"}}`), holds: answers{capturePath: capRefunded, orderPath: orderWith("refunds", refundUnder("1JU", "a", "6.25"))}, effect: unknown},
		"payout (C17)":               {op: payoutCreate, how: with(duplicate), holds: answers{payoutPath: payoutOf("SUCCESS", testKey)}, effect: outbound.EffectApplied, evidence: rs.ByLookup, outcome: outbound.Done, ref: "5UXD2E8A7EBQJ", status: 201},
		"payout, escaped link":       {op: payoutCreate, how: with(escaped), holds: answers{payoutPath: payoutOf("PENDING", testKey)}, effect: outbound.EffectApplied, evidence: rs.ByLookup, outcome: outbound.Pending, ref: "5UXD2E8A7EBQJ", status: 201},
		"payout denied":              {op: payoutCreate, how: with(duplicate), holds: answers{payoutPath: payoutOf("DENIED", testKey)}, effect: outbound.EffectNone, evidence: rs.ByLookup, ref: "5UXD2E8A7EBQJ", status: 201},
		"payout of another key":      {op: payoutCreate, how: with(duplicate), holds: answers{payoutPath: payoutOf("SUCCESS", "other")}, effect: unknown},
		"payout without a link":      {op: payoutCreate, how: with(&outbound.Answer{Status: 400, Body: []byte(`{"name":"USER_BUSINESS_ERROR","details":[{"field":"SENDER_BATCH_ID","issue":"Duplicate batch request"}]}`)}), effect: unknown},
		"payout without an answer":   {op: payoutCreate, effect: unknown},
		"payout by its id":           {op: payoutCreate, how: known("5UXD2E8A7EBQJ"), holds: answers{payoutPath: payoutOf("SUCCESS", testKey)}, effect: outbound.EffectApplied, evidence: rs.ByLookup, outcome: outbound.Done, ref: "5UXD2E8A7EBQJ", status: 201},
		"activated":                  {op: subscriptionActivate, id: "I-BW452GLLEP1G", holds: answers{subPath: `{"id":"I-BW452GLLEP1G","status":"ACTIVE"}`}, effect: outbound.EffectApplied, evidence: rs.ByStateGuard, outcome: outbound.Done, ref: "I-BW452GLLEP1G", status: 204},
		"cancelled since":            {op: subscriptionActivate, id: "I-BW452GLLEP1G", holds: answers{subPath: `{"id":"I-BW452GLLEP1G","status":"CANCELLED"}`}, effect: unknown},
		"suspended":                  {op: subscriptionSuspend, id: "I-BW452GLLEP1G", holds: answers{subPath: `{"id":"I-BW452GLLEP1G","status":"SUSPENDED"}`}, effect: outbound.EffectApplied, evidence: rs.ByStateGuard, outcome: outbound.Done, ref: "I-BW452GLLEP1G", status: 204},
		"cancelled":                  {op: subscriptionCancel, id: "I-BW452GLLEP1G", holds: answers{subPath: `{"id":"I-BW452GLLEP1G","status":"CANCELLED"}`}, effect: outbound.EffectApplied, evidence: rs.ByStateGuard, outcome: outbound.Done, ref: "I-BW452GLLEP1G", status: 204},
		"expired, never cancelled":   {op: subscriptionCancel, id: "I-BW452GLLEP1G", holds: answers{subPath: `{"id":"I-BW452GLLEP1G","status":"EXPIRED"}`}, effect: outbound.EffectNone, evidence: rs.ByStateGuard, status: 200},
		"invoice cancelled":          {op: invoiceCancel, id: "INV2-1", holds: answers{"/v2/invoicing/invoices/INV2-1": `{"id":"INV2-1","status":"CANCELLED"}`}, effect: outbound.EffectApplied, evidence: rs.ByStateGuard, outcome: outbound.Done, ref: "INV2-1", status: 204},
		"setup token by its id":      {op: setupTokenCreate, how: known("5C991763VB2781612"), holds: answers{"/v3/vault/setup-tokens/5C991763VB2781612": `{"id":"5C991763VB2781612"}`}, effect: outbound.EffectApplied, evidence: rs.ByLookup, outcome: outbound.Done, ref: "5C991763VB2781612", status: 200},
		"an id that is a path":       {op: captureRefund, how: known("../../x"), holds: answers{}, effect: unknown},
		"a target of another route":  {op: captureRefund, id: "a/b", holds: answers{}, effect: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := codec{}.Find(t.Context(), c.holds.get, lookup(t, c.op, c.id, c.how))
			if err != nil {
				t.Fatal(err)
			}
			if f.Effect != c.effect || f.Evidence != c.evidence || f.Outcome != c.outcome || f.ExternalRef != c.ref {
				t.Errorf("got %v %q %q %q, want %v %q %q %q", f.Effect, f.Evidence, f.Outcome, f.ExternalRef, c.effect, c.evidence, c.outcome, c.ref)
			}
			if (f.Effect == outbound.EffectNone) != (f.Code == outbound.ErrRefused) {
				t.Errorf("effect %v with the code %q", f.Effect, f.Code)
			}
			status := 0
			if f.Answer != nil {
				status = f.Answer.Status
			}
			if status != c.status {
				t.Errorf("the answer's status = %d, want %d", status, c.status)
			}
			if f.Effect == outbound.EffectApplied && status != 0 {
				holdsShape(t, c.op, f.Answer)
			}
		})
	}
}

// holdsShape holds that a finding's answer reads like the operation's own.
func holdsShape(t *testing.T, op rs.Operation, a *outbound.Answer) {
	t.Helper()
	v := codec{}.Judge(&httpadapter.Exchange{Operation: op, Status: a.Status, Header: http.Header{}, Body: a.Body})
	if v.Effect != outbound.EffectApplied {
		t.Errorf("the answer %d %s does not read as a success of %s", a.Status, a.Body, op.Name)
	}
	if op.Name == payoutCreate.Name && strings.Contains(string(a.Body), "items") {
		t.Error("the answer has the items, which the create's own has not")
	}
}

func lookup(t *testing.T, op rs.Operation, id string, how func(*outbound.Lookup)) *outbound.Lookup {
	t.Helper()
	key, err := keyderive.Parse(testKey)
	if err != nil {
		t.Fatal(err)
	}
	l := &outbound.Lookup{
		Operation: op, Account: "M", Key: key, Mark: testMark,
		Message: outbound.Message{Method: op.Method, Target: strings.ReplaceAll(op.Path, "{id}", id)},
	}
	if how != nil {
		how(l)
	}
	return l
}

// C24: a look-up that fails is unknown, whatever it answers.
func TestFindFailures(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	for name, get := range map[string]httpadapter.Get{
		"not found": answers{}.get,
		"no JSON":   answers{orderPath: htmlPage}.get,
		"truncated": answers{orderPath: orderPaid[:40]}.get,
		"wire":      func(context.Context, string, url.Values) (*httpadapter.Exchange, error) { return nil, broken },
		"forbidden": func(context.Context, string, url.Values) (*httpadapter.Exchange, error) {
			return &httpadapter.Exchange{Status: 403, Header: http.Header{}, Body: []byte(withIssue("PERMISSION_DENIED"))}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := codec{}.Find(t.Context(), get, lookup(t, orderCapture, "5O190127TN364715T", nil))
			if err == nil || f.Effect != outbound.EffectUnknown {
				t.Errorf("finding %+v, err %v; want an error and unknown", f, err)
			}
		})
	}
}
