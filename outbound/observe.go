package outbound

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Observation is what a provider reported by itself, as in a webhook: evidence,
// not an outcome. Provider packages make it of a verified event.
type Observation struct {
	Provider string // "stripe".
	Account  string // The provider's own account id; "" for the client's.
	Mode     string // "live", "test", "sandbox"; "" where the event does not say.

	// One of Key, Mark and Command leads to the record. Command needs Operations to
	// name one.
	Key     keyderive.Key
	Mark    string
	Command Command

	// Operations are those that an event of this type can be about; a record of
	// another operation is not touched.
	Operations []string

	EventID      string
	EventType    string // "refund.updated".
	ExternalRef  string // The object's id.
	ObjectStatus string // In the provider's words.
	Effect       Effect // What the event says of the effect: Applied; None for a refusal.
	Outcome      Outcome
	ProviderCode string // Of a refusal.
	At           time.Time
}

// Observe takes what the provider reported of one of our commands. An event type
// that the operation's row calls conclusive settles the record; any other makes
// it due now, so that a look-up decides. While the command's holder is sending,
// the report is noted and the holder's settle merges it. Reports of other
// accounts and modes, of operations that the event cannot be about, and of
// commands that the ledger does not know change nothing; nor does a Mark that is
// none of ours, as a reference that somebody else chose.
//
// Observe may be called early, late and repeatedly. ErrStore means that the ledger
// could not be asked: let the provider deliver the event again. ErrInvalid is a
// mistake in the program, which a new delivery does not mend.
func (c *Client) Observe(ctx context.Context, o Observation) error {
	e := &Error{Provider: c.profile.Provider, Command: o.Command}
	if o.Provider != c.profile.Provider || o.Mode != "" && o.Mode != c.profile.Mode {
		return nil
	}
	if o.Key.IsZero() && o.Mark != "" {
		if _, _, err := keyderive.ParseMark(o.Mark); err != nil {
			return nil // a reference that somebody else chose
		}
	}
	queue, able := c.ledger.(recordstore.Queue)
	if !able {
		e.Code, e.Err = ErrInvalid, errors.New("this ledger cannot be told of events: it is no recordstore.Queue")
		return e
	}
	id, err := c.observed(o)
	if err != nil {
		e.Code, e.Err = ErrInvalid, err
		return e
	}
	if err := c.attach(ctx); err != nil {
		e.Code, e.Err = err.Code, err.Err
		return e
	}
	if err := c.observe(ctx, queue, id, o); err != nil {
		e.Code, e.Err = ErrStore, err
		return e
	}
	return nil
}

// observed returns the identity of the record that o leads to.
func (c *Client) observed(o Observation) (recordstore.ID, error) {
	switch {
	case !o.Key.IsZero():
		return recordstore.ID{Day: o.Key.Day(), KeyHash: o.Key.Hash()}, nil
	case o.Mark != "":
		day, hash, err := keyderive.ParseMark(o.Mark)
		return recordstore.ID{Day: day, KeyHash: hash}, err
	case o.Command.ID != "" && len(o.Operations) == 1:
		account := c
		if o.Account != "" {
			account = c.ForAccount(o.Account)
		}
		return account.idOf(o.Command, o.Operations[0])
	}
	return recordstore.ID{}, errors.New("an Observation needs a Key, a Mark, or a Command with one operation")
}

func (c *Client) observe(ctx context.Context, queue recordstore.Queue, id recordstore.ID, o Observation) error {
	ctx, cancel := context.WithTimeout(ctx, 2*c.opts.SettleTimeout+c.opts.Retry.AttemptTimeout)
	defer cancel()
	rec, now, err := c.ledger.Get(ctx, id)
	if errors.Is(err, recordstore.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !c.concerns(o, rec) {
		return nil
	}
	row := c.rows[rec.Operation]
	if slices.Contains(row.ConclusiveEventTypes, o.EventType) && o.Effect != EffectUnknown {
		return c.takeFact(ctx, rec, o.fact())
	}
	live := rec.State == recordstore.Sending && now.Before(rec.LeaseEndsAt)
	switch rec.State {
	case recordstore.Uncertain, recordstore.Sending:
		if rec, err = queue.Wake(ctx, id, cleanText(o.ExternalRef)); err == nil && !live {
			c.tel.woken(ctx, rec)
		}
		return err
	case recordstore.NotExecuted, recordstore.Refused, recordstore.ManualReview, recordstore.Abandoned:
		if o.Effect == EffectApplied {
			return c.verify(ctx, rec, o)
		}
	}
	return nil
}

// concerns reports whether an event can be about rec.
func (c *Client) concerns(o Observation, rec recordstore.Record) bool {
	account := o.Account
	if account == "" {
		account = c.account
	}
	return rec.Provider == o.Provider && rec.Account == account+"/"+c.profile.Mode &&
		(len(o.Operations) == 0 || slices.Contains(o.Operations, rec.Operation))
}

// fact is what a conclusive event settles.
func (o Observation) fact() recordstore.Result {
	r := recordstore.Result{
		State: recordstore.Succeeded, Evidence: string(replaysemantics.ByWebhook), Outcome: string(o.Outcome.of(EffectApplied)),
		ExternalRef: cleanText(o.ExternalRef), ObjectStatus: cleanText(o.ObjectStatus),
		Entry: &recordstore.Entry{Kind: "webhook", Actor: "provider", Text: cleanText(o.EventType + " " + o.EventID)},
	}
	if o.Effect == EffectNone {
		r.State, r.Outcome, r.ErrorCode = recordstore.Refused, "", errorCode(ErrRefused, cleanText(o.ProviderCode))
	}
	return r
}

// takeFact reports a fact and tells operators when it contradicts the ledger.
func (c *Client) takeFact(ctx context.Context, rec recordstore.Record, r recordstore.Result) error {
	after, err := c.report(ctx, rec.ID, r)
	if err != nil {
		return err
	}
	if after.Version != rec.Version {
		c.tel.reconciled(ctx, callOf(rec), r.Entry.Kind, r.Evidence)
		if rec.State == recordstore.Succeeded || rec.State == recordstore.Refused || rec.State == recordstore.ManualReview || rec.State == recordstore.NotExecuted || rec.State == recordstore.Abandoned {
			c.tel.contradicted(ctx, callOf(rec))
		}
	}
	return nil
}

// verify asks the provider about a record that was thought not to be applied:
// the event may be forged, or about another object.
func (c *Client) verify(ctx context.Context, rec recordstore.Record, o Observation) error {
	order, err := c.revive(rec)
	if err != nil {
		return nil // a build or client that can read the record will be told of it too
	}
	if rec.ExternalRef == "" {
		rec.ExternalRef = cleanText(o.ExternalRef)
	}
	j := c.find(ctx, order, rec, order.frozen.Message, judged{state: recordstore.Uncertain})
	if j.state != recordstore.Succeeded {
		return nil
	}
	r := c.result(order, rec, j)
	r.Entry = &recordstore.Entry{Kind: "webhook", Actor: "provider", Text: cleanText(o.EventType + " " + o.EventID)}
	return c.takeFact(ctx, rec, r)
}
