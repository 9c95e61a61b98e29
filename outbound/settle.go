package outbound

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound/internal/limit"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// settled is what the ledger says after a judgement was handed in.
type settled struct {
	record recordstore.Record // What the ledger holds, as far as it could be asked.
	was    recordstore.State  // What it held before, where the claim was lost.
	noted  recordstore.State  // The note that was there when the claim ended.
	lost   bool               // The claim was held no longer.
	err    error              // The ledger could not be told.
}

// settle hands the judgement of the claim rec in, again if that fails, and then
// in the background until the lease ends. The caller's context ending does not
// stop it.
func (c *Client) settle(ctx context.Context, o *order, rec recordstore.Record, j judged) settled {
	ctx = context.WithoutCancel(ctx)
	var end settled
	for range 2 {
		if end = c.settleOnce(ctx, o, rec, j); end.err == nil {
			c.tel.settled(ctx, o, rec, j, end)
			return end
		}
	}
	c.tel.unrecorded(ctx, o, end.err)
	c.background(ctx, o, rec, j)
	return end
}

// background stands alone, so that rec and j are copied where it is needed only.
func (c *Client) background(ctx context.Context, o *order, rec recordstore.Record, j judged) {
	c.work.Go(func() { c.settleLater(ctx, o, rec, j) })
}

// settleLater goes on until the lease ends; after a lost lease once more at
// least, since a fact is worth handing in whoever holds the claim by now.
func (c *Client) settleLater(ctx context.Context, o *order, rec recordstore.Record, j judged) {
	until := o.begun.Add(c.opts.Lease)
	if soon := time.Now().Add(c.opts.SettleTimeout); until.Before(soon) {
		until = soon
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	stop := context.AfterFunc(c.cut, cancel)
	defer stop()
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if end := c.settleOnce(ctx, o, rec, j); end.err == nil {
			c.tel.settled(ctx, o, rec, j, end)
			return
		}
	}
}

// settleOnce settles the claim rec, merging what others noted meanwhile. Where
// the claim is held no longer a fact is reported all the same, and ignorance is
// dropped.
func (c *Client) settleOnce(ctx context.Context, o *order, rec recordstore.Record, j judged) (end settled) {
	for range 3 { // a note is there or not, and becomes another at most once
		end.noted = rec.Noted
		now, err := c.writeSettlement(ctx, recordstore.Settlement{
			ID: rec.ID, Holder: rec.Holder, Fence: rec.Fence, Noted: rec.Noted,
			Uncounted: o.check != nil && o.check.uncounted, Result: c.merged(o, rec, j),
		})
		switch {
		case err == nil:
			end.record = now
			return end
		case !errors.Is(err, recordstore.ErrNotHeld):
			if j.yieldsTo(rec.Noted) { // the ledger could not be told, but it told us
				end.record, end.record.State = rec, rec.Noted
			}
			end.err = err
			return end
		}
		held := now.State == recordstore.Sending && now.Holder == rec.Holder && now.Fence == rec.Fence
		if !held || now.Noted == rec.Noted {
			return c.reportFact(ctx, o, rec, now, j)
		}
		rec = now
	}
	end.err = recordstore.ErrNotHeld
	return end
}

// reportFact hands in the fact of a holder who lost the claim rec; now is what the
// ledger holds.
func (c *Client) reportFact(ctx context.Context, o *order, rec, now recordstore.Record, j judged) settled {
	end := settled{record: now, was: now.State, noted: now.Noted, lost: true}
	if !j.fact() {
		return end
	}
	reported, err := c.report(ctx, rec.ID, c.result(o, rec, j.behind()))
	if end.err = err; err == nil {
		end.record = reported
	}
	return end
}

func (c *Client) report(ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opts.SettleTimeout)
	defer cancel()
	return c.ledger.Report(ctx, id, r)
}

func (c *Client) writeSettlement(ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
	bounded := limit.After(ctx, c.opts.SettleTimeout, nil)
	defer bounded.End()
	return c.ledger.Settle(bounded, s)
}

