package paypal_test

import (
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

func TestPartialCaptures(t *testing.T) {
	a := open(t, paypal.Config{})
	id := a.seed(paypal.CreatedAuthorization{Value: "10.00", CustomID: "mark"})
	path := "/v2/payments/authorizations/" + id
	a.get(path).want(200).says("status", "CREATED").says("expiration_time", "2026-12-29T12:00:00Z").says("custom_id", "mark")
	first := a.post(path+"/capture", "1", m{"amount": usd("4.00")}).want(201).says("custom_id", "mark")
	if first.at("final_capture") != false {
		t.Errorf("a capture is final without being asked: %s", first.raw)
	}
	a.get(path).says("status", "PARTIALLY_CAPTURED")
	a.post(path+"/capture", "2", nil).want(422, "MAX_CAPTURE_AMOUNT_EXCEEDED") // an empty body is the whole amount
	a.post(path+"/capture", "3", m{"amount": usd("6.01")}).want(422, "MAX_CAPTURE_AMOUNT_EXCEEDED")
	a.post(path+"/capture", "4", m{"amount": m{"currency_code": "EUR", "value": "1.00"}}).want(422, "AUTH_CAPTURE_CURRENCY_MISMATCH")
	a.post(path+"/capture", "5", m{"amount": usd("6.00")}).want(201)
	a.get(path).says("status", "CAPTURED")
	a.post(path+"/capture", "6", m{"amount": usd("1.00")}).want(422, "AUTHORIZATION_ALREADY_CAPTURED")
	a.post(path+"/void", "7", nil).want(422, "PREVIOUSLY_CAPTURED")
	a.post(path+"/reauthorize", "8", nil).want(422, "AUTHORIZATION_ALREADY_CAPTURED")
	a.effects("authorization.capture", 2)

	id = a.seed(paypal.CreatedAuthorization{Value: "10.00"})
	path = "/v2/payments/authorizations/" + id
	a.post(path+"/capture", "f", m{"amount": usd("4.00"), "final_capture": true}).want(201)
	a.post(path+"/capture", "f2", m{"amount": usd("1.00")}).want(422, "AUTHORIZATION_ALREADY_CAPTURED")
	a.post(path+"/void", "f3", nil).want(422, "PREVIOUSLY_CAPTURED")
}

func TestVoidAndReauthorize(t *testing.T) {
	a := open(t, paypal.Config{TokenLifetime: 1000 * hour})
	id := a.seed(paypal.CreatedAuthorization{})
	path := "/v2/payments/authorizations/" + id
	a.post(path+"/reauthorize", "r", m{"amount": usd("10.00")}).want(422, "REAUTHORIZATION_TOO_SOON")
	a.f.Advance(73 * hour)
	again := a.post(path+"/reauthorize", "r", m{"amount": usd("9.00")}).want(201).says("status", "CREATED").says("amount/value", "9.00")
	if again.text("id") == id {
		t.Error("a reauthorization kept the old id")
	}
	a.post("/v2/payments/authorizations/"+again.text("id")+"/reauthorize", "r2", nil).want(422, "REAUTHORIZATION_NOT_SUPPORTED")
	a.post(path+"/reauthorize", "r3", m{"amount": m{"currency_code": "EUR", "value": "1.00"}}).want(422, "AUTH_CURRENCY_MISMATCH")
	a.post(path+"/void", "v", nil).want(200).says("status", "VOIDED")
	a.post(path+"/void", "v2", nil).want(422, "PREVIOUSLY_VOIDED")
	a.post(path+"/capture", "c", nil).want(422, "AUTHORIZATION_VOIDED")
	a.post(path+"/reauthorize", "r4", nil).want(422, "AUTHORIZATION_VOIDED")
	a.effects("authorization.void", 1)
	a.effects("authorization.reauthorize", 1)

	late := a.seed(paypal.CreatedAuthorization{Age: 29 * 24 * hour})
	a.post("/v2/payments/authorizations/"+late+"/capture", "l", nil).want(422, "AUTHORIZATION_EXPIRED")
	part := a.seed(paypal.CreatedAuthorization{})
	a.post("/v2/payments/authorizations/"+part+"/capture", "p", m{"amount": usd("1.00")}).want(201)
	a.post("/v2/payments/authorizations/"+part+"/void", "p", nil).want(200) // the rest is let go
	for _, call := range []string{"capture", "void", "reauthorize"} {
		a.post("/v2/payments/authorizations/NONE/"+call, "n", nil).want(404, "RESOURCE_NOT_FOUND")
	}
	a.get("/v2/payments/authorizations/NONE").want(404)
}

func TestRefunds(t *testing.T) {
	a := open(t, paypal.Config{})
	id := a.seed(paypal.CompletedCapture{Value: "10.00"})
	path := "/v2/payments/captures/" + id
	first := a.post(path+"/refund", "1", m{"amount": usd("4.00"), "custom_id": "mark", "invoice_id": "ri", "note_to_payer": "sorry"}).
		want(201).says("status", "COMPLETED").says("custom_id", "mark").says("note_to_payer", "sorry")
	a.get("/v2/payments/refunds/"+first.text("id")).want(200).says("amount/value", "4.00").says("invoice_id", "ri")
	a.get(path).says("status", "PARTIALLY_REFUNDED")
	a.post(path+"/refund", "2", m{"amount": usd("6.01")}).want(422, "REFUND_AMOUNT_EXCEEDED")
	a.post(path+"/refund", "3", m{"amount": usd("1.00"), "invoice_id": "ri"}).want(422, "DUPLICATE_INVOICE_ID")
	a.post(path+"/refund", "4", m{"amount": m{"currency_code": "EUR", "value": "1.00"}}).want(422, "REFUND_CAPTURE_CURRENCY_MISMATCH")
	a.post(path+"/refund", "5", `null`).want(201).says("amount/value", "6.00")
	a.get(path).says("status", "REFUNDED")
	a.post(path+"/refund", "6", nil).want(422, "CAPTURE_FULLY_REFUNDED")
	a.effects("capture.refund", 2)
	a.get("/v2/payments/refunds/NONE").want(404)
	a.get("/v2/payments/captures/NONE").want(404)
	a.post("/v2/payments/captures/NONE/refund", "n", nil).want(404)

	yen := a.seed(paypal.CompletedCapture{Value: "1000", Currency: "JPY"})
	a.post("/v2/payments/captures/"+yen+"/refund", "y", m{"amount": m{"currency_code": "JPY", "value": "1.5"}}).want(422, "DECIMALS_NOT_SUPPORTED")
	a.post("/v2/payments/captures/"+yen+"/refund", "y", nil).want(201).says("amount/value", "1000")
}

// Outcomes of what stands under an authorization or a capture.
func TestOutcomesOfCapturesAndRefunds(t *testing.T) {
	a := open(t, paypal.Config{})
	auth := a.seed(paypal.CreatedAuthorization{Outcome: "DECLINED"})
	a.post("/v2/payments/authorizations/"+auth+"/capture", "1", nil).want(201).says("status", "DECLINED")
	a.get("/v2/payments/authorizations/"+auth).says("status", "CREATED")
	a.effects("authorization.capture", 0)
	auth = a.seed(paypal.CreatedAuthorization{Outcome: "PENDING"})
	pending := a.post("/v2/payments/authorizations/"+auth+"/capture", "2", nil).want(201).says("status", "PENDING")
	a.effects("authorization.capture", 1)
	a.post("/v2/payments/captures/"+pending.text("id")+"/refund", "3", nil).want(422, "PENDING_CAPTURE")
	auth = a.seed(paypal.CreatedAuthorization{Outcome: "INSTRUMENT_DECLINED"})
	a.post("/v2/payments/authorizations/"+auth+"/capture", "4", nil).want(422, "INSTRUMENT_DECLINED")

	order := a.seed(paypal.ApprovedOrder{Outcome: "DECLINED"})
	declined := a.post("/v2/checkout/orders/"+order+"/capture", "5", nil).want(201)
	capture := declined.text("purchase_units/0/payments/captures/0/id")
	a.post("/v2/payments/captures/"+capture+"/refund", "6", nil).want(422, "REFUND_NOT_ALLOWED")
	order = a.seed(paypal.ApprovedOrder{Intent: "AUTHORIZE", Outcome: "DENIED"})
	denied := a.post("/v2/checkout/orders/"+order+"/authorize", "7", nil).want(201)
	id := denied.text("purchase_units/0/payments/authorizations/0/id")
	a.post("/v2/payments/authorizations/"+id+"/capture", "8", nil).want(422, "AUTHORIZATION_DENIED")
	a.post("/v2/payments/authorizations/"+id+"/void", "8", nil).want(422, "AUTHORIZATION_DENIED")

	for outcome, effects := range map[string]int{"FAILED": 0, "CANCELLED": 0, "PENDING": 1} {
		before := a.f.Effects("capture.refund")
		c := a.seed(paypal.CompletedCapture{RefundOutcome: outcome})
		a.post("/v2/payments/captures/"+c+"/refund", "r"+outcome, nil).want(201).says("status", outcome)
		a.effects("capture.refund", before+effects)
		want := "REFUNDED"
		if effects == 0 {
			want = "COMPLETED"
		}
		a.get("/v2/payments/captures/"+c).says("status", want)
	}
}

func TestAmounts(t *testing.T) {
	a := open(t, paypal.Config{})
	for value, issue := range map[any]string{
		"1": "", "1.5": "", ".5": "", "001.00": "", "999999999999.99": "",
		"":              "MISSING_REQUIRED_PARAMETER",
		"0":             "CANNOT_BE_ZERO_OR_NEGATIVE",
		"0.00":          "CANNOT_BE_ZERO_OR_NEGATIVE",
		"-1.00":         "CANNOT_BE_ZERO_OR_NEGATIVE",
		"1.001":         "DECIMAL_PRECISION",
		"1.":            "INVALID_PARAMETER_SYNTAX",
		"-":             "INVALID_PARAMETER_SYNTAX",
		"1e3":           "INVALID_PARAMETER_SYNTAX",
		"1,00":          "INVALID_PARAMETER_SYNTAX",
		"1.0.0":         "INVALID_PARAMETER_SYNTAX",
		"٣":             "INVALID_PARAMETER_SYNTAX",
		"NaN":           "INVALID_PARAMETER_SYNTAX",
		1.5:             "INVALID_PARAMETER_SYNTAX", // a float
		nil:             "MISSING_REQUIRED_PARAMETER",
		"1234567890123": "INVALID_STRING_MAX_LENGTH",
	} {
		status := 201
		switch issue {
		case "":
		case "CANNOT_BE_ZERO_OR_NEGATIVE", "DECIMAL_PRECISION":
			status = 422
		default:
			status = 400
		}
		body := m{"intent": "CAPTURE", "purchase_units": []m{{"amount": m{"currency_code": "USD", "value": value}}}}
		got := a.post("/v2/checkout/orders", "", body).want(status)
		if issue != "" {
			got.want(status, issue)
		}
	}
	body := m{"intent": "CAPTURE", "purchase_units": []m{{"amount": m{"currency_code": "XXX", "value": "1.00"}}}}
	a.post("/v2/checkout/orders", "", body).want(422, "CURRENCY_NOT_SUPPORTED")
}
