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
	"errors"
	"net/http"

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
	// (sk_test_…). A credential of the other mode is outbound.ErrInvalid before
	// anything is sent. Defaults to live mode. The mode is part of every key.
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

	// Version is the Stripe-Version of messages that state none, as
	// "2025-09-30.clover". It is frozen with the message: a resend after a deploy
	// carries the version of the first delivery. It is required for API v2 and for
	// organization keys. Defaults to the account's.
	Version string

	BaseURL   string            // Defaults to https://api.stripe.com.
	Transport http.RoundTripper // Defaults to httpadapter.DefaultTransport.
}

// New returns an adapter for one account and those that its key can act for.
// What is wrong with cfg is an error of outbound.New.
func New(cfg Config) *httpadapter.Adapter {
	if cfg.BaseURL == "" {
		cfg.BaseURL = defaultBaseURL
	}
	a := &access{Config: cfg}
	var defaults []outbound.Field
	if cfg.Version != "" {
		defaults = []outbound.Field{{Name: headerVersion, Value: cfg.Version}}
	}
	return httpadapter.New(codec{owners: newOwners(a)}, httpadapter.Config{
		Provider:    provider,
		Account:     cfg.Account,
		Mode:        a.mode(),
		BaseURL:     cfg.BaseURL,
		Operations:  Operations(),
		Frozen:      []string{headerVersion},
		Defaults:    defaults,
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
