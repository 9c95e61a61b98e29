package paypal_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

const hour = time.Hour

// keyed is one call that takes a PayPal-Request-Id.
type keyed struct {
	op     string
	window time.Duration
	first  int // status of a first run
	replay int
	// after is the status of a run after the window, and its issue; a new effect
	// where there is none.
	after      int
	afterIssue string
	// request returns the path and the body.
	request func(a *api) (string, any)
}

func keyedCalls() []keyed {
	plan := func(a *api) string { return a.seed(paypal.ActivePlan{}) }
	return []keyed{
		{op: "order.create", window: 6 * hour, first: 201, replay: 200, after: 201,
			request: func(*api) (string, any) { return "/v2/checkout/orders", orderBody("10.00") }},
		{op: "order.authorize", window: 6 * hour, first: 201, replay: 200, after: 422, afterIssue: "ORDER_ALREADY_AUTHORIZED",
			request: func(a *api) (string, any) {
				return "/v2/checkout/orders/" + a.seed(paypal.ApprovedOrder{Intent: "AUTHORIZE"}) + "/authorize", nil
			}},
		{op: "order.capture", window: 6 * hour, first: 201, replay: 200, after: 422, afterIssue: "ORDER_ALREADY_CAPTURED",
			request: func(a *api) (string, any) {
				return "/v2/checkout/orders/" + a.seed(paypal.ApprovedOrder{}) + "/capture", nil
			}},
		{op: "authorization.capture", window: 45 * 24 * hour, first: 201, replay: 201, after: 422, afterIssue: "AUTHORIZATION_ALREADY_CAPTURED",
			request: func(a *api) (string, any) {
				return "/v2/payments/authorizations/" + a.seed(paypal.CreatedAuthorization{}) + "/capture", nil
			}},
		{op: "authorization.reauthorize", window: 45 * 24 * hour, first: 201, replay: 201, after: 422, afterIssue: "AUTHORIZATION_EXPIRED",
			request: func(a *api) (string, any) {
				return "/v2/payments/authorizations/" + a.seed(paypal.CreatedAuthorization{Age: 80 * hour}) + "/reauthorize", m{"amount": usd("10.00")}
			}},
		{op: "authorization.void", window: 45 * 24 * hour, first: 200, replay: 200, after: 422, afterIssue: "PREVIOUSLY_VOIDED",
			request: func(a *api) (string, any) {
				return "/v2/payments/authorizations/" + a.seed(paypal.CreatedAuthorization{}) + "/void", nil
			}},
		{op: "capture.refund", window: 45 * 24 * hour, first: 201, replay: 200, after: 201,
			request: func(a *api) (string, any) {
				return "/v2/payments/captures/" + a.seed(paypal.CompletedCapture{}) + "/refund", m{"amount": usd("1.00")}
			}},
		{op: "product.create", window: 72 * hour, first: 201, replay: 201, after: 201,
			request: func(*api) (string, any) { return "/v1/catalogs/products", m{"name": "P", "type": "SERVICE"} }},
		{op: "plan.create", window: 72 * hour, first: 201, replay: 201, after: 201,
			request: func(a *api) (string, any) {
				product := a.get("/v1/billing/plans/" + plan(a)).text("product_id")
				return "/v1/billing/plans", m{"product_id": product, "name": "P", "billing_cycles": []m{{"sequence": 1}}}
			}},
		{op: "subscription.create", window: 72 * hour, first: 201, replay: 201, after: 201,
			request: func(a *api) (string, any) {
				return "/v1/billing/subscriptions", m{"plan_id": plan(a), "custom_id": "c"}
			}},
		{op: "setup_token.create", window: 3 * hour, first: 201, replay: 200, after: 201,
			request: func(*api) (string, any) { return "/v3/vault/setup-tokens", m{"payment_source": m{"paypal": m{}}} }},
		{op: "payment_token.create", window: 3 * hour, first: 201, replay: 200, after: 201,
			request: func(a *api) (string, any) {
				return "/v3/vault/payment-tokens", m{"payment_source": m{"token": m{"id": a.seed(paypal.ApprovedSetupToken{}), "type": "SETUP_TOKEN"}}}
			}},
	}
}

