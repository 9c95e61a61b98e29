package paypal

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
)

func newAuthorizer(cfg Config) *authorizer {
	return &authorizer{cfg: cfg, tokens: newSource(&tokenServer{life: 32400})}
}

var ownApp = Config{Account: "7LNZBW6JPQ3TN", ClientID: "a", Secret: "secret-of-a"}

func authorized(t *testing.T, a *authorizer, account string, own ...outbound.Field) http.Header {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.test/v2/checkout/orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.authorize(t.Context(), account, own, r); err != nil {
		t.Fatal(err)
	}
	if got := r.Header.Get("Prefer"); got != "return=representation" {
		t.Errorf("Prefer = %q", got)
	}
	return r.Header
}

func hold(t *testing.T, h http.Header, authorization, assertion string) {
	t.Helper()
	if got := h.Get("Authorization"); got != authorization {
		t.Errorf("Authorization = %q, want %q", got, authorization)
	}
	if got := h.Get("PayPal-Auth-Assertion"); got != assertion {
		t.Errorf("PayPal-Auth-Assertion = %q, want %q", got, assertion)
	}
}

func encoded(header, payload string) string {
	e := base64.RawURLEncoding.EncodeToString
	return e([]byte(header)) + "." + e([]byte(payload)) + "."
}

func TestAuthorizeAccounts(t *testing.T) {
	t.Parallel()
	a := newAuthorizer(ownApp)
	hold(t, authorized(t, a, "7LNZBW6JPQ3TN"), "Bearer A21-1", "")
	hold(t, authorized(t, a, "OTHER"), "Bearer A21-1", encoded(`{"alg":"none"}`, `{"iss":"a","payer_id":"OTHER"}`))

	many := newAuthorizer(Config{Account: "ONE", Credentials: func(_ context.Context, account string) (string, string, error) {
		return account, "secret-of-" + account, nil
	}})
	hold(t, authorized(t, many, "ONE"), "Bearer A21-1", "")
	hold(t, authorized(t, many, "TWO"), "Bearer A21-2", "")
	hold(t, authorized(t, many, "ONE"), "Bearer A21-1", "")
}

// Under a drop-in the caller's token is sent; after PayPal refused it, ours
// (C21). A caller who keeps sending it costs no refused attempt any more.
func TestAuthorizeOwnToken(t *testing.T) {
	t.Parallel()
	a := newAuthorizer(ownApp)
	own := outbound.Field{Name: "authorization", Value: "Bearer theirs"}
	theirs := outbound.Field{Name: "Paypal-Auth-Assertion", Value: encoded(`{"alg":"none"}`, `{"iss":"x","payer_id":"OTHER"}`)}
	hold(t, authorized(t, a, "7LNZBW6JPQ3TN", own), "Bearer theirs", "")
	hold(t, authorized(t, a, "OTHER", own, theirs), "Bearer theirs", theirs.Value)
	hold(t, authorized(t, a, "OTHER", own), "Bearer theirs", encoded(`{"alg":"none"}`, `{"iss":"a","payer_id":"OTHER"}`))

	rejected, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	rejected.Header.Set("Authorization", "Bearer theirs")
	if err := a.refresh(t.Context(), "7LNZBW6JPQ3TN", rejected); err != nil {
		t.Fatal(err)
	}
	hold(t, authorized(t, a, "7LNZBW6JPQ3TN", own), "Bearer A21-1", "")
	hold(t, authorized(t, a, "OTHER", own, theirs), "Bearer A21-1", encoded(`{"alg":"none"}`, `{"iss":"a","payer_id":"OTHER"}`))
	hold(t, authorized(t, a, "7LNZBW6JPQ3TN", outbound.Field{Name: "Authorization", Value: "Bearer renewed"}), "Bearer renewed", "")
}

// The list of refused tokens is bounded: the oldest is forgotten.
func TestRejectedTokensAreBounded(t *testing.T) {
	t.Parallel()
	s := newSource(&tokenServer{})
	for i := range len(s.foreign) + 1 {
		s.reject("a", "token-"+strings.Repeat("x", i))
	}
	if s.rejected("token-") {
		t.Error("the oldest refused token is still known")
	}
	if !s.rejected("token-x") || !s.rejected("token-"+strings.Repeat("x", len(s.foreign))) {
		t.Error("a newer refused token was forgotten")
	}
}

