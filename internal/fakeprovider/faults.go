package fakeprovider

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is what goes wrong.
type Kind string

// The kinds. "Performed" means that the request goes through the key layer and
// is executed, replayed or refused as if nothing were wrong.
const (
	// DropBeforeApply closes the connection; the request is not performed.
	DropBeforeApply Kind = "drop_before_apply"
	// DropAfterApply performs the request and closes the connection unanswered.
	DropAfterApply Kind = "drop_after_apply"
	// ResetReused closes the connection, unperformed and before the first byte
	// of an answer, but only if the connection has served a request before. It
	// waits for such a request. It is what makes net/http send a keyed POST again
	// by itself.
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

	// The following answer instead of performing the request. Applied performs
	// it first and then gives the same answer; Stored makes the key remember the
	// answer, where the provider stores failures.

	Status500    Kind = "500"          // in the provider's shape
	HTML502      Kind = "502_html"     // from a proxy in between
	Status503    Kind = "503"          // in the provider's shape
	Status424    Kind = "424"          // in the provider's shape
	RateLimit    Kind = "429"          // too many requests
	LockTimeout  Kind = "lock_timeout" // 429 for a locked object, where the provider has it
	Unauthorized Kind = "401"          // the credential is not accepted this time
	InFlight     Kind = "in_flight"    // as if the key's request were still running
	Redirect     Kind = "redirect"     // 302 to Location
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
	// Chance is the probability, by the fake's seed, that a matching request is
	// met. Defaults to 1.
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

const defaultOversize = 16 << 20

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{DropBeforeApply, DropAfterApply, ResetReused, Hang, SlowApply, LateApply, Truncate, Oversized, Empty,
		Status500, HTML502, Status503, Status424, RateLimit, LockTimeout, Unauthorized, InFlight, Redirect}
}

// holds reports whether the kind keeps a request or its effect waiting.
func (k Kind) holds() bool { return k == Hang || k == SlowApply || k == LateApply }

func (f Fault) check() error {
	switch {
	case !slices.Contains(Kinds(), f.Kind):
		return fmt.Errorf("fault: unknown kind %q: write one of %q", clip(string(f.Kind)), Kinds())
	case f.Chance < 0 || f.Chance > 1:
		return fmt.Errorf("fault %s: chance %v is not between 0 and 1", f.Kind, f.Chance)
	case f.Skip < 0:
		return fmt.Errorf("fault %s: skip %d is negative", f.Kind, f.Skip)
	case f.Delay < 0 || f.RetryAfter < 0:
		return fmt.Errorf("fault %s: a duration is negative", f.Kind)
	case f.Size < 0 || f.Size > 1<<30:
		return fmt.Errorf("fault %s: size must be between 0 and 1 GiB", f.Kind)
	}
	return nil
}

// armed is a fault that waits for its requests.
type armed struct {
	Fault
	left int // negative: always
	skip int
}

// faults is the list of armed faults, in the order they were injected.
type faults struct{ list []*armed }

func (fs *faults) add(f Fault) {
	times := f.Times
	if times == 0 {
		times = 1
	}
	fs.list = append(fs.list, &armed{Fault: f, left: times, skip: f.Skip})
}

// take returns the first fault that meets the call, and uses it up by one. The
// zero Fault is none.
func (fs *faults) take(c *Call, reused bool, rng *rand.Rand) Fault {
	for i, a := range fs.list {
		if !a.matches(c, reused) {
			continue
		}
		if a.skip > 0 {
			a.skip--
			continue
		}
		if a.Chance > 0 && rng.Float64() >= a.Chance {
			continue
		}
		if a.left > 0 {
			if a.left--; a.left == 0 {
				fs.list = append(fs.list[:i:i], fs.list[i+1:]...)
			}
		}
		return a.Fault
	}
	return Fault{}
}

func (a *armed) matches(c *Call, reused bool) bool {
	if a.Kind == ResetReused && !reused {
		return false
	}
	if a.Operation == "" {
		return c.Write
	}
	return a.Operation == c.Operation
}