// Every keyed call: first run, replay with its status, the window's two edges,
// a resend without the id. The token lives longer than all windows here.
func TestReplaysAndWindows(t *testing.T) {
	for _, c := range keyedCalls() {
		t.Run(c.op, func(t *testing.T) {
			t.Parallel()
			a := open(t, paypal.Config{TokenLifetime: 1000 * 24 * hour})
			path, body := c.request(a)
			first := a.post(path, "key-1", body).want(c.first)
			a.effects(c.op, 1)
			a.post(path, "key-1", body).want(c.replay).says("id", first.text("id"))
			a.f.Advance(c.window - time.Second)
			a.post(path, "key-1", body).want(c.replay).says("id", first.text("id"))
			a.effects(c.op, 1)
			log := a.f.Requests(c.op)
			if !log[2].Replayed || log[0].Replayed || log[2].Delivery != 3 {
				t.Errorf("the log does not tell the replay from the first run: %+v", log)
			}

			a.f.Advance(time.Second) // the id is forgotten: it executes again (C11)
			again := a.post(path, "key-1", body).want(c.after)
			if c.afterIssue != "" {
				again.want(c.after, c.afterIssue)
				a.effects(c.op, 1)
				return
			}
			if again.text("id") == first.text("id") {
				t.Error("the run after the window gave the first object")
			}
			a.effects(c.op, 2)
			if r := a.f.Report(); r.Duplicates != 1 {
				t.Errorf("the ledger counts %d duplicates, want 1", r.Duplicates)
			}
			a.post(path, "", body).want(c.first)
			a.effects(c.op, 3) // without an id it executes each time
		})
	}
}

// The switch for what PayPal's documents contradict each other on.
func TestReplaySays200WhereSwitched(t *testing.T) {
	for _, c := range keyedCalls() {
		if c.replay != 201 {
			continue
		}
		a := open(t, paypal.Config{Replay200: true})
		path, body := c.request(a)
		first := a.post(path, "k", body).want(201)
		a.post(path, "k", body).want(200).says("id", first.text("id"))
		a.effects(c.op, 1)
	}
}

// A replay shows the latest state, not the first answer.
func TestReplayShowsLatestStatus(t *testing.T) {
	a := open(t, paypal.Config{})
	id := a.seed(paypal.ApprovedOrder{Value: "20.00"})
	path := "/v2/checkout/orders/" + id + "/capture"
	first := a.post(path, "cap", m{}).want(201).says("purchase_units/0/payments/captures/0/status", "COMPLETED")
	capture := first.text("purchase_units/0/payments/captures/0/id")
	refund := "/v2/payments/captures/" + capture + "/refund"
	a.post(refund, "r1", m{"amount": usd("5.00")}).want(201).says("status", "COMPLETED")
	a.post(path, "cap", m{}).want(200).says("purchase_units/0/payments/captures/0/status", "PARTIALLY_REFUNDED")
	a.post(refund, "r2", nil).want(201).says("amount/value", "15.00") // an empty body is the rest
	a.post(path, "cap", m{}).want(200).says("purchase_units/0/payments/captures/0/status", "REFUNDED")
	a.effects("order.capture", 1)
	a.effects("capture.refund", 2)

	auth := a.seed(paypal.CreatedAuthorization{})
	a.post("/v2/payments/authorizations/"+auth+"/capture", "ac", m{"amount": usd("10.00")}).want(201).says("status", "COMPLETED")
	got := a.get("/v2/payments/authorizations/"+auth).want(200).says("status", "CAPTURED")
	if up := got.link("up"); !strings.HasPrefix(up, a.url+"/v2/checkout/orders/") {
		t.Errorf("the link up is %q, not at the fake", up)
	}
}

