package outbound

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound/internal/limit"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Do makes call happen at most once and returns its answer. An applied effect is
// never an error. The error is an *Error that says what is known of the effect;
// calling again with the same command is always safe. RetryAfter tells whether
// and when.
//
// Do is safe for concurrent use. It holds no connection and no transaction of
// the ledger while the provider works. When ctx ends before anything was
// written, nothing was sent; when it ends later the effect is unknown, and
// errors.Is(err, context.Canceled) holds beside ErrUncertain.
func (c *Client) Do(ctx context.Context, call Call) (*Reply, error) {
	ctx, seen := c.tel.begin(ctx, call)
	reply, err := c.counted(ctx, call, &seen)
	if err != nil {
		err.Provider, err.Operation, err.Command = c.profile.Provider, call.Operation, call.Command
		err.join(ctx.Err())
	}
	seen.end(ctx, reply, err)
	c.track(ctx, call, reply, err)
	if err != nil {
		return nil, err
	}
	return reply, nil
}

func (c *Client) counted(ctx context.Context, call Call, seen *observation) (*Reply, *Error) {
	if !c.enter() {
		return nil, &Error{Code: ErrOverloaded, Err: errors.New("the client is closed")}
	}
	defer c.work.Done()
	o, err := c.prepare(call)
	if err != nil {
		return nil, err
	}
	if c.opts.KeysOnly != nil && c.opts.KeysOnly(ctx) {
		return c.keysOnly(ctx, o)
	}
	if err := c.attach(ctx); err != nil {
		return nil, err
	}
	o.claim.LostBefore = c.lostBefore(o.claim.ID)
	var until time.Time
	for {
		claimed, err := c.claim(ctx, o)
		if err != nil {
			return nil, unclaimed(err)
		}
		if until.IsZero() {
			until = o.begun.Add(c.patience(call))
		}
		seen.claimed(ctx, claimed)
		if claimed.Decision == recordstore.InFlight && c.wait(ctx, o.claim.ID, until) {
			continue
		}
		return c.act(ctx, o, claimed)
	}
}

// unclaimed says why there is no answer of the ledger to a claim.
func unclaimed(err error) *Error {
	if errors.Is(err, recordstore.ErrOverloaded) {
		return &Error{Code: ErrOverloaded, Err: err}
	}
	return &Error{Code: ErrStore, Err: err}
}

// join makes the end of the caller's context recognisable where it may be why
// nobody knows the outcome.
func (e *Error) join(ended error) {
	switch e.Code {
	case ErrUncertain, ErrInFlight, ErrStore:
		if ended != nil && !errors.Is(e.Err, ended) {
			e.Err = errors.Join(e.Err, ended)
		}
	}
}

// patience is how long a call waits for the same command running elsewhere.
func (c *Client) patience(call Call) time.Duration {
	if call.Wait != 0 {
		return max(0, call.Wait)
	}
	return c.opts.Wait
}

// claim asks for the record, and once more when the answer was lost: the claim
// id makes it the same question. The answer is a pointer, as in what follows, since
// many callers wait on their stacks.
func (c *Client) claim(ctx context.Context, o *order) (*recordstore.Claimed, error) {
	bounded := limit.After(ctx, c.opts.ClaimTimeout, nil)
	defer bounded.End()
	o.begun = time.Now()
	o.claimed = o.begun
	for again := true; ; again = false {
		claimed, err := c.ledger.Claim(bounded, o.claim)
		if err != nil && again && bounded.Err() == nil {
			continue
		}
		if err == nil && !claimed.Now.IsZero() {
			o.ahead = claimed.Now.Sub(o.begun)
		}
		return &claimed, err
	}
}

// act does what the claim decided.
func (c *Client) act(ctx context.Context, o *order, claimed *recordstore.Claimed) (*Reply, *Error) {
	if claimed.Decision == recordstore.Send {
		return c.send(ctx, o, claimed)
	}
	return c.unsent(ctx, o, claimed)
}

