package paypal_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

func TestOrderLife(t *testing.T) {
	a := open(t, paypal.Config{})
	body := m{"intent": "CAPTURE", "purchase_units": []m{{"reference_id": "u1", "amount": usd("12.30"), "custom_id": "mark", "invoice_id": "inv-1", "description": "Shoes"}}}
	created := a.post("/v2/checkout/orders", "c", body).want(201).says("status", "CREATED").
		says("create_time", "2026-11-30T12:00:00Z").says("purchase_units/0/description", "Shoes")
	id := created.text("id")
	if !regexp.MustCompile(`^[0-9A-Z]{17}$`).MatchString(id) {
		t.Errorf("order id %q is not 17 upper-case alphanumerics", id)
	}
	if created.link("approve") == "" || created.link("capture") != a.url+"/v2/checkout/orders/"+id+"/capture" {
		t.Errorf("links are wrong: %s", created.raw)
	}
	if got := created.header.Get("Date"); got != "Mon, 30 Nov 2026 12:00:00 GMT" {
		t.Errorf("Date is %q, not the provider's clock", got)
	}
	path := "/v2/checkout/orders/" + id
	a.post(path+"/capture", "k", nil).want(422, "ORDER_NOT_APPROVED")
	a.post(path+"/authorize", "k", nil).want(422, "ACTION_DOES_NOT_MATCH_INTENT")
	a.seed(paypal.Approval{ID: id})
	a.get(path).want(200).says("status", "APPROVED").says("payer/email_address", "payer@example.com")
	a.f.Advance(hour)
	got := a.post(path+"/capture", "k", nil).want(201).says("status", "COMPLETED").says("intent", "CAPTURE").
		says("purchase_units/0/payments/captures/0/custom_id", "mark").
		says("purchase_units/0/payments/captures/0/invoice_id", "inv-1").
		says("purchase_units/0/payments/captures/0/amount/value", "12.30").
		says("purchase_units/0/payments/captures/0/create_time", "2026-11-30T13:00:00Z").
		says("create_time", "2026-11-30T12:00:00Z").says("update_time", "2026-11-30T13:00:00Z")
	capture := got.text("purchase_units/0/payments/captures/0/id")
	a.get("/v2/payments/captures/"+capture).want(200).says("status", "COMPLETED").
		says("supplementary_data/related_ids/order_id", id)
	a.post(path+"/capture", "k2", nil).want(422, "ORDER_ALREADY_CAPTURED")
	a.get(path).want(200).says("purchase_units/0/payments/captures/0/id", capture)
	a.get("/v2/checkout/orders/NONE").want(404, "RESOURCE_NOT_FOUND").says("details/0/issue", "INVALID_RESOURCE_ID")
	a.effects("order.capture", 1)
	a.effects("order.create", 1)
}

// Prefer: minimal has id, status and links; the payments, once there are any.
func TestPrefer(t *testing.T) {
	a := open(t, paypal.Config{})
	small := a.post("/v2/checkout/orders", "", orderBody("1.00"), "Prefer", "return=minimal").want(201)
	if small.at("purchase_units") != nil || small.at("create_time") != nil || small.text("id") == "" || small.link("self") == "" {
		t.Errorf("the minimal order is %s", small.raw)
	}
	order := a.seed(paypal.ApprovedOrder{})
	got := a.post("/v2/checkout/orders/"+order+"/capture", "k", nil, "Prefer", "").want(201)
	if got.text("purchase_units/0/payments/captures/0/status") != "COMPLETED" || got.at("purchase_units/0/amount") != nil {
		t.Errorf("the minimal capture is %s", got.raw)
	}
	auth := a.seed(paypal.CreatedAuthorization{})
	got = a.post("/v2/payments/authorizations/"+auth+"/capture", "k", nil, "Prefer", "").want(201)
	if got.at("amount") != nil || got.text("status") != "COMPLETED" {
		t.Errorf("the minimal authorization capture is %s", got.raw)
	}
	auth = a.seed(paypal.CreatedAuthorization{})
	void := "/v2/payments/authorizations/" + auth + "/void"
	if got = a.post(void, "v", nil, "Prefer", "").want(204); got.raw != "" {
		t.Errorf("a 204 has the body %q", got.raw)
	}
	a.post(void, "v", nil, "Prefer", "").want(204)
	a.post(void, "v", nil, "Prefer", "handling=strict, return=representation").want(200).says("status", "VOIDED")
	a.effects("authorization.void", 1)
}

