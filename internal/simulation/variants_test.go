package simulation

import (
	"context"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// variant is a known-bad build of the core, made by changing what the core sees
// of its ledger and its adapters. "" is the good one.
type variant string

const (
	good           variant = ""
	blindResend    variant = "resend on a dead lease without asking past the window"
	noFence        variant = "settle without fence"
	noDoubt        variant = "doubt ignored"
	noneOn429      variant = "None after a 429 on a takeover"
	finalRefusal   variant = "refusal final where failures run again"
	noHorizon      variant = "absent without horizon"
	slidingWindow  variant = "window counted from the takeover"
	eventOverLease variant = "webhook settling over a live lease"
	noFrontier     variant = "purge without frontier"
	foreignResend  variant = "resend of what an SDK sent under its own key"
	keylessResend  variant = "resend without a key"
)

func (b variant) options(o *outbound.Options) *outbound.Options {
	if b == noHorizon {
		o.Horizon = 1
	}
	return o
}

// build is an adapter of the build that a run plays, with the rows that it needs.
type build struct {
	*httpadapter.Adapter
	rows []rs.Operation
}

// adapter changes rows of the table.
func (b variant) adapter(a *httpadapter.Adapter) (build, error) {
	p, err := a.Profile()
	rows := slices.DeleteFunc(p.Operations, func(op rs.Operation) bool { return !slices.Contains(played(), op.Name) })
	for i := range rows {
		switch op := &rows[i]; {
		case b == noHorizon:
			op.Horizon = 1
		case b == finalRefusal && op.HasKey():
			op.Failures = rs.Stored
		}
	}
	return build{a, rows}, err
}

// played are the operations of the commands.
func played() []string {
	return []string{"refund.create", "payment_intent.create", "capture.refund", "order.capture", "invoice.create"}
}

// Profile implements outbound.Adapter.
func (a build) Profile() (outbound.Profile, error) {
	p, err := a.Adapter.Profile()
	p.Operations = slices.Clone(a.rows)
	return p, err
}

// claimed changes what a claim got.
func (b variant) claimed(v *view, c recordstore.Claim, claimed *recordstore.Claimed) {
	rec := &claimed.Record
	if b == noFrontier && claimed.Decision == recordstore.Forgotten {
		*rec, claimed.Decision = recordstore.Take(c, nil, 0, claimed.Now)
		v.Store.Seed(*rec)
	}
	if claimed.Decision != recordstore.Send && claimed.Decision != recordstore.Lookup {
		return
	}
	asks := claimed.Decision == recordstore.Lookup && rec.Noted == "" && !rec.LookOnly
	switch {
	case asks && b == blindResend && c.Window > 0 && rec.Derivation != recordstore.Foreign:
		claimed.Decision, rec.WindowEndsAt = recordstore.Send, time.Time{}
	case asks && (b == keylessResend && c.Window == 0 || b == foreignResend && rec.Derivation == recordstore.Foreign):
		claimed.Decision = recordstore.Send
	case b == slidingWindow && rec.Doubt:
		rec.WindowEndsAt = claimed.Now.Add(c.Window)
		v.Store.Seed(*rec)
	}
	b.taken(rec)
}

// taken changes what the taker of a record sees.
func (b variant) taken(rec *recordstore.Record) {
	switch b {
	case noDoubt:
		rec.Doubt = false
	case noHorizon:
		rec.SentUntil = time.Time{}
	}
}

// settling changes a settlement.
func (b variant) settling(v *view, s *recordstore.Settlement) {
	rec, _, err := v.Store.Get(context.Background(), s.ID)
	if err != nil || rec.State != recordstore.Sending {
		return
	}
	switch {
	case b == noFence:
		s.Holder, s.Fence, s.Noted = rec.Holder, rec.Fence, rec.Noted
	case b == noneOn429 && s.State == recordstore.Uncertain && s.ResponseStatus == 429 && rec.Doubt:
		s.State, s.DueIn = recordstore.NotExecuted, 0
	}
}

// reporting changes the record before a report.
func (b variant) reporting(v *view, id recordstore.ID) {
	rec, now, err := v.Store.Get(context.Background(), id)
	if b == eventOverLease && err == nil && rec.State == recordstore.Sending {
		rec.LeaseEndsAt = now
		v.Store.Seed(rec)
	}
}