// The key is per call type and app; the target is not part of it, nor is the
// body on Orders and Payments: the first result comes back silently.
func TestKeyScope(t *testing.T) {
	a := open(t, paypal.Config{})
	one, two := a.seed(paypal.ApprovedOrder{}), a.seed(paypal.ApprovedOrder{})
	a.post("/v2/checkout/orders/"+one+"/capture", "k", nil).want(201).says("id", one)
	a.post("/v2/checkout/orders/"+two+"/capture", "k", nil).want(200).says("id", one)
	a.get("/v2/checkout/orders/"+two).want(200).says("status", "APPROVED")
	a.post("/v2/checkout/orders", "k", orderBody("1.00")).want(201) // another call type
	a.post("/v2/checkout/orders", "k", orderBody("2.00")).want(200).says("purchase_units/0/amount/value", "1.00")
	capture := a.seed(paypal.CompletedCapture{})
	refund := "/v2/payments/captures/" + capture + "/refund"
	a.post(refund, "k", m{"amount": usd("1.00")}).want(201)
	a.post(refund, "k", m{"amount": usd("2.00")}).want(200).says("amount/value", "1.00")

	other := a.as("other-app")
	other.post(refund, "k", m{"amount": usd("2.00")}).want(201)
	a.effects("capture.refund", 2)

	shared := open(t, paypal.Config{MerchantKeys: true})
	capture = shared.seed(paypal.CompletedCapture{})
	refund = "/v2/payments/captures/" + capture + "/refund"
	shared.post(refund, "k", m{"amount": usd("1.00")}).want(201)
	shared.as("other-app").post(refund, "k", m{"amount": usd("1.00")}).want(200)
	shared.effects("capture.refund", 1)
}

// Another body under a known id: Vault and v1 refuse it, Orders and Payments
// only by the switch. What differs in spelling alone is the same body.
func TestOtherBodySameKey(t *testing.T) {
	a := open(t, paypal.Config{})
	a.post("/v3/vault/setup-tokens", "k", `{"payment_source":{"paypal":{"a":1,"b":2}}}`).want(201)
	a.post("/v3/vault/setup-tokens", "k", `{"payment_source":{"paypal":{"b":2, "a":1}}}`).want(200)
	a.post("/v3/vault/setup-tokens", "k", `{"payment_source":{"paypal":{"a":2,"b":2}}}`).want(422, "PAYPAL_REQUEST_ID_PREVIOUSLY_USED")
	a.post("/v1/catalogs/products", "k", m{"name": "A", "type": "SERVICE"}).want(201)
	a.post("/v1/catalogs/products", "k", m{"name": "B", "type": "SERVICE"}).want(400, "DUPLICATE_REQUEST_ID")
	a.effects("", 2)

	strict := open(t, paypal.Config{CompareBodies: true})
	strict.post("/v2/checkout/orders", "k", orderBody("1.00")).want(201)
	strict.post("/v2/checkout/orders", "k", orderBody("2.00")).want(422, "PAYPAL_REQUEST_ID_PREVIOUSLY_USED")
}

// A refusal is not remembered: the same id runs again when the reason is gone.
// With the switch it is.
func TestRefusalsRunAgain(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		a := open(t, paypal.Config{KeepRefusals: keeps})
		id := a.seed(paypal.ApprovedOrder{Outcome: "INSTRUMENT_DECLINED"})
		path := "/v2/checkout/orders/" + id + "/capture"
		a.post(path, "k", nil).want(422, "INSTRUMENT_DECLINED")
		a.seed(paypal.Approval{ID: id}) // the payer chose another card
		if keeps {
			// The body is the stored one, with the debug id of the first request.
			if r := a.post(path, "k", nil); r.status != 422 || r.text("details/0/issue") != "INSTRUMENT_DECLINED" {
				t.Errorf("a stored refusal came back as %d: %s", r.status, r.raw)
			}
			a.post(path, "k2", nil).want(201)
		} else {
			a.post(path, "k", nil).want(201)
		}
		a.effects("order.capture", 1)
	}
}