// An order with a payment source needs a request id, and is paid at once where
// the source needs no payer. No card number is kept.
func TestOrderWithPaymentSource(t *testing.T) {
	a := open(t, paypal.Config{})
	body := orderBody("5.00")
	body["payment_source"] = m{"card": m{"number": "4111111111111111", "security_code": "987", "expiry": "2030-01", "name": "Pat"}}
	a.post("/v2/checkout/orders", "", body).want(400, "PAYPAL_REQUEST_ID_REQUIRED").says("name", "INVALID_REQUEST")
	a.effects("", 0)
	got := a.post("/v2/checkout/orders", "k", body).want(201).says("status", "COMPLETED").
		says("payment_source/card/last_digits", "1111").says("purchase_units/0/payments/captures/0/status", "COMPLETED")
	a.effects("order.create", 1)
	for _, e := range a.f.Events() {
		got.raw += string(e.Object)
	}
	if strings.Contains(got.raw, "411111") || strings.Contains(got.raw, "987") {
		t.Error("the card number or its security code came back")
	}
	a.post("/v2/checkout/orders", "k2", body, "PayPal-Mock-Response", `{"mock_application_codes":"DECLINED"}`).want(201).
		says("purchase_units/0/payments/captures/0/status", "DECLINED")
	a.effects("order.create", 1) // a decline is no effect
	a.post("/v2/checkout/orders", "k3", body, "PayPal-Mock-Response", `{"mock_application_codes":"INSTRUMENT_DECLINED"}`).
		want(422, "INSTRUMENT_DECLINED")

	body["payment_source"] = m{"paypal": m{"experience_context": m{}}}
	wallet := a.post("/v2/checkout/orders", "k4", body).want(201).says("status", "PAYER_ACTION_REQUIRED")
	if wallet.link("payer-action") == "" {
		t.Error("there is no payer-action link")
	}
	path := "/v2/checkout/orders/" + wallet.text("id")
	a.post(path+"/capture", "c", nil).want(422, "PAYER_ACTION_REQUIRED")
	a.post(path+"/capture", "c", m{"payment_source": m{"token": m{"id": "T", "type": "PAYMENT_METHOD_TOKEN"}}}).want(201)
	body["payment_source"] = m{"paypal": m{"vault_id": "V"}}
	a.post("/v2/checkout/orders", "k5", body).want(201).says("status", "COMPLETED")
	body["payment_source"] = m{"card": m{}, "paypal": m{}}
	a.post("/v2/checkout/orders", "k6", body).want(400, "INVALID_PARAMETER_VALUE")
}

