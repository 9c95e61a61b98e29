package stripe_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// api is a fake Stripe and a client of it that needs no network.
type api struct {
	t    *testing.T
	fake *fakeprovider.Fake
}

func newAPI(t *testing.T, cfg stripe.Config) *api {
	return &api{t, fakeprovider.New(stripe.New(cfg), nil)}
}

// answer is a response, decoded.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	raw    string
	json   map[string]any
}

// option changes a request before it is sent.
type option func(*http.Request)

func key(k string) option { return header("Idempotency-Key", k) }

func header(name, value string) option {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// call sends a form to v1, JSON to v2.
func (a *api) call(method, path, body string, opts ...option) answer {
	a.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer sk_test_123")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if strings.HasPrefix(path, "/v2/") {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Stripe-Version", "2026-06-24.dahlia")
	}
	for _, o := range opts {
		o(r)
	}
	w := httptest.NewRecorder()
	a.fake.ServeHTTP(w, r)
	out := answer{t: a.t, status: w.Code, header: w.Header(), raw: w.Body.String()}
	if err := json.Unmarshal(w.Body.Bytes(), &out.json); err != nil {
		a.t.Errorf("%s %s answers %q, which is not a JSON object", method, path, w.Body)
	}
	return out
}

func (a *api) post(path, body string, opts ...option) answer {
	a.t.Helper()
	return a.call("POST", path, body, opts...)
}

func (a *api) get(path string) answer {
	a.t.Helper()
	return a.call("GET", path, "")
}

func (a *api) seed(object any) string {
	a.t.Helper()
	id, err := a.fake.Seed(object)
	if err != nil {
		a.t.Fatal(err)
	}
	return id
}

func (a *api) effects(operation string, want int) {
	a.t.Helper()
	if got := a.fake.Effects(operation); got != want {
		a.t.Errorf("effects of %q = %d, want %d", operation, got, want)
	}
}

func (r answer) ok() answer {
	r.t.Helper()
	if r.status != 200 {
		r.t.Fatalf("status %d: %s", r.status, r.raw)
	}
	return r
}

// failed checks an error's status, type and code.
func (r answer) failed(status int, typ, code string) answer {
	r.t.Helper()
	e, _ := r.json["error"].(map[string]any)
	got, _ := e["code"].(string)
	if r.status != status || e["type"] != typ || got != code {
		r.t.Errorf("got %d %v %q, want %d %s %q (%s)", r.status, e["type"], got, status, typ, code, r.raw)
	}
	if e["message"] == "" {
		r.t.Error("the error has no message")
	}
	return r
}

func (r answer) id() string { s, _ := r.json["id"].(string); return s }

func (r answer) str(name string) string { s, _ := r.json[name].(string); return s }

func (r answer) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

func (r answer) data() []any { d, _ := r.json["data"].([]any); return d }

const refundOf = "amount=400&charge="

// R12: the headers of a first execution and of its replay, and equal bytes.
func TestV1ReplayHeaders(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	body := refundOf + a.seed(stripe.Charge{Amount: 1000})
	first := a.post("/v1/refunds", body, key("k")).ok()
	again := a.post("/v1/refunds", body, key("k")).ok()
	h1, h2 := first.header, again.header
	if h1.Get("Request-Id") != h1.Get("Original-Request") || first.replayed() || h1.Get("Stripe-Should-Retry") != "false" {
		t.Errorf("headers of the first execution: %v", h1)
	}
	if !again.replayed() || h2.Get("Original-Request") != h1.Get("Request-Id") || h2.Get("Request-Id") == h1.Get("Request-Id") {
		t.Errorf("headers of the replay: %v", h2)
	}
	if h1.Get("Idempotency-Key") != "k" || h2.Get("Idempotency-Key") != "k" {
		t.Error("the key is not echoed")
	}
	if first.raw != again.raw {
		t.Error("the replay's body differs from the first")
	}
	a.effects("refund.create", 1)
}

// The stored answer is the original, whatever became of the object.
func TestV1ReplayIsNotTheLatestState(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	body := "amount=1000&currency=eur&confirm=true&payment_method=pm_card_visa&capture_method=manual"
	first := a.post("/v1/payment_intents", body, key("k")).ok()
	a.post("/v1/payment_intents/"+first.id()+"/capture", "", key("c")).ok()
	if got := a.post("/v1/payment_intents", body, key("k")).ok().str("status"); got != "requires_capture" {
		t.Errorf("replayed status %q, want the original requires_capture", got)
	}
	if got := a.get("/v1/payment_intents/" + first.id()).ok().str("status"); got != "succeeded" {
		t.Errorf("status %q, want succeeded", got)
	}
}

