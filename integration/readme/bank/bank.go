// Package bank adapts the payments API of an imaginary bank: it is the example of
// docs/adding-a-provider.md.
package bank

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

var transferCreate = rs.Operation{
	Name: "transfer.create", Method: "POST", Path: "/v1/transfers",
	Keys: []rs.Place{rs.Header("Idempotency-Key")}, KeyMax: 64,
	Window: 24 * time.Hour, Resend: rs.Original, // failures run again: nothing says otherwise
	Marks: []rs.Place{rs.JSON("/reference")},
	Facts: []rs.Fact{{
		States: "header Idempotency-Key, 64 characters, kept 24 h, the first answer comes back",
		URL:    "https://bank.example/docs/idempotency", Read: "2026-11-30", Grade: rs.Documented,
	}},
}

// Config is what the adapter needs to know. All fields but Transport are required.
type Config struct {
	Account   string // The customer number; part of every key.
	Token     string
	BaseURL   string
	Transport http.RoundTripper // Defaults to a clone of http.DefaultTransport.
}

func New(cfg Config) *httpadapter.Adapter {
	return httpadapter.New(codec{}, httpadapter.Config{
		Provider: "bank", Account: cfg.Account, Mode: "live", BaseURL: cfg.BaseURL, Transport: cfg.Transport,
		Operations: []rs.Operation{transferCreate},
		Authorize: func(_ context.Context, _ string, _ []outbound.Field, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+cfg.Token)
			return nil
		},
	})
}

// Transfer is the body of TransferCreate. Amounts are integers, never floats.
type Transfer struct {
	To       string `json:"to"`
	Cents    int64  `json:"cents"`
	Currency string `json:"currency"`
}

func TransferCreate(cmd outbound.Command, t Transfer) outbound.Call {
	return httpadapter.JSONCall(transferCreate, cmd, nil, t)
}

// codeForm is what the bank's error codes look like. They are logged and stored in
// clear, so that text which may repeat the request is none.
var codeForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

type codec struct{}

func (codec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	var a struct{ ID, Status, Error string }
	if err := json.Unmarshal(x.Body, &a); err != nil {
		return outbound.Verdict{Again: true, Err: err} // unreadable: unknown
	}
	v := outbound.Verdict{RequestID: x.Header.Get("X-Request-Id")}
	if codeForm.MatchString(a.Error) {
		v.ProviderCode = a.Error
	}
	switch x.Status {
	case http.StatusCreated:
		v.Effect, v.ExternalRef, v.ObjectStatus = outbound.EffectApplied, a.ID, a.Status
		if a.Status == "pending" {
			v.Outcome = outbound.Pending // applied is not paid
		}
	case http.StatusBadRequest, http.StatusNotFound:
		v.Effect, v.Code = outbound.EffectNone, outbound.ErrRejected
	case http.StatusUnauthorized:
		v.Effect, v.Code = outbound.EffectNone, outbound.ErrAuth
	case http.StatusUnprocessableEntity:
		v.Effect, v.Code = outbound.EffectNone, outbound.ErrRefused // the bank decided: final
	case http.StatusTooManyRequests:
		v.Effect, v.Code, v.Again = outbound.EffectNone, outbound.ErrRateLimited, true
	case http.StatusConflict:
		v.Again = true // another delivery of this key is being worked on: unknown
	default:
		v.Again = true // a 500 may have moved money: unknown
	}
	return v
}
