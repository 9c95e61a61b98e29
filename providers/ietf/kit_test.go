package ietf_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/ietf"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Two operations of an imaginary service: one leaves a place for the mark, the other
// answers without a body.
func orderCreate() rs.Operation {
	o := ietf.Operation("order.create", http.MethodPost, "/v1/orders", 24*time.Hour)
	o.Marks = []rs.Place{rs.JSON("/reference")}
	o.Lookup = "the list of orders: the one whose reference is the mark"
	return o
}

func orderShip() rs.Operation {
	return ietf.Operation("order.ship", http.MethodPost, "/v1/orders/{id}/shipments", 24*time.Hour)
}

func findOrder(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	order, err := httpadapter.List{Target: "/v1/orders", Items: "/orders", Mark: "/reference", Begin: "since"}.Find(ctx, get, l)
	if order == nil || err != nil {
		return outbound.Finding{}, err
	}
	return httpadapter.Found(httpadapter.Plain{}, l.Operation, order), nil
}

func adapter(_ testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter {
	return ietf.New(httpadapter.Config{
		Provider: "orders", Account: "eu", Mode: "live", BaseURL: baseURL, Transport: rt,
		Operations: []rs.Operation{orderCreate(), orderShip()},
		Authorize:  httpadapter.Credential("Authorization", "Bearer ", "token-of-orders"),
	}, &ietf.Options{NoBody: []string{"order.ship"}, MismatchCode: "key_reused", Find: findOrder})
}

func order(sku string, cents int64) func(outbound.Command, string) outbound.Call {
	return func(cmd outbound.Command, _ string) outbound.Call {
		return httpadapter.JSONCall(orderCreate(), cmd, nil, map[string]any{"sku": sku, "cents": cents})
	}
}

func ship(to string) func(outbound.Command, string) outbound.Call {
	return func(cmd outbound.Command, id string) outbound.Call {
		return httpadapter.JSONCall(orderShip(), cmd, []string{id}, map[string]any{"to": to})
	}
}

// fake answers as the draft says: quoted keys, 400 without one, 409 and 422.
func fake() providertest.JSONProvider {
	return providertest.JSONProvider{
		Key: rs.Header("Idempotency-Key"), Quoted: true, KeyRequired: true, Compare: true, RequestIDHeader: "X-Request-Id",
		Errors: map[providertest.Refusal]providertest.JSONError{providertest.Mismatch: {Status: http.StatusUnprocessableEntity, Code: "key_reused"}},
		ErrorBody: func(e providertest.JSONError) any {
			return map[string]any{"title": "no", "status": e.Status, "code": e.Code}
		},
		Operations: []providertest.JSONOperation{
			{
				Name: "order.create", Path: "/v1/orders", Status: http.StatusCreated,
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					switch {
					case c.Body["cents"] == json.Number("0"):
						return c.Reject(http.StatusUnprocessableEntity, "cents_missing")
					case c.Body["sku"] == "sold-out":
						return c.Refuse(http.StatusPaymentRequired, "no_credit")
					}
					return c.Create(map[string]any{"reference": c.Body["reference"]})
				},
			},
			{
				Name: "order.list", Path: "/v1/orders", Read: true,
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					orders := []any{}
					for _, o := range c.Objects() {
						orders = append(orders, o.Fields)
					}
					return c.Answer(map[string]any{"orders": orders})
				},
			},
			{
				Name: "order.ship", Path: "/v1/orders/{id}/shipments", Status: http.StatusNoContent,
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					a := c.Create(nil)
					a.Body = nil
					return a
				},
			},
		},
	}
}

func TestKit(t *testing.T) {
	providertest.Run(t, providertest.Kit{
		New: adapter, Provider: providertest.JSONDialect(fake()),
		Samples: []providertest.Sample{
			{Call: order("chair", 4900), Other: order("chair", 5900), Refused: order("sold-out", 4900), Rejected: order("chair", 0)},
			{Call: ship("Berlin"), Other: ship("Paris"), Seed: providertest.JSONSeed{Operation: "order.create"}},
		},
	})
}

// A 422 proves nothing where nobody said what a mismatch looks like.
func TestUnprocessable(t *testing.T) {
	row := orderShip()
	for _, c := range []struct {
		opts *ietf.Options
		body string
		want outbound.Verdict
	}{
		{nil, `{"code":"cents_missing"}`, outbound.Verdict{Look: true, ProviderCode: "cents_missing"}},
		{nil, `<html>`, outbound.Verdict{Look: true}},
		{&ietf.Options{MismatchCode: "key_reused"}, `{"code":"key_reused"}`, outbound.Verdict{Look: true, ProviderCode: "key_reused"}},
		{&ietf.Options{MismatchCode: "key_reused"}, `{}`, outbound.Verdict{Look: true}},
		{&ietf.Options{MismatchCode: "key_reused"}, `{"code":"other"}`, outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRejected, ProviderCode: "other"}},
	} {
		a := ietf.New(httpadapter.Config{Operations: []rs.Operation{row}}, c.opts)
		got := a.Codec().Judge(&httpadapter.Exchange{Operation: row, Status: 422, Header: http.Header{}, Body: []byte(c.body)})
		if got != c.want {
			t.Errorf("%+v, %s: %+v, want %+v", c.opts, c.body, got, c.want)
		}
	}
}
