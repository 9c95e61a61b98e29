package outbound

import (
	"context"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Shadow records and reports a call that package dropin sends by itself, with
// whatever key its SDK made, and changes nothing: send is called exactly once,
// whatever the ledger says or fails to say. The record's derivation is
// recordstore.Foreign: later calls replay it or look it up, and never resend it.
// Metrics and log lines tell what Do would have prevented.
func (c *Client) Shadow(ctx context.Context, call Call, send func(context.Context) Verdict) {
	o, claimed, held := c.shadowClaim(ctx, call)
	v := send(ctx)
	if !held {
		return
	}
	j := fold(o.row.Operation, claimed.Record.Doubt, []Verdict{v})
	s := recordstore.Settlement{
		ID: claimed.Record.ID, Holder: claimed.Record.Holder, Fence: claimed.Record.Fence,
		Result: c.result(o, claimed.Record, j),
	}
	if _, err := c.settle(ctx, s, o.begun.Add(c.opts.Lease)); err != nil {
		c.tel.unrecorded(ctx, o, err)
	}
}

func (c *Client) shadowClaim(ctx context.Context, call Call) (o *order, claimed recordstore.Claimed, held bool) {
	o, err := c.prepare(call)
	if err == nil {
		err = c.attach(ctx)
	}
	if err != nil {
		c.tel.shadowed(ctx, call, string(err.Code), err)
		return nil, claimed, false
	}
	o.claim.Derivation, o.claim.Window = recordstore.Foreign, 0
	claimed, failed := c.claim(ctx, o)
	if failed != nil {
		c.tel.shadowed(ctx, call, string(ErrStore), failed)
		return o, claimed, false
	}
	c.tel.shadowed(ctx, call, string(claimed.Decision), nil)
	return o, claimed, claimed.Decision == recordstore.Send || claimed.Decision == recordstore.Lookup
}