func TestConfirmPaymentSource(t *testing.T) {
	a := open(t, paypal.Config{})
	id := a.post("/v2/checkout/orders", "", orderBody("5.00")).want(201).text("id")
	path := "/v2/checkout/orders/" + id
	wallet := m{"payment_source": m{"paypal": m{"email_address": "a@example.com"}}}
	a.post(path+"/confirm-payment-source", "k", wallet).want(200).says("status", "PAYER_ACTION_REQUIRED")
	a.post(path+"/confirm-payment-source", "k", wallet).want(200)
	a.effects("order.confirm_payment_source", 1) // nothing changed the second time
	if n := a.f.EffectsOfKey("k"); n != 0 {
		t.Errorf("a call that takes no request id has %d effects under one", n)
	}
	a.post(path+"/confirm-payment-source", "", m{"payment_source": m{"card": m{"number": "4111111111111111"}}}).
		want(200).says("status", "APPROVED")
	a.post(path+"/confirm-payment-source", "", m{}).want(400, "MISSING_REQUIRED_PARAMETER")
	a.post(path+"/capture", "c", nil).want(201)
	a.post(path+"/confirm-payment-source", "", wallet).want(422, "ORDER_ALREADY_CAPTURED")
	done := a.seed(paypal.ApprovedOrder{Intent: "AUTHORIZE"})
	a.post("/v2/checkout/orders/"+done+"/authorize", "k", nil).want(201)
	a.post("/v2/checkout/orders/"+done+"/confirm-payment-source", "", wallet).want(422, "ORDER_ALREADY_AUTHORIZED")
	a.post("/v2/checkout/orders/"+done+"/authorize", "k2", nil).want(422, "ORDER_ALREADY_AUTHORIZED")
}

func TestPatchOrder(t *testing.T) {
	a := open(t, paypal.Config{})
	id := a.post("/v2/checkout/orders", "", orderBody("5.00")).want(201).text("id")
	path := "/v2/checkout/orders/" + id
	unit := "/purchase_units/@reference_id=='default'/"
	patch := func(list ...m) answer { return a.call(http.MethodPatch, path, "", list) }
	patch(m{"op": "replace", "path": unit + "amount", "value": usd("7.00")},
		m{"op": "add", "path": unit + "invoice_id", "value": "inv"},
		m{"op": "remove", "path": unit + "custom_id"}).want(204)
	got := a.get(path).says("purchase_units/0/amount/value", "7.00").says("purchase_units/0/invoice_id", "inv")
	if got.at("purchase_units/0/custom_id") != nil {
		t.Error("custom_id was not removed")
	}
	a.effects("order.patch", 1)
	patch(m{"op": "replace", "path": unit + "amount", "value": usd("7.00")}).want(204)
	a.effects("order.patch", 1) // no change, no effect

	// All of it happens, or none.
	patch(m{"op": "replace", "path": unit + "amount", "value": usd("9.00")},
		m{"op": "replace", "path": "/status", "value": "COMPLETED"}).want(422, "NOT_PATCHABLE")
	patch(m{"op": "replace", "path": "/purchase_units/@reference_id=='other'/amount", "value": usd("9.00")}).
		want(422, "INVALID_PATCH_OPERATION")
	patch(m{"op": "replace", "path": unit + "amount", "value": usd("-9.00")}).want(422, "CANNOT_BE_ZERO_OR_NEGATIVE")
	patch(m{"op": "replace", "path": unit + "custom_id", "value": 7}).want(400)
	patch(m{"op": "jump", "path": "/intent", "value": "CAPTURE"}).want(400)
	patch(m{"op": "replace", "path": "/intent"}).want(400, "MISSING_REQUIRED_PARAMETER")
	patch().want(400)
	a.get(path).says("purchase_units/0/amount/value", "7.00")
	patch(m{"op": "replace", "path": "/intent", "value": "AUTHORIZE"}).want(204)
	a.seed(paypal.Approval{ID: id})
	a.post(path+"/authorize", "k", nil).want(201).says("purchase_units/0/payments/authorizations/0/status", "CREATED").
		says("purchase_units/0/payments/authorizations/0/amount/value", "7.00")
	patch(m{"op": "replace", "path": unit + "amount", "value": usd("8.00")}).want(422, "ORDER_ALREADY_COMPLETED")
	a.call(http.MethodPatch, "/v2/checkout/orders/NONE", "", []m{}).want(404)
}

