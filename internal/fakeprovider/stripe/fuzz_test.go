package stripe_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// Whatever arrives, the fake answers in Stripe's own shape and never with a 5xx:
// forms, JSON, multipart bodies, odd paths, keys and queries.
func FuzzRequests(f *testing.F) {
	form, multipart := "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"
	for _, s := range []struct{ method, path, kind, body string }{
		{"POST", "/v1/payment_intents", form, "amount=100&currency=eur&payment_method=pm_card_visa&confirm=true&metadata[a]=b&expand[]=latest_charge"},
		{"POST", "/v1/payment_intents/pi_1/capture", form, "amount_to_capture=-1"},
		{"POST", "/v1/refunds", form, "charge=ch_1&amount=99999999999999999999"},
		{"POST", "/v1/customers", form, "metadata[a][b][c][d][e][f][g][h][i]=1&metadata=x&metadata[]=y&%zz"},
		{"POST", "/v1/invoices", form, "customer=&lines[0][amount]=1&lines[x]=2"},
		{"POST", "/v1/subscriptions", form, "customer=cus_1&items[0][price]=price_1&items[9999999999999999999999][price]=p"},
		{"POST", "/v1/checkout/sessions", form, "mode=payment&line_items[0][quantity]=1"},
		{"POST", "/v1/files", multipart, "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nx\r\n--b--\r\n"},
		{"POST", "/v1/customers", multipart, "--b\r\n\r\n"},
		{"POST", "/v1/billing/meter_events", form, "event_name=x&payload[value]=1&payload[stripe_customer_id]=cus_1&identifier=i"},
		{"POST", "/v2/core/event_destinations", "application/json", destination},
		{"POST", "/v2/core/accounts", "application/json", `{"metadata":{"a":null,"b":1},"configuration":{"customer":{"a":{"b":{}}}}}`},
		{"DELETE", "/v1/subscriptions/sub_1", "", ""},
		{"POST", "/v2/core/event_destinations", "application/json", `{"name":[[[[[[]]]]]],"n":1e999}`},
		{"DELETE", "/v2/core/event_destinations/x", "application/json", "null"},
		{"GET", "/v1/customers?limit=0&created[gte]=x&starting_after=y", "", ""},
		{"GET", "/v1/customers/search?query=email%3A%27a%27%20AND%20-metadata%5B%27x%27%5D%3A%22%22", "", ""},
		{"GET", "/v1/events?types[]=charge.*&ending_before=evt", "", ""},
		{"PUT", "//v1/..//%2e", "x", "\x00\xff"},
	} {
		f.Add(s.method, s.path, s.kind, s.body, "key")
	}
	f.Fuzz(func(t *testing.T, method, path, kind, body, key string) {
		target := "http://stripe.test/"
		r := httptest.NewRequest("POST", target, strings.NewReader(body))
		where, query, _ := strings.Cut(path, "?")
		r.Method, r.URL.Path, r.URL.RawQuery = method, where, query
		r.Header.Set("Authorization", "Bearer sk_test_1")
		r.Header.Set("Stripe-Version", "2026-06-24.dahlia")
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		fake := fakeprovider.New(stripe.New(stripe.Config{}), nil)
		fake.ServeHTTP(w, r)
		var answer struct {
			Error struct{ Type, Message string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%d %v: %q", w.Code, err, w.Body)
		}
		if refused := w.Code/100 == 4; !refused && w.Code != 200 || refused != (answer.Error.Type != "" && answer.Error.Message != "") {
			t.Fatalf("%d: %q", w.Code, w.Body)
		}
		if w.Code != 200 && fake.Effects("") != 0 {
			t.Fatalf("%d, and yet %d effects", w.Code, fake.Effects(""))
		}
	})
}
