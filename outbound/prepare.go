package outbound

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// order is one call on its way: checked, frozen, with all that a claim needs.
type order struct {
	Call
	row      row
	key      keyderive.Key
	frozen   Frozen
	claim    recordstore.Claim
	prints   [1][]byte // room for the claim's fingerprints: most often there is one
	planning bool      // Plan asks: the record may be locked by its caller's transaction

	claimed time.Time // right before the claim, on this machine's clocks
	begun   time.Time // the same, and later right before the lease was taken anew

	ahead time.Duration // by how much the ledger's clock is ahead of this machine's
	turns *turns        // of the reconciler, which its requests wait for; nil: they wait for none

	absent  bool          // a look-up proved that no earlier delivery was applied
	revived bool          // frozen was opened from the record
	check   *check        // the reconciler is at work
	again   time.Duration // when the reconciler sends a plan again that is turned away
}

// prepare checks and freezes a call. Nothing is stored and nothing sent.
func (c *Client) prepare(call Call) (*order, *Error) {
	o := &order{Call: call}
	if o.Account == "" {
		o.Account = c.account
	}
	if err := c.admit(o.Command); err != nil {
		return nil, &Error{Code: ErrInvalid, Err: err}
	}
	if err := c.freeze(o); err != nil {
		return nil, &Error{Code: ErrInvalid, Err: err}
	}
	if c.profile.Recorded && (o.frozen.Sensitive || c.bodies.sealer == nil) {
		return nil, &Error{Code: ErrInvalid, Err: errors.New("the request cannot be stored, and the ledger could not tell which way it was sent: keep bodies and fill no sensitive field, or use one way only")}
	}
	if o.frozen.Sensitive {
		return o, nil // never stored, sealed or not
	}
	var err error
	m := &o.frozen.Message
	o.claim.Request, err = c.bodies.sealEncoded(o.claim.ID, "request", sizeOfMessage(m), func(b []byte) []byte { return encodeMessage(b, m) })
	if err != nil {
		return nil, &Error{Code: ErrStore, Err: fmt.Errorf("the request could not be sealed: %w", err)}
	}
	return o, nil
}

// spare turns a panic of somebody else's code into an error.
func spare(whose string, err *error) {
	if p := recover(); p != nil {
		*err = panicked(fmt.Sprintf("%s panicked with a %T", whose, p))
	}
}

// panicked says who panicked. The panic's value may hold a body and is not kept.
type panicked string

func (p panicked) Error() string { return string(p) }

// freeze checks a call and fixes what is claimed and sent.
func (c *Client) freeze(o *order) (err error) {
	defer spare("the adapter", &err)
	if o.Err != nil {
		return o.Err
	}
	var known bool
	if o.row, known = c.rows[o.Operation]; !known {
		return fmt.Errorf("no operation %q in the table of provider %s", cleanText(o.Operation), c.profile.Provider)
	}
	if int64(len(o.Message.Body)) > c.opts.MaxBody {
		return fmt.Errorf("the request's body has %d bytes, more than Options.MaxBody (%d)", len(o.Message.Body), c.opts.MaxBody)
	}
	if o.key, err = c.derive(o.Command, o.Operation, o.Account); err != nil {
		return err
	}
	if o.frozen, err = c.adapter.Freeze(o.row.Operation, o.Message, o.key.Mark()); err != nil {
		return err
	}
	o.claim = recordstore.Claim{
		ID:         recordstore.ID{Day: o.key.Day(), KeyHash: o.key.Hash()},
		Scope:      keyderive.ScopeHash(o.Command.Scope),
		Provider:   c.profile.Provider,
		Account:    c.withMode(o.Account),
		Operation:  o.Operation,
		CommandID:  o.Command.ID,
		Class:      o.row.Class.String(),
		Derivation: keyderive.Version, Derivations: c.derivations,
		SealVersion: sealVersion,
		Holder:      rand.Text(),
		Lease:       c.opts.Lease,
		Window:      o.row.window,
		NotAfter:    o.Command.NotAfter,
		Replay:      o.row.replay, Evidence: o.row.evidence,
	}
	o.claim.Fingerprints, err = c.fingerprints(o)
	return err
}

// lostBefore is when the ledger was restored from a backup, if a record of this
// command may have been lost by it: the command is as old, or has no day.
func (c *core) lostBefore(id recordstore.ID) time.Time {
	t := c.restoredAt()
	if t.IsZero() || id.Day > int32(t.Unix()/int64(day/time.Second))+1 { // IDs may be dated a day ahead
		return time.Time{}
	}
	return t
}

// restoredAt is when the ledger was restored from a backup; zero if it was not.
func (c *core) restoredAt() time.Time {
	if t := c.restored.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// idOf is the identity of a command's record, in c's account.
func (c *Client) idOf(cmd Command, operation string) (recordstore.ID, error) {
	key, err := c.derive(cmd, operation, "")
	return recordstore.ID{Day: key.Day(), KeyHash: key.Hash()}, err
}

// fingerprints returns the request's fingerprint in every version that this
// build reads, the written one first: a version byte and an HMAC of the
// request's meaning under the raw key, which the ledger does not hold, so that
// guessable content cannot be confirmed from a row.
func (c *Client) fingerprints(o *order) ([][]byte, error) {
	all := o.prints[:0]
	secret := []byte(o.key.Raw())
	for _, version := range c.profile.Canonicals {
		mac := hmac.New(sha256.New, secret)
		if err := c.adapter.Canonical(mac, version, o.row.Operation, o.Message, !c.opts.Secret.IsZero()); err != nil {
			return nil, err
		}
		sum := make([]byte, 1, 1+sha256.Size)
		sum[0] = byte(version)
		all = append(all, mac.Sum(sum)[:17:17])
	}
	return all, nil
}
