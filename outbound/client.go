package outbound

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Client makes calls through one adapter. It is safe for concurrent use; one
// for each provider is enough for a process.
type Client struct {
	*core
	account string // The provider's id, without the mode.
}

// core is what all views of a client share.
type core struct {
	adapter Adapter
	finder  Finder // nil: the adapter cannot look anything up
	ledger  recordstore.Store
	profile Profile
	rows    map[string]row
	opts    Options
	usual   string // the adapter's own account, with its mode
	bodies  bodies

	derivations []string // that this build reads
	tel         *telemetry
	waits       waits

	attached atomic.Bool
	restored atomic.Pointer[time.Time] // when the ledger was restored from a backup; nil or zero: never
	work     sync.WaitGroup            // calls, background settles and waits
	closing  chan struct{}             // closed by Close
	closeMu  sync.Mutex
	cut      context.Context // ends when Close gives up on background work
	cutOff   context.CancelFunc
}

// row is an operation with what its options make of it.
type row struct {
	replaysemantics.Operation
	window           time.Duration // the provider's, less the margin; 0 if it publishes none
	replay, evidence time.Duration
}

// New checks everything that can be wrong before the first call: the adapter's
// settings, key limits, retention against windows, the decision about bodies.
// It does no network I/O: the ledger's schema and secret are compared at the
// first call. opts may be nil. The error is an *Error with ErrInvalid.
func New(a Adapter, ledger recordstore.Store, opts *Options) (*Client, error) {
	c, err := newClient(a, ledger, opts)
	if err != nil {
		return nil, &Error{Code: ErrInvalid, Err: err}
	}
	return c, nil
}

func newClient(a Adapter, ledger recordstore.Store, opts *Options) (*Client, error) {
	if isNil(a) {
		return nil, errors.New("New needs an adapter, as stripe.New(cfg)")
	}
	if isNil(ledger) {
		return nil, errors.New("New needs a ledger, as sqlite.Open(path, nil); memory.New(nil) is for tests")
	}
	profile, err := a.Profile()
	if err != nil {
		return nil, err
	}
	c := &core{
		adapter: a, ledger: ledger, profile: profile, usual: profile.Account + "/" + profile.Mode,
		derivations: []string{keyderive.Version, recordstore.Foreign}, closing: make(chan struct{}),
	}
	c.finder, _ = a.(Finder)
	if opts != nil {
		c.opts = *opts
	}
	if err := c.opts.complete(); err != nil {
		return nil, err
	}
	if c.bodies, err = newBodies(c.opts.Bodies, ledger); err != nil {
		return nil, err
	}
	if c.rows, err = c.opts.rows(profile.Operations); err != nil {
		return nil, err
	}
	if c.tel, err = newTelemetry(c.opts.Telemetry, profile.Provider, c.rows); err != nil {
		return nil, err
	}
	probe := keyderive.Input{Provider: profile.Provider, Account: profile.Account + "/" + profile.Mode, Operation: "probe", CommandID: "probe"}
	if _, err := c.opts.Secret.Derive(probe); err != nil {
		return nil, err
	}
	if err := checkCanonicals(profile.Canonicals); err != nil {
		return nil, err
	}
	c.cut, c.cutOff = context.WithCancel(context.Background())
	return &Client{core: c, account: profile.Account}, nil
}

// checkCanonicals wants versions that fit the byte in which a fingerprint carries
// its own.
func checkCanonicals(versions []int) error {
	if len(versions) == 0 {
		return errors.New("the adapter's Profile names no version of Canonical")
	}
	for i, v := range versions {
		if v < 1 || v > 255 || slices.Contains(versions[:i], v) {
			return fmt.Errorf("Profile.Canonicals holds %d: versions count from 1 to 255, each once", v)
		}
	}
	return nil
}

func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// ForAccount returns a view of c whose calls default to another account of the
// provider. Both share everything else; closing one closes both.
func (c *Client) ForAccount(account string) *Client {
	return &Client{core: c.core, account: account}
}

// Adapter returns the adapter that c was made with.
func (c *Client) Adapter() Adapter { return c.adapter }