// C11: after 24 h the same key executes again: a second partial refund. A full
// one is guarded by the charge.
func TestV1Window(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	partial := refundOf + a.seed(stripe.Charge{Amount: 1000})
	full := "charge=" + a.seed(stripe.Charge{Amount: 1000})
	a.post("/v1/refunds", partial, key("p")).ok()
	a.post("/v1/refunds", full, key("f")).ok()
	a.fake.Advance(24*time.Hour - time.Minute)
	if !a.post("/v1/refunds", partial, key("p")).ok().replayed() {
		t.Error("no replay inside the window")
	}
	a.fake.Advance(2 * time.Minute)
	if a.post("/v1/refunds", partial, key("p")).ok().replayed() {
		t.Error("a replay outside the window")
	}
	a.post("/v1/refunds", full, key("f")).failed(400, "invalid_request_error", "charge_already_refunded")
	a.effects("refund.create", 3)
}

func TestV1MismatchByParametersAndByEndpoint(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	one, two := a.seed(stripe.PaymentIntent{}), a.seed(stripe.PaymentIntent{})
	a.post("/v1/payment_intents/"+one+"/confirm", "", key("k")).ok()
	a.post("/v1/payment_intents/"+one+"/confirm", "return_url=x", key("k")).failed(400, "idempotency_error", "")
	a.post("/v1/payment_intents/"+two+"/confirm", "", key("k")).failed(400, "idempotency_error", "")
	a.effects("payment_intent.confirm", 1)
}

// Map iteration in a client may reorder parameters; that is no other request.
func TestV1ParameterOrderDoesNotCount(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	a.post("/v1/customers", "name=a&metadata[x]=1&metadata[y]=2", key("k")).ok()
	if !a.post("/v1/customers", "metadata[y]=2&name=a&metadata%5Bx%5D=1", key("k")).ok().replayed() {
		t.Error("the same parameters in another order were not replayed")
	}
}

// C06, C13: a decline is stored, replayed with the header, and is no effect.
func TestV1DeclineIsStored(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	body := "amount=1000&currency=eur&confirm=true&payment_method=pm_card_chargeDeclinedInsufficientFunds"
	first := a.post("/v1/payment_intents", body, key("k")).failed(402, "card_error", "card_declined")
	again := a.post("/v1/payment_intents", body, key("k")).failed(402, "card_error", "card_declined")
	if first.replayed() || !again.replayed() || first.raw != again.raw {
		t.Error("the stored decline did not come back as a replay")
	}
	e := first.json["error"].(map[string]any)
	pi, _ := e["payment_intent"].(map[string]any)
	if e["decline_code"] != "insufficient_funds" || pi["status"] != "requires_payment_method" {
		t.Errorf("error = %v", e)
	}
	a.effects("", 0)
}

func TestV1StoredServerErrorNeverChanges(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	body := refundOf + a.seed(stripe.Charge{})
	if err := a.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.Status500, Applied: true, Stored: true}); err != nil {
		t.Fatal(err)
	}
	a.post("/v1/refunds", body, key("k")).failed(500, "api_error", "")
	if !a.post("/v1/refunds", body, key("k")).failed(500, "api_error", "").replayed() {
		t.Error("the stored 500 carries no replay header")
	}
	a.effects("refund.create", 1)
}

// Validation failures, 401, 429 and a conflict leave the key unused.
func TestV1WhatIsNotStored(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	body := refundOf + a.seed(stripe.Charge{})
	a.post("/v1/refunds", "amount=x", key("k")).failed(400, "invalid_request_error", "parameter_invalid_integer")
	a.post("/v1/refunds", body, key("k"), header("Authorization", "Bearer nonsense")).failed(401, "invalid_request_error", "")
	faults := []fakeprovider.Fault{{Kind: fakeprovider.RateLimit, Stored: false}, {Kind: fakeprovider.LockTimeout},
		{Kind: fakeprovider.InFlight}, {Kind: fakeprovider.Unauthorized}, {Kind: fakeprovider.Status424}, {Kind: fakeprovider.Status503}}
	if err := a.fake.Inject(faults...); err != nil {
		t.Fatal(err)
	}
	limited := a.post("/v1/refunds", body, key("k")).failed(429, "invalid_request_error", "rate_limit")
	if limited.header.Get("Stripe-Rate-Limited-Reason") == "" {
		t.Error("a rate limit names no reason")
	}
	a.post("/v1/refunds", body, key("k")).failed(429, "invalid_request_error", "lock_timeout")
	a.post("/v1/refunds", body, key("k")).failed(409, "invalid_request_error", "idempotency_key_in_use")
	a.post("/v1/refunds", body, key("k")).failed(401, "invalid_request_error", "")
	a.post("/v1/refunds", body, key("k")).failed(424, "api_error", "")
	a.post("/v1/refunds", body, key("k")).failed(503, "api_error", "")
	if a.post("/v1/refunds", body, key("k")).ok().replayed() {
		t.Error("something before had stored the key")
	}
	a.effects("refund.create", 1)
}

