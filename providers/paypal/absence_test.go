package paypal

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	userPath = "/v1/identity/oauth2/userinfo"
	invPath  = "/v2/invoicing/invoices/INV2-1"

	foreignMark = "4d2affffffffffffffffffffffffffffffff"
	markedBody  = `{"amount":{"currency_code":"EUR","value":"5.00"},"custom_id":"` + testMark + `","invoice_id":"` + testMark + `"}`
	owner       = `{"user_id":"x","payer_id":"M"}`
	stranger    = `{"user_id":"x","payer_id":"OTHER"}`
)

// orderIn is an order in one state, of the merchant M unless the payee says
// otherwise, with payments of one kind.
func orderIn(status, payee, kind string, payments ...string) string {
	return `{"id":"5O190127TN364715T","status":"` + status + `","purchase_units":[{"payee":{"merchant_id":"` + payee +
		`"},"payments":{"` + kind + `":[` + strings.Join(payments, ",") + `]}}]}`
}

func authIn(status string) string   { return strings.ReplaceAll(authCaptured, "CAPTURED", status) }
func refundIn(status string) string { return strings.ReplaceAll(capRefunded, "REFUNDED", status) }

// withoutParent is a payment that does not say what it is of.
func withoutParent(id string) string {
	return `{"id":"` + id + `","status":"COMPLETED","custom_id":"x","invoice_id":"x"}`
}

func subscriptionIn(status, changed string) string {
	return `{"id":"I-BW452GLLEP1G","status":"` + status + `","status_update_time":"` + changed + `"}`
}

func invoiceIn(status, lastSent string) string {
	return `{"id":"INV2-1","status":"` + status + `","detail":{"metadata":{"last_sent_time":"` + lastSent + `"}}}`
}

var firstSent = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func sentAt(l *outbound.Lookup) {
	l.FirstSentAt, l.SentUntil = firstSent, firstSent.Add(time.Minute)
}

func after(issue string) func(*outbound.Lookup) {
	return func(l *outbound.Lookup) { l.Code = issue }
}