// unsent answers a call whose claim may not send, or not before a look-up.
func (c *Client) unsent(ctx context.Context, o *order, claimed *recordstore.Claimed) (*Reply, *Error) {
	rec := claimed.Record
	refusal := func(code Code, why string) (*Reply, *Error) {
		e := &Error{Code: code, Effect: effectOf(rec, c.restoredAt())}
		if why != "" {
			e.Err = errors.New(why)
		}
		return nil, e
	}
	switch claimed.Decision {
	case recordstore.Lookup:
		return c.lookup(ctx, o, claimed)
	case recordstore.Replay:
		return c.replay(ctx, o, rec)
	case recordstore.InFlight:
		_, e := refusal(ErrInFlight, "")
		e.RetryAfter = time.Second // a plan whose transaction is still open has no lease
		if !rec.LeaseEndsAt.IsZero() {
			e.RetryAfter = max(rec.LeaseEndsAt.Sub(claimed.Now)-time.Since(o.begun), time.Millisecond)
		}
		return nil, e
	case recordstore.Conflict:
		return refusal(ErrFingerprintConflict, "")
	case recordstore.Newer:
		return refusal(ErrNewerRecord, "")
	case recordstore.Review:
		return refusal(ErrManualReview, "")
	case recordstore.Ended:
		return refusal(ErrAbandoned, "")
	case recordstore.Expired:
		_, e := refusal(ErrExpired, "")
		switch {
		case rec.State == "" && o.claim.LostBefore.IsZero():
			e.Effect = EffectNone // this ledger, which would remember it, never sent the command
		case rec.State != "" && !c.expire(ctx, o, claimed):
			_, e = refusal(ErrStore, "the command's NotAfter has passed, and its record, which may be sent still, could not be ended: call again, or call Abandon")
			e.Effect = EffectUnknown
		}
		return nil, e
	case recordstore.Forgotten:
		return refusal(ErrForgotten, "")
	case recordstore.Future:
		return refusal(ErrInvalid, "the command ID carries a day more than one day ahead of the ledger's clock: make it from the time of the intent")
	}
	return refusal(ErrStore, fmt.Sprintf("the ledger answered with the unknown decision %q", claimed.Decision))
}

// expire sees to it that nobody sends a record any more that this call's NotAfter
// ended, and reports whether that is certain. A record that its own NotAfter ended
// needs nothing. Any other would be sent still, by the reconciler as by a call that
// gives more time, so that it is abandoned.
func (c *Client) expire(ctx context.Context, o *order, claimed *recordstore.Claimed) bool {
	if own := claimed.Record.NotAfter; !own.IsZero() && !claimed.Now.Before(own) {
		return true
	}
	desk, able := c.ledger.(recordstore.Desk)
	if !able || o.planning {
		return false
	}
	bounded := limit.After(ctx, c.opts.SettleTimeout, nil)
	defer bounded.End()
	rec, err := desk.Abandon(bounded, o.claim.ID, recordstore.Entry{Kind: "abandon", Actor: "application", Text: "a call came after its NotAfter"})
	return err == nil && rec.State == recordstore.Abandoned
}

// send delivers under the claim.
func (c *Client) send(ctx context.Context, o *order, claimed *recordstore.Claimed) (*Reply, *Error) {
	held := c.hold(ctx, o, &claimed.Record)
	d := c.delivery(o)
	d.Resend = claimed.Record.Doubt && !o.absent // only a proof clears doubt
	var whole bool
	if d.Message, whole = c.frozenMessage(o, &claimed.Record); !whole && c.profile.Recorded {
		held.stop()
		return c.learned(ctx, o, claimed, d, []Verdict{{Effect: EffectNone, Code: ErrUnavailable, Err: errUnread}})
	}
	claimed.Record.Request, o.claim.Request = nil, nil // sealed copies, which nobody needs while the provider works
	d.Allow = o.paced(ctx, c.allow(o, claimed, &held.lease))
	verdicts := c.deliver(ctx, d)
	o.heed(verdicts)
	held.stop()
	return c.learned(ctx, o, claimed, d, verdicts)
}

// learned judges and settles. It stands apart from send, whose stack waits for the
// provider.
func (c *Client) learned(ctx context.Context, o *order, claimed *recordstore.Claimed, d *Delivery, verdicts []Verdict) (*Reply, *Error) {
	j := fold(o.row.Operation, d.Resend, verdicts)
	c.tel.delivered(ctx, o, d.Resend, verdicts)
	if j.state == recordstore.Uncertain && j.Look && ctx.Err() == nil {
		j = c.find(ctx, o, claimed.Record, d.Message, j)
	}
	return c.conclude(ctx, o, claimed.Record, j)
}

func (c *Client) delivery(o *order) *Delivery {
	d := &Delivery{
		Operation: o.row.Operation, Account: o.Account, Message: o.frozen.Message,
		Credentials: o.Credentials, Retry: c.opts.Retry, MaxBody: c.opts.MaxBody,
		Allow: func() error { return nil },
	}
	if o.row.HasKey() {
		d.Key = o.key
	}
	return d
}

