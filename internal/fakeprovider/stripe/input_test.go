package stripe_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// Bad input gets a 4xx in Stripe's shape, and has no effect.
func TestBadInput(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	pi := "/v1/payment_intents"
	many := url.Values{"name": {"a"}}
	for i := range 51 {
		many.Set("metadata["+strings.Repeat("k", i%30+1)+string(rune('a'+i/30))+"]", "v")
	}
	for _, c := range []struct {
		name, path, body string
		status           int
		code             string
	}{
		{"no amount", pi, "currency=eur", 400, "parameter_missing"},
		{"no currency", pi, "amount=1", 400, "parameter_missing"},
		{"amount is text", pi, "amount=x&currency=eur", 400, "parameter_invalid_integer"},
		{"amount is a float", pi, "amount=1.5&currency=eur", 400, "parameter_invalid_integer"},
		{"amount overflows", pi, "amount=99999999999999999999&currency=eur", 400, "parameter_invalid_integer"},
		{"amount is too large", pi, "amount=100000000&currency=eur", 400, "amount_too_large"},
		{"amount is zero", pi, "amount=0&currency=eur", 400, ""},
		{"amount is an object", pi, "amount[x]=1&currency=eur", 400, "parameter_missing"},
		{"currency is long", pi, "amount=1&currency=euro", 400, ""},
		{"unknown parameter", pi, "amount=1&currency=eur&amuont=2", 400, "parameter_unknown"},
		{"flag is text", pi, "amount=1&currency=eur&confirm=yes", 400, ""},
		{"unknown enumeration", pi, "amount=1&currency=eur&capture_method=never", 400, ""},
		{"unknown customer", pi, "amount=1&currency=eur&customer=cus_none", 404, "resource_missing"},
		{"unknown payment method", pi, "amount=1&currency=eur&payment_method=nonsense", 404, "resource_missing"},
		{"unknown intent", pi + "/pi_none/capture", "", 404, "resource_missing"},
		{"both value and object", "/v1/customers", "name=a&metadata=x&metadata[k]=v", 400, ""},
		{"open bracket", "/v1/customers", "metadata[k=v", 400, ""},
		{"bad escape", "/v1/customers", "name=%zz", 400, ""},
		{"too deep", "/v1/customers", "a" + strings.Repeat("[b]", 20) + "=1", 400, ""},
		{"too many pairs", "/v1/customers", strings.Repeat("a[]=1&", 3000), 400, ""},
		{"metadata key", "/v1/customers", form("metadata["+strings.Repeat("k", 41)+"]", "v"), 400, ""},
		{"metadata value", "/v1/customers", form("metadata[k]", strings.Repeat("v", 501)), 400, ""},
		{"metadata count", "/v1/customers", many.Encode(), 400, ""},
		{"metadata object", "/v1/customers", "metadata[a][b]=c", 400, ""},
		{"refund of nothing", "/v1/refunds", "amount=1", 400, ""},
		{"items are texts", "/v1/subscriptions", "customer=" + a.seed(stripe.Customer{}) + "&items[0]=x", 400, ""},
		{"line items are texts", "/v1/checkout/sessions", "line_items[0]=x", 400, ""},
		{"no route", "/v1/nothing", "", 404, ""},
		{"v2: no JSON", "/v2/core/accounts", "{", 400, ""},
		{"v2: an array", "/v2/core/accounts", "[]", 400, ""},
		{"v2: two values", "/v2/core/accounts", "{}{}", 400, ""},
		{"v2: no events", "/v2/core/event_destinations", `{"name":"n","enabled_events":"x"}`, 400, "parameter_missing"},
		{"v2: wrong kinds", "/v2/core/event_destinations", `{"name":{},"metadata":[1],"webhook_endpoint":7}`, 400, "parameter_missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &api{t, a.fake}
			b.post(c.path, c.body, key("k "+c.name)).failed(c.status, "invalid_request_error", c.code)
		})
	}
	a.post("/v1/customers", "name=a", key(strings.Repeat("k", 256))).failed(400, "invalid_request_error", "")
	a.post("/v1/customers", `{"name":"a"}`, header("Content-Type", "application/json")).failed(400, "invalid_request_error", "")
	a.post("/v2/core/accounts", `a=b`, header("Content-Type", "text/plain")).failed(400, "invalid_request_error", "")
	a.call("PUT", "/v1/customers", "").failed(404, "invalid_request_error", "")
	a.effects("", 0)

	lenient := newAPI(t, stripe.Config{Lenient: true})
	lenient.post(pi, "amount=1&currency=eur&amuont=2").ok()
}

func TestLimitsThatAreJustMet(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	a.post("/v1/customers", form("metadata["+strings.Repeat("é", 40)+"]", strings.Repeat("ü", 500)),
		key(strings.Repeat("k", 255))).ok()
	if got := a.post("/v1/payment_intents", "amount=99999999&currency=EUR").ok().str("currency"); got != "eur" {
		t.Errorf("currency %q, want eur", got)
	}
}

// A card number that a request brings is kept nowhere.
func TestCardDataIsNotKept(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	r := a.post("/v1/payment_intents", form("amount", "1000", "currency", "eur", "confirm", "true",
		"payment_method_data[type]", "card", "payment_method_data[card][number]", "4242424242424242"), key("k")).ok()
	for _, path := range []string{"/v1/payment_intents/" + r.id(), "/v1/events", "/v1/charges"} {
		if strings.Contains(a.get(path).ok().raw, "4242424242424242") {
			t.Errorf("%s shows the card number", path)
		}
	}
}