// The limiter stands before the key layer: a 429 on a resend hides the result.
func TestV1RateLimitHidesAStoredResult(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	body := refundOf + a.seed(stripe.Charge{})
	a.post("/v1/refunds", body, key("k")).ok()
	if err := a.fake.Inject(fakeprovider.Fault{Kind: fakeprovider.RateLimit}); err != nil {
		t.Fatal(err)
	}
	if a.post("/v1/refunds", body, key("k")).failed(429, "invalid_request_error", "rate_limit").replayed() {
		t.Error("a 429 claims to be a replay")
	}
	if !a.post("/v1/refunds", body, key("k")).ok().replayed() {
		t.Error("the stored result is gone")
	}
}

// On GET and DELETE a v1 key has no effect.
func TestV1DeleteIgnoresTheKey(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	sub := a.seed(stripe.Subscription{})
	r := a.call("DELETE", "/v1/subscriptions/"+sub, "", key("k")).ok()
	if r.str("status") != "canceled" || r.header.Get("Idempotency-Key") != "" {
		t.Errorf("status %q, echoed key %q", r.str("status"), r.header.Get("Idempotency-Key"))
	}
	a.call("DELETE", "/v1/subscriptions/"+sub, "", key("k")).failed(404, "invalid_request_error", "resource_missing")
	a.effects("subscription.cancel", 1)
}

// R19's judge: accounts and modes have their own objects and, by default, keys.
func TestAccountsAndModes(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	connected := header("Stripe-Account", "acct_2")
	live := header("Authorization", "Bearer rk_live_9")
	for i, opts := range [][]option{{}, {connected}, {header("Stripe-Context", "acct_3")}, {live}, {live, connected}} {
		r := a.post("/v1/customers", "name=a", append(opts, key("k"))...).ok()
		if r.replayed() {
			t.Errorf("account %d got another account's result", i)
		}
		if got := r.json["livemode"]; got != (i >= 3) {
			t.Errorf("account %d: livemode %v", i, got)
		}
	}
	a.effects("customer.create", 5)

	shared := newAPI(t, stripe.Config{KeysAcrossAccounts: true})
	shared.post("/v1/customers", "name=a", key("k")).ok()
	if !shared.post("/v1/customers", "name=a", key("k"), connected).ok().replayed() {
		t.Error("KeysAcrossAccounts still separates keys")
	}
}

func TestNotFoundIsASwitch(t *testing.T) {
	for _, keep := range []bool{false, true} {
		a := newAPI(t, stripe.Config{KeepNotFound: keep})
		a.post("/v1/refunds", "charge=ch_none", key("k")).failed(404, "invalid_request_error", "resource_missing")
		if got := a.post("/v1/refunds", "charge=ch_none", key("k")).replayed(); got != keep {
			t.Errorf("KeepNotFound %v: replayed %v", keep, got)
		}
	}
}

func TestBasicAuthenticationAsCurlSendsIt(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	basic := func(r *http.Request) { r.SetBasicAuth("sk_test_1", "") }
	a.call("GET", "/v1/customers", "", basic).ok()
}

// A credential can be checked for its account and mode.
func TestWhoseCredential(t *testing.T) {
	a := newAPI(t, stripe.Config{Account: "acct_own"})
	for _, c := range []struct {
		path, want string
		opts       []option
	}{
		{"/v1/account", "acct_own", nil},
		{"/v1/accounts/acct_own", "acct_own", nil},
		{"/v1/account", "acct_2", []option{header("Stripe-Account", "acct_2")}},
	} {
		if got := a.call("GET", c.path, "", c.opts...).ok().id(); got != c.want {
			t.Errorf("%s: %q, want %q", c.path, got, c.want)
		}
	}
	a.get("/v1/accounts/acct_other").failed(404, "invalid_request_error", "resource_missing")
	live := a.call("GET", "/v1/balance", "", header("Authorization", "Bearer sk_live_1")).ok()
	if live.json["livemode"] != true || a.get("/v1/balance").ok().json["livemode"] != false {
		t.Error("the balance does not tell the mode")
	}
}

func form(pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v.Encode()
}
