package stripe_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// planted puts an object of each kind in place and returns what replaces their
// ids in a fuzzed request: "pi_1" is the payment intent.
func planted(t *testing.T, fake *fakeprovider.Fake) *strings.Replacer {
	t.Helper()
	var pairs []string
	for name, object := range map[string]any{
		"pi_1": stripe.PaymentIntent{Status: "requires_capture"}, "ch_1": stripe.Charge{}, "cus_1": stripe.Customer{},
		"seti_1": stripe.SetupIntent{}, "in_1": stripe.Invoice{}, "in_2": stripe.Invoice{Status: "draft"}, "sub_1": stripe.Subscription{},
		"cs_1": stripe.CheckoutSession{}, "tr_1": stripe.Transfer{}, "po_1": stripe.Payout{}, "ed_1": stripe.EventDestination{}, "acct_1": stripe.Account{},
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
		`{"type":"charge","object":{"amount":1250,"currency":"eur","slow_refund":true}}`,
		`{"type":"payment_intent","object":{"status":"processing","metadata":{"a":"b"}}}`,
		`{"type":"invoice","object":{"amount":-9223372036854775808,"status":"paid","customer":"cus_1"}}`,
		`{"type":"payout","object":{"amount":1e30,"paid":true}}`,
		`{"type":"event_destination","object":{"url":"x"}}`,
		`{"type":"ghost","object":[]}`, `{"type":"customer","object":null}`, `[]`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		fake := fakeprovider.New(stripe.New(stripe.Config{}), nil)
		defer fake.Close()
		w := httptest.NewRecorder()
		fake.Admin().ServeHTTP(w, httptest.NewRequest("POST", "http://stripe.test/seed", strings.NewReader(body)))
		var answer struct{ ID, Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code/100 == 4 != (answer.Error != "") || w.Code/100 != 4 && (w.Code != 200 || answer.ID == "") {
			t.Fatalf("%d: %q", w.Code, w.Body)
		}
		if fake.Effects("") != 0 {
			t.Fatal("a seed counts as an effect")
		}
	})
}

// Whatever arrives, the fake answers in Stripe's own shape and never with a 5xx:
// forms, JSON, multipart bodies, odd paths, keys and queries, for objects that are
// there and some that are not.
func FuzzRequests(f *testing.F) {
	form, multipart := "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"
	for _, s := range []struct{ method, path, kind, body string }{
		{"POST", "/v1/payment_intents", form, "amount=100&currency=eur&payment_method=pm_card_visa&confirm=true&metadata[a]=b&expand[]=latest_charge"},
		{"POST", "/v1/payment_intents/pi_1/capture", form, "amount_to_capture=-1"},
		{"POST", "/v1/payment_intents/pi_1/capture", form, "amount_to_capture=700&final_capture=false"},
		{"POST", "/v1/payment_intents/pi_9/confirm", form, "payment_method=pm_card_chargeDeclined"},
		{"POST", "/v1/invoices/in_1/pay", form, "paid_out_of_band=true"},
		{"POST", "/v1/invoices/in_2/finalize", form, "auto_advance=x"},
		{"POST", "/v1/credit_notes", form, "invoice=in_1&lines[0][amount]=1"},
		{"POST", "/v1/transfers/tr_1/reversals", form, "amount=1"},
		{"POST", "/v1/checkout/sessions/cs_1/expire", form, "expand[]=line_items.data.price"},
		{"POST", "/v2/core/event_destinations/ed_1", "application/json", `{"description":[],"enabled_events":{}}`},
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
		fake := fakeprovider.New(stripe.New(stripe.Config{}), nil)
		ids := planted(t, fake)
		r := httptest.NewRequest("POST", "http://stripe.test/", strings.NewReader(ids.Replace(body)))
		where, query, _ := strings.Cut(ids.Replace(path), "?")
		r.Method, r.URL.Path, r.URL.RawQuery = method, where, query
		r.Header.Set("Authorization", "Bearer sk_test_1")
		r.Header.Set("Stripe-Version", "2026-06-24.dahlia")
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
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
