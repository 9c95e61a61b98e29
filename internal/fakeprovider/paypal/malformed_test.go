package paypal_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

// request is a POST that the test sends itself.
func (a *api) request(path string, body any) *http.Request {
	a.t.Helper()
	req, err := http.NewRequest(http.MethodPost, a.url+path, bytes.NewReader(encode(a.t, body)))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("Content-Type", "application/json")
	return req
}

// bodies are what no call makes anything of.
func bodies() []string {
	return []string{
		"", " ", "null", "{}", "[]", "[[]]", "[null]", "[7]", "0", "true", `""`, `"text"`, "{", "}", "{]", `{"a"`, "{}{}", "{} x",
		"\x00", "\xff\xfe", `{"\ud800":1}`, "NaN", "1e999999",
		`{"intent":null}`, `{"intent":7,"purchase_units":7,"payment_source":[]}`,
		`{"intent":"CAPTURE","purchase_units":[null]}`, `{"intent":"CAPTURE","purchase_units":[[]]}`,
		`{"intent":"CAPTURE","purchase_units":[{"amount":"1.00"}]}`,
		`{"intent":"CAPTURE","purchase_units":[{"amount":{"currency_code":[],"value":{}}}]}`,
		`{"amount":7}`, `{"amount":[]}`, `{"amount":{}}`, `{"amount":{"value":null}}`, `{"amount":{"currency_code":"USD","value":"1e9"}}`,
		`{"final_capture":"yes","amount":{"currency_code":"USD","value":"1.00"}}`,
		`{"custom_id":{},"invoice_id":[]}`, `{"custom_id":"` + strings.Repeat("x", 128) + `"}`,
		`{"payment_source":{"card":7}}`, `{"payment_source":{"card":{"number":7}}}`, `{"payment_source":{"token":{"id":7,"type":[]}}}`,
		`{"payment_source":{"` + strings.Repeat("x", 1000) + `":{}}}`,
		`{"sender_batch_header":7,"items":7}`, `{"sender_batch_header":{"sender_batch_id":[]},"items":[{}]}`,
		`{"name":7,"type":7,"product_id":7,"plan_id":7,"billing_cycles":7}`,
		`{"subscriber":7,"plan_id":"x"}`, `{"subscriber":{"payment_source":7},"plan_id":"x"}`,
		`{"detail":7,"items":[{}]}`, `{"detail":{"currency_code":7},"items":[7]}`, `{"status":7,"reason":7,"invoice_number":7}`,
		`[{"op":7,"path":7}]`, `[{"op":"replace","path":"/purchase_units/@reference_id=='","value":1}]`,
		`[{"op":"replace","path":"/purchase_units/@reference_id==''/amount","value":1}]`,
		`[{"op":"add","path":"/purchase_units/@reference_id=='default'/amount","value":null}]`,
		strings.Repeat("[", 20000), `{"a":` + strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5001),
	}
}

// Whatever comes, the answer is PayPal's JSON, never a 5xx, and nothing that
// was refused has happened.
func TestMalformedInput(t *testing.T) {
	a := open(t, paypal.Config{})
	order := a.post("/v2/checkout/orders", "", orderBody("1.00")).want(201).text("id")
	auth, capture := a.seed(paypal.CreatedAuthorization{}), a.seed(paypal.CompletedCapture{})
	subscription, invoice := a.seed(paypal.ActiveSubscription{}), a.post(invoices, "", invoiceBody("")).want(201).text("id")
	paths := []string{
		"/v2/checkout/orders", "/v2/checkout/orders/" + order + "/capture", "/v2/checkout/orders/" + order + "/authorize",
		"/v2/checkout/orders/" + order + "/confirm-payment-source",
		"/v2/payments/authorizations/" + auth + "/capture", "/v2/payments/authorizations/" + auth + "/reauthorize",
		"/v2/payments/authorizations/" + auth + "/void", "/v2/payments/captures/" + capture + "/refund",
		payouts, "/v1/catalogs/products", "/v1/billing/plans", subscriptions, subscriptions + "/" + subscription + "/suspend",
		"/v3/vault/setup-tokens", "/v3/vault/payment-tokens", invoices, invoices + "/" + invoice + "/send",
		"/v2/invoicing/search-invoices", "/v1/oauth2/token",
	}
	for _, path := range paths {
		for i, body := range bodies() {
			before := a.f.Effects("")
			got := a.post(path, "", body)
			if got.status >= 500 || (got.status >= 400 && a.f.Effects("") != before) {
				t.Errorf("%s with body %d: status %d, %d effects: %.200s", path, i, got.status, a.f.Effects("")-before, got.raw)
			}
			if got.status >= 400 && got.text("name") == "" && got.text("error") == "" {
				t.Errorf("%s with body %d: the error has no name: %.200s", path, i, got.raw)
			}
		}
	}
	for i, body := range bodies() {
		if got := a.call(http.MethodPatch, "/v2/checkout/orders/"+order, "", body); got.status < 400 || got.status >= 500 {
			t.Errorf("PATCH with body %d: status %d", i, got.status)
		}
	}
	a.effects("order.patch", 0)
}

