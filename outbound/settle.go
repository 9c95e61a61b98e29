package outbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// firstCheck is when an uncertain record is looked at first.
const firstCheck = time.Minute

// conclude writes what was learned to the ledger and makes the answer. It never
// loses a reply because the ledger could not be written.
func (c *Client) conclude(ctx context.Context, o *order, rec recordstore.Record, j judged) (*Reply, *Error) {
	s := recordstore.Settlement{ID: rec.ID, Holder: rec.Holder, Fence: rec.Fence, Result: c.result(o, rec, j)}
	if s.State == recordstore.ManualReview {
		j.state, j.Code = s.State, ErrManualReview
		c.tel.reviewed(ctx, rec)
	}
	now, err := c.settle(ctx, s, o.begun.Add(c.opts.Lease))
	if errors.Is(err, recordstore.ErrNotHeld) {
		if now.Holder == rec.Holder && now.Fence == rec.Fence && now.State == recordstore.Sending {
			return c.merge(ctx, o, now, j, s)
		}
		return c.superseded(ctx, o, rec, now, j, s.Result)
	}
	if err != nil {
		c.tel.unrecorded(ctx, o, err)
	}
	return c.answer(o, rec, j, err)
}

// answer makes what Do returns of a judgement that the ledger holds, or does not
// hold yet (unrecorded).
func (c *Client) answer(o *order, rec recordstore.Record, j judged, unrecorded error) (*Reply, *Error) {
	if j.state == recordstore.Succeeded {
		r := j.reply(o, rec)
		if unrecorded != nil {
			if !errors.Is(unrecorded, recordstore.ErrNotHeld) {
				unrecorded = &Error{Code: ErrStore, Effect: EffectApplied, Sent: true, Err: unrecorded}
			}
			r.Unrecorded = unrecorded
		}
		return r, nil
	}
	e := j.failure(o, rec)
	if unrecorded != nil {
		e.Err = errors.Join(e.Err, fmt.Errorf("the ledger was not told: %w", unrecorded))
	}
	return nil, e
}

// merge settles against a note: a fact that somebody else handed in while this
// claim was held. Facts outrank ignorance, Applied outranks all.
func (c *Client) merge(ctx context.Context, o *order, now recordstore.Record, j judged, s recordstore.Settlement) (*Reply, *Error) {
	noted := now.Noted
	useNote := j.state != recordstore.Succeeded && (noted == recordstore.Succeeded || j.state != recordstore.Refused)
	if j.state.Final() && noted != j.state {
		c.tel.contradicted(ctx, o)
	}
	s.Noted = noted
	if useNote {
		s.Result = ofNote(now, j.deliveries)
	}
	settled, err := c.settle(ctx, s, o.begun.Add(c.opts.Lease))
	if err != nil {
		c.tel.unrecorded(ctx, o, err)
	}
	if !useNote {
		return c.answer(o, now, j, err)
	}
	if err != nil {
		settled = now
		settled.State = noted
	}
	return c.fromLedger(o, settled)
}

// ofNote is the settlement that a note amounts to.
func ofNote(rec recordstore.Record, deliveries int) recordstore.Result {
	return recordstore.Result{
		State: rec.Noted, Evidence: rec.Evidence, Outcome: rec.Outcome, Deliveries: deliveries,
		ResponseStatus: rec.ResponseStatus, SealVersion: rec.SealVersion,
		ResponseHeader: rec.ResponseHeader, ResponseBody: rec.ResponseBody, ErrorCode: rec.ErrorCode,
	}
}

// superseded is the end of a stale holder: its facts are handed in, its
// ignorance is dropped in favour of what the ledger knows by now.
func (c *Client) superseded(ctx context.Context, o *order, rec, now recordstore.Record, j judged, res recordstore.Result) (*Reply, *Error) {
	c.tel.leaseLost(ctx, o)
	if j.state.Final() {
		reported, err := c.report(ctx, rec.ID, res)
		switch {
		case err != nil:
			c.tel.unrecorded(ctx, o, err)
			return c.answer(o, rec, j, err)
		case reported.State == j.state:
			return c.answer(o, rec, j, nil)
		case reported.State.Final() || reported.State == recordstore.ManualReview:
			c.tel.contradicted(ctx, o)
			if j.state == recordstore.Refused && reported.State.Final() {
				return c.fromLedger(o, reported)
			}
		}
		return c.answer(o, rec, j, recordstore.ErrNotHeld) // noted: the new holder settles it
	}
	if now.State.Final() {
		return c.fromLedger(o, now)
	}
	j.state = recordstore.Uncertain // our None says nothing of the new holder's deliveries
	return c.answer(o, rec, j, recordstore.ErrNotHeld)
}

