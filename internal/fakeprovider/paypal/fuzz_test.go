package paypal_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

// planted puts an object of each kind in place and returns what replaces their
// ids in a fuzzed request: "ORDER1" is an approved order.
func planted(t *testing.T, fake *fakeprovider.Fake) *strings.Replacer {
	t.Helper()
	var pairs []string
	for name, object := range map[string]any{
		"ORDER1": paypal.ApprovedOrder{}, "ORDER2": paypal.ApprovedOrder{Intent: "AUTHORIZE"}, "AUTH1": paypal.CreatedAuthorization{},
		"CAPTURE1": paypal.CompletedCapture{}, "P-1": paypal.ActivePlan{}, "I-1": paypal.ActiveSubscription{}, "SETUP1": paypal.ApprovedSetupToken{},
	} {
		id, err := fake.Seed(object)
		if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, name, id)
	}
	return strings.NewReplacer(pairs...)
}

// Whatever is seeded by the admin API, it is put in place, or refused with a
// reason, and the fake goes on.
func FuzzSeeds(f *testing.F) {
	for _, body := range []string{
		`{"type":"approved_order","object":{"value":"12.50","currency":"EUR","outcome":"INSTRUMENT_DECLINED"}}`,
		`{"type":"created_authorization","object":{"value":"-0.001","age":"96h"}}`,
		`{"type":"created_authorization","object":{"Age":-9223372036854775808}}`,
		`{"type":"completed_capture","object":{"value":"99999999999999999999","currency":"JPY"}}`,
		`{"type":"active_subscription","object":{"PlanID":"P-ghost","Status":"x"}}`,
		`{"type":"approval","object":{"id":"ghost"}}`, `{"type":"revoked_tokens","object":null}`,
		`{"type":"ghost","object":[]}`, `[]`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		fake := fakeprovider.New(paypal.New(paypal.Config{}), nil)
		defer fake.Close()
		w := httptest.NewRecorder()
		fake.Admin().ServeHTTP(w, httptest.NewRequest("POST", "http://paypal.test/seed", strings.NewReader(body)))
		var answer struct{ ID, Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 && w.Code/100 != 4 || w.Code/100 == 4 != (answer.Error != "") {
			t.Fatalf("%d: %q", w.Code, w.Body)
		}
		if fake.Effects("") != 0 {
			t.Fatal("a seed counts as an effect")
		}
	})
}

// Whatever arrives, the fake answers in PayPal's own shape and never with a 5xx,
// unless PayPal-Mock-Response asks for one.
func FuzzRequests(f *testing.F) {
	unit := `{"amount":{"currency_code":"EUR","value":"12.50"},"custom_id":"c"}`
	for _, s := range []struct{ method, path, kind, body string }{
		{"POST", "/v2/checkout/orders", "application/json", `{"intent":"CAPTURE","purchase_units":[` + unit + `]}`},
		{"POST", "/v2/checkout/orders", "application/json", `{"intent":"AUTHORIZE","purchase_units":[` + unit + `],"payment_source":{"card":{"number":"4111111111111111"}}}`},
		{"POST", "/v2/checkout/orders", "application/json", `{"intent":7,"purchase_units":[[{"amount":{"value":1e999}}]]}`},
		{"PATCH", "/v2/checkout/orders/ORDER1", "application/json", `[{"op":"replace","path":"/intent","value":"CAPTURE"}]`},
		{"POST", "/v2/checkout/orders/ORDER1/capture", "application/json", `{}`},
		{"POST", "/v2/payments/captures/CAPTURE1/refund", "application/json", `{"amount":{"currency_code":"EUR","value":"-0.001"}}`},
		{"POST", "/v2/checkout/orders/ORDER2/authorize", "application/json", `null`},
		{"POST", "/v2/checkout/orders/ORDER1/confirm-payment-source", "application/json", `{"payment_source":{"token":{"id":[]}}}`},
		{"POST", "/v2/payments/authorizations/AUTH1/capture", "application/json", `{"amount":{"currency_code":"USD","value":"1.00"},"final_capture":"x"}`},
		{"POST", "/v1/billing/subscriptions/I-1/suspend", "application/json", `{"reason":{}}`},
		{"POST", "/v3/vault/payment-tokens", "application/json", `{"payment_source":{"token":{"id":"SETUP1","type":"SETUP_TOKEN"}}}`},
		{"POST", "/v1/payments/payouts", "application/json", `{"sender_batch_header":{"sender_batch_id":"b"},"items":[{"recipient_type":"EMAIL","receiver":"a@example.com","amount":{"currency":"EUR","value":"1.00"}}]}`},
		{"POST", "/v1/billing/subscriptions", "application/json", `{"plan_id":"P-1"}`},
		{"POST", "/v3/vault/setup-tokens", "application/json", `{"payment_source":{"card":{}}}`},
		{"POST", "/v2/invoicing/invoices", "application/json", `{"detail":{"currency_code":"EUR"},"items":[{"name":"x","quantity":"1","unit_amount":{"currency_code":"EUR","value":"1"}}]}`},
		{"POST", "/v2/invoicing/search-invoices", "application/json", `{"invoice_number":{}}`},
		{"POST", "/v1/notifications/verify-webhook-signature", "application/json", `{"webhook_event":{},"auth_algo":"SHA256withRSA","cert_url":"x","transmission_id":"t","transmission_time":"t","transmission_sig":"!","webhook_id":"w"}`},
		{"POST", "/v1/oauth2/token", "application/x-www-form-urlencoded", "grant_type=client_credentials"},
		{"POST", "/v2/checkout/orders", "multipart/form-data; boundary=b", "--b\r\n\r\nx\r\n--b--"},
		{"GET", "/v1/reporting/transactions?start_date=2026-01-01T00:00:00Z&end_date=x&page=-1", "", ""},
		{"GET", "/v3/vault/payment-tokens?customer_id=&page_size=99999999999", "", ""},
		{"PUT", "//v2/..//%2e", "x", "\x00\xff"},
	} {
		f.Add(s.method, s.path, s.kind, s.body, "key")
	}
	f.Fuzz(func(t *testing.T, method, path, kind, body, key string) {
		fake := fakeprovider.New(paypal.New(paypal.Config{Lenient: true}), nil)
		ids := planted(t, fake)
		r := httptest.NewRequest("POST", "http://paypal.test/", strings.NewReader(ids.Replace(body)))
		where, query, _ := strings.Cut(ids.Replace(path), "?")
		r.Method, r.URL.Path, r.URL.RawQuery = method, where, query
		r.Header.Set("Authorization", "Bearer token")
		r.Header.Set("Content-Type", kind)
		r.Header.Set("PayPal-Request-Id", key)
		w := httptest.NewRecorder()
		fake.ServeHTTP(w, r)
		switch {
		case w.Code == 204 && w.Body.Len() == 0:
			return
		case w.Code/100 != 2 && w.Code/100 != 4:
			t.Fatalf("%d: %q", w.Code, w.Body)
		}
		var answer struct {
			Name, Error, Message string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%d %v: %q", w.Code, err, w.Body)
		}
		if w.Code/100 == 4 && answer.Error == "" && (answer.Name == "" || answer.Message == "") {
			t.Fatalf("%d is not in PayPal's shape: %q", w.Code, w.Body)
		}
		if w.Code/100 == 4 && fake.Effects("") != 0 {
			t.Fatalf("%d, and yet %d effects", w.Code, fake.Effects(""))
		}
	})
}