// A 500 that the provider stored, and a proxy's page, come back as they were.
func TestStoredFaultIsReplayed(t *testing.T) {
	a := open(t, paypal.Config{KeepRefusals: true})
	for i, kind := range []fakeprovider.Kind{fakeprovider.Status500, fakeprovider.HTML502} {
		if err := a.f.Inject(fakeprovider.Fault{Kind: kind, Operation: "order.create", Stored: true}); err != nil {
			t.Fatal(err)
		}
		req := func() int {
			r, err := http.NewRequest(http.MethodPost, a.url+"/v2/checkout/orders", strings.NewReader(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+a.token)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("PayPal-Request-Id", "k"+strconv.Itoa(i))
			res, err := a.http.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			return res.StatusCode
		}
		if first, second := req(), req(); first != second || first < 500 {
			t.Errorf("%s: %d, then %d", kind, first, second)
		}
	}
}

// Two at once: one runs, the other may get 409; a resend then gets the replay
// (C01). The effect is one however many come.
func TestConcurrentRequestsOnOneKey(t *testing.T) {
	a := open(t, paypal.Config{})
	id := a.seed(paypal.ApprovedOrder{})
	path := "/v2/checkout/orders/" + id + "/capture"
	if err := a.f.Inject(fakeprovider.Fault{Kind: fakeprovider.SlowApply, Operation: "order.capture"}); err != nil {
		t.Fatal(err)
	}
	done := make(chan answer)
	go func() { done <- a.post(path, "k", nil) }()
	a.await("order.capture", func(s fakeprovider.Snapshot) bool { return s.Held == 1 })
	a.post(path, "k", nil).want(409, "PREVIOUS_REQUEST_IN_PROGRESS").says("name", "RESOURCE_CONFLICT")
	a.f.Release()
	(<-done).want(201)
	a.post(path, "k", nil).want(200)

	statuses := make([]int, 24)
	refund := "/v2/payments/captures/" + a.seed(paypal.CompletedCapture{}) + "/refund"
	var wg sync.WaitGroup
	for i := range statuses {
		wg.Go(func() { statuses[i] = a.post(refund, "r", m{"amount": usd("1.00")}).status })
	}
	wg.Wait()
	created := 0
	for _, s := range statuses {
		switch s {
		case 201:
			created++
		case 200, 409:
		default:
			t.Errorf("a concurrent resend got %d", s)
		}
	}
	if created != 1 || a.f.EffectsOfKey("r") != 1 {
		t.Errorf("%d answers say 201 and the key had %d effects, want 1 and 1", created, a.f.EffectsOfKey("r"))
	}
}

// The documented limits of the id.
func TestKeyLength(t *testing.T) {
	a := open(t, paypal.Config{})
	a.post("/v2/checkout/orders", strings.Repeat("k", 108), orderBody("1.00")).want(201)
	a.post("/v2/checkout/orders", strings.Repeat("k", 109), orderBody("1.00")).want(400, "INVALID_PARAMETER_VALUE").
		says("details/0/location", "header")
	refund := "/v2/payments/captures/" + a.seed(paypal.CompletedCapture{}) + "/refund"
	a.post(refund, strings.Repeat("k", 10000), m{"amount": usd("1.00")}).want(201)
	a.post(refund, strings.Repeat("k", 10001), m{"amount": usd("1.00")}).want(400)
}

// Orders keeps ids up to 72 hours by arrangement.
func TestOrderWindowByArrangement(t *testing.T) {
	a := open(t, paypal.Config{OrderWindow: 72 * hour, TokenLifetime: 100 * hour})
	a.post("/v2/checkout/orders", "k", orderBody("1.00")).want(201)
	a.f.Advance(71 * hour)
	a.post("/v2/checkout/orders", "k", orderBody("1.00")).want(200)
}
