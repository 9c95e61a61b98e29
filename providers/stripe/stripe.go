// Package stripe adapts Stripe's API v1 and v2 to package outbound.
//
//	payments, err := outbound.New(
//		stripe.New(stripe.Config{Account: "acct_1Nv0FG", SecretKey: key}), ledger, opts)
//	reply, err := payments.Do(ctx, stripe.RefundCreate(cmd, url.Values{"charge": {"ch_1"}}))
//
// Each function that makes a Call is named after its operation: refund.create
// is RefundCreate. API v1 takes form parameters in Stripe's own notation,
// "metadata[order]"; API v2 takes anything that encodes as JSON. What is known
// of each operation, with sources, is in Operations.
package stripe

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

const (
	provider       = "stripe"
	defaultBaseURL = "https://api.stripe.com"

	headerAccount = "Stripe-Account"
	headerContext = "Stripe-Context"
	headerVersion = "Stripe-Version"

	modeLive = "live"
	modeTest = "test"
)

// Config is what an adapter needs to know. Account is required. Without
// SecretKey and Credentials the adapter serves a drop-in only, and nothing in
// the background.
type Config struct {
	// Account is Stripe's id of the account that SecretKey belongs to, "acct_…".
	// It is part of every key, so all services must state it alike.
	Account string

	// Test says that the credentials are those of test mode or a sandbox
	// (sk_test_…). A credential of the other mode is refused before anything is
	// sent. Defaults to live mode. The mode is part of every key.
	Test bool

	// SecretKey is sk_… or rk_…. Under a drop-in it is used in the background
	// only: a caller's request is sent with the key that the caller brought.
	SecretKey string

	// Credentials returns the key of an account, where there are many. It is
	// asked at every attempt, so it should cache. An error that wraps
	// outbound.ErrAuth says that there is none; any other is taken as passing.
	// Defaults to SecretKey for all, with Stripe-Account where the account
	// differs from Account.
	Credentials func(ctx context.Context, account string) (string, error)

	// Version is the Stripe-Version of native calls, as "2025-09-30.clover". It
	// is required for API v2 and for organization keys. Defaults to the account's.
	Version string

	BaseURL   string            // Defaults to https://api.stripe.com.
	Transport http.RoundTripper // Defaults to a clone of http.DefaultTransport.
}

// New returns an adapter for one account and those that its key can act for.
// What is wrong with cfg is an error of outbound.New.
func New(cfg Config) *httpadapter.Adapter {
	if cfg.BaseURL == "" {
		cfg.BaseURL = defaultBaseURL
	}
	a := &access{Config: cfg}
	return httpadapter.New(codec{version: cfg.Version}, httpadapter.Config{
		Provider:    provider,
		Account:     cfg.Account,
		Mode:        a.mode(),
		BaseURL:     cfg.BaseURL,
		Operations:  Operations(),
		Frozen:      []string{headerVersion},
		AccountOf:   accountOf,
		Authorize:   a.authorize,
		NeedsCaller: cfg.SecretKey == "" && cfg.Credentials == nil,
		SettingsErr: a.check(),
		Transport:   cfg.Transport,
	})
}

// accountOf reads the account from a caller's request. Stripe-Context
// supersedes Stripe-Account and means the same where it names one account.
// Source: https://docs.stripe.com/context.
func accountOf(h http.Header) (string, error) {
	account, scope := h.Get(headerAccount), h.Get(headerContext)
	if account != "" && scope != "" && account != scope {
		return "", errors.New("stripe: the request names two accounts: set Stripe-Context or Stripe-Account, not both")
	}
	if scope != "" {
		return scope, nil
	}
	return account, nil
}

// access sets credentials and account headers.
type access struct{ Config }

func (a *access) mode() string {
	if a.Test {
		return modeTest
	}
	return modeLive
}

