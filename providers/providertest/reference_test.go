package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// shape is a provider and a sound adapter to it, and what may be broken in it.
type shape struct {
	row      rs.Operation
	provider JSONProvider

	judge   func(x *httpadapter.Exchange, v outbound.Verdict) outbound.Verdict
	find    func(l *outbound.Lookup, list []payment, f outbound.Finding, err error) (outbound.Finding, error)
	wire    func(process int, rt http.RoundTripper) http.RoundTripper
	adapter func(a *httpadapter.Adapter) outbound.Adapter
	made    int // adapters so far
}

// signingSecret is a credential that stands in no header.
const signingSecret = "signing-secret-of-the-bank"

const replayHeader = "Idempotent-Replayed"

var sourced = []rs.Fact{{States: "all of it", URL: "https://bank.example/docs", Read: "2026-11-30"}}

// byHeader keeps first answers, failures among them, and marks replays.
func byHeader() *shape {
	return &shape{
		row: rs.Operation{
			Name: "payment.create", Method: "POST", Path: "/v1/payments",
			Keys: []rs.Place{rs.Header("Idempotency-Key")}, KeyMax: 64, Window: 24 * time.Hour, Resend: rs.Original, Failures: rs.Stored,
			Marks: []rs.Place{rs.JSON("/reference")}, Sensitive: []rs.Place{rs.JSON("/card/number")}, Codes: []rs.Place{rs.JSON("/card/cvc")},
			Lookup: "list the payments", Facts: sourced,
		},
		provider: JSONProvider{
			Operations: operations(), Key: rs.Header("Idempotency-Key"), KeyMax: 64, KeyRequired: true,
			Compare: true, KeepsFailures: true, ReplayHeader: replayHeader, EchoHeader: "Idempotency-Key",
		},
	}
}

// inBody gives the present state, without a signal, and runs failures again.
func inBody() *shape {
	s := byHeader()
	s.row.Keys, s.row.KeyMax = []rs.Place{rs.JSON("/idempotency_key")}, 45
	s.row.Resend, s.row.Failures, s.row.Window = rs.Latest, rs.RunAgain, 6*time.Hour
	s.provider = JSONProvider{
		Operations: operations(), Key: rs.JSON("/idempotency_key"), KeyMax: 45, Window: 6 * time.Hour, Latest: true,
		Compare: true,
	}
	return s
}

// linking answers every known key with an error that names the object.
func linking() *shape {
	s := byHeader()
	s.row.Resend, s.row.Failures = rs.ConflictWithLink, rs.RunAgain
	s.provider = JSONProvider{
		Operations: operations(), Key: rs.Header("Idempotency-Key"),
		Conflict: func(o *JSONObject) JSONAnswer {
			return JSONAnswer{Status: http.StatusUnprocessableEntity, Body: map[string]any{"error": map[string]any{"code": "exists", "link": o.ID}}}
		},
	}
	return s
}

// unkeyed knows no keys.
func unkeyed() *shape {
	s := byHeader()
	s.row.Keys, s.row.KeyMax, s.row.Window, s.row.Resend, s.row.Failures = nil, 0, 0, rs.Never, rs.RunAgain
	s.provider = JSONProvider{Operations: operations()}
	return s
}

func operations() []JSONOperation {
	return []JSONOperation{
		{Name: "payment.create", Path: "/v1/payments", Status: http.StatusCreated, Prefix: "pay_", Handle: func(c *JSONCall) JSONAnswer {
			switch amount, _ := c.Body["amount"].(json.Number); {
			case amount == "":
				return c.Reject(http.StatusBadRequest, "amount_missing")
			case amount == "666":
				return c.Refuse(http.StatusPaymentRequired, "card_declined")
			}
			return c.Create(map[string]any{"amount": c.Body["amount"], "reference": c.Body["reference"]})
		}},
		{Name: "payment.list", Path: "/v1/payments", Read: true, Handle: func(c *JSONCall) JSONAnswer {
			list := []any{}
			for _, o := range c.Objects() {
				list = append(list, o.Fields)
			}
			return c.Answer(map[string]any{"payments": list})
		}},
	}
}

