package outbound

import (
	"context"
	"errors"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Forever is the NotAfter of a planned command that may be sent however late.
var Forever = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// Plan writes call in the caller's own transaction, together with the change that
// wants it: tx is postgres.Store.Tx(tx) or sqlite.Store.Tx(tx). After the commit
// Do sends it, or the reconciler; after a rollback it was never there. Nothing is
// sent by Plan.
//
// The command's NotAfter is required, since nobody may be there to ask whether it
// is still wanted when it is sent at last; Forever says that it always is. The
// error is an *Error; planning the same call again changes nothing.
func (c *Client) Plan(ctx context.Context, tx recordstore.Planner, call Call) error {
	err := c.plan(ctx, tx, call)
	if err != nil {
		err.Provider, err.Operation, err.Command = c.profile.Provider, call.Operation, call.Command
		return err
	}
	return nil
}

func (c *Client) plan(ctx context.Context, tx recordstore.Planner, call Call) *Error {
	if tx == nil {
		return &Error{Code: ErrInvalid, Err: errors.New("Plan needs the caller's transaction, as ledger.Tx(tx)")}
	}
	if call.Command.NotAfter.IsZero() {
		return &Error{Code: ErrInvalid, Err: errors.New("a planned command needs Command.NotAfter, or outbound.Forever")}
	}
	if call.Command.NotAfter.Equal(Forever) {
		call.Command.NotAfter = time.Time{}
	}
	o, err := c.prepare(call)
	if err != nil {
		return err
	}
	if o.claim.Request == nil {
		return &Error{Code: ErrInvalid, Err: errors.New("a plan is sent later from its stored request, and this one cannot be stored: it fills a sensitive field, or Options.Bodies keeps none")}
	}
	if err := c.attach(ctx); err != nil {
		return err
	}
	if !c.lostBefore(o.claim.ID).IsZero() {
		return &Error{Code: ErrInvalid, Err: errors.New("the command is older than the ledger's restore from a backup: call Do, which looks it up before it sends")}
	}
	claimed, failed := tx.Plan(ctx, o.claim)
	if failed != nil {
		return &Error{Code: ErrStore, Err: failed}
	}
	switch claimed.Decision {
	case recordstore.Send, recordstore.Lookup, recordstore.Replay, recordstore.InFlight:
		return nil // planned now, or on its way or done already
	}
	o.planning = true // the caller's transaction may hold the record
	_, err = c.act(ctx, o, &claimed)
	return err
}

// Refresh looks up how an effect stands by now, as a payment that was pending,
// and returns it as a LatestStatus. Nothing is sent but the look-up, and the record
// stays as it was. A command that has not succeeded is an *Error that says how it
// stands. So is what was accepted and has failed since: ErrRefused, with the words
// of the provider, and the Effect that the record has. ErrUnavailable means that
// the look-up did not tell.
func (c *Client) Refresh(ctx context.Context, cmd Command, operation string) (*Reply, error) {
	s, err := c.Status(ctx, cmd, operation)
	if err != nil {
		return nil, err
	}
	e := &Error{Code: ErrInvalid, Effect: s.Effect, Provider: c.profile.Provider, Operation: operation, Command: cmd}
	if s.State != recordstore.Succeeded {
		e.Err = errors.New("the record is " + string(s.State) + ": only an applied effect has a later state")
		return nil, e
	}
	id, err := c.idOf(cmd, operation)
	if err != nil {
		e.Err = err
		return nil, e
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.ClaimTimeout+c.opts.Retry.AttemptTimeout)
	defer cancel()
	rec, _, err := c.ledger.Get(ctx, id)
	if err != nil {
		e.Code, e.Err = ErrStore, err
		return nil, e
	}
	o, err := c.revive(rec)
	if err != nil {
		e.Err = err
		return nil, e
	}
	o.Command = cmd
	j := c.find(ctx, o, rec, o.frozen.Message, judged{state: recordstore.Uncertain})
	if j.state != recordstore.Succeeded {
		e.stands(j)
		return nil, e
	}
	r := j.reply(o, rec)
	r.AsOf = time.Now()
	return r, nil
}

// errUntold is a look-up that was answered and did not find the effect.
var errUntold = errors.New("the look-up did not find the effect")

// stands makes e say what a look-up of an applied effect told, if not the effect.
func (e *Error) stands(j judged) {
	switch {
	case j.state == recordstore.Refused:
		e.Code, e.ProviderCode, e.RequestID = ErrRefused, j.ProviderCode, j.RequestID
		if j.ObjectStatus != "" {
			e.Err = errors.New("the object is " + j.ObjectStatus)
		} else {
			e.Err = nil
		}
	case j.Err != nil:
		e.Code, e.Err = ErrUnavailable, j.Err
	default:
		e.Code, e.Err = ErrUnavailable, errUntold
	}
}
