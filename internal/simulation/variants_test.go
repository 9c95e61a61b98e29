package simulation

import (
	"context"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
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
)

func (b variant) options(o *outbound.Options) *outbound.Options {
	if b == noHorizon {
		o.Horizon = 1
	}
	return o
}

// adapter changes rows of the table.
func (b variant) adapter(a *httpadapter.Adapter) outbound.Adapter {
	if b == finalRefusal || b == noHorizon {
		return otherRows{a, b}
	}
	return a
}

type otherRows struct {
	*httpadapter.Adapter
	bad variant
}

func (a otherRows) Profile() (outbound.Profile, error) {
	p, err := a.Adapter.Profile()
	for i := range p.Operations {
		if op := &p.Operations[i]; a.bad == noHorizon {
			op.Horizon = 1
		} else if op.HasKey() {
			op.Failures = replaysemantics.Stored
		}
	}
	return p, err
}

// claimed changes what a claim got.
func (b variant) claimed(v *view, c recordstore.Claim, claimed *recordstore.Claimed) {
	rec := &claimed.Record
	held := claimed.Decision == recordstore.Send || claimed.Decision == recordstore.Lookup
	if !held {
		return
	}
	switch {
	case b == blindResend && claimed.Decision == recordstore.Lookup && rec.Noted == "" && !rec.LookOnly:
		claimed.Decision, rec.WindowEndsAt = recordstore.Send, time.Time{}
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
