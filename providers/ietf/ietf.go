// Package ietf adapts services that implement the Idempotency-Key header of IETF's
// draft (draft-ietf-httpapi-idempotency-key-header-07) to package outbound: those of
// your own house, and whoever else follows it. You bring the operations; the draft
// brings where the key stands and what errors mean.
//
//	create := ietf.Operation("order.create", http.MethodPost, "/v1/orders", 24*time.Hour)
//	orders := ietf.New(httpadapter.Config{
//		Provider: "orders", Account: "eu", Mode: "live", BaseURL: "https://orders.internal",
//		Operations: []replaysemantics.Operation{create},
//		Authorize:  httpadapter.Credential("Authorization", "Bearer ", token),
//	}, nil)
//	call := httpadapter.JSONCall(create, cmd, nil, order)
//
// Services that take the header without quotes follow no draft: give the row
// replaysemantics.Header("Idempotency-Key") as its key.
package ietf

import (
	"net/http"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Options are what a service adds to the draft. The zero value adds nothing.
type Options struct {
	// NoBody names the operations whose success may come without a body. Of the others
	// such an answer proves nothing. Defaults to none.
	NoBody []string

	// MismatchCode is the "code" in the 422 of a key that was used for something else.
	// With it, a 422 of another code is the service's validation. Defaults to taking
	// every 422 for a mismatch, which proves nothing.
	MismatchCode string

	// Find looks up the operations whose row has a Lookup, as with httpadapter.List.
	// Defaults to none: a person decides.
	Find httpadapter.FindFunc
}

// New returns an adapter. opts may be nil. What is wrong with cfg is an error of
// outbound.New.
func New(cfg httpadapter.Config, opts *Options) *httpadapter.Adapter {
	if opts == nil {
		opts = &Options{}
	}
	c := codec{Plain: httpadapter.Plain{NoBody: opts.NoBody}, mismatch: opts.MismatchCode}
	return httpadapter.New(httpadapter.WithFind(c, opts.Find), cfg)
}

const draft = "https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07"

// Operation is the row of one operation, to which marks, a class and the like can be
// added. window is how long the service keeps a key, which it must publish; 0 is not
// known: the operation is resent within one call only. Names are never changed or
// reused, since they are part of every key.
func Operation(name, method, path string, window time.Duration) rs.Operation {
	fact := func(grade rs.Grade, states string) rs.Fact {
		return rs.Fact{States: states, URL: draft, Read: "2026-11-30", Grade: grade}
	}
	return rs.Operation{
		Name: name, Method: method, Path: path,
		Keys:   []rs.Place{rs.QuotedHeader("Idempotency-Key")},
		Window: window, Resend: rs.Original,
		Facts: []rs.Fact{
			fact(rs.Specified, "header Idempotency-Key: a structured-field string, in quotes"),
			fact(rs.Specified, "a repeated key gives the result of the completed request; no signal of a replay is defined"),
			fact(rs.Specified, "409 while the first request is processed, 422 for a key with another request, 400 where the key is missing"),
			fact(rs.Specified, "the resource publishes how long it keeps keys"),
			fact(rs.Unverified, "whether this service stores failures"),
		},
	}
}

type codec struct {
	httpadapter.Plain
	mismatch string
}

// Judge says what one answer teaches, taken alone.
func (c codec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	v := c.Plain.Judge(x)
	switch {
	case x.Status != http.StatusUnprocessableEntity:
	case c.mismatch != "" && v.ProviderCode != "" && v.ProviderCode != c.mismatch:
		v.Effect, v.Code, v.Again = outbound.EffectNone, outbound.ErrRejected, false
	default:
		v.Again, v.Look = false, true
	}
	return v
}
