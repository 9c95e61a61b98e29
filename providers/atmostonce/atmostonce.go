// Package atmostonce puts any API that takes no key behind package outbound: e-mail,
// SMS, and whatever else does its work again when it is asked again. You bring the
// operations.
//
// A request that may have arrived is never sent a second time by itself: not by an
// attempt, not by net/http on a connection that died, which is why each goes over a
// new one, and not by another process. What became of it is looked up, where you can
// say how, and otherwise a person decides. Where a message twice is better than none,
// do not use this package.
//
//	send := atmostonce.Operation("message.send", http.MethodPost, "/2010-04-01/Accounts/{sid}/Messages.json")
//	call := httpadapter.FormCall(send, cmd, []string{sid}, url.Values{"To": {to}, "Body": {text}})
package atmostonce

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Options are what is known of the API. The zero value is: nothing.
type Options struct {
	// NoBody names the operations whose success may come without a body, as SendGrid's
	// 202. Of the others such an answer proves nothing. Defaults to none.
	NoBody []string

	// Find looks up the operations whose row has a Lookup. Defaults to none: a person
	// decides.
	Find httpadapter.FindFunc
}

// New returns an adapter. opts may be nil. What is wrong with cfg, as a row with a
// key, is an error of outbound.New.
func New(cfg httpadapter.Config, opts *Options) *httpadapter.Adapter {
	if opts == nil {
		opts = &Options{}
	}
	for _, row := range cfg.Operations {
		if row.HasKey() {
			cfg.SettingsErr = errors.Join(cfg.SettingsErr,
				fmt.Errorf("atmostonce: the operation %s has a key: use package ietf, or an adapter of its provider", row.Name))
		}
	}
	c := codec{httpadapter.Plain{NoBody: opts.NoBody}}
	return httpadapter.New(httpadapter.WithFind(c, opts.Find), cfg)
}

// Operation is the row of one operation, to which a look-up, marks and the like can
// be added. Its class is rs.Notification: give it rs.Money where money moves. Names
// are never changed or reused, since they are part of every record's identity.
func Operation(name, method, path string) rs.Operation {
	return rs.Operation{
		Name: name, Class: rs.Notification, Method: method, Path: path,
		Facts: []rs.Fact{{
			States: "a method that is not idempotent is not sent again by itself, unless it is known that the first request was not applied",
			URL:    "https://www.rfc-editor.org/rfc/rfc9110#section-9.2.2", Read: "2026-11-30", Grade: rs.Specified,
		}},
	}
}

type codec struct{ httpadapter.Plain }

// Judge says what one answer teaches, taken alone. Without keys a 422 can only be
// about the content.
func (c codec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	v := c.Plain.Judge(x)
	if x.Status == http.StatusUnprocessableEntity {
		v.Effect, v.Code = outbound.EffectNone, outbound.ErrRejected
	}
	if v.Effect == outbound.EffectUnknown || v.Code == outbound.ErrRejected {
		v.Again = false // an unknown one is never asked for again, a wrong one in vain
	}
	return v
}
