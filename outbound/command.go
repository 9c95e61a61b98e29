package outbound

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
)

// Command is one business intent: a refund, one person's payout. It has at most
// one effect for each operation. The zero value is invalid.
//
// Store the ID with your own row before the first call and pass the same one
// ever after. An ID that is made inside the call is a new intent at every try.
type Command struct {
	ID    string // Yours, 1 to 255 bytes, no slash; stored and logged in clear, so no personal data.
	Scope string // The tenant or owner of the resource; "" where there is only one.

	// NotAfter ends the permission to send: later calls only look up what became
	// of earlier ones. Defaults to none. Of a record the earliest counts of the calls
	// that it was planned by or let send. A call that comes after its NotAfter ends a
	// plan that has more time; one that was refused before, as with ErrInFlight, changes
	// nothing, and none can end a plan whose transaction is still open.
	NotAfter time.Time

	stepped bool
	raised  *raised // Of EventCommand; nil for a first version.
}

// NewCommandID returns an ID that sorts by time (UUIDv7). Store it with your own
// row before the first call.
func NewCommandID() string { return keyderive.NewCommandID() }

// Step names one of several effects of the same operation, as one transfer for
// each seller of an order. The same name is the same effect. Its ID is
// "ID/name"; a name that is empty or holds a slash makes Do return ErrInvalid,
// and so does a step of a step.
func (c Command) Step(name string) Command {
	if c.stepped || strings.ContainsRune(c.ID, '/') || name == "" {
		name += "/" // two slashes, or an empty end: check refuses both
	}
	c.ID, c.stepped = c.ID+"/"+name, true
	return c
}

func (c Command) check() error {
	if !c.stepped && strings.ContainsRune(c.ID, '/') {
		_, err := keyderive.Step(c.ID, "x")
		return err
	}
	return keyderive.CheckID(c.ID)
}

type commandKey struct{}

// WithCommand names the provider writes made under ctx through an SDK that sits
// on package dropin.
func WithCommand(ctx context.Context, cmd Command) context.Context {
	ctx, _ = Track(ctx, cmd)
	return ctx
}

// CommandFrom returns the command that WithCommand put into ctx.
func CommandFrom(ctx context.Context) (Command, bool) {
	t, ok := ctx.Value(commandKey{}).(*Tracked)
	if !ok {
		return Command{}, false
	}
	return t.command, true
}

// Track is WithCommand, and what Do would have returned can be read afterwards.
func Track(ctx context.Context, cmd Command) (context.Context, *Tracked) {
	t := &Tracked{command: cmd}
	return context.WithValue(ctx, commandKey{}, t), t
}

// Tracked holds what became of the writes under one context. It is safe for
// concurrent use.
type Tracked struct {
	command Command

	mu      sync.Mutex
	last    int      // Among results.
	results []result // One for each operation.
}

type result struct {
	operation string
	reply     *Reply
	err       error
}

// Result returns what became of the last write under the context; both are nil
// if there was none.
func (t *Tracked) Result() (*Reply, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.results) == 0 {
		return nil, nil
	}
	r := t.results[t.last]
	return r.reply, r.err
}

// ResultOf returns what became of one operation; both are nil if it was not
// called.
func (t *Tracked) ResultOf(operation string) (*Reply, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.of(operation); i >= 0 {
		return t.results[i].reply, t.results[i].err
	}
	return nil, nil
}

// set notes a result and reports whether the operation had succeeded before.
func (t *Tracked) set(operation string, reply *Reply, err error) (again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.of(operation)
	if i < 0 {
		i = len(t.results)
		t.results = append(t.results, result{operation: operation})
	}
	r := &t.results[i]
	again = r.reply != nil
	t.last, r.reply, r.err = i, reply, err
	return again
}

// of is the place of an operation among the results; -1 if it is not there.
func (t *Tracked) of(operation string) int {
	return slices.IndexFunc(t.results, func(r result) bool { return r.operation == operation })
}
