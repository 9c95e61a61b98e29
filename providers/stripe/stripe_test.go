package stripe

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// TestSettings holds what a Config must state, and that no error shows a key.
func TestSettings(t *testing.T) {
	t.Parallel()
	good := Config{Account: "acct_1", SecretKey: "sk_live_abc"}
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string // part of the error; "" for none
	}{
		{"good", func(*Config) {}, ""},
		{"restricted key", func(c *Config) { c.SecretKey = "rk_live_abc" }, ""},
		{"a key without a mode", func(c *Config) { c.SecretKey = "sk_fake" }, ""},
		{"test", func(c *Config) { c.Test, c.SecretKey = true, "sk_test_abc" }, ""},
		{"drop-in only", func(c *Config) { c.SecretKey = "" }, ""},
		{"no account", func(c *Config) { c.Account = "" }, "Config.Account"},
		{"no Stripe account", func(c *Config) { c.Account = "main" }, "Config.Account"},
		{"a newline after the account", func(c *Config) { c.Account += "\n" }, "trim it"},
		{"a newline after the key", func(c *Config) { c.SecretKey += "\n" }, "trim it"},
		{"a space before the key", func(c *Config) { c.SecretKey = " " + c.SecretKey }, "trim it"},
		{"a control character in the key", func(c *Config) { c.SecretKey += "\x00x" }, "control character"},
		{"publishable key", func(c *Config) { c.SecretKey = "pk_live_abc" }, "sk_… or rk_…"},
		{"test key, live mode", func(c *Config) { c.SecretKey = "sk_test_abc" }, "Config.Test is not set"},
		{"restricted test key, live mode", func(c *Config) { c.SecretKey = "rk_test_abc" }, "Config.Test is not set"},
		{"live key, test mode", func(c *Config) { c.Test = true }, "Config.Test is set"},
		{"organization key without a version", func(c *Config) { c.SecretKey = "sk_org_live_abc" }, "Config.Version"},
		{"organization key", func(c *Config) { c.SecretKey, c.Version = "sk_org_live_abc", "2025-09-30.clover" }, ""},
	} {
		cfg := good
		c.change(&cfg)
		err := (&access{Config: cfg}).check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "abc") {
			t.Errorf("%s: the error shows the key: %v", c.name, err)
		}
	}
}

func TestAccountOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header http.Header
		want   string
		fails  bool
	}{
		{http.Header{}, "", false},
		{http.Header{"Stripe-Account": {"acct_2"}}, "acct_2", false},
		{http.Header{"Stripe-Context": {"acct_2"}}, "acct_2", false},
		{http.Header{"Stripe-Context": {"acct_2/acct_3"}}, "acct_2/acct_3", false},
		{http.Header{"Stripe-Account": {"acct_2"}, "Stripe-Context": {"acct_2"}}, "acct_2", false},
		{http.Header{"Stripe-Account": {"acct_2"}, "Stripe-Context": {"acct_3"}}, "", true},
	} {
		got, err := accountOf(c.header)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%v: got %q, %v", c.header, got, err)
		}
	}
}

