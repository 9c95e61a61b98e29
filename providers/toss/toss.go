// Package toss adapts the API of Toss Payments to package outbound, for merchants in
// Korea whose service confirms, cancels and bills payments.
//
// Toss does not compare bodies: another request under a known key of the same route
// gets the first one's answer, as if it had been done. The ledger finds the second
// meaning before it is sent; nothing else does.
package toss

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

// Config is what an adapter needs to know. Account is required.
type Config struct {
	// Account is the merchant's id at Toss (mId); part of every key. Toss itself tells
	// keys apart by the secret key: within the 15 days after it was replaced, a resend
	// under the new one executes anew.
	Account   string
	SecretKey string            // test_sk_… or live_sk_…. Without one the adapter serves a drop-in only.
	Test      bool              // The mode is part of every key. Defaults to live.
	BaseURL   string            // Defaults to https://api.tosspayments.com.
	Transport http.RoundTripper // Defaults to httpadapter.DefaultTransport.
}

// New returns an adapter. What is wrong with cfg, as a secret key of the other mode,
// is an error of outbound.New.
func New(cfg Config) *httpadapter.Adapter {
	mode := "live"
	if cfg.Test {
		mode = "test"
	}
	var wrong error
	if cfg.SecretKey != "" && !strings.HasPrefix(cfg.SecretKey, mode+"_") {
		wrong = errors.New("toss.Config: SecretKey is not of the mode " + mode + ": set Test, or take the other key")
	}
	authorization := ""
	if cfg.SecretKey != "" {
		authorization = base64.StdEncoding.EncodeToString([]byte(cfg.SecretKey + ":"))
	}
	return httpadapter.New(codec{}, httpadapter.Config{
		Provider: "toss", Account: cfg.Account, Mode: mode, Transport: cfg.Transport,
		BaseURL:    cmp.Or(cfg.BaseURL, "https://api.tosspayments.com"),
		Operations: Operations(), SettingsErr: wrong,
		Authorize: httpadapter.Credential("Authorization", "Basic ", authorization), NeedsCaller: cfg.SecretKey == "",
	})
}

// Confirmation is the body of PaymentConfirm: what the customer's approval came back
// with.
type Confirmation struct {
	PaymentKey string `json:"paymentKey"`
	OrderID    string `json:"orderId"`
	Amount     int64  `json:"amount"`
}

// PaymentConfirm takes the payment that a customer has approved.
func PaymentConfirm(cmd outbound.Command, c Confirmation) outbound.Call {
	return httpadapter.JSONCall(paymentConfirm, cmd, nil, c)
}

// Cancellation is the body of PaymentCancel.
type Cancellation struct {
	Reason string `json:"cancelReason"`
	Amount int64  `json:"cancelAmount,omitempty"` // 0 is all that is left.
}

// PaymentCancel gives a payment back, in part or in full.
func PaymentCancel(cmd outbound.Command, paymentKey string, c Cancellation) outbound.Call {
	return httpadapter.JSONCall(paymentCancel, cmd, []string{paymentKey}, c)
}

// Billing is the body of BillingCharge. OrderID is left free for the mark, by which a
// lost charge is found, or holds an id of the caller's.
type Billing struct {
	CustomerKey string `json:"customerKey"`
	Amount      int64  `json:"amount"`
	OrderID     string `json:"orderId,omitempty"`
	OrderName   string `json:"orderName"`
}

// BillingCharge charges a registered card.
func BillingCharge(cmd outbound.Command, billingKey string, b Billing) outbound.Call {
	return httpadapter.JSONCall(billingCharge, cmd, []string{billingKey}, b)
}
