package providertest

import (
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// Kind is what goes wrong.
type Kind string

// The kinds. "Performed" means that the request goes through the provider's key
// layer and is executed, replayed or refused as if nothing were wrong.
const (
	// DropBeforeApply closes the connection; the request is not performed.
	DropBeforeApply Kind = "drop_before_apply"
	// DropAfterApply performs the request and closes the connection unanswered.
	DropAfterApply Kind = "drop_after_apply"
	// ResetReused closes the connection, unperformed and before the first byte
	// of an answer, but only if the connection has served a request before. It
	// waits for such a request. It makes net/http send a keyed POST again by
	// itself.
	ResetReused Kind = "reset_reused_connection"
	// Hang gives no answer: it waits for the client to go, for Delay, for Until or
	// for Release, then closes the connection. Applied performs the request first.
	Hang Kind = "hang"
	// SlowApply holds the key, waits for Delay, Until or Release, then performs
	// the request and answers. It goes on when the client has gone. Meanwhile the
	// same key gets the provider's in-flight conflict.
	SlowApply Kind = "slow_apply"
	// LateApply closes the connection at once and performs the request after
	// Delay, Until or Release: the request was still on its way. With Running it
	// had arrived, and the same key gets the in-flight conflict meanwhile.
	LateApply Kind = "late_apply"
	// Truncate performs the request and sends half of the answer's body.
	Truncate Kind = "truncate"
	// Oversized performs the request and pads the answer's body to Size bytes.
	Oversized Kind = "oversized"
	// Empty performs the request and sends the answer without its body.
	Empty Kind = "empty"

	// The following answer instead of performing the request. Applied performs it
	// first and then gives the same answer; Stored makes the key remember the
	// answer, where the provider stores failures.

	// Status500 is the provider's internal error.
	Status500 Kind = "500"
	// HTML502 is a page of a proxy in between.
	HTML502 Kind = "502_html"
	// Status503 is the provider's "not available".
	Status503 Kind = "503"
	// Status424 is the provider's failed dependency.
	Status424 Kind = "424"
	// RateLimit is 429 for too many requests.
	RateLimit Kind = "429"
	// LockTimeout is 429 for a locked object, where the provider has that.
	LockTimeout Kind = "lock_timeout"
	// Unauthorized is 401.
	Unauthorized Kind = "401"
	// InFlight is the conflict, as if the key's request were still running.
	InFlight Kind = "in_flight"
	// Redirect is 302 to Location.
	Redirect Kind = "redirect"
)

// Fault is something that goes wrong with matching requests. The zero value of
// every field but Kind is fine.
type Fault struct {
	Kind Kind
	// Operation is the operation to match. Defaults to any write.
	Operation string
	// Times is how many requests it happens to. Defaults to 1; negative is always.
	Times int
	// Skip lets so many matching requests pass first.
	Skip int
	// Chance is the probability, by Options.Seed, that a matching request is met.
	// Defaults to 1.
	Chance float64
	// Delay, on the provider's clock, ends Hang, SlowApply and LateApply: after
	// so much real time, or when Advance passes it. Defaults to never.
	Delay time.Duration
	// Until ends Hang, SlowApply and LateApply when it is closed.
	Until <-chan struct{}
	// RetryAfter adds the header, in whole seconds rounded up, to an answer that
	// is given instead. Defaults to no header.
	RetryAfter time.Duration
	// Applied performs the request before another answer is given.
	Applied bool
	// Stored makes the key remember the answer that is given instead.
	Stored bool
	// Running makes LateApply hold the key.
	Running bool
	// Location is where Redirect points. Defaults to "/redirected".
	Location string
	// Size is the length in bytes of an Oversized body. Defaults to 16 MiB.
	Size int64
}

// Inject arms faults. Each request meets at most one: the first that matches, in
// the order of injection. A fault that makes no sense, or that waits for an
// operation that the provider does not have, fails the test.
func (f *Fake) Inject(faults ...Fault) {
	f.tb.Helper()
	list := make([]fakeprovider.Fault, len(faults))
	for i, x := range faults {
		list[i] = fakeprovider.Fault{Kind: fakeprovider.Kind(x.Kind), Operation: x.Operation, Times: x.Times,
			Skip: x.Skip, Chance: x.Chance, Delay: x.Delay, Until: x.Until, RetryAfter: x.RetryAfter,
			Applied: x.Applied, Stored: x.Stored, Running: x.Running, Location: x.Location, Size: x.Size}
	}
	if err := f.engine.Inject(list...); err != nil {
		f.tb.Fatalf("providertest: %v", err)
	}
}

// Armed returns how many faults still wait for requests.
func (f *Fake) Armed() int { return len(f.engine.Faults()) }

// ClearFaults forgets the faults that still wait for requests.
func (f *Fake) ClearFaults() { f.engine.ClearFaults() }

// Release ends every wait of Hang, SlowApply and LateApply that is going on.
func (f *Fake) Release() { f.engine.Release() }