// Key returns the key that Do sends for an operation of cmd, without sending
// anything. account defaults to c's. The error wraps ErrInvalid; an operation
// without a key has none.
func (c *Client) Key(cmd Command, operation, account string) (keyderive.Key, error) {
	op, known := c.rows[operation]
	if !known || !op.HasKey() {
		return keyderive.Key{}, fmt.Errorf("%w: provider %s has no operation %q with a key", ErrInvalid, c.profile.Provider, cleanText(operation))
	}
	key, err := c.derive(cmd, operation, account)
	if err != nil {
		return keyderive.Key{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return key, nil
}

// derive makes the identity of a command's record: the key, for operations
// without one too.
func (c *Client) derive(cmd Command, operation, account string) (keyderive.Key, error) {
	if err := cmd.check(); err != nil {
		return keyderive.Key{}, err
	}
	if account == "" {
		account = c.account
	}
	return c.opts.Secret.Derive(keyderive.Input{
		Scope: cmd.Scope, Provider: c.profile.Provider, Account: c.withMode(account),
		Operation: operation, CommandID: cmd.ID,
	})
}

// withMode is an account as records state it.
func (c *core) withMode(account string) string {
	if account == c.profile.Account {
		return c.usual
	}
	return account + "/" + c.profile.Mode
}

// Status tells what the ledger knows about one operation of a command; nothing
// is sent. A command that the ledger does not know is an *Error that wraps
// recordstore.ErrNotFound. An answer that Options.AllowReplay refuses the caller is
// ErrForbidden.
//
// A client's first use of its ledger compares secret and derivation with the
// ledger's, over a connection of its own. A program whose first use would be Plan,
// inside a transaction that locks a SQLite file or holds a pool's only connection,
// calls Status once when it starts, for any command.
func (c *Client) Status(ctx context.Context, cmd Command, operation string) (*Status, error) {
	e := &Error{Code: ErrInvalid, Provider: c.profile.Provider, Operation: operation, Command: cmd}
	if _, ok := c.rows[operation]; !ok {
		e.Err = errors.New("no such operation in the provider's table")
		return nil, e
	}
	key, err := c.derive(cmd, operation, "")
	if err != nil {
		e.Err = err
		return nil, e
	}
	if err := c.attach(ctx); err != nil {
		e.Code, e.Err = err.Code, err.Err
		return nil, e
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.ClaimTimeout)
	defer cancel()
	rec, _, err := c.ledger.Get(ctx, recordstore.ID{Day: key.Day(), KeyHash: key.Hash()})
	if err != nil {
		if !errors.Is(err, recordstore.ErrNotFound) {
			e.Code = ErrStore
		}
		e.Err = err
		return nil, e
	}
	s := &Status{State: rec.State, Effect: effectOf(rec, c.restoredAt()), Version: rec.Version, DueAt: rec.DueAt}
	if rec.State != recordstore.Succeeded {
		return s, nil
	}
	s.Reply, _ = c.recorded(cmd, rec)
	if err := c.mayReplay(ctx, rec, s.Reply); err != nil {
		e.Code, e.Effect, e.Err = err.Code, err.Effect, err.Err
		return nil, e
	}
	return s, nil
}

// attach compares secret, derivation and schema with the ledger's, once.
func (c *core) attach(ctx context.Context) *Error {
	if c.attached.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.ClaimTimeout)
	defer cancel()
	err := c.ledger.Attach(ctx, recordstore.Pins{Derivation: keyderive.Version, Secret: c.opts.Secret.Fingerprint()})
	switch {
	case err == nil:
		if r, able := c.ledger.(recordstore.Restorer); able {
			t, err := r.Restored(ctx)
			if err != nil {
				return &Error{Code: ErrStore, Err: err}
			}
			c.restored.Store(&t)
		}
		c.attached.Store(true)
		return nil
	case errors.Is(err, recordstore.ErrPinned):
		return &Error{Code: ErrInvalid, Err: fmt.Errorf("%w: use the Options.Secret that the ledger was first used with", err)}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: ErrStore, Err: fmt.Errorf("%w: a client's first use of a ledger needs a connection of its own; where that is a Plan "+
			"in a transaction that holds SQLite's write lock, or a pool's only connection, call Client.Status once when the program starts", err)}
	}
	return &Error{Code: ErrStore, Err: err}
}

// Close refuses new calls and waits for those in flight, and for answers that
// the ledger was not told yet, until ctx ends. It then returns ctx's error; what
// was not written stays in the ledger as a claim whose lease ends.
func (c *Client) Close(ctx context.Context) error {
	c.closeMu.Lock()
	select {
	case <-c.closing:
	default:
		close(c.closing)
	}
	c.closeMu.Unlock()
	done := make(chan struct{})
	go func() { c.work.Wait(); close(done) }()
	select {
	case <-done:
		c.cutOff()
		return nil
	case <-ctx.Done():
		c.cutOff()
		return ctx.Err()
	}
}

// enter counts a call in, unless the client is closing.
func (c *core) enter() bool {
	c.closeMu.Lock()
	defer c.closeMu.Unlock()
	select {
	case <-c.closing:
		return false
	default:
		c.work.Add(1)
		return true
	}
}

// effectOf is what a record says of the command's effect. One that a restore
// brought back, as MayBeBehind tells, knows nothing of what was sent since.
func effectOf(rec recordstore.Record, lostBefore time.Time) Effect {
	switch rec.State {
	case recordstore.Succeeded:
		return EffectApplied
	case recordstore.Refused:
		return EffectNone
	case recordstore.Planned, recordstore.NotExecuted, recordstore.Abandoned:
		if !rec.Doubt && !recordstore.MayBeBehind(rec, lostBefore) {
			return EffectNone
		}
	}
	return EffectUnknown
}
