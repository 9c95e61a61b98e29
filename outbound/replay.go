package outbound

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// replay answers with the recorded outcome; nothing is sent but a look-up where
// the recorded body is gone.
func (c *Client) replay(ctx context.Context, o *order, rec recordstore.Record) (*Reply, *Error) {
	reply, whole := c.recorded(o.Command, rec)
	if err := c.mayReplay(ctx, rec, reply); err != nil {
		return nil, err
	}
	if rec.State == recordstore.Succeeded && !whole {
		j := c.find(ctx, o, rec, o.frozen.Message, judged{state: recordstore.Uncertain})
		if j.state == recordstore.Succeeded {
			r := j.reply(o, rec)
			r.AsOf = time.Now()
			return r, nil
		}
	}
	return c.ended(rec, reply)
}

// ended makes a settled record's reply what Do returns of it.
func (c *Client) ended(rec recordstore.Record, reply *Reply) (*Reply, *Error) {
	if rec.State == recordstore.Succeeded {
		return reply, nil
	}
	provider := providerCode(rec.ErrorCode)
	return nil, &Error{
		Code: ErrRefused, Effect: EffectNone, ProviderCode: provider,
		RequestID: rec.RequestID, Answer: reply,
	}
}

// mayReplay asks for the present caller's right to a recorded answer.
func (c *core) mayReplay(ctx context.Context, rec recordstore.Record, reply *Reply) *Error {
	if c.opts.AllowReplay == nil {
		return nil
	}
	if err := c.opts.AllowReplay(ctx, reply); err != nil {
		return &Error{Code: ErrForbidden, Effect: effectOf(rec, c.restoredAt()), Err: err}
	}
	return nil
}

// recorded is the ledger's copy of an answer, and whether it is whole: one whose
// body is gone or cannot be opened has no status, and no label on a success.
func (c *core) recorded(cmd Command, rec recordstore.Record) (r *Reply, whole bool) {
	evidence := Evidence(rec.Evidence).FromLedger()
	r = &Reply{
		Command: cmd, Operation: rec.Operation,
		Label: evidence.Label(), Evidence: evidence, Origin: FromLedger, Outcome: Outcome(rec.Outcome),
		ExternalRef: rec.ExternalRef, ObjectStatus: rec.ObjectStatus, RequestID: rec.RequestID,
		AsOf: rec.AnsweredAt, Deliveries: rec.Deliveries,
	}
	header, err1 := c.bodies.open(rec.ID, "header", rec.ResponseHeader)
	body, err2 := c.bodies.open(rec.ID, "body", rec.ResponseBody)
	fields, err3 := decodeFields(header)
	if err := errors.Join(err1, err2, err3); err == nil {
		r.StatusCode, r.Header, r.Body = rec.ResponseStatus, fields, c.showKey(body, rec)
		return r, true
	}
	if rec.State == recordstore.Succeeded {
		r.Label, r.Evidence = "", ""
	}
	return r, false
}

// keyPlace stands for the raw key in a stored body: providers repeat it (a
// payout's sender_batch_id), and the ledger does not hold it, sealed or plain.
const keyPlace = "\x00samekey\x00"

func hideKey(body []byte, key keyderive.Key) []byte {
	var b [64]byte
	raw := append(b[:0], key.Raw()...)
	if key.IsZero() || !bytes.Contains(body, raw) {
		return body
	}
	return bytes.ReplaceAll(body, raw, []byte(keyPlace))
}

// showKey puts the key back, which the record makes again.
func (c *core) showKey(body []byte, rec recordstore.Record) []byte {
	if !bytes.Contains(body, []byte(keyPlace)) {
		return body
	}
	key, err := c.rederive(rec)
	if err != nil {
		return body
	}
	return bytes.ReplaceAll(body, []byte(keyPlace), []byte(key.Raw()))
}

