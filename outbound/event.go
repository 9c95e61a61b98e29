package outbound

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// raised is the effect version of a consumer that is above its first.
type raised struct {
	consumer string
	version  int
}

// EventCommand is the command of the effect that a consumer owes to an event:
// every delivery of the event gives the same one, another consumer or another
// effect version another one, and none of them is one of keyderive.CommandID's.
//
// A raised version makes every past event a new effect. Do and Plan refuse it with
// ErrInvalid, before anything is written, unless Options.EffectVersions admits it.
// An ID that was taken out of the command, or made by keyderive.Event itself, does
// not carry its version, and is not refused.
func EventCommand(e keyderive.Event, scope string) (Command, error) {
	id, err := e.CommandID()
	if err != nil {
		return Command{}, err
	}
	cmd := Command{ID: id, Scope: scope}
	if e.Version > 1 {
		cmd.raised = &raised{e.Consumer, e.Version}
	}
	return cmd, nil
}

// admit refuses a raised effect version that no manifest stands for.
func (c *core) admit(cmd Command) error {
	if r := cmd.raised; r != nil && r.version > c.opts.EffectVersions[r.consumer] {
		return fmt.Errorf("effect version %d of consumer %q is not admitted, and would make every past event a new effect: write a manifest, and give its version to Options.EffectVersions", r.version, cleanText(r.consumer))
	}
	return nil
}

// Comparison is what the ledger knows of the command of a call.
type Comparison struct {
	State  recordstore.State // "" where there is no record.
	Effect Effect

	// Same says that the record is of a request that means the same; Read that its
	// fingerprint has a version that this build can compare.
	Same, Read bool
}

// Compare checks and freezes a call as Do does, and compares it with the record of
// its command. It sends nothing, claims nothing and takes raised effect versions
// that are not admitted. A call that Do would refuse is ErrInvalid.
func (c *Client) Compare(ctx context.Context, call Call) (*Comparison, error) {
	o := &order{Call: call}
	if o.Account == "" {
		o.Account = c.account
	}
	e := &Error{Code: ErrInvalid, Provider: c.profile.Provider, Operation: call.Operation, Command: call.Command}
	if e.Err = c.freeze(o); e.Err != nil {
		return nil, e
	}
	if err := c.attach(ctx); err != nil {
		e.Code, e.Err = err.Code, err.Err
		return nil, e
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.ClaimTimeout)
	defer cancel()
	rec, _, err := c.ledger.Get(ctx, o.claim.ID)
	if errors.Is(err, recordstore.ErrNotFound) {
		return &Comparison{}, nil
	}
	if err != nil {
		e.Code, e.Err = ErrStore, err
		return nil, e
	}
	got := &Comparison{State: rec.State, Effect: effectOf(rec, c.restoredAt())}
	for _, sum := range o.claim.Fingerprints {
		if len(rec.Fingerprint) > 0 && rec.Fingerprint[0] == sum[0] {
			got.Read, got.Same = true, string(rec.Fingerprint) == string(sum)
		}
	}
	return got, nil
}