// deliver bounds the whole call, and turns a panic of the adapter into what it
// is: a delivery of which nothing is known. The panic's value may hold a body.
func (c *Client) deliver(ctx context.Context, d *Delivery) (verdicts []Verdict) {
	bounded := limit.After(ctx, c.opts.Retry.CallTimeout, nil)
	defer bounded.End()
	var failed error
	defer func() {
		if failed != nil {
			verdicts = []Verdict{{Deliveries: 1, Err: failed}}
		}
	}()
	defer spare("the adapter", &failed)
	return c.adapter.Send(bounded, d)
}

// errUnread ends a send for which the caller's request cannot stand in.
var errUnread = errors.New("the recorded request cannot be read here, and no other may be sent for it: give Options.Bodies the key that sealed it")

// frozenMessage returns what is sent: the recorded bytes of an earlier claim
// where there are any, else the caller's, which mean the same. It is whole unless
// the caller's stand in for an earlier claim's.
func (c *Client) frozenMessage(o *order, rec *recordstore.Record) (m Message, whole bool) {
	if rec.TakenFrom == "" {
		return o.frozen.Message, true
	}
	if plain, err := c.bodies.open(rec.ID, "request", rec.Request); err == nil {
		if m, err := decodeMessage(plain); err == nil {
			return m, true
		}
	}
	return o.frozen.Message, o.revived
}

// allow refuses an attempt after NotAfter, and one that lease or window might not
// outlive. NotAfter and window, like the lease, count from before the claim, on
// both clocks. The one send that follows a proof of absence needs no window:
// nobody can be made to pay twice.
func (c *Client) allow(o *order, claimed *recordstore.Claimed, l *lease) func() error {
	var window, notAfter time.Time
	if w := claimed.Record.WindowEndsAt; o.row.HasKey() && !w.IsZero() && !o.absent {
		window = o.claimed.Add(w.Sub(claimed.Now))
	}
	if t := claimed.Record.NotAfter; !t.IsZero() {
		notAfter = o.claimed.Add(t.Sub(claimed.Now))
	}
	return func() error {
		now := time.Now()
		end := now.Add(c.opts.Retry.AttemptTimeout)
		switch {
		case !notAfter.IsZero() && (!now.Before(notAfter) || !now.Round(0).Before(notAfter.Round(0))):
			return errors.New("the command's NotAfter has passed")
		case !window.IsZero() && (end.After(window) || end.Round(0).After(window.Round(0))):
			return errors.New("the provider's window for the key ends before another attempt could")
		}
		return l.outlives(end)
	}
}

// keysOnly sends once with the derived key and writes no record. What earlier
// calls did is not known here.
func (c *Client) keysOnly(ctx context.Context, o *order) (*Reply, *Error) {
	switch {
	case !o.row.HasKey():
		return nil, &Error{Code: ErrStore, Err: errors.New("Options.KeysOnly is on, and this operation has no key that would protect it")}
	case c.profile.Recorded:
		return nil, &Error{Code: ErrStore, Err: errors.New("Options.KeysOnly is on, and only the ledger knows which way this command was sent before")}
	}
	if t := o.Command.NotAfter; !t.IsZero() && !time.Now().Before(t) {
		return nil, &Error{Code: ErrExpired}
	}
	d := c.delivery(o)
	d.Resend, d.Retry.Attempts = true, 1
	verdicts := c.deliver(ctx, d)
	c.tel.delivered(ctx, o, false, verdicts)
	j := fold(o.row.Operation, true, verdicts)
	if j.state == recordstore.Succeeded {
		r := j.reply(o, recordstore.Record{})
		r.Unrecorded = &Error{Code: ErrStore, Effect: EffectApplied, Sent: true, Err: errors.New("Options.KeysOnly is on: no record is written")}
		c.tel.unrecorded(ctx, o, r.Unrecorded)
		return r, nil
	}
	return nil, j.failure(o, recordstore.Record{})
}

// track notes the result for Track, and counts a second request of an operation
// that had succeeded under the same context: two intents share one command.
func (c *Client) track(ctx context.Context, call Call, reply *Reply, err *Error) {
	t, ok := ctx.Value(commandKey{}).(*Tracked)
	if !ok || t.command.ID != call.Command.ID || t.command.Scope != call.Command.Scope {
		return
	}
	var plain error
	if err != nil {
		plain = err
	}
	if t.set(call.Operation, reply, plain) {
		c.tel.reused(ctx, call)
	}
}
