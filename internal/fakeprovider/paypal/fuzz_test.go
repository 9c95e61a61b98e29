package paypal_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

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
		r := httptest.NewRequest("POST", "http://paypal.test/", strings.NewReader(body))
		where, query, _ := strings.Cut(path, "?")
		r.Method, r.URL.Path, r.URL.RawQuery = method, where, query
		r.Header.Set("Authorization", "Bearer token")
		r.Header.Set("Content-Type", kind)
		r.Header.Set("PayPal-Request-Id", key)
		w := httptest.NewRecorder()
		fake := fakeprovider.New(paypal.New(paypal.Config{Lenient: true}), nil)
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
