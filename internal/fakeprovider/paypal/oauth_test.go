package paypal_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

func TestTokenAnswer(t *testing.T) {
	a := open(t, paypal.Config{})
	got := a.login("app", "secret").want(200).says("token_type", "Bearer")
	if got.at("expires_in") != 32400.0 {
		t.Errorf("expires_in is %v, want 32400", got.at("expires_in"))
	}
	for _, name := range []string{"access_token", "app_id", "nonce", "scope"} {
		if got.text(name) == "" {
			t.Errorf("the answer has no %s", name)
		}
	}
	if got.text("access_token") == a.token {
		t.Error("two fetches gave one token")
	}
	if n := len(a.f.Requests("token")); n != 2 {
		t.Errorf("%d token fetches in the log, want 2", n)
	}
	a.effects("", 0)
}

func TestBadCredentials(t *testing.T) {
	a := open(t, paypal.Config{ClientID: "app", Secret: "secret"})
	a.login("app", "secret").want(200)
	a.login("app", "other").want(401, "invalid_client")
	a.login("other", "secret").want(401, "invalid_client")
	a.login("", "").want(401, "invalid_client")

	for body, want := range map[string]string{
		"grant_type=password": "unsupported_grant_type",
		"%zz":                 "unsupported_grant_type",
		"":                    "unsupported_grant_type",
	} {
		req, err := http.NewRequest(http.MethodPost, a.url+"/v1/oauth2/token", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("app", "secret")
		a.send(req).want(400, want)
	}
}

// C21: the token vanishes on PayPal's side; a new one works with the same id,
// and nothing happened in between.
func TestTokenVanishes(t *testing.T) {
	a := open(t, paypal.Config{})
	order := a.seed(paypal.ApprovedOrder{})
	path := "/v2/checkout/orders/" + order + "/capture"
	a.seed(paypal.RevokedTokens{})
	a.post(path, "k", nil).want(401, "invalid_token")
	a.get("/v2/checkout/orders/"+order).want(401, "invalid_token")
	a.effects("order.capture", 0)
	fresh := a.as("app")
	fresh.post(path, "k", nil).want(201)
	fresh.seed(paypal.RevokedTokens{Token: fresh.token})
	fresh.post(path, "k", nil).want(401, "invalid_token") // a replay needs a token too
	a.as("app").post(path, "k", nil).want(200)
	a.effects("order.capture", 1)

	if err := a.f.Inject(fakeprovider.Fault{Kind: fakeprovider.Unauthorized, Operation: "order.create"}); err != nil {
		t.Fatal(err)
	}
	again := a.as("app")
	again.post("/v2/checkout/orders", "k", orderBody("1.00")).want(401, "AUTHENTICATION_FAILURE")
	again.post("/v2/checkout/orders", "k", orderBody("1.00")).want(201)
}

// Tokens expire on the provider's clock.
func TestTokenExpires(t *testing.T) {
	a := open(t, paypal.Config{TokenLifetime: time.Hour})
	a.f.Advance(time.Hour - time.Second)
	a.post("/v2/checkout/orders", "k", orderBody("1.00")).want(201)
	a.f.Advance(time.Second)
	a.post("/v2/checkout/orders", "k", orderBody("1.00")).want(401, "invalid_token")
	a.as("app").post("/v2/checkout/orders", "k", orderBody("1.00")).want(200)
}

func TestNoCredentials(t *testing.T) {
	a := open(t, paypal.Config{})
	for _, header := range []string{"", "Bearer", "Basic YTpi", "Bearer "} {
		a.call(http.MethodPost, "/v2/checkout/orders", "k", orderBody("1.00"), "Authorization", header).
			want(401, "AUTHENTICATION_FAILURE")
	}
	for _, header := range []string{"Bearer x", "Bearer A21AA", "Bearer A21AA%%%.x", "bearer A21AAYXBw.forged"} {
		a.call(http.MethodPost, "/v2/checkout/orders", "k", orderBody("1.00"), "Authorization", header).
			want(401, "invalid_token")
	}
	a.effects("", 0)

	lenient := open(t, paypal.Config{Lenient: true})
	lenient.call(http.MethodPost, "/v2/checkout/orders", "k", orderBody("1.00"), "Authorization", "").want(201)
}

// Whose token it is, and whose orders.
func TestMerchantIsTold(t *testing.T) {
	a := open(t, paypal.Config{MerchantID: "7LNZBW6JPQ3TN"})
	a.get("/v1/identity/oauth2/userinfo?schema=paypalv1.1").want(200).says("payer_id", "7LNZBW6JPQ3TN")
	a.get("/v1/identity/oauth2/userinfo").want(400, "INVALID_PARAMETER_VALUE")
	a.get("/v2/checkout/orders/"+a.seed(paypal.ApprovedOrder{})).want(200).says("purchase_units/0/payee/merchant_id", "7LNZBW6JPQ3TN")
	theirs := m{"intent": "CAPTURE", "purchase_units": []m{{"amount": usd("1.00"), "payee": m{"merchant_id": "OTHER"}}}}
	a.post("/v2/checkout/orders", "k", theirs).want(201).says("purchase_units/0/payee/merchant_id", "OTHER")
}
