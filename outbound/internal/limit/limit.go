// Package limit bounds work in time. A context of the standard library starts a
// timer and joins its parent at once, which costs more than most of the steps that
// are bounded by it; one of this package does both when somebody first waits for its
// end.
package limit

import (
	"context"
	"sync"
	"time"
)

// Context is its parent until a deadline. It is safe for concurrent use.
type Context struct {
	parent context.Context
	until  time.Time
	cause  error

	mu     sync.Mutex
	real   context.Context // What is waited for; nil before anybody waits.
	cancel context.CancelFunc
	ended  bool
}

// After returns parent until d has passed. context.Cause is then cause, and
// context.DeadlineExceeded where cause is nil. End must be called.
func After(parent context.Context, d time.Duration, cause error) *Context {
	return &Context{parent: parent, until: time.Now().Add(d), cause: cause}
}

// End releases what c holds and ends it, as a context.CancelFunc does. What nobody
// asked before is then canceled, whether its time was over or not.
func (c *Context) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.cancel != nil {
		c.cancel()
	}
}

// Deadline implements context.Context.
func (c *Context) Deadline() (time.Time, bool) {
	if until, bounded := c.parent.Deadline(); bounded && until.Before(c.until) {
		return until, true
	}
	return c.until, true
}

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun().Done()
}

// begun makes what is waited for. It is called under the lock.
func (c *Context) begun() context.Context {
	switch {
	case c.real != nil:
	case c.ended:
		c.real, c.cancel = context.WithCancel(c.parent)
		c.cancel()
	default:
		c.real, c.cancel = context.WithDeadlineCause(c.parent, c.until, c.cause)
	}
	return c.real
}

// Err implements context.Context.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real == nil && !c.ended && c.parent.Err() == nil && time.Now().Before(c.until) {
		return nil
	}
	return c.begun().Err()
}

// Value implements context.Context.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	from := c.real
	c.mu.Unlock()
	if from == nil {
		from = c.parent
	}
	return from.Value(key)
}