// Absent is a proof: every condition that is taken away makes it unknown. The
// account must be the record's, the list must hold what it claims, ours must be
// recognisable, and no answer may say otherwise.
func TestAbsent(t *testing.T) {
	t.Parallel()
	const before, since = "2026-11-30T11:00:00Z", "2026-11-30T12:00:30Z"
	order := answers{orderPath: orderIn("APPROVED", "M", "captures")}
	for name, c := range map[string]struct {
		op     rs.Operation
		id     string
		how    func(*outbound.Lookup)
		holds  answers
		absent bool
	}{
		"order open":                     {op: orderCapture, id: "5O190127TN364715T", holds: order, absent: true},
		"order open, to be authorized":   {op: orderAuthorize, id: "5O190127TN364715T", holds: order, absent: true},
		"order of another payee":         {op: orderCapture, id: "5O190127TN364715T", holds: answers{orderPath: orderIn("APPROVED", "OTHER", "captures")}},
		"order without its units":        {op: orderCapture, id: "5O190127TN364715T", holds: answers{orderPath: orderNew}},
		"order open, a capture in it":    {op: orderCapture, id: "5O190127TN364715T", holds: answers{orderPath: orderIn("APPROVED", "M", "captures", captured)}},
		"order completed, none in it":    {op: orderCapture, id: "5O190127TN364715T", holds: answers{orderPath: orderIn("COMPLETED", "M", "captures")}},
		"order in a state of the future": {op: orderCapture, id: "5O190127TN364715T", holds: answers{orderPath: orderIn("FROZEN", "M", "captures")}},
		"another order":                  {op: orderCapture, id: "5O190127TN364715T", holds: answers{orderPath: strings.Replace(orderIn("APPROVED", "M", "captures"), "5O19", "6O19", 1)}},
		"open, but answered captured":    {op: orderCapture, id: "5O190127TN364715T", how: after("ORDER_ALREADY_CAPTURED"), holds: order},
		"open, but in progress":          {op: orderCapture, id: "5O190127TN364715T", how: after("ORDER_COMPLETION_IN_PROGRESS"), holds: order},
		"open, invoice id taken (C20)":   {op: orderCapture, id: "5O190127TN364715T", how: after("DUPLICATE_INVOICE_ID"), holds: order},

		"not void":                {op: authorizationVoid, id: "0AW2184448108334S", holds: answers{authPath: authIn("CREATED"), orderPath: orderIn("COMPLETED", "M", "authorizations")}, absent: true},
		"not void, partly taken":  {op: authorizationVoid, id: "0AW2184448108334S", holds: answers{authPath: authIn("PARTIALLY_CAPTURED"), orderPath: orderIn("COMPLETED", "M", "authorizations")}, absent: true},
		"not void, not ours":      {op: authorizationVoid, id: "0AW2184448108334S", holds: answers{authPath: authIn("CREATED"), orderPath: orderIn("COMPLETED", "OTHER", "authorizations")}},
		"not void, of no order":   {op: authorizationVoid, id: "0AW2184448108334S", holds: answers{authPath: stillHeld}},
		"not void, still pending": {op: authorizationVoid, id: "0AW2184448108334S", holds: answers{authPath: authIn("PENDING"), orderPath: orderIn("COMPLETED", "M", "authorizations")}},

		"nothing captured":             {op: authorizationCapture, id: "0AW2184448108334S", how: asked(`{}`), holds: answers{authPath: authIn("CREATED"), orderPath: orderIn("COMPLETED", "M", "captures")}, absent: true},
		"nothing captured, not ours":   {op: authorizationCapture, id: "0AW2184448108334S", how: asked(`{}`), holds: answers{authPath: authIn("CREATED"), orderPath: orderIn("COMPLETED", "OTHER", "captures")}},
		"a capture of nothing":         {op: authorizationCapture, id: "0AW2184448108334S", how: asked(`{}`), holds: answers{authPath: authIn("CREATED"), orderPath: orderIn("COMPLETED", "M", "captures", withoutParent("2GG"))}},
		"another's captured":           {op: authorizationCapture, id: "0AW2184448108334S", how: asked(markedBody), holds: answers{authPath: authIn("PARTIALLY_CAPTURED"), orderPath: orderIn("COMPLETED", "M", "captures", captureUnder("2GG", foreignMark, "5.00"))}, absent: true},
		"another's, ours unmarked":     {op: authorizationCapture, id: "0AW2184448108334S", how: asked(`{"amount":{"currency_code":"EUR","value":"5.00"}}`), holds: answers{authPath: authIn("PARTIALLY_CAPTURED"), orderPath: orderIn("COMPLETED", "M", "captures", captureUnder("2GG", foreignMark, "5.00"))}},
		"one without a mark":           {op: authorizationCapture, id: "0AW2184448108334S", how: asked(markedBody), holds: answers{authPath: authIn("PARTIALLY_CAPTURED"), orderPath: orderIn("COMPLETED", "M", "captures", captureUnder("2GG", "", "7.00"))}},
		"taken in part, none in order": {op: authorizationCapture, id: "0AW2184448108334S", how: asked(markedBody), holds: answers{authPath: authIn("PARTIALLY_CAPTURED"), orderPath: orderIn("COMPLETED", "M", "captures")}},
		"taken by others":              {op: authorizationCapture, id: "0AW2184448108334S", how: asked(markedBody), holds: answers{authPath: authCaptured, orderPath: orderIn("COMPLETED", "M", "captures", captureUnder("2GG", foreignMark, "12.50"))}},

		"nothing refunded":                {op: captureRefund, id: "3C679366HH908993F", how: asked(`{"amount":{"currency_code":"EUR","value":"5.00"}}`), holds: answers{capturePath: refundIn("COMPLETED"), orderPath: orderIn("COMPLETED", "M", "refunds")}, absent: true},
		"nothing refunded, not ours":      {op: captureRefund, id: "3C679366HH908993F", how: asked(markedBody), holds: answers{capturePath: refundIn("COMPLETED"), orderPath: orderIn("COMPLETED", "OTHER", "refunds")}},
		"another's refund":                {op: captureRefund, id: "3C679366HH908993F", how: asked(markedBody), holds: answers{capturePath: refundIn("PARTIALLY_REFUNDED"), orderPath: orderIn("COMPLETED", "M", "refunds", refundUnder("1JU", foreignMark, "5.00"))}, absent: true},
		"another's, ours never marked":    {op: captureRefund, id: "3C679366HH908993F", how: asked(`{"amount":{"currency_code":"EUR","value":"5.00"},"custom_id":"mine"}`), holds: answers{capturePath: refundIn("PARTIALLY_REFUNDED"), orderPath: orderIn("COMPLETED", "M", "refunds", refundUnder("1JU", foreignMark, "5.00"))}},
		"a refund without a mark":         {op: captureRefund, id: "3C679366HH908993F", how: asked(markedBody), holds: answers{capturePath: refundIn("PARTIALLY_REFUNDED"), orderPath: orderIn("COMPLETED", "M", "refunds", refundUnder("1JU", "", "1.00"))}},
		"a refund of nothing":             {op: captureRefund, id: "3C679366HH908993F", how: asked(markedBody), holds: answers{capturePath: refundIn("COMPLETED"), orderPath: orderIn("COMPLETED", "M", "refunds", withoutParent("1JU"))}},
		"refunded in part, none in order": {op: captureRefund, id: "3C679366HH908993F", how: asked(markedBody), holds: answers{capturePath: refundIn("PARTIALLY_REFUNDED"), orderPath: orderIn("COMPLETED", "M", "refunds")}},
		"refund, the request forgotten":   {op: captureRefund, how: forgotten(""), holds: answers{}},

		"not cancelled":               {op: subscriptionCancel, id: "I-BW452GLLEP1G", holds: answers{subPath: subscriptionIn("ACTIVE", since), userPath: owner}, absent: true},
		"not cancelled, not ours":     {op: subscriptionCancel, id: "I-BW452GLLEP1G", holds: answers{subPath: subscriptionIn("ACTIVE", since), userPath: stranger}},
		"not cancelled, nobody told":  {op: subscriptionCancel, id: "I-BW452GLLEP1G", holds: answers{subPath: subscriptionIn("ACTIVE", since), userPath: `{"user_id":"x"}`}},
		"never suspended":             {op: subscriptionSuspend, id: "I-BW452GLLEP1G", how: sentAt, holds: answers{subPath: subscriptionIn("ACTIVE", before), userPath: owner}, absent: true},
		"active again, perhaps":       {op: subscriptionSuspend, id: "I-BW452GLLEP1G", how: sentAt, holds: answers{subPath: subscriptionIn("ACTIVE", since), userPath: owner}},
		"active, since when unknown":  {op: subscriptionSuspend, id: "I-BW452GLLEP1G", how: sentAt, holds: answers{subPath: subscriptionIn("ACTIVE", ""), userPath: owner}},
		"active, sent when unknown":   {op: subscriptionSuspend, id: "I-BW452GLLEP1G", holds: answers{subPath: subscriptionIn("ACTIVE", before), userPath: owner}},
		"never activated":             {op: subscriptionActivate, id: "I-BW452GLLEP1G", how: sentAt, holds: answers{subPath: subscriptionIn("SUSPENDED", before), userPath: owner}, absent: true},
		"suspended again, perhaps":    {op: subscriptionActivate, id: "I-BW452GLLEP1G", how: sentAt, holds: answers{subPath: subscriptionIn("SUSPENDED", since), userPath: owner}},
		"invoice never sent":          {op: invoiceSend, id: "INV2-1", holds: answers{invPath: invoiceIn("DRAFT", ""), userPath: owner}, absent: true},
		"invoice never sent, another": {op: invoiceSend, id: "INV2-1", holds: answers{invPath: invoiceIn("DRAFT", ""), userPath: stranger}},
		"invoice sent long ago":       {op: invoiceSend, id: "INV2-1", how: sentAt, holds: answers{invPath: invoiceIn("SENT", before), userPath: owner}},
		"invoice not cancelled":       {op: invoiceCancel, id: "INV2-1", holds: answers{invPath: invoiceIn("SENT", before), userPath: owner}, absent: true},
		"invoice paid by hand":        {op: invoiceCancel, id: "INV2-1", holds: answers{invPath: invoiceIn("MARKED_AS_PAID", before), userPath: owner}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := codec{}.Find(t.Context(), c.holds.get, lookup(t, c.op, c.id, c.how))
			if err != nil {
				t.Fatal(err)
			}
			want := outbound.Finding{}
			if c.absent {
				want = absent
			}
			if f != want {
				t.Errorf("finding %+v, want %+v", f, want)
			}
		})
	}
}