// result is what a judgement writes.
func (c *Client) result(o *order, rec recordstore.Record, j judged) recordstore.Result {
	r := recordstore.Result{
		State: j.state, Evidence: string(j.Evidence), Deliveries: j.deliveries,
		ExternalRef: j.ExternalRef, ObjectStatus: j.ObjectStatus, RequestID: j.RequestID,
	}
	switch j.state {
	case recordstore.Succeeded:
		r.Outcome = string(j.Outcome)
	case recordstore.Uncertain:
		r.DueIn, r.LookOnly, r.Blurred = firstCheck, j.Look, j.blurred
		r.ErrorCode = errorCode(ErrUncertain, j.ProviderCode)
	default:
		r.ErrorCode = errorCode(j.Code, j.ProviderCode)
	}
	c.noteCheck(o, rec, j, &r)
	if j.Answer == nil {
		return r
	}
	r.ResponseStatus = j.Answer.Status
	if !j.state.Final() || o.frozen.Sensitive { // an answer may repeat what must not be kept
		return r
	}
	header, err1 := c.bodies.seal(rec.ID, "header", encodeFields(nil, j.Answer.Header))
	body, err2 := c.bodies.seal(rec.ID, "body", j.Answer.Body)
	if err1 == nil && err2 == nil && body != nil {
		r.ResponseHeader, r.ResponseBody, r.SealVersion = header, body, sealVersion
	}
	return r
}

// noteCheck adds to the trail what was no ordinary call: a check of the
// reconciler, or a call that took an earlier claim over.
func (c *Client) noteCheck(o *order, rec recordstore.Record, j judged, r *recordstore.Result) {
	taken := rec.TakenFrom == recordstore.Sending || rec.TakenFrom == recordstore.Uncertain
	switch {
	case o.check != nil:
		r.Entry = &recordstore.Entry{Kind: o.check.kind, Actor: "reconciler", Text: cmp.Or(o.check.text, r.ErrorCode, string(j.Evidence))}
		if j.state == recordstore.Uncertain {
			r.DueIn = o.check.dueIn
			if o.check.last || errors.As(j.Err, new(panicked)) {
				r.State, r.DueIn = recordstore.ManualReview, 0
			}
		}
	case taken:
		r.Entry = &recordstore.Entry{Kind: "takeover", Actor: "call", Text: cmp.Or(r.ErrorCode, string(j.Evidence))}
	}
}

// settle writes s, again if that fails, and then in the background until the
// lease ends. The caller's context ending does not stop it.
func (c *Client) settle(ctx context.Context, s recordstore.Settlement, until time.Time) (recordstore.Record, error) {
	ctx = context.WithoutCancel(ctx)
	var err error
	for range 2 {
		var now recordstore.Record
		now, err = c.settleOnce(ctx, s)
		if err == nil || errors.Is(err, recordstore.ErrNotHeld) {
			return now, err
		}
	}
	c.work.Go(func() { c.settleLater(ctx, s, until) })
	return recordstore.Record{}, err
}

func (c *Client) settleOnce(ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.SettleTimeout)
	defer cancel()
	return c.ledger.Settle(ctx, s)
}

func (c *Client) settleLater(ctx context.Context, s recordstore.Settlement, until time.Time) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	stop := context.AfterFunc(c.cut, cancel)
	defer stop()
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if _, err := c.settleOnce(ctx, s); err == nil || errors.Is(err, recordstore.ErrNotHeld) {
			return
		}
	}
}

func (c *Client) report(ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opts.SettleTimeout)
	defer cancel()
	return c.ledger.Report(ctx, id, r)
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
		e.Effect = EffectUnknown
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