// lookup asks the provider what became of earlier deliveries, where a resend
// would be blind. The claim is held. Found settles; absent, which is a proof,
// sends; unknown waits for the next look, or for a person.
func (c *Client) lookup(ctx context.Context, o *order, claimed *recordstore.Claimed) (*Reply, *Error) {
	rec := claimed.Record
	j := judged{state: recordstore.Uncertain}
	if rec.Noted != "" { // a fact that an earlier holder, or a webhook, handed in
		return c.conclude(ctx, o, rec, j)
	}
	j.Err = errors.New("the provider may not know the key any more: it is not sent again before it is known what became of it")
	o.frozen.Message, _ = c.frozenMessage(o, &rec)
	f, err := c.ask(ctx, o, rec, o.frozen.Message, j)
	if err != nil {
		j.Err = errors.Join(j.Err, err)
	}
	j = j.found(f)
	keyless := !o.row.HasKey()
	switch {
	case err == nil && c.absent(o, rec, f, claimed.Now):
		if !o.mayFollowAbsence(claimed.Now, rec) {
			if keyless {
				j.state, j.Code = recordstore.ManualReview, ErrManualReview
			}
			break
		}
		if err := c.mark(ctx, o, rec); err != nil {
			j.Err = errors.Join(j.Err, err)
			break
		}
		o.absent = true
		return c.send(ctx, o, claimed)
	case j.state == recordstore.Uncertain && keyless && (o.row.Lookup == "" || c.pastHorizon(o, rec, claimed.Now)):
		j.state, j.Code = recordstore.ManualReview, ErrManualReview // nothing can tell any more
	}
	return c.conclude(ctx, o, rec, j)
}

// mayFollowAbsence reports whether a send may follow a proof of absence. Without
// a key a late delivery could still count twice: the row must allow it and the
// caller ask for it.
func (o *order) mayFollowAbsence(now time.Time, rec recordstore.Record) bool {
	return !expired(rec, now) && rec.Derivation != recordstore.Foreign &&
		(o.row.HasKey() || o.row.ResendAfterAbsence && o.ResendAfterAbsence)
}

// find looks the effect up. Whatever goes wrong leaves j as it was: a look-up
// that fails is unknown.
func (c *Client) find(ctx context.Context, o *order, rec recordstore.Record, m Message, j judged) judged {
	f, err := c.ask(ctx, o, rec, m, j)
	if err != nil {
		j.Err = errors.Join(j.Err, err)
		return j
	}
	return j.found(f)
}

func (c *Client) ask(ctx context.Context, o *order, rec recordstore.Record, m Message, j judged) (f Finding, err error) {
	if c.finder == nil || o.row.Lookup == "" {
		return f, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Retry.AttemptTimeout)
	defer cancel()
	defer spare("the adapter", &err)
	return c.finder.Find(ctx, c.question(o, rec, m, j))
}

// firstSent is when the first request of a record may have been written. A record
// that was made after its requests, since an earlier one was lost in a restore,
// knows only its command's day, or nothing.
func firstSent(rec recordstore.Record) time.Time {
	switch {
	case rec.SentUntil.IsZero() || !rec.SentUntil.Before(rec.CreatedAt):
		return rec.CreatedAt
	case rec.ID.Day == 0:
		return time.Time{}
	}
	return time.Unix(int64(rec.ID.Day)*int64(day/time.Second), 0).UTC()
}

// question is the order to look one record's effect up.
func (c *Client) question(o *order, rec recordstore.Record, m Message, j judged) *Lookup {
	return &Lookup{
		Operation: o.row.Operation, Account: o.Account, Message: m, Key: o.key, Mark: o.key.Mark(),
		ExternalRef: rec.ExternalRef, Answer: j.Answer, Code: j.ProviderCode, Credentials: o.Credentials,
		FirstSentAt: firstSent(rec), SentUntil: rec.SentUntil, Horizon: c.horizon(o), MaxBody: c.opts.MaxLookup,
		ahead: o.ahead, turns: o.turns,
	}
}
