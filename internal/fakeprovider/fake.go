// Package fakeprovider is an engine for provider fakes that keep their word on
// idempotency: keys with windows on a virtual clock, in-flight conflicts,
// mismatches, replays, a ledger of what really happened, webhooks, and faults
// that are scripted per request. A Dialect teaches it one provider.
//
// It shares no code with the SDK that it judges.
//
// Fake.Admin is an http.Handler for tests in other processes; openapi.json
// describes it.
//
// # Bounds
//
// Nothing grows without end. Keys: further ones are refused with the provider's
// 503, because forgetting one early would be a lie. Requests, effects, events and
// webhook deliveries: the oldest are forgotten, the counts stay. Faults and held
// requests: further ones are refused. Waiting webhooks of an endpoint: the oldest
// are dropped and counted. Objects are the dialect's, which refuses further ones.
package fakeprovider

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
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
	// MaxLog is how many requests, effects, events and webhook deliveries are kept;
	// the oldest go first. Defaults to 20,000.
	MaxLog int
	// Strict refuses calls that could carry a key and do not. Defaults to letting
	// them execute, as providers do. SetStrict changes it.
	Strict bool
	// Webhooks delivers webhooks. Defaults to a transport of its own, without a
	// proxy.
	Webhooks http.RoundTripper
}

// Bounds that are no option.
const (
	maxFaults = 10_000 // armed at once
	maxHeld   = 2_000  // requests and late effects that wait
)

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
	door       door

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
	strict  bool
	outbox  *outbox
	change  chan struct{}
	waiting int // in Await, for change
}

// door is what a request meets first. It has a lock of its own, so that a request
// is read while others are executed.
type door struct {
	mu      sync.Mutex
	dialect Dialect // that recognises requests; the fake's own
	serial  uint64  // requests so far
	closed  bool
}

func (d *door) reset(dialect Dialect) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dialect, d.serial = dialect, 0
}

func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
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
		strict:     o.Strict,
		outbox:     newOutbox(&o),
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
	f.door.reset(f.dialect)
	f.outbox.forget()
}

// Reset forgets everything but webhook endpoints and strictness, as if the fake
// were new. Requests that are being held are let go first and meet the empty
// state.
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
		f.door.close() // no request is added after this
		f.mu.Lock()    // and no late effect after this
		close(f.closed)
		f.mu.Unlock()
	})
	f.working.Wait()
}

// enter counts a request that is being served and returns what recognises it and
// its number. It reports false if the fake is closed.
func (f *Fake) enter() (d Dialect, serial uint64, open bool) {
	f.door.mu.Lock()
	defer f.door.mu.Unlock()
	if f.door.closed {
		return nil, 0, false
	}
	f.handlers.Add(1)
	f.door.serial++
	return f.door.dialect, f.door.serial, true
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
			return fmt.Errorf("fault %s: %w", x.Kind, f.unknownOperation(x.Operation))
		}
	}
	if n := len(f.faults.list) + len(list); n > maxFaults {
		return fmt.Errorf("%d faults would wait, and %d may: forget some first", n, maxFaults)
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

// Operations returns the names of the provider's operations in order; none if it
// does not name them.
func (f *Fake) Operations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.operations()
}

func (f *Fake) operations() []string {
	n, ok := f.dialect.(Namer)
	if !ok {
		return nil
	}
	names := slices.Clone(n.Operations())
	slices.Sort(names)
	return slices.Compact(names)
}

// unknownOperation says which operations there are. The lock is held.
func (f *Fake) unknownOperation(name string) error {
	return fmt.Errorf("the provider has no operation %q: write one of %s", clip(name), strings.Join(f.operations(), ", "))
}

// SetStrict says whether calls that could carry a key and do not are refused.
func (f *Fake) SetStrict(strict bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.strict = strict
}

// Strict reports whether calls without a key are refused.
func (f *Fake) Strict() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.strict
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
