package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	workers = 3
	steps   = 60
	lease   = 30 * time.Second
	horizon = 15 * time.Minute

	replayFor   = 46 * 24 * time.Hour // Longer than any provider remembers a key.
	evidenceFor = 60 * 24 * time.Hour
)

// run is one schedule and everything that it plays with.
type run struct {
	seed   uint64
	bad    variant
	luck   *rand.Rand // The schedule's.
	faults *rand.Rand // The network's, guarded by dice.
	dice   sync.Mutex

	ledger    *ledger
	resendFor time.Duration // Of reconcilers.
	keysOnly  bool          // An outage makes somebody decide to send without the ledger at times.
	providers map[string]*provider
	commands  []*command
	workers   []*worker
	retired   []*worker
	t         *testing.T
	observer  *worker // Takes webhooks and people's verdicts; nothing goes wrong with it.

	mu       sync.Mutex
	asleep   []chan struct{}
	broken   string // The first rule that was broken.
	log      []string
	lastSent time.Time                    // When the last request may have been performed at the latest.
	noneAt   map[recordstore.ID]time.Time // When a record was last proved not executed.
	gone     map[recordstore.ID]bool      // Records that retention deleted.
	told     []answer                     // What calls returned since the last check.
}

// outcome is how a run ended.
type outcome struct {
	broken string   // The first rule that was broken; "" for none.
	log    []string // Everything that happened.
}

// play plays the schedule of a seed.
func play(t *testing.T, seed uint64, bad variant) (o outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newRun(t, seed, bad)
		for range steps {
			if s.step(); s.failed() {
				break
			}
		}
		if !s.failed() {
			s.drain()
		}
		s.close(t)
		s.mu.Lock()
		defer s.mu.Unlock()
		o = outcome{broken: s.broken, log: s.log}
	})
	return o
}

func newRun(t *testing.T, seed uint64, bad variant) *run {
	t.Helper()
	s := &run{
		seed: seed, bad: bad, t: t,
		luck: rand.New(rand.NewPCG(seed, 1)), faults: rand.New(rand.NewPCG(seed, 2)),
		noneAt: map[recordstore.ID]time.Time{}, gone: map[recordstore.ID]bool{},
		ledger: &ledger{store: memory.New(nil)},
	}
	s.providers = newProviders(seed)
	if s.luck.IntN(2) == 0 {
		s.resendFor = 1 // the reconciler asks first, always
	}
	s.keysOnly = s.luck.IntN(6) == 0
	s.observer = s.newWorker(t, nil)
	s.commands = s.newCommands(t)
	for _, c := range s.commands {
		s.ledger.ids = append(s.ledger.ids, c.id)
	}
	s.ledger.moved = s.watch
	for i := range workers {
		s.workers = append(s.workers, s.newWorker(t, rand.New(rand.NewPCG(seed, uint64(10+i)))))
	}
	return s
}

func (s *run) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf("%9s ", time.Since(epoch).Round(time.Second))+fmt.Sprintf(format, args...))
}

// epoch is when a bubble's clock begins.
var epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// breaks notes the first broken rule.
func (s *run) breaks(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == "" {
		s.broken = fmt.Sprintf(format, args...)
	}
}

func (s *run) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken != ""
}

// sleep holds the calling goroutine, as if its process slept, until the schedule
// wakes it.
func (s *run) sleep() {
	wake := make(chan struct{})
	s.mu.Lock()
	s.asleep = append(s.asleep, wake)
	s.mu.Unlock()
	<-wake
}

// wake lets one sleeper go on; false if nobody sleeps.
func (s *run) wake() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asleep) == 0 {
		return false
	}
	i := s.luck.IntN(len(s.asleep))
	close(s.asleep[i])
	s.asleep = slices.Delete(s.asleep, i, i+1)
	return true
}

// rest waits until everything that was set going waits for the clock or for the
// schedule, and lets a moment pass, so that no two things are due at one instant.
func (s *run) rest() {
	synctest.Wait()
	time.Sleep(time.Microsecond + rand64(s.luck, time.Millisecond))
	synctest.Wait()
}

// killAll ends processes one after the other, and wakes the sleepers among them.
func (s *run) killAll(all ...*worker) {
	for _, w := range all {
		w.kill()
		s.rest()
	}
	for s.wake() {
		s.rest()
	}
}

