package outbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// conclude writes what was learned to the ledger and makes the answer. It never
// loses a reply because the ledger could not be written.
func (c *Client) conclude(ctx context.Context, o *order, rec recordstore.Record, j judged) (*Reply, *Error) {
	if o.check != nil && j.state == recordstore.Uncertain && (o.check.last || errors.As(j.Err, new(panicked))) {
		j.state = recordstore.ManualReview // a record that makes the adapter panic must not do so for ever
	}
	end := c.settle(ctx, o, rec, j)
	if end.lost {
		j = j.behind()
	}
	now := end.record
	if now.State == recordstore.Sending && now.Noted == recordstore.Succeeded {
		now.State = recordstore.Succeeded // another holder settles it
	}
	switch {
	case j.state == recordstore.Succeeded:
		r := j.reply(o, rec)
		r.Unrecorded = end.unrecorded(j)
		return r, nil
	case now.State == recordstore.Succeeded, now.State == recordstore.Refused && j.state != recordstore.Refused:
		return c.settledByOthers(ctx, o, now, j, end)
	case now.State == recordstore.ManualReview:
		j.state = recordstore.ManualReview
	case !j.fact() && (end.lost || end.err != nil && time.Since(o.begun) >= c.opts.Lease):
		j.state = recordstore.Uncertain // what this claim learned says nothing of a new holder's deliveries
	}
	e := j.failure(o, rec)
	switch {
	case end.err != nil:
		e.Err = errors.Join(e.Err, fmt.Errorf("the ledger was not told: %w", end.err))
	case end.lost && end.record.State != j.state:
		e.Err = errors.Join(e.Err, fmt.Errorf("another call has taken over: %w", recordstore.ErrNotHeld))
	}
	return nil, e
}

// settledByOthers answers with the outcome that somebody else handed in while
// this call was on its way.
func (c *Client) settledByOthers(ctx context.Context, o *order, now recordstore.Record, j judged, end settled) (*Reply, *Error) {
	r, e := c.replay(ctx, o, now)
	if e != nil {
		e.Sent = j.deliveries > 0
		return nil, e
	}
	if end.err != nil {
		r.Unrecorded = end.unrecorded(j)
	}
	return r, nil
}

// unrecorded says why the ledger does not hold an outcome; nil if it does.
func (end settled) unrecorded(j judged) error {
	switch {
	case end.err != nil:
		return &Error{Code: ErrStore, Effect: EffectApplied, Sent: j.deliveries > 0, Err: end.err}
	case end.lost && !end.record.State.Final():
		return recordstore.ErrNotHeld
	}
	return nil
}

// reply is the provider's answer to an applied effect, or behind a refusal.
func (j judged) reply(o *order, rec recordstore.Record) *Reply {
	r := &Reply{
		Command: o.Command, Operation: o.Operation,
		Label: j.Label, Evidence: j.Evidence, Origin: FromProvider, Outcome: j.Outcome,
		ExternalRef: j.ExternalRef, ObjectStatus: j.ObjectStatus, RequestID: j.RequestID,
		Deliveries: rec.Deliveries + j.deliveries,
	}
	if j.Answer != nil {
		r.StatusCode, r.Header, r.Body = j.Answer.Status, j.Answer.Header, j.Answer.Body
	}
	return r
}

// failure is the error of a judgement that is no success.
func (j judged) failure(o *order, rec recordstore.Record) *Error {
	e := &Error{
		Code: cmp.Or(j.Code, ErrUncertain), Effect: EffectNone, Sent: j.deliveries > 0,
		ProviderCode: j.ProviderCode, RequestID: j.RequestID, RetryAfter: j.RetryAfter, Err: j.Err,
	}
	switch j.state {
	case recordstore.ManualReview:
		e.Code, e.Effect = ErrManualReview, EffectUnknown
	case recordstore.Uncertain:
		if e.Err == nil && j.Code != "" && j.Code != ErrUncertain {
			e.Err = j.Code // a None that proves nothing of an earlier delivery
		}
		e.Code, e.Effect = ErrUncertain, EffectUnknown
	}
	if j.Answer != nil {
		e.Answer = j.reply(o, rec)
	}
	return e
}