// TestAuthorize holds which credential and which account header a request gets.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	const shared = "sk_live_shared"
	perAccount := func(_ context.Context, account string) (string, error) { return "sk_live_of_" + account, nil }
	own := func(v string) []outbound.Field { return []outbound.Field{{Name: "Authorization", Value: v}} }
	for _, c := range []struct {
		name          string
		cfg           Config
		account, path string
		own           []outbound.Field
		want          http.Header
	}{
		{"own account", Config{SecretKey: shared}, "acct_1", "/v1/refunds", nil,
			http.Header{"Authorization": {"Bearer " + shared}}},
		{"connected account", Config{SecretKey: shared}, "acct_2", "/v1/refunds", nil,
			http.Header{"Authorization": {"Bearer " + shared}, "Stripe-Account": {"acct_2"}}},
		{"connected account, v2", Config{SecretKey: shared}, "acct_2", "/v2/core/accounts", nil,
			http.Header{"Authorization": {"Bearer " + shared}, "Stripe-Context": {"acct_2"}}},
		{"account below another", Config{SecretKey: shared}, "acct_2/acct_3", "/v1/refunds", nil,
			http.Header{"Authorization": {"Bearer " + shared}, "Stripe-Context": {"acct_2/acct_3"}}},
		{"a key for each account", Config{Credentials: perAccount}, "acct_2", "/v1/refunds", nil,
			http.Header{"Authorization": {"Bearer sk_live_of_acct_2"}}},
		{"organization", Config{SecretKey: "sk_org_live_x"}, "acct_1", "/v1/refunds", nil,
			http.Header{"Authorization": {"Bearer sk_org_live_x"}, "Stripe-Context": {"acct_1"}}},
		{"the caller's own", Config{SecretKey: shared}, "acct_1", "/v1/refunds", own("Bearer sk_live_mine"),
			http.Header{"Authorization": {"Bearer sk_live_mine"}}},
		{"the caller's own, for another account", Config{Credentials: perAccount}, "acct_2", "/v1/refunds", own("Bearer sk_live_mine"),
			http.Header{"Authorization": {"Bearer sk_live_mine"}, "Stripe-Account": {"acct_2"}}},
		{"base URL with a path", Config{SecretKey: shared, BaseURL: "http://127.0.0.1:1/base"}, "acct_2", "/base/v2/core/accounts", nil,
			http.Header{"Authorization": {"Bearer " + shared}, "Stripe-Context": {"acct_2"}}},
		{"an id that looks like v2", Config{SecretKey: shared}, "acct_2", "/v1/invoices/x%2Fv2%2Fy/pay", nil,
			http.Header{"Authorization": {"Bearer " + shared}, "Stripe-Account": {"acct_2"}}},
	} {
		c.cfg.Account = "acct_1"
		r, err := http.NewRequest(http.MethodPost, "https://api.stripe.com"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&access{Config: c.cfg}).authorize(t.Context(), c.account, c.own, r); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, name := range []string{"Authorization", "Stripe-Account", "Stripe-Context"} {
			if got, want := r.Header.Get(name), c.want.Get(name); got != want {
				t.Errorf("%s: %s %q, want %q", c.name, name, got, want)
			}
		}
	}
}

// TestAuthorizeRefusesOtherMode holds that a key of the other mode never leaves,
// and that the error does not show it (R16).
func TestAuthorizeRefusesOtherMode(t *testing.T) {
	t.Parallel()
	basic := "Basic c2tfdGVzdF9zZWNyZXQ6" // sk_test_secret:
	for _, c := range []struct {
		name string
		cfg  Config
		own  string
		want error
	}{
		{"bearer", Config{SecretKey: "sk_live_x"}, "Bearer sk_test_secret", outbound.ErrInvalid},
		{"basic", Config{SecretKey: "sk_live_x"}, basic, outbound.ErrInvalid},
		{"live key in test mode", Config{SecretKey: "sk_test_x", Test: true}, "Bearer rk_live_secret", outbound.ErrInvalid},
		{"from Credentials", Config{Credentials: func(context.Context, string) (string, error) { return "sk_test_secret", nil }}, "", outbound.ErrInvalid},
		{"no secret key from Credentials", Config{Credentials: func(context.Context, string) (string, error) { return "", nil }}, "", outbound.ErrAuth},
		{"no key at all", Config{}, "", outbound.ErrInvalid},
		{"a newline from Credentials", Config{Credentials: func(context.Context, string) (string, error) { return "sk_live_secret_\n", nil }}, "", outbound.ErrInvalid},
		{"vault down", Config{Credentials: func(context.Context, string) (string, error) { return "", context.DeadlineExceeded }}, "", context.DeadlineExceeded},
	} {
		c.cfg.Account = "acct_1"
		var own []outbound.Field
		if c.own != "" {
			own = []outbound.Field{{Name: "Authorization", Value: c.own}}
		}
		r, err := http.NewRequest(http.MethodPost, "https://api.stripe.com/v1/refunds", nil)
		if err != nil {
			t.Fatal(err)
		}
		err = (&access{Config: c.cfg}).authorize(t.Context(), "acct_1", own, r)
		if err == nil || !errors.Is(err, c.want) || strings.Contains(err.Error(), "secret_") || strings.Contains(err.Error(), "test_secret") {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}
