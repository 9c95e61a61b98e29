package paypal

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
)

var testCommand = outbound.Command{ID: "cmd_1"}

func TestConstructors(t *testing.T) {
	t.Parallel()
	body := map[string]any{"intent": "CAPTURE"}
	for _, c := range []struct {
		call         outbound.Call
		name, target string
		body         string
	}{
		{OrderCreate(testCommand, body), "order.create", "/v2/checkout/orders", `{"intent":"CAPTURE"}`},
		{OrderAuthorize(testCommand, "O1", nil), "order.authorize", "/v2/checkout/orders/O1/authorize", `{}`},
		{OrderCapture(testCommand, "O1", nil), "order.capture", "/v2/checkout/orders/O1/capture", `{}`},
		{OrderPatch(testCommand, "O1", []any{}), "order.patch", "/v2/checkout/orders/O1", `[]`},
		{OrderConfirmPaymentSource(testCommand, "O1", body), "order.confirm_payment_source", "/v2/checkout/orders/O1/confirm-payment-source", `{"intent":"CAPTURE"}`},
		{AuthorizationCapture(testCommand, "A1", nil), "authorization.capture", "/v2/payments/authorizations/A1/capture", `{}`},
		{AuthorizationReauthorize(testCommand, "A1", nil), "authorization.reauthorize", "/v2/payments/authorizations/A1/reauthorize", `{}`},
		{AuthorizationVoid(testCommand, "A1"), "authorization.void", "/v2/payments/authorizations/A1/void", ``},
		{CaptureRefund(testCommand, "C1", RefundRequest{Amount: Money{"EUR", "12.50"}}), "capture.refund", "/v2/payments/captures/C1/refund", `{"amount":{"currency_code":"EUR","value":"12.50"}}`},
		{PayoutCreate(testCommand, body), "payout.create", "/v1/payments/payouts", `{"intent":"CAPTURE"}`},
		{SubscriptionCreate(testCommand, body), "subscription.create", "/v1/billing/subscriptions", `{"intent":"CAPTURE"}`},
		{SubscriptionActivate(testCommand, "I-1", ""), "subscription.activate", "/v1/billing/subscriptions/I-1/activate", `{}`},
		{SubscriptionSuspend(testCommand, "I-1", "asked"), "subscription.suspend", "/v1/billing/subscriptions/I-1/suspend", `{"reason":"asked"}`},
		{SubscriptionCancel(testCommand, "I-1", "asked"), "subscription.cancel", "/v1/billing/subscriptions/I-1/cancel", `{"reason":"asked"}`},
		{PlanCreate(testCommand, body), "plan.create", "/v1/billing/plans", `{"intent":"CAPTURE"}`},
		{ProductCreate(testCommand, body), "product.create", "/v1/catalogs/products", `{"intent":"CAPTURE"}`},
		{SetupTokenCreate(testCommand, body), "setup_token.create", "/v3/vault/setup-tokens", `{"intent":"CAPTURE"}`},
		{PaymentTokenCreate(testCommand, body), "payment_token.create", "/v3/vault/payment-tokens", `{"intent":"CAPTURE"}`},
		{InvoiceCreate(testCommand, body), "invoice.create", "/v2/invoicing/invoices", `{"intent":"CAPTURE"}`},
		{InvoiceSend(testCommand, "INV2-1", nil), "invoice.send", "/v2/invoicing/invoices/INV2-1/send", `{}`},
		{InvoiceCancel(testCommand, "INV2-1", nil), "invoice.cancel", "/v2/invoicing/invoices/INV2-1/cancel", `{}`},
	} {
		if c.call.Err != nil || c.call.Operation != c.name || c.call.Command != testCommand || c.call.Message.Target != c.target || string(c.call.Message.Body) != c.body {
			t.Errorf("%s: %+v, want %s with %s", c.name, c.call, c.target, c.body)
		}
	}
	for name, call := range map[string]outbound.Call{
		"no id":         OrderCapture(testCommand, "", nil),
		"a float":       OrderCreate(testCommand, map[string]any{"amount": 12.5}),
		"a channel":     PayoutCreate(testCommand, make(chan int)),
		"no amount":     CaptureRefund(testCommand, "C1", RefundRequest{}),
		"a path for id": AuthorizationVoid(testCommand, "../x"),
	} {
		if call.Err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMoney(t *testing.T) {
	t.Parallel()
	for _, good := range []Money{{"EUR", "12.50"}, {"JPY", "1250"}, {"TND", "0.001"}} {
		if err := good.check(); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for _, bad := range []Money{
		{}, {"EUR", ""}, {"EUR", "-1.00"}, {"EUR", "+1"}, {"EUR", "1e3"}, {"EUR", "1,50"}, {"EUR", "0.00"}, {"EUR", ".5"}, {"EUR", "5."},
		{"EUR", " 1"}, {"EUR", "٣"}, {"EUR", strings.Repeat("9", 40)}, {"", "1.00"}, {"eur", "1.00"}, {"EURO", "1.00"},
	} {
		if bad.check() == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	for _, c := range []struct {
		a, b Money
		same bool
	}{
		{Money{"EUR", "12.50"}, Money{"EUR", "12.5"}, true},
		{Money{"EUR", "012.50"}, Money{"EUR", "12.500"}, true},
		{Money{"EUR", "12.50"}, Money{"EUR", "12.51"}, false},
		{Money{"EUR", "12.50"}, Money{"USD", "12.50"}, false},
		{Money{"EUR", "x"}, Money{"EUR", "x"}, false},
	} {
		if c.a.equal(c.b) != c.same {
			t.Errorf("%v equal %v: want %t", c.a, c.b, c.same)
		}
	}
}

// A refund without an amount is refused, under a drop-in too.
func TestCheckRefund(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body, says string
	}{
		"fine":          {`{"amount":{"currency_code":"EUR","value":"1.00"}}`, ""},
		"empty":         {``, "state the refund's amount"},
		"empty object":  {`{}`, "state the refund's amount"},
		"null amount":   {`{"amount":null}`, "state the refund's amount"},
		"number":        {`{"amount":{"currency_code":"EUR","value":1.00}}`, "two strings"},
		"no value":      {`{"amount":{"currency_code":"EUR"}}`, "decimal string"},
		"no currency":   {`{"amount":{"value":"1.00"}}`, "currency_code"},
		"broken":        {`{"amount"`, "two strings"},
		"not an object": {`[]`, "two strings"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := codec{}.Check(captureRefund, outbound.Message{Body: []byte(c.body)})
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("err = %v, want it to say %q", err, c.says)
			}
		})
	}
	if err := (codec{}).Check(orderCapture, outbound.Message{}); err != nil {
		t.Errorf("another operation is checked: %v", err)
	}
}

// What is answered in PayPal's place is PayPal's JSON, and reads as what it is.
func TestRefuse(t *testing.T) {
	t.Parallel()
	for status, c := range map[int]struct {
		code        outbound.Code
		name, issue string
	}{
		http.StatusBadRequest:          {outbound.ErrFingerprintConflict, "INVALID_REQUEST", "SAMEKEY_FINGERPRINT_CONFLICT"},
		http.StatusConflict:            {outbound.ErrInFlight, "RESOURCE_CONFLICT", "PREVIOUS_REQUEST_IN_PROGRESS"},
		http.StatusInternalServerError: {outbound.ErrUncertain, "INTERNAL_SERVER_ERROR", "SAMEKEY_UNCERTAIN"},
		http.StatusBadGateway:          {outbound.ErrUncertain, "INTERNAL_SERVER_ERROR", "SAMEKEY_UNCERTAIN"},
		http.StatusServiceUnavailable:  {outbound.ErrStore, "SERVICE_UNAVAILABLE", "SAMEKEY_STORE"},
		http.StatusUnauthorized:        {outbound.ErrAuth, "AUTHENTICATION_FAILURE", "SAMEKEY_AUTH"},
		http.StatusForbidden:           {outbound.ErrForbidden, "NOT_AUTHORIZED", "SAMEKEY_FORBIDDEN"},
		http.StatusNotFound:            {outbound.ErrRejected, "RESOURCE_NOT_FOUND", "SAMEKEY_REJECTED"},
		http.StatusTooManyRequests:     {outbound.ErrRateLimited, "RATE_LIMIT_REACHED", "SAMEKEY_RATE_LIMITED"},
		http.StatusUnprocessableEntity: {outbound.ErrRefused, "UNPROCESSABLE_ENTITY", "SAMEKEY_REFUSED"},
	} {
		a := codec{}.Refuse(&outbound.Error{Code: c.code, RequestID: "f0e1"}, status)
		var body struct {
			Name, Message string
			DebugID       string `json:"debug_id"`
			Details       []struct{ Issue, Description string }
			Links         []any
		}
		if err := json.Unmarshal(a.Body, &body); err != nil {
			t.Fatalf("%d: %v", status, err)
		}
		if a.Status != status || body.Name != c.name || body.DebugID != "f0e1" || len(body.Details) != 1 || body.Details[0].Issue != c.issue || body.Message == "" || body.Links == nil {
			t.Errorf("%d: %s", status, a.Body)
		}
	}
}

func replyOf(operation, body string) *outbound.Reply {
	return &outbound.Reply{Operation: operation, Body: []byte(body)}
}

func TestReaders(t *testing.T) {
	t.Parallel()
	fromOrder, err := CaptureOf(replyOf("order.capture", orderPaid))
	if err != nil || fromOrder != (Capture{"3C679366HH908993F", "COMPLETED", Money{"EUR", "12.50"}}) {
		t.Errorf("capture from an order: %+v, %v", fromOrder, err)
	}
	own, err := CaptureOf(replyOf("authorization.capture", captured))
	if err != nil || own != (Capture{"2GG279541U471931P", "COMPLETED", Money{"EUR", "12.50"}}) {
		t.Errorf("capture: %+v, %v", own, err)
	}
	held, err := AuthorizationOf(replyOf("order.authorize", orderHeld))
	if err != nil || held.ID != "0AW2184448108334S" || held.Status != "CREATED" {
		t.Errorf("authorization from an order: %+v, %v", held, err)
	}
	void, err := AuthorizationOf(replyOf("authorization.void", voided))
	if err != nil || void.Status != "VOIDED" {
		t.Errorf("authorization: %+v, %v", void, err)
	}
	refund, err := RefundOf(replyOf("capture.refund", refundDone))
	if err != nil || refund.ID != "1JU08902781691411" {
		t.Errorf("refund: %+v, %v", refund, err)
	}
	payout, err := PayoutOf(replyOf("payout.create", payoutPending))
	if err != nil || payout != (Payout{"5UXD2E8A7EBQJ", "PENDING"}) {
		t.Errorf("payout: %+v, %v", payout, err)
	}
	order, err := OrderOf(replyOf("order.capture", orderPartly))
	if err != nil || order.ID != "5O190127TN364715T" || len(order.Captures) != 2 || order.Captures[1].Status != "FAILED" {
		t.Errorf("order: %+v, %v", order, err)
	}
}

// A reader never gives an object that is not there.
func TestReadersRefuse(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func() error{
		"several captures":  func() error { _, err := CaptureOf(replyOf("order.capture", orderPartly)); return err },
		"no capture":        func() error { _, err := CaptureOf(replyOf("order.capture", orderMinimal)); return err },
		"other operation":   func() error { _, err := CaptureOf(replyOf("capture.refund", refundDone)); return err },
		"no reply":          func() error { _, err := CaptureOf(nil); return err },
		"void without body": func() error { _, err := AuthorizationOf(replyOf("authorization.void", "")); return err },
		"authorization":     func() error { _, err := AuthorizationOf(replyOf("order.authorize", orderMinimal)); return err },
		"refund page":       func() error { _, err := RefundOf(replyOf("capture.refund", htmlPage)); return err },
		"payout":            func() error { _, err := PayoutOf(replyOf("payout.create", `{}`)); return err },
		"payout of nothing": func() error { _, err := PayoutOf(nil); return err },
		"order page":        func() error { _, err := OrderOf(replyOf("order.create", htmlPage)); return err },
		"broken order":      func() error { _, err := CaptureOf(replyOf("order.capture", `{"id":`)); return err },
		"broken order held": func() error { _, err := AuthorizationOf(replyOf("order.authorize", `{"id":`)); return err },
		"no order":          func() error { _, err := OrderOf(replyOf("payout.create", payoutPending)); return err },
	} {
		if err := read(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: err = %v, want one line", name, err)
		}
	}
}