func TestUnknownRoutesAndTypes(t *testing.T) {
	a := open(t, paypal.Config{})
	for _, path := range []string{"/", "//", "/v2", "/v2/checkout", "/v2/checkout/orders/x/y/z", "/v1/payments/payment",
		"/v2/checkout/orders//capture", "/" + strings.Repeat("a/", 2000), "/v2/payments/refunds/x/y"} {
		a.post(path, "k", m{}).want(404, "RESOURCE_NOT_FOUND")
	}
	a.call(http.MethodDelete, "/v2/checkout/orders", "", nil).want(404)
	body := orderBody("1.00")
	for _, kind := range []string{"text/plain", "", "application/x-www-form-urlencoded", ";;"} {
		a.post("/v2/checkout/orders", "", body, "Content-Type", kind).want(415, "UNSUPPORTED_MEDIA_TYPE")
	}
	a.post("/v2/checkout/orders", "", body, "Content-Type", "application/json; charset=utf-8").want(201)
	a.post("/v2/checkout/orders", "", "{", "Content-Type", "application/json").want(400, "MALFORMED_REQUEST_JSON")
	a.post("/v2/checkout/orders", "", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`).want(413)
	a.post("/v2/checkout/orders", "", body, "Content-Encoding", "gzip").want(415)
	open(t, paypal.Config{Lenient: true}).post("/v2/checkout/orders", "", body, "Content-Type", "text/plain").want(201)

	same := m{"intent": "CAPTURE", "purchase_units": []m{{"amount": usd("1")}, {"amount": usd("1")}}}
	a.post("/v2/checkout/orders", "", same).want(422, "DUPLICATE_REFERENCE_ID")
	many := a.post("/v2/checkout/orders", "", m{}).want(400, "MISSING_REQUIRED_PARAMETER")
	if len(many.list("details")) != 2 {
		t.Errorf("the answer does not name both missing values: %s", many.raw)
	}
}

// Every refusal of the engine has PayPal's shape, with the debug id in it.
func TestEngineRefusals(t *testing.T) {
	a := open(t, paypal.Config{})
	for kind, want := range map[fakeprovider.Kind]struct {
		status int
		name   string
	}{
		fakeprovider.Status500:    {500, "INTERNAL_SERVER_ERROR"},
		fakeprovider.Status503:    {503, "SERVICE_UNAVAILABLE"},
		fakeprovider.Status424:    {424, "FAILED_DEPENDENCY"},
		fakeprovider.RateLimit:    {429, "RATE_LIMIT_REACHED"},
		fakeprovider.LockTimeout:  {429, "RATE_LIMIT_REACHED"},
		fakeprovider.Unauthorized: {401, "AUTHENTICATION_FAILURE"},
		fakeprovider.InFlight:     {409, "RESOURCE_CONFLICT"},
	} {
		if err := a.f.Inject(fakeprovider.Fault{Kind: kind, RetryAfter: 2e9}); err != nil {
			t.Fatal(err)
		}
		if got := a.post("/v2/checkout/orders", "", orderBody("1.00")).want(want.status, want.name); got.header.Get("Retry-After") != "2" {
			t.Errorf("%s: Retry-After is %q", kind, got.header.Get("Retry-After"))
		}
	}
	a.effects("", 0)
}

// The fake is bounded: beyond MaxObjects, writes and tokens are refused, reads
// and replays are not.
func TestMaxObjects(t *testing.T) {
	a := open(t, paypal.Config{MaxObjects: 3})
	id := a.post("/v2/checkout/orders", "k", orderBody("1.00")).want(201).text("id")
	a.post("/v2/checkout/orders", "", orderBody("1.00")).want(201)
	a.post("/v2/checkout/orders", "", orderBody("1.00")).want(503, "SERVICE_UNAVAILABLE")
	a.post("/v2/checkout/orders", "k", orderBody("1.00")).want(200)
	a.get("/v2/checkout/orders/" + id).want(200)
	a.login("app", "secret").want(503)
	if _, err := a.f.Seed(paypal.ApprovedOrder{}); err == nil {
		t.Error("a seed was put into a full fake")
	}
}
