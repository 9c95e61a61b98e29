package paypal_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

// Every seed works as a value, as a pointer and through the admin API, and is
// no effect.
func TestSeeds(t *testing.T) {
	a := open(t, paypal.Config{})
	waiting := a.post("/v2/checkout/orders", "", orderBody("1.00")).want(201).text("id")
	admin := httptest.NewServer(a.f.Admin())
	defer admin.Close()
	before := a.f.Effects("")
	seeds := paypal.New(paypal.Config{})().(fakeprovider.Seeder).Seeds()
	if len(seeds) != 8 {
		t.Errorf("there are %d seeds, want 8", len(seeds))
	}
	for name, zero := range seeds {
		if name == "approval" {
			zero = paypal.Approval{ID: waiting}
		}
		pointer := reflect.New(reflect.TypeOf(zero))
		pointer.Elem().Set(reflect.ValueOf(zero))
		for _, v := range []any{zero, pointer.Interface()} {
			if id, err := a.f.Seed(v); err != nil || (id == "" && name != "revoked_tokens") {
				t.Errorf("seed %s: %q, %v", name, id, err)
			}
		}
		body := encode(t, m{"type": name, "object": zero})
		res, err := http.Post(admin.URL+"/seed", "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode >= 300 {
			t.Errorf("the admin API does not take seed %s: %d", name, res.StatusCode)
		}
	}
	a.effects("", before)
}

func TestBadSeeds(t *testing.T) {
	a := open(t, paypal.Config{})
	done := a.seed(paypal.ApprovedOrder{})
	a.post("/v2/checkout/orders/"+done+"/capture", "k", nil).want(201)
	for _, bad := range []any{
		nil, 7, struct{}{}, paypal.ApprovedOrder{Value: "x"}, paypal.ApprovedOrder{Currency: "XXX"}, paypal.ApprovedOrder{Intent: "BUY"},
		paypal.ApprovedOrder{Outcome: "DENIED"}, paypal.CreatedAuthorization{Age: -1}, paypal.CreatedAuthorization{Outcome: "DENIED"},
		paypal.CreatedAuthorization{Value: "0"}, paypal.CompletedCapture{RefundOutcome: "DECLINED"}, paypal.CompletedCapture{Value: "-1"},
		paypal.ActiveSubscription{Status: "EXPIRED"}, paypal.ActiveSubscription{PlanID: "NONE"},
		paypal.Approval{}, paypal.Approval{ID: "NONE"}, paypal.Approval{ID: done}, paypal.RevokedTokens{Token: "none"},
	} {
		if id, err := a.f.Seed(bad); err == nil {
			t.Errorf("the seed %#v was taken as %q", bad, id)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("the error has more than one line: %v", err)
		}
	}
}

// The same seed and the same requests give the same ids, and a reset starts
// over.
func TestIdsAreRepeatable(t *testing.T) {
	one, two := open(t, paypal.Config{}), open(t, paypal.Config{})
	a, b := one.seed(paypal.ApprovedOrder{}), two.seed(paypal.ApprovedOrder{})
	if a != b {
		t.Errorf("two fakes of one seed made %s and %s", a, b)
	}
	one.f.Reset()
	one.get("/v2/checkout/orders/"+a).want(401, "invalid_token")
	one.as("app").get("/v2/checkout/orders/" + a).want(404)
}

// What happened is published, with the object as it was.
func TestEvents(t *testing.T) {
	a := open(t, paypal.Config{})
	order := a.seed(paypal.ApprovedOrder{})
	capture := a.post("/v2/checkout/orders/"+order+"/capture", "k", nil).want(201).text("purchase_units/0/payments/captures/0/id")
	a.post("/v2/payments/captures/"+capture+"/refund", "r", nil).want(201)
	a.post("/v2/payments/captures/"+capture+"/refund", "r", nil).want(200) // a replay tells nothing
	events := a.f.Events()
	if len(events) != 2 || events[0].Type != "PAYMENT.CAPTURE.COMPLETED" || events[1].Type != "PAYMENT.CAPTURE.REFUNDED" {
		t.Fatalf("the events are %+v", events)
	}
	e := events[0]
	if e.Key != "k" || !strings.HasPrefix(e.ID, "WH-") || !strings.Contains(string(e.Object), capture) || e.Account != "FAKEMERCHANT1" {
		t.Errorf("the event is %+v: %s", e, e.Object)
	}
}
