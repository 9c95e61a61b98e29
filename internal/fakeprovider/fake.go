// Package fakeprovider is an engine for provider fakes that keep their word on
// idempotency: keys with windows on a virtual clock, in-flight conflicts,
// mismatches, replays, a ledger of what really happened, and faults that are
// scripted per request. A Dialect teaches it one provider.
//
// It shares no code with the SDK that it judges.
//
// # Admin API
//
// Fake.Admin is an http.Handler for tests in other processes. Bodies are JSON,
// durations are Go's ("90s", "25h"), errors are {"error":"…"} with a 4xx.
//
//	POST   /faults    one fault or an array: {"kind":"drop_after_apply","operation":"refund.create",
//	                  "times":1,"skip":0,"chance":0.2,"delay":"5s","retry_after":"2s",
//	                  "applied":true,"stored":true,"running":true,"location":"/x","size":1024}
//	GET    /faults    the faults that still wait
//	DELETE /faults    forgets them
//	GET    /effects   {"effects":{"refund.create":1},"total":1,"duplicates":0,"requests":2}
//	GET    /requests  the request log, oldest first; ?operation= and ?limit= narrow it
//	POST   /advance   {"duration":"25h"} moves the provider's clock
//	POST   /release   ends every wait of hang, slow_apply and late_apply
//	POST   /seed      {"type":"charge","object":{…}} → {"id":"ch_…"}
//	POST   /reset     forgets objects, keys, faults, effects, requests and the clock's offset
package fakeprovider

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Options are the engine's settings. A nil *Options means the defaults.
type Options struct {
	// Seed makes chances and object ids repeatable. Defaults to 1.
	Seed uint64
	// Clock is the base of the provider's clock. Defaults to time.Now.
	Clock func() time.Time
	// MaxBody is the largest request body in bytes. Defaults to 1 MiB.
	MaxBody int64
	// MaxKeys is how many keys are held at once. A write with a further key is
	// refused, because forgetting one early would be a lie. Defaults to 200,000.
	MaxKeys int
	// MaxLog is how many requests, effects and events are kept; the oldest go
	// first. Defaults to 20,000.
	MaxLog int
}

func (o *Options) withDefaults() Options {
	out := Options{}
	if o != nil {
		out = *o
	}
	if out.Seed == 0 {
		out.Seed = 1
	}
	if out.Clock == nil {
		out.Clock = time.Now
	}
	if out.MaxBody <= 0 {
		out.MaxBody = 1 << 20
	}
	if out.MaxKeys <= 0 {
		out.MaxKeys = 200_000
	}
	if out.MaxLog <= 0 {
		out.MaxLog = 20_000
	}
	return out
}

// Fake is one provider. It is an http.Handler and safe for concurrent use.
type Fake struct {
	newDialect func() Dialect
	opts       Options
	clock      func() time.Time
	closed     chan struct{}
	closing    sync.Once
	working    sync.WaitGroup // late effects
	handlers   sync.WaitGroup // requests being served

	mu      sync.Mutex
	dialect Dialect
	offset  time.Duration
	keys    *keys
	ledger  *ledger
	events  *ring[Event]
	faults  faults
	held    map[*held]struct{}
	rand    *rand.Rand // object ids
	luck    *rand.Rand // chances, apart so that faults do not change ids
	serial  uint64     // requests so far
	change  chan struct{}
}

// New returns a fake that speaks the dialect which newDialect makes. It calls
// newDialect again at each Reset, for empty state.
func New(newDialect func() Dialect, opts *Options) *Fake {
	o := opts.withDefaults()
	f := &Fake{
		newDialect: newDialect,
		opts:       o,
		clock:      o.Clock,
		closed:     make(chan struct{}),
		held:       map[*held]struct{}{},
		change:     make(chan struct{}),
	}
	f.clear()
	return f
}

func (f *Fake) clear() {
	f.dialect = f.newDialect()
	f.offset = 0
	f.keys = &keys{entries: map[keyID]*keyEntry{}, max: f.opts.MaxKeys}
	f.ledger = newLedger(f.opts.MaxKeys, f.opts.MaxLog)
	f.events = &ring[Event]{max: f.opts.MaxLog}
	f.faults = faults{}
	f.rand = rand.New(rand.NewPCG(f.opts.Seed, 1))
	f.luck = rand.New(rand.NewPCG(f.opts.Seed, 2))
	f.serial = 0
}

// Reset forgets everything, as if the fake were new. Requests that are being
// held are let go first and meet the empty state.
func (f *Fake) Reset() {
	f.Release()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clear()
	f.changed()
}

// Close ends every wait without applying what was held, and waits until no
// late effect can happen any more. Requests that come later are dropped.
func (f *Fake) Close() {
	f.closing.Do(func() {
		f.mu.Lock() // no request and no late effect is added after this
		close(f.closed)
		f.mu.Unlock()
	})
	f.working.Wait()
}

// enter counts a request that is being served. It reports false if the fake is
// closed.
func (f *Fake) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isClosed() {
		return false
	}
	f.handlers.Add(1)
	return true
}

func (f *Fake) isClosed() bool {
	select {
	case <-f.closed:
		return true
	default:
		return false
	}
}

// Inject arms faults. Each request meets at most one: the first that matches,
// in the order of injection. It returns an error, and arms none, if a fault
// makes no sense or waits for an operation that the provider does not have.
func (f *Fake) Inject(list ...Fault) error {
	for _, x := range list {
		if err := x.check(); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range list {
		if x.Operation != "" && !f.knows(x.Operation) {
			return fmt.Errorf("fault %s: the provider has no operation %q", x.Kind, x.Operation)
		}
	}
	for _, x := range list {
		f.faults.add(x)
	}
	return nil
}

// Knows reports whether the provider may have an operation of that name: it has
// one, or does not name its operations.
func (f *Fake) Knows(operation string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.knows(operation)
}

func (f *Fake) knows(operation string) bool {
	n, ok := f.dialect.(Namer)
	return !ok || slices.Contains(n.Operations(), operation)
}

// Faults returns the faults that still wait for requests; Times and Skip are
// what is left of them.
func (f *Fake) Faults() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Fault, 0, len(f.faults.list))
	for _, a := range f.faults.list {
		x := a.Fault
		x.Times, x.Skip = a.left, a.skip
		out = append(out, x)
	}
	return out
}

// ClearFaults forgets the faults that still wait for requests.
func (f *Fake) ClearFaults() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults{}
}

// Seed puts object in place and returns its id. It counts no effect.
func (f *Fake) Seed(object any) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.dialect.(Seeder)
	if !ok {
		return "", errNoSeeds
	}
	return s.Seed(&Tx{Now: f.now(), fake: f}, object)
}

var _ http.Handler = (*Fake)(nil)