// order is the body of a payment.
type order struct {
	Amount int64 `json:"amount,omitempty"`
	Card   *card `json:"card,omitempty"`
}

type card struct {
	Number string `json:"number"`
	CVC    string `json:"cvc"`
}

func (s *shape) kit() Kit {
	pay := func(o order) func(outbound.Command, string) outbound.Call {
		return func(cmd outbound.Command, _ string) outbound.Call { return httpadapter.JSONCall(s.row, cmd, nil, o) }
	}
	return Kit{
		New: func(_ testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter {
			return s.adapterAt(baseURL, rt)
		},
		Provider: JSONDialect(s.provider),
		Secrets:  []string{signingSecret},
		Samples: []Sample{{
			Call: pay(order{Amount: 1250}), Other: pay(order{Amount: 1300}), Refused: pay(order{Amount: 666}), Rejected: pay(order{}),
			Card: pay(order{Amount: 1250, Card: &card{CardNumber, CardCode}}),
		}},
	}
}

func (s *shape) adapterAt(baseURL string, rt http.RoundTripper) outbound.Adapter {
	if s.wire != nil {
		s.made++
		rt = s.wire(s.made, rt)
	}
	a := httpadapter.New(codec{s}, httpadapter.Config{
		Provider: "bank", Account: "a1", Mode: "live", BaseURL: baseURL, Transport: rt, Operations: []rs.Operation{s.row},
		Authorize: func(_ context.Context, _ string, _ []outbound.Field, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer token-of-the-bank")
			return nil
		},
	})
	if s.adapter != nil {
		return s.adapter(a)
	}
	return a
}

// codec is sound, unless its shape breaks it.
type codec struct{ *shape }

type payment struct{ ID, Status, Reference string }

func (c codec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	v := judge(x)
	if c.judge != nil {
		v = c.judge(x, v)
	}
	return v
}

func judge(x *httpadapter.Exchange) outbound.Verdict {
	var a struct {
		payment
		Error struct{ Code string }
	}
	if err := json.Unmarshal(x.Body, &a); err != nil {
		return outbound.Verdict{Again: true}
	}
	v := outbound.Verdict{RequestID: x.Header.Get("Request-Id")}
	replayed := x.Header.Get(replayHeader) == "true"
	if replayed {
		v.Evidence = rs.ByReplayHeader
	}
	switch {
	case x.Status == http.StatusCreated:
		v.Effect, v.ExternalRef, v.ObjectStatus = outbound.EffectApplied, a.ID, a.Status
	case x.Status == http.StatusPaymentRequired:
		v.Effect, v.Code = outbound.EffectNone, outbound.ErrRefused
	case x.Status == http.StatusBadRequest:
		v.Effect, v.Code = outbound.EffectNone, outbound.ErrRejected
	case x.Status == http.StatusUnauthorized:
		v.Effect, v.Code = outbound.EffectNone, outbound.ErrAuth
	case x.Status == http.StatusTooManyRequests:
		v.Effect, v.Code, v.Again = outbound.EffectNone, outbound.ErrRateLimited, true
	case x.Status == http.StatusUnprocessableEntity, replayed:
		v.Look = true
	default:
		v.Again = true
	}
	return v
}

func (c codec) Find(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	list, err := payments(ctx, get)
	var f outbound.Finding
	for _, p := range list {
		if p.Reference == l.Mark {
			f = outbound.Finding{Effect: outbound.EffectApplied, ExternalRef: p.ID, ObjectStatus: p.Status}
		}
	}
	if err == nil && f.Effect == outbound.EffectUnknown {
		f.Effect = outbound.EffectNone
	}
	if c.find != nil {
		return c.find(l, list, f, err)
	}
	return f, err
}

func payments(ctx context.Context, get httpadapter.Get) ([]payment, error) {
	x, err := get(ctx, "/v1/payments", url.Values{})
	if err != nil {
		return nil, err
	}
	var list struct{ Payments []payment }
	if x.Status != http.StatusOK || json.Unmarshal(x.Body, &list) != nil || list.Payments == nil {
		return nil, errors.New("no list of payments")
	}
	return list.Payments, nil
}
