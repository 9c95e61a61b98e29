package outbound

import (
	"context"
	"errors"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// replay answers with the recorded outcome; nothing is sent but a look-up where
// the recorded body is gone.
func (c *Client) replay(ctx context.Context, o *order, rec recordstore.Record) (*Reply, *Error) {
	reply := c.recorded(o.Command, rec)
	if allow := c.opts.AllowReplay; allow != nil {
		if err := allow(ctx, reply); err != nil {
			return nil, &Error{Code: ErrForbidden, Effect: effectOf(rec), Err: err}
		}
	}
	if rec.State == recordstore.Succeeded && reply.StatusCode == 0 {
		j := c.find(ctx, o, rec, o.frozen.Message, judged{state: recordstore.Uncertain})
		if j.state == recordstore.Succeeded {
			r := j.reply(o, rec)
			r.AsOf = time.Now()
			return r, nil
		}
	}
	return c.ended(rec, reply)
}

// fromLedger answers with a record that somebody else settled meanwhile.
func (c *Client) fromLedger(o *order, rec recordstore.Record) (*Reply, *Error) {
	return c.ended(rec, c.recorded(o.Command, rec))
}

// ended makes a settled record's reply what Do returns of it.
func (c *Client) ended(rec recordstore.Record, reply *Reply) (*Reply, *Error) {
	if rec.State == recordstore.Succeeded {
		return reply, nil
	}
	_, provider := readCode(rec.ErrorCode)
	return nil, &Error{
		Code: ErrRefused, Effect: EffectNone, ProviderCode: provider,
		RequestID: rec.RequestID, Answer: reply,
	}
}

// recorded is the ledger's copy of an answer. Its StatusCode is 0, and a
// success has no label, where the answer's body is gone or cannot be opened.
func (c *core) recorded(cmd Command, rec recordstore.Record) *Reply {
	evidence := Evidence(rec.Evidence).FromLedger()
	r := &Reply{
		Command: cmd, Operation: rec.Operation,
		Label: evidence.Label(), Evidence: evidence, Origin: FromLedger, Outcome: Outcome(rec.Outcome),
		ExternalRef: rec.ExternalRef, ObjectStatus: rec.ObjectStatus, RequestID: rec.RequestID,
		AsOf: rec.AnsweredAt, Deliveries: rec.Deliveries,
	}
	header, err1 := c.bodies.open(rec.ID, "header", rec.ResponseHeader)
	body, err2 := c.bodies.open(rec.ID, "body", rec.ResponseBody)
	fields, err3 := decodeFields(header)
	if err := errors.Join(err1, err2, err3); err == nil {
		r.StatusCode, r.Header, r.Body = rec.ResponseStatus, fields, body
	} else if rec.State == recordstore.Succeeded {
		r.Label, r.Evidence = "", ""
	}
	return r
}

// lookup asks the provider what became of earlier deliveries, where a resend
// would be blind. The claim is held.
func (c *Client) lookup(ctx context.Context, o *order, rec recordstore.Record) (*Reply, *Error) {
	if rec.Noted != "" {
		return c.merge(ctx, o, rec, judged{state: recordstore.Uncertain}, recordstore.Settlement{ID: rec.ID, Holder: rec.Holder, Fence: rec.Fence})
	}
	j := judged{state: recordstore.Uncertain}
	j.Err = errors.New("the provider may not know the key any more: it is not sent again before it is known what became of it")
	j = c.find(ctx, o, rec, c.frozenMessage(o, rec), j)
	return c.conclude(ctx, o, rec, j)
}

// find looks the effect up. Whatever goes wrong leaves j as it was: a look-up
// that fails is unknown.
func (c *Client) find(ctx context.Context, o *order, rec recordstore.Record, m Message, j judged) judged {
	if c.finder == nil || o.row.Lookup == "" {
		return j
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Retry.AttemptTimeout)
	defer cancel()
	f, err := c.finder.Find(ctx, &Lookup{
		Operation: o.row.Operation, Account: o.Account, Message: m, Key: o.key, Mark: o.key.Mark(),
		ExternalRef: rec.ExternalRef, Answer: j.Answer, Code: j.ProviderCode,
		Credentials: o.Credentials, FirstSentAt: rec.CreatedAt, MaxBody: c.opts.MaxBody,
	})
	if err != nil {
		j.Err = errors.Join(j.Err, err)
		return j
	}
	return j.found(f)
}