// yieldsTo reports whether a note outranks j: facts outrank ignorance, Applied
// outranks all.
func (j judged) yieldsTo(noted recordstore.State) bool {
	return noted == recordstore.Succeeded && j.state != recordstore.Succeeded || noted == recordstore.Refused && !j.state.Final()
}

// fact reports whether j holds whoever else delivers under the same key.
func (j judged) fact() bool {
	return j.state == recordstore.Succeeded || j.state == recordstore.Refused && j.lasting
}

// behind is j where the claim was lost before it settled: the new holder may have
// executed first, so that no label rests on this having been the only delivery.
func (j judged) behind() judged {
	if j.Evidence == replaysemantics.ByFirstDelivery {
		j.Evidence = replaysemantics.ByStatusCode
		j.Label = j.Evidence.Label()
	}
	return j
}

// merged is what a judgement writes beside the note of rec.
func (c *Client) merged(o *order, rec recordstore.Record, j judged) recordstore.Result {
	if !j.yieldsTo(rec.Noted) {
		return c.result(o, rec, j)
	}
	return recordstore.Result{
		State: rec.Noted, Evidence: rec.Evidence, Outcome: rec.Outcome, Deliveries: j.deliveries,
		ResponseStatus: rec.ResponseStatus, SealVersion: rec.SealVersion,
		ResponseHeader: rec.ResponseHeader, ResponseBody: rec.ResponseBody, ErrorCode: rec.ErrorCode,
	}
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
		r.DueIn, r.LookOnly, r.Blurred = c.opts.FirstCheck, j.Look, j.blurred
		r.ErrorCode = errorCode(ErrUncertain, j.ProviderCode)
	case recordstore.NotExecuted:
		r.DueIn = cmp.Or(o.again, c.opts.FirstCheck) // where it began as a plan: the ledger knows
		r.ErrorCode = errorCode(j.Code, j.ProviderCode)
	case recordstore.ManualReview:
		r.ErrorCode = errorCode(ErrManualReview, j.ProviderCode)
	default:
		r.ErrorCode = errorCode(j.Code, j.ProviderCode)
	}
	r.Entry = o.entry(rec, j.state, cmp.Or(r.ErrorCode, r.Evidence))
	if o.check != nil && (j.state == recordstore.Uncertain || j.state == recordstore.NotExecuted) {
		r.DueIn = o.check.dueIn
	}
	if j.Answer == nil {
		return r
	}
	r.ResponseStatus = j.Answer.Status
	if !j.state.Final() || o.frozen.Sensitive { // an answer may repeat what must not be kept
		return r
	}
	fields := j.Answer.Header
	header, err1 := c.bodies.sealEncoded(rec.ID, "header", sizeOf(fields), func(b []byte) []byte { return encodeFields(b, fields) })
	body, err2 := c.bodies.seal(rec.ID, "body", hideKey(j.Answer.Body, o.key))
	if err1 == nil && err2 == nil && body != nil {
		r.ResponseHeader, r.ResponseBody, r.SealVersion = header, body, sealVersion
	}
	return r
}

// entry is the trail's line about what was no ordinary call: a check of the
// reconciler, a plan that was turned away, or a call that took an earlier claim over.
func (o *order) entry(rec recordstore.Record, to recordstore.State, text string) *recordstore.Entry {
	switch {
	case o.check != nil:
		return &recordstore.Entry{Kind: o.check.kind, Actor: "reconciler", Text: cmp.Or(o.check.text, text)}
	case o.again > 0 && to == recordstore.NotExecuted:
		return &recordstore.Entry{Kind: "plan", Actor: "reconciler", Text: "turned away, to be sent again: " + text}
	case rec.TakenFrom == recordstore.Sending, rec.TakenFrom == recordstore.Uncertain:
		return &recordstore.Entry{Kind: "takeover", Actor: "call", Text: text}
	}
	return nil
}