// sent notes until when a request may still be performed.
func (s *run) sent(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := time.Now().Add(delay + time.Minute); until.After(s.lastSent) {
		s.lastSent = until
	}
}

// quiet reports whether no request is on its way.
func (s *run) quiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().After(s.lastSent)
}

// worker is one process.
type worker struct {
	view       *view
	clients    map[string]*outbound.Client
	adapters   map[string]build
	reconciler *outbound.Reconciler
	cancel     context.CancelFunc
	ctx        context.Context

	mu   sync.Mutex
	busy bool
}

func (s *run) newWorker(t *testing.T, luck *rand.Rand) *worker {
	t.Helper()
	w := &worker{clients: map[string]*outbound.Client{}, adapters: map[string]build{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.view = &view{Store: s.ledger.store, ledger: s.ledger, sim: s, bad: s.bad, luck: luck}
	var all []*outbound.Client
	for _, name := range []string{"stripe", "paypal"} {
		p := s.providers[name]
		a, err := s.bad.adapter(newAdapter(name, p.server.URL, &network{RoundTripper: p.server.Transport(), at: p, view: w.view, sim: s}))
		if err != nil {
			t.Fatal(err)
		}
		c, err := outbound.New(a, w.view, s.bad.options(options()))
		if err != nil {
			t.Fatal(err)
		}
		w.adapters[name] = a
		w.clients[name] = c
		all = append(all, c)
	}
	var err error
	if w.reconciler, err = outbound.NewReconciler(&outbound.ReconcilerOptions{Concurrency: 1, Batch: 1, Rate: 1000, ResendFor: s.resendFor, Ladder: ladder()}, all...); err != nil {
		t.Fatal(err)
	}
	return w
}

// withoutLedger marks the context of a call that is sent with its key only.
type withoutLedger struct{}

func options() *outbound.Options {
	keep := outbound.Retention{Replay: replayFor, Evidence: evidenceFor}
	return &outbound.Options{
		Lease: lease, Horizon: horizon, WindowMargin: horizon + 2*lease,
		Retry:     outbound.Retry{Attempts: 2, MinWait: 1, MaxWait: 1, MaxRetryAfter: 1, AttemptTimeout: 5 * time.Second, CallTimeout: 12 * time.Second},
		Retention: map[rs.Class]outbound.Retention{rs.Money: keep, rs.Object: keep},
		KeysOnly:  func(ctx context.Context) bool { return ctx.Value(withoutLedger{}) != nil },
	}
}

// begin does work in the worker's name, unless it has some.
func (w *worker) begin(work func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy {
		return false
	}
	w.busy = true
	go func() {
		work()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.busy = false
	}()
	return true
}

func (w *worker) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.busy
}

// kill ends a process where it stands.
func (w *worker) kill() {
	w.view.kill()
	w.cancel()
}

// drain lets everything come to its end, with nothing going wrong any more.
func (s *run) drain() {
	s.note("drain")
	s.killAll(s.workers...)
	for range 40 {
		if s.check(); s.failed() {
			return
		}
		if !slices.ContainsFunc(s.commands, s.inTheAir) {
			break
		}
		time.Sleep(time.Hour)
		s.rest()
		if _, err := s.observer.reconciler.Sweep(context.Background()); err != nil {
			s.breaks("the last sweeps: %v", err)
		}
		time.Sleep(11 * time.Hour)
		s.rest()
	}
	s.checkEnd()
}

// inTheAir reports whether reconcilers still have to end a command. A plan without
// its bytes is its owner's to send.
func (s *run) inTheAir(c *command) bool {
	rec, _, _ := s.ledger.store.Get(context.Background(), c.id) // what is not there stays zero
	return unsettled(rec) && !(rec.State == recordstore.Planned && len(rec.Request) == 0)
}

func unsettled(rec recordstore.Record) bool {
	return rec.State == recordstore.Planned || rec.State == recordstore.Sending || rec.State == recordstore.Uncertain
}

// close ends every goroutine of the run.
func (s *run) close(t *testing.T) {
	t.Helper()
	all := slices.Concat(s.workers, s.retired, []*worker{s.observer})
	s.killAll(all...)
	for _, p := range s.providers {
		p.server.Close()
	}
	for _, w := range all {
		for _, c := range w.clients {
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
}
