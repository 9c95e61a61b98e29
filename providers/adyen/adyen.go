// Package adyen adapts Adyen's Checkout API to package outbound, for merchants whose
// service pays, captures, refunds and cancels through it.
//
// Adyen repeats the key on its answers, first ones too: that is no sign of a replay,
// and none is taken for one. A lost payment is resent for seven days; nothing reads
// one back, so that after them a person decides. Modifications are accepted first
// and done later: they are pending, and Adyen's webhooks tell the end.
package adyen

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

const (
	headerAPIKey    = "X-API-Key"
	headerReference = "Pspreference"
	testBaseURL     = "https://checkout-test.adyen.com/v71"
)

// Config is what an adapter needs to know. Account is required, and BaseURL in live
// mode.
type Config struct {
	// Account is the merchant account, which every body names. It is part of every
	// key.
	Account string
	APIKey  string // Without one the adapter serves a drop-in only.
	Test    bool   // The mode is part of every key. Defaults to live.

	// BaseURL is the Checkout API of one region, with its version: one region knows
	// nothing of another's keys. Defaults to https://checkout-test.adyen.com/v71 in
	// test mode; a live one has the merchant's own prefix.
	BaseURL   string
	Transport http.RoundTripper // Defaults to httpadapter.DefaultTransport.
}

// New returns an adapter. What is wrong with cfg is an error of outbound.New.
func New(cfg Config) *httpadapter.Adapter {
	mode := "live"
	if cfg.Test {
		mode, cfg.BaseURL = "test", cmp.Or(cfg.BaseURL, testBaseURL)
	}
	var wrong error
	if cfg.BaseURL == "" {
		wrong = errors.New("adyen.Config: BaseURL is required in live mode, with your prefix: https://…-checkout-live.adyenpayments.com/checkout/v71")
	}
	return httpadapter.New(codec{}, httpadapter.Config{
		Provider: "adyen", Account: cfg.Account, Mode: mode, BaseURL: cfg.BaseURL, Transport: cfg.Transport,
		Operations: Operations(), Credentials: []string{headerAPIKey, "Authorization"}, SettingsErr: wrong,
		Authorize: httpadapter.Credential(headerAPIKey, "", cfg.APIKey), NeedsCaller: cfg.APIKey == "",
	})
}

// The constructors take anything that encodes as the JSON that Adyen documents;
// amounts are integers in minor units.

// PaymentCreate makes a payment. The mark is stamped into its metadata.
func PaymentCreate(cmd outbound.Command, body any) outbound.Call {
	return httpadapter.JSONCall(paymentCreate, cmd, nil, body)
}

// PaymentCapture captures a payment, in part or in full. The mark is stamped as
// reference where body leaves it free.
func PaymentCapture(cmd outbound.Command, pspReference string, body any) outbound.Call {
	return httpadapter.JSONCall(paymentCapture, cmd, []string{pspReference}, body)
}

// PaymentRefund refunds a captured payment, in part or in full. The mark is stamped
// as reference where body leaves it free.
func PaymentRefund(cmd outbound.Command, pspReference string, body any) outbound.Call {
	return httpadapter.JSONCall(paymentRefund, cmd, []string{pspReference}, body)
}

// PaymentCancel cancels an authorisation that was not captured. The mark is stamped
// as reference where body leaves it free.
func PaymentCancel(cmd outbound.Command, pspReference string, body any) outbound.Call {
	return httpadapter.JSONCall(paymentCancel, cmd, []string{pspReference}, body)
}
