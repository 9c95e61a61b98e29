package outbound

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Resolution is a person's verdict about a record that nobody but a person can
// settle.
type Resolution struct {
	Command   Command
	Operation string
	Version   int64 // As Status showed it: a record that moved since is refused with recordstore.ErrNotHeld.

	// Effect is the verdict: EffectApplied, or EffectNone. None ends the command,
	// unless SendAgain lets it be sent again: by the next Do, and what was planned by
	// the reconciler too.
	Effect    Effect
	SendAgain bool

	ExternalRef string // The object at the provider, where there is one.
	Reason      string // Required: what was seen, and where. 1 to 500 bytes, one line.
	Operator    string // Required: who decided. 1 to 100 bytes.
}

// Resolve settles a record by a person's verdict and keeps reason and name in
// its trail. The record must be uncertain, in review or abandoned. A truth that
// arrives later and contradicts the verdict brings the record back to review.
func (c *Client) Resolve(ctx context.Context, r Resolution) error {
	v, err := r.verdict()
	if v.State == recordstore.NotExecuted {
		v.DueIn = c.opts.FirstCheck // where it began as a plan: the ledger knows
	}
	return c.atDesk(ctx, r.Command, r.Operation, r.Reason, r.Operator, err, func(ctx context.Context, d recordstore.Desk, id recordstore.ID) error {
		v.ID = id
		_, err := d.Resolve(ctx, v)
		return err
	})
}

// Verdict returns r as a ledger's Desk takes it, for tools that found the record
// by themselves and have no Client; Command and Operation do not matter. The error
// says what a verdict lacks.
func (r Resolution) Verdict(id recordstore.ID) (recordstore.Verdict, error) {
	v, err := r.verdict()
	if err == nil {
		err = answerable(r.Reason, r.Operator)
	}
	v.ID = id
	if v.State == recordstore.NotExecuted {
		v.DueIn = time.Minute // as Options.FirstCheck defaults to
	}
	return v, err
}

func (r Resolution) verdict() (recordstore.Verdict, error) {
	v := recordstore.Verdict{Version: r.Version, Result: recordstore.Result{
		Evidence: string(replaysemantics.ByOperator), ExternalRef: cleanText(r.ExternalRef),
		Entry: &recordstore.Entry{Kind: "verdict", Actor: r.Operator, Text: r.Reason},
	}}
	switch {
	case r.Effect == EffectApplied && r.SendAgain:
		return v, errors.New("an applied effect is never sent again")
	case r.Effect == EffectApplied:
		v.State, v.Outcome = recordstore.Succeeded, string(Done)
	case r.Effect == EffectNone && r.SendAgain:
		v.State, v.Evidence = recordstore.NotExecuted, ""
	case r.Effect == EffectNone:
		v.State, v.ErrorCode = recordstore.Refused, errorCode(ErrRefused, "operator")
	default:
		return v, errors.New("Resolution.Effect is the verdict: EffectApplied or EffectNone")
	}
	return v, nil
}

// answerable wants a reason and a name for what a person does.
func answerable(reason, operator string) error {
	switch {
	case !oneLine(reason, 500):
		return errors.New("the Reason needs 1 to 500 bytes on one line: say what was seen, and where")
	case !oneLine(operator, 100):
		return errors.New("the Operator needs 1 to 100 bytes on one line: the name of who decides")
	}
	return nil
}

// Abandonment forbids sending.
type Abandonment struct {
	Command   Command
	Operation string
	Reason    string // Required, 1 to 500 bytes, one line.
	Operator  string // Required, 1 to 100 bytes.
}

// Abandon ends a record that was never sent or provably not executed. Where a
// delivery may have been applied it forbids sending, and looking up goes on.
// Settled records stay as they are.
func (c *Client) Abandon(ctx context.Context, a Abandonment) error {
	return c.atDesk(ctx, a.Command, a.Operation, a.Reason, a.Operator, nil, func(ctx context.Context, d recordstore.Desk, id recordstore.ID) error {
		_, err := d.Abandon(ctx, id, recordstore.Entry{Kind: "abandon", Actor: a.Operator, Text: a.Reason})
		return err
	})
}

// Erase removes the stored bodies of all operations of a command now. The
// evidence stays: a replay is then a look-up. What is uncertain can afterwards be
// resent only by a caller with the same input.
func (c *Client) Erase(ctx context.Context, cmd Command) error {
	found := false
	for _, op := range c.profile.Operations {
		err := c.atDesk(ctx, cmd, op.Name, "-", "-", nil, func(ctx context.Context, d recordstore.Desk, id recordstore.ID) error {
			_, err := d.Erase(ctx, id, recordstore.Entry{Kind: "erase", Actor: "application", Text: "Erase was called"})
			return err
		})
		switch {
		case err == nil:
			found = true
		case !errors.Is(err, recordstore.ErrNotFound):
			return err
		}
	}
	if !found {
		return &Error{Code: ErrInvalid, Provider: c.profile.Provider, Command: cmd, Err: recordstore.ErrNotFound}
	}
	return nil
}

// Trail returns what happened to a record beyond an ordinary call, oldest first:
// takeovers, look-ups, webhooks, verdicts.
func (c *Client) Trail(ctx context.Context, cmd Command, operation string) ([]recordstore.Entry, error) {
	var entries []recordstore.Entry
	err := c.atDesk(ctx, cmd, operation, "-", "-", nil, func(ctx context.Context, d recordstore.Desk, id recordstore.ID) (err error) {
		entries, err = d.Trail(ctx, id)
		return err
	})
	return entries, err
}

// atDesk checks what a person gave and does one thing to one record.
func (c *Client) atDesk(ctx context.Context, cmd Command, operation, reason, operator string, bad error,
	do func(context.Context, recordstore.Desk, recordstore.ID) error) error {
	e := &Error{Code: ErrInvalid, Provider: c.profile.Provider, Operation: operation, Command: cmd}
	desk, able := c.ledger.(recordstore.Desk)
	switch {
	case bad != nil:
		e.Err = bad
	case !able:
		e.Err = errors.New("this ledger keeps no verdicts: it is no recordstore.Desk")
	case answerable(reason, operator) != nil:
		e.Err = answerable(reason, operator)
	case c.rows[operation].Name == "":
		e.Err = fmt.Errorf("no operation %q in the table of provider %s", cleanText(operation), c.profile.Provider)
	}
	if e.Err != nil {
		return e
	}
	id, err := c.idOf(cmd, operation)
	if err != nil {
		e.Err = err
		return e
	}
	if err := c.attach(ctx); err != nil {
		e.Code, e.Err = err.Code, err.Err
		return e
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.SettleTimeout)
	defer cancel()
	if err := do(ctx, desk, id); err != nil {
		if !errors.Is(err, recordstore.ErrNotFound) && !errors.Is(err, recordstore.ErrNotHeld) {
			e.Code = ErrStore
		}
		e.Err = err
		return e
	}
	return nil
}

func oneLine(s string, most int) bool {
	return strings.TrimSpace(s) != "" && len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
