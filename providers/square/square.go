// Package square adapts Square's Payments API to package outbound, for sellers whose
// service charges through it. The key stands in the body. For how long Square keeps
// it is not published: a payment is resent inside one call only, and afterwards
// looked up by its reference_id, which the caller leaves free for the mark.
package square

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const docs = "https://developer.squareup.com/"

// The rows. The key of a cancellation is the payment's, so that it is stored nowhere
// and the cancellation has none of its own.
var (
	paymentCreate = rs.Operation{
		Name: "payment.create", Method: http.MethodPost, Path: "/v2/payments",
		Keys: []rs.Place{rs.JSON("/idempotency_key")}, KeyMax: 45, Resend: rs.Original, Marks: []rs.Place{rs.JSON("/reference_id")},
		Lookup: "the list of the location's payments around the time of sending: the one whose reference_id is the mark",
		Facts: []rs.Fact{
			{States: "the body's idempotency_key is required, at most 45 characters", URL: docs + "reference/square/payments-api/create-payment", Read: "2026-11-30", Grade: rs.Documented},
			{States: "the same key gives the first success again, with another body IDEMPOTENCY_KEY_REUSED", URL: docs + "docs/build-basics/common-api-patterns/idempotency", Read: "2026-11-30", Grade: rs.Documented},
			{States: "how long a key is kept is not published", URL: docs + "forums/t/how-long-are-idempotency-keys-retained-for-the-createpayment-endpoint/28303", Read: "2026-11-30", Grade: rs.Reported},
			{States: "the list is bounded by begin_time and end_time, and lags by some seconds", URL: docs + "reference/square/payments-api/list-payments", Read: "2026-11-30", Grade: rs.Documented},
			{States: "reference_id holds 40 characters; whether failures are stored; what two deliveries at once get", URL: docs + "reference/square/payments-api/create-payment", Read: "2026-11-30"},
		},
	}
	paymentCancelByKey = rs.Operation{
		Name: "payment.cancel_by_key", Method: http.MethodPost, Path: "/v2/payments/cancel", Sensitive: []rs.Place{rs.JSON("/idempotency_key")},
		Facts: []rs.Fact{{States: "voids the payment that was made with the key; a success where there is none", URL: docs + "reference/square/payments-api/cancel-payment-by-idempotency-key", Read: "2026-11-30", Grade: rs.Documented}},
	}
)

// Operations returns the table: one row for each operation, with its sources.
func Operations() []rs.Operation { return []rs.Operation{paymentCreate, paymentCancelByKey} }

// Config is what an adapter needs to know. Merchant is required.
type Config struct {
	Merchant  string            // Square's id of the seller; part of every key.
	Token     string            // The access token. Without one the adapter serves a drop-in only.
	Sandbox   bool              // The mode is part of every key. Defaults to live.
	BaseURL   string            // Defaults to Square's.
	Transport http.RoundTripper // Defaults to httpadapter.DefaultTransport.
}

// New returns an adapter. What is wrong with cfg is an error of outbound.New.
func New(cfg Config) *httpadapter.Adapter {
	mode, base := "live", "https://connect.squareup.com"
	if cfg.Sandbox {
		mode, base = "sandbox", "https://connect.squareupsandbox.com"
	}
	return httpadapter.New(codec{}, httpadapter.Config{
		Provider: "square", Account: cfg.Merchant, Mode: mode, BaseURL: cmp.Or(cfg.BaseURL, base),
		Operations: Operations(), Frozen: []string{"Square-Version"}, Transport: cfg.Transport,
		Authorize: httpadapter.Credential("Authorization", "Bearer ", cfg.Token), NeedsCaller: cfg.Token == "",
	})
}

// PaymentCreate charges a source. body is anything that encodes as Square's
// CreatePaymentRequest; amounts are integers.
func PaymentCreate(cmd outbound.Command, body any) outbound.Call {
	return httpadapter.JSONCall(paymentCreate, cmd, nil, body)
}

// PaymentCancelByKey voids the payment that was made with a key, which Client.Key
// tells, if there is one. A lost answer needs no review: a new command voids again,
// and what is void stays so.
func PaymentCancelByKey(cmd outbound.Command, payment keyderive.Key) outbound.Call {
	return httpadapter.JSONCall(paymentCancelByKey, cmd, nil, map[string]string{"idempotency_key": payment.Raw()})
}

type codec struct{}

// Judge says what one answer teaches, taken alone.
func (codec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	var a struct {
		Payment struct{ ID, Status httpadapter.JSONWord }
		Errors  []struct{ Category, Code httpadapter.JSONWord }
	}
	unreadable, status := json.Unmarshal(x.Body, &a) != nil, x.Status
	switch {
	case unreadable, x.Status >= 300 && len(a.Errors) == 0, x.Status < 300 && a.Payment.ID == "" && x.Operation.HasKey():
		return outbound.Verdict{Again: true}
	case x.Status < 300:
		v := outbound.Verdict{Effect: outbound.EffectApplied, ExternalRef: string(a.Payment.ID), ObjectStatus: string(a.Payment.Status)}
		switch a.Payment.Status {
		case "FAILED", "CANCELED":
			v.Effect, v.Code = outbound.EffectNone, outbound.ErrRefused
		case "PENDING":
			v.Outcome = outbound.Pending
		}
		return v
	case a.Errors[0].Code == "IDEMPOTENCY_KEY_REUSED":
		return outbound.Verdict{Look: true, ProviderCode: string(a.Errors[0].Code)}
	case a.Errors[0].Category == "PAYMENT_METHOD_ERROR" && x.Status < http.StatusConflict:
		status = http.StatusPaymentRequired // a decline, also where it is 400
	}
	v := httpadapter.ByStatus(status)
	v.ProviderCode = string(a.Errors[0].Code)
	return v
}

// Find looks a payment up by its mark. The list lags, so it proves no absence.
func (c codec) Find(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	query := url.Values{}
	if location := httpadapter.JSONText(l.Message.Body, "/location_id"); location != "" {
		query.Set("location_id", location) // otherwise, as for the payment, the main one
	}
	payment, err := httpadapter.List{
		Target: "/v2/payments", Query: query, Items: "/payments", Mark: "/reference_id",
		Begin: "begin_time", End: "end_time", Cursor: "/cursor", Next: "cursor",
	}.Find(ctx, get, l)
	if payment == nil || err != nil {
		return outbound.Finding{}, err
	}
	return httpadapter.Found(c, l.Operation, slices.Concat([]byte(`{"payment":`), payment, []byte("}"))), nil
}