func TestAuthorizeFailures(t *testing.T) {
	t.Parallel()
	broken := errors.New("vault is sealed")
	for name, c := range map[string]struct {
		cfg  Config
		is   error
		auth bool
	}{
		"wrong secret":       {Config{Account: "M", ClientID: "a", Secret: "wrong"}, outbound.ErrAuth, true},
		"no credentials":     {Config{Account: "M", Credentials: func(context.Context, string) (string, string, error) { return "", "", nil }}, outbound.ErrAuth, true},
		"credentials failed": {Config{Account: "M", Credentials: func(context.Context, string) (string, string, error) { return "", "", broken }}, broken, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			err = newAuthorizer(c.cfg).authorize(t.Context(), "M", nil, r)
			if !errors.Is(err, c.is) || errors.Is(err, outbound.ErrAuth) != c.auth {
				t.Errorf("err = %v", err)
			}
			if strings.Contains(err.Error(), "wrong") {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

func TestAccountOf(t *testing.T) {
	t.Parallel()
	padded := base64.StdEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.StdEncoding.EncodeToString([]byte(`{"iss":"id?>","payer_id":"OTHER"}`)) + "."
	for name, c := range map[string]struct {
		assertion, account, says string
	}{
		"none":       {"", "", ""},
		"payer id":   {encoded(`{"alg":"none"}`, `{"iss":"a","payer_id":"OTHER"}`), "OTHER", ""},
		"padded":     {padded, "OTHER", ""},
		"signed":     {encoded(`{"alg":"RS256"}`, `{"payer_id":"OTHER"}`) + "c2ln", "OTHER", ""},
		"e-mail":     {encoded(`{"alg":"none"}`, `{"iss":"a","email":"m@example.com"}`), "", "payer_id"},
		"no JWT":     {"abc", "", "payer_id"},
		"no base64":  {"a.%%.", "", "payer_id"},
		"no payload": {"a..", "", "payer_id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			if c.assertion != "" {
				h.Set("PayPal-Auth-Assertion", c.assertion)
			}
			account, err := accountOf(h)
			if account != c.account || (err != nil) != (c.says != "") {
				t.Fatalf("account %q, err %v", account, err)
			}
			if err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "example.com")) {
				t.Errorf("err = %v, want it to say %q and show no value", err, c.says)
			}
		})
	}
}

func TestConfigProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  Config
		says string
	}{
		"fine":                {ownApp, ""},
		"fine, sandbox":       {Config{Account: "M", ClientID: "a", Secret: "s", Sandbox: true}, ""},
		"fine, elsewhere":     {Config{Account: "M", ClientID: "a", Secret: "s", Sandbox: true, BaseURL: "http://127.0.0.1:1"}, ""},
		"no account":          {Config{ClientID: "a", Secret: "s"}, "state the merchant id"},
		"e-mail":              {Config{Account: "m@example.com", ClientID: "a", Secret: "s"}, "state the merchant id"},
		"untidy account":      {Config{Account: "M\n", ClientID: "a", Secret: "s"}, "Config.Account: it holds white space"},
		"untidy client id":    {Config{Account: "M", ClientID: " a", Secret: "s"}, "Config.ClientID: it holds white space"},
		"untidy secret":       {Config{Account: "M", ClientID: "a", Secret: "s\r\n"}, "Config.Secret: it holds white space"},
		"a control character": {Config{Account: "M", ClientID: "a", Secret: "s\x00s"}, "Config.Secret: it holds white space or a control character"},
		"no secret":           {Config{Account: "M", ClientID: "a"}, "Config.Secret"},
		"live at the sandbox": {Config{Account: "M", ClientID: "a", Secret: "s", BaseURL: "https://api-m.sandbox.paypal.com"}, "state them alike"},
		"sandbox at live":     {Config{Account: "M", ClientID: "a", Secret: "s", Sandbox: true, BaseURL: "https://api-m.paypal.com"}, "state them alike"},
		"no URL":              {Config{Account: "M", ClientID: "a", Secret: "s", BaseURL: "api-m.paypal.com"}, "absolute URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			profile, err := New(c.cfg).Profile()
			if c.says == "" {
				mode := map[bool]string{false: "live", true: "sandbox"}[c.cfg.Sandbox]
				if err != nil || profile.Provider != "paypal" || profile.Mode != mode || profile.Account != c.cfg.Account || !profile.Credentials {
					t.Errorf("profile %+v, err %v", profile, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("err = %v, want it to say %q", err, c.says)
			}
		})
	}
}

// Without an app of its own the adapter serves calls that bring a token, for the
// account that the token is of or that they name, and nothing in the background.
func TestNeedsCaller(t *testing.T) {
	t.Parallel()
	cfg := Config{Account: "7LNZBW6JPQ3TN"}
	adapter := New(cfg)
	profile, err := adapter.Profile()
	if err != nil || profile.Credentials {
		t.Errorf("profile %+v, %v; want no credentials of its own", profile, err)
	}
	if profile, err = New(ownApp).Profile(); err != nil || !profile.Credentials {
		t.Errorf("profile %+v, %v; want credentials of its own", profile, err)
	}
	for _, half := range []Config{{Account: "M", ClientID: "a"}, {Account: "M", Secret: "s"}} {
		if _, err := New(half).Profile(); err == nil || !strings.Contains(err.Error(), "state both") {
			t.Errorf("half an app: %v", err)
		}
	}

	a := newAuthorizer(cfg)
	own := outbound.Field{Name: "Authorization", Value: "Bearer theirs"}
	theirs := outbound.Field{Name: "PayPal-Auth-Assertion", Value: encoded(`{"alg":"none"}`, `{"iss":"x","payer_id":"OTHER"}`)}
	hold(t, authorized(t, a, "7LNZBW6JPQ3TN", own), "Bearer theirs", "")
	hold(t, authorized(t, a, "OTHER", own, theirs), "Bearer theirs", theirs.Value)
	for name, c := range map[string]struct {
		account string
		own     []outbound.Field
	}{
		"no token":                    {"7LNZBW6JPQ3TN", nil},
		"another account, none named": {"OTHER", []outbound.Field{own}},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.authorize(t.Context(), c.account, c.own, r); !errors.Is(err, outbound.ErrAuth) {
			t.Errorf("%s: %v; want ErrAuth", name, err)
		}
		if len(r.Header.Values("Authorization")) != 0 {
			t.Errorf("%s: something was set", name)
		}
	}
}