func (a *access) check() error {
	if !strings.HasPrefix(a.Account, "acct_") {
		return errors.New("stripe: Config.Account must be Stripe's id of the account, acct_…")
	}
	if a.SecretKey != "" {
		if err := a.checkKey(a.SecretKey); err != nil {
			return fmt.Errorf("stripe: Config.SecretKey: %w", err)
		}
		if organization(a.SecretKey) && a.Version == "" {
			return errors.New("stripe: an organization key needs Config.Version")
		}
	}
	return nil // BaseURL is checked by httpadapter
}

// checkKey refuses what is no secret key and a key of the other mode. A key
// that tells no mode is taken.
func (a *access) checkKey(key string) error {
	if !strings.HasPrefix(key, "sk_") && !strings.HasPrefix(key, "rk_") {
		return errors.New("expected a secret or restricted key, sk_… or rk_…")
	}
	return a.checkMode(key)
}

func (a *access) checkMode(key string) error {
	switch mode := keyMode(key); {
	case mode == "" || mode == a.mode():
		return nil
	case mode == modeLive:
		return errors.New("a live key, but Config.Test is set")
	default:
		return errors.New("a test key, but Config.Test is not set")
	}
}

// keyMode returns the mode that a key states; "" if it states none.
func keyMode(key string) string {
	for _, prefix := range []string{"sk_", "rk_"} {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		rest = strings.TrimPrefix(rest, "org_")
		for _, mode := range []string{modeLive, modeTest} {
			if strings.HasPrefix(rest, mode+"_") {
				return mode
			}
		}
	}
	return ""
}

// organization reports whether key acts for all accounts of an organization.
// Source: https://docs.stripe.com/keys/organization-api-keys.
func organization(key string) bool { return strings.HasPrefix(key, "sk_org") }

// authorize sets the credential and the account header of one attempt. The
// credential never appears in its errors.
func (a *access) authorize(ctx context.Context, account string, own []outbound.Field, r *http.Request) error {
	key, mayActForOthers := a.SecretKey, true
	switch {
	case own != nil:
		for _, f := range own {
			r.Header.Set(f.Name, f.Value)
		}
		key = secretIn(r.Header.Get("Authorization"))
		if err := a.checkMode(key); err != nil {
			return fmt.Errorf("%w: stripe: the request's own key: %w", outbound.ErrAuth, err)
		}
	case a.Credentials != nil:
		var err error
		if key, err = a.Credentials(ctx, account); err != nil {
			return fmt.Errorf("stripe: Config.Credentials: %w", err)
		}
		if err = a.checkKey(key); err != nil {
			return fmt.Errorf("%w: stripe: Config.Credentials: %w", outbound.ErrAuth, err)
		}
		mayActForOthers = false
	case a.SecretKey == "":
		return fmt.Errorf("%w: stripe: set Config.SecretKey or Config.Credentials to send without a caller's own key", outbound.ErrAuth)
	}
	if own == nil {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if a.Version != "" && r.Header.Get(headerVersion) == "" && (own == nil || a.isV2(r.URL)) {
		r.Header.Set(headerVersion, a.Version) // of native calls and look-ups: an SDK states its own
	}
	switch {
	case organization(key):
		r.Header.Set(headerContext, account) // it stands on every request of such a key
	case account == a.Account || !mayActForOthers:
	case strings.Contains(account, "/") || a.isV2(r.URL):
		r.Header.Set(headerContext, account)
	default:
		r.Header.Set(headerAccount, account)
	}
	return nil
}

func (a *access) isV2(u *url.URL) bool {
	path := u.EscapedPath()
	if base, err := url.Parse(a.BaseURL); err == nil {
		path = strings.TrimPrefix(path, strings.TrimSuffix(base.EscapedPath(), "/"))
	}
	return strings.HasPrefix(path, "/v2/")
}

// secretIn returns the key in an Authorization header, bearer or basic; "" if
// there is none.
func secretIn(authorization string) string {
	kind, value, _ := strings.Cut(authorization, " ")
	switch {
	case strings.EqualFold(kind, "Bearer"):
		return strings.TrimSpace(value)
	case strings.EqualFold(kind, "Basic"):
		b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
		if err != nil {
			return ""
		}
		user, _, _ := strings.Cut(string(b), ":")
		return user
	}
	return ""
}