// Found by what the states say, beside TestFind.
func TestSentInvoice(t *testing.T) {
	t.Parallel()
	f, err := codec{}.Find(t.Context(), answers{invPath: invoiceIn("PAID", "2026-11-30T12:00:30Z")}.get, lookup(t, invoiceSend, "INV2-1", sentAt))
	if err != nil || f.Effect != outbound.EffectApplied || f.Evidence != rs.ByStateGuard || f.ExternalRef != "INV2-1" {
		t.Fatalf("finding %+v, %v", f, err)
	}
	holdsShape(t, invoiceSend, f.Answer)
}

// C24: that the account cannot be told is an error, and nothing is proved.
func TestAccountCannotBeTold(t *testing.T) {
	t.Parallel()
	holds := answers{subPath: subscriptionIn("ACTIVE", "")} // and no userinfo
	f, err := codec{}.Find(t.Context(), holds.get, lookup(t, subscriptionCancel, "I-BW452GLLEP1G", nil))
	if err == nil || f != (outbound.Finding{}) {
		t.Errorf("finding %+v, %v; want an error and unknown", f, err)
	}
}

// all does several things to a look-up.
func all(hows ...func(*outbound.Lookup)) func(*outbound.Lookup) {
	return func(l *outbound.Lookup) {
		for _, how := range hows {
			how(l)
		}
	}
}