// What a 2xx can hide, by seed and by the sandbox's header. A decline and a
// refusal are no effect; a pending payment is one.
func TestOutcomesOfOrderPayments(t *testing.T) {
	for _, c := range []struct {
		intent, outcome, path, status string
		effects                       int
	}{
		{"CAPTURE", "DECLINED", "captures", "DECLINED", 0},
		{"CAPTURE", "FAILED", "captures", "FAILED", 0},
		{"CAPTURE", "PENDING", "captures", "PENDING", 1},
		{"AUTHORIZE", "DENIED", "authorizations", "DENIED", 0},
		{"AUTHORIZE", "PENDING", "authorizations", "PENDING", 1},
	} {
		a := open(t, paypal.Config{})
		op := strings.ToLower(c.intent)
		at := "purchase_units/0/payments/" + c.path + "/0/status"
		seeded := a.seed(paypal.ApprovedOrder{Intent: c.intent, Outcome: c.outcome})
		a.post("/v2/checkout/orders/"+seeded+"/"+op, "k", nil).want(201).says(at, c.status)
		a.post("/v2/checkout/orders/"+seeded+"/"+op, "k", nil).want(200).says(at, c.status)
		a.effects("order."+op, c.effects)
		mocked := a.seed(paypal.ApprovedOrder{Intent: c.intent})
		a.post("/v2/checkout/orders/"+mocked+"/"+op, "k2", nil, "PayPal-Mock-Response", `{"mock_application_codes":["`+c.outcome+`"]}`).
			want(201).says(at, c.status)
		a.effects("order."+op, 2*c.effects)
	}
}

func TestMockResponse(t *testing.T) {
	a := open(t, paypal.Config{})
	path := "/v2/checkout/orders/" + a.seed(paypal.ApprovedOrder{}) + "/capture"
	for code, status := range map[string]int{
		"DUPLICATE_INVOICE_ID": 422, "INSTRUMENT_DECLINED": 422, "PAYER_ACTION_REQUIRED": 422, "ANYTHING_ELSE": 422,
		"MISSING_REQUIRED_PARAMETER": 400, "INTERNAL_SERVER_ERROR": 500, "SERVICE_UNAVAILABLE": 503,
		"RATE_LIMIT_REACHED": 429, "NOT_AUTHORIZED": 403, "INVALID_RESOURCE_ID": 404, "PREVIOUS_REQUEST_IN_PROGRESS": 409,
	} {
		a.post(path, "k", nil, "PayPal-Mock-Response", `{"mock_application_codes":"`+code+`"}`).want(status, code)
	}
	for _, bad := range []string{"x", "{}", `{"mock_application_codes":7}`, `{"mock_application_codes":[]}`, `[]`} {
		a.post(path, "k", nil, "PayPal-Mock-Response", bad).want(400, "INVALID_PARAMETER_VALUE")
	}
	a.effects("", 0)
	a.post(path, "k", nil).want(201)
}

// C20: an invoice id that another payment carries is refused.
func TestDuplicateInvoiceID(t *testing.T) {
	a := open(t, paypal.Config{})
	a.seed(paypal.CompletedCapture{InvoiceID: "inv-1"})
	order := a.seed(paypal.ApprovedOrder{InvoiceID: "inv-1"})
	a.post("/v2/checkout/orders/"+order+"/capture", "k", nil).want(422, "DUPLICATE_INVOICE_ID")
	a.get("/v2/checkout/orders/"+order).says("status", "APPROVED")
	a.effects("order.capture", 0)

	auth := a.seed(paypal.CreatedAuthorization{InvoiceID: "inv-2"})
	path := "/v2/payments/authorizations/" + auth + "/capture"
	a.post(path, "k", m{"amount": usd("1.00"), "invoice_id": "inv-1"}).want(422, "DUPLICATE_INVOICE_ID")
	a.post(path, "k", m{"amount": usd("1.00")}).want(201).says("invoice_id", "inv-2") // its own, inherited
	a.post(path, "k2", m{"amount": usd("1.00"), "invoice_id": "inv-3", "custom_id": "c"}).want(201).says("invoice_id", "inv-3").says("custom_id", "c")
	a.post(path, "k3", m{"amount": usd("1.00"), "invoice_id": "inv-3"}).want(422, "DUPLICATE_INVOICE_ID")
}
