package outbound

import (
	"context"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Shadow records and reports a call that package dropin sends by itself, with
// whatever key its SDK made, and changes nothing: send is called exactly once,
// whatever the ledger says or fails to say. The record's derivation is
// recordstore.Foreign: later calls replay it or look it up, and never resend it.
// Metrics and log lines tell what Do would have prevented.
func (c *Client) Shadow(ctx context.Context, call Call, send func(context.Context) Verdict) {
	if !c.enter() {
		send(ctx)
		return
	}
	defer c.work.Done()
	if c.opts.KeysOnly != nil && c.opts.KeysOnly(ctx) {
		send(ctx)
		return
	}
	o, rec, held := c.shadowClaim(ctx, call)
	v := send(ctx)
	if held {
		c.settle(ctx, o, rec, shadowed(o.row.Operation, rec, v))
	}
}

// shadowed judges an answer to a key that its SDK made. Another call of the
// command has another key, so that under doubt no refusal is final. An unknown
// delivery under a record of Do's is nobody's but a person's to resolve: Do's own
// key would execute it again.
func shadowed(op replaysemantics.Operation, rec recordstore.Record, v Verdict) judged {
	op.Failures = replaysemantics.RunAgain
	if rec.Doubt && v.Effect == EffectNone {
		v.Evidence = ""
	}
	j := fold(op, rec.Doubt, []Verdict{v})
	j.lasting = false
	if j.Effect == EffectUnknown && rec.Derivation != recordstore.Foreign {
		j.state = recordstore.ManualReview
	}
	return j
}

// Unnamed counts a write that package dropin passed on without a command. A write
// that is no operation of the table has the operation "".
func (c *Client) Unnamed(ctx context.Context, operation string) {
	c.tel.unnamed.Add(ctx, 1, c.tel.attrs(operation))
}

func (c *Client) shadowClaim(ctx context.Context, call Call) (o *order, rec recordstore.Record, held bool) {
	o, err := c.prepare(call)
	if err == nil {
		err = c.attach(ctx)
	}
	if err != nil {
		c.tel.shadowed(ctx, call, string(err.Code), err)
		return nil, rec, false
	}
	o.claim.Derivation, o.claim.Window = recordstore.Foreign, 0
	claimed, failed := c.claim(ctx, o)
	if failed != nil {
		c.tel.shadowed(ctx, call, string(ErrStore), failed)
		return o, rec, false
	}
	c.tel.shadowed(ctx, call, string(claimed.Decision), nil)
	return o, claimed.Record, claimed.Decision == recordstore.Send || claimed.Decision == recordstore.Lookup
}
