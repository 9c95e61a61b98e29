package providertest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// trial is one case at work: a fake with a spy, a ledger, and the operation.
type trial struct {
	testing.TB
	kit    Kit
	sample Sample
	seed   string
	row    rs.Operation
	fake   *Fake
	spy    *spy
	ledger *ledger
	told   *told
}

// command is the one that cases are about.
var command = outbound.Command{ID: "kit-command"}

func newTrial(tb testing.TB, k Kit, s Sample) *trial {
	tb.Helper()
	tr := &trial{TB: tb, kit: k, sample: s, ledger: newLedger(), spy: &spy{}, told: &told{}}
	tr.fake = New(tb, tr.spy.on(k.Provider), &Options{InMemory: true})
	if s.Seed != nil {
		tr.seed = tr.fake.Seed(s.Seed)
	}
	call := s.Call(command, tr.seed)
	profile, err := tr.adapter(tr.fake.Transport()).Profile()
	if err != nil {
		tb.Fatalf("the adapter's settings are wrong: %v", err)
	}
	tr.row, _ = rs.Find(profile.Operations, call.Operation)
	return tr
}

// adapter makes an adapter that reaches the fake over rt.
func (tr *trial) adapter(rt http.RoundTripper) outbound.Adapter {
	return tr.kit.New(tr.TB, tr.fake.URL, rt)
}

// process stands for one process of a service: an adapter and a client of its
// own on a ledger.
type process struct {
	*outbound.Client
	tr      *trial
	watched *watched
}

// settings of a process; nil fields are the trial's own.
type settings struct {
	attempts  int // Defaults to 1.
	transport http.RoundTripper
	ledger    recordstore.Store
}

// Times of the kit's clients. Back-off is short beside every Retry-After of the
// cases.
const (
	minWait        = time.Second
	maxWait        = 4 * time.Second
	maxRetryAfter  = 20 * time.Second
	attemptTimeout = 20 * time.Second
	lease          = 2 * time.Minute
	maxBody        = 256 << 10 // bytes of an answer
)

func (tr *trial) process(s settings) *process {
	tr.Helper()
	if s.transport == nil {
		s.transport = tr.fake.Transport()
	}
	if s.ledger == nil {
		s.ledger = tr.ledger
	}
	if s.attempts == 0 {
		s.attempts = 1
	}
	w, adapter := watch(tr.adapter(s.transport))
	c, err := outbound.New(adapter, s.ledger, &outbound.Options{
		Bodies: outbound.PlainBodies(),
		Lease:  lease, MaxBody: maxBody,
		Retry: outbound.Retry{Attempts: s.attempts, MinWait: minWait, MaxWait: maxWait, MaxRetryAfter: maxRetryAfter,
			AttemptTimeout: attemptTimeout, CallTimeout: lease * 3 / 4},
		Telemetry: tr.told.telemetry(),
	})
	if err != nil {
		tr.Fatalf("outbound.New refuses the adapter: %v", err)
	}
	tr.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			tr.Errorf("the client did not close: %v", err)
		}
	})
	return &process{Client: c, tr: tr, watched: w}
}

// do makes the sample's call.
func (p *process) do(ctx context.Context) outcome {
	return p.make(ctx, p.tr.sample.Call(command, p.tr.seed))
}

// outcome is what a call came to.
type outcome struct {
	reply    *outbound.Reply
	err      error
	verdicts []outbound.Verdict // of its attempts
}

func (p *process) make(ctx context.Context, call outbound.Call) outcome {
	before := p.watched.count()
	reply, err := p.Do(ctx, call)
	return outcome{reply, err, p.watched.since(before)}
}

// is reports whether the call ended in this code, and not only for its sake.
func (o outcome) is(code outbound.Code) bool {
	e, ok := errors.AsType[*outbound.Error](o.err)
	return ok && e.Code == code
}

// last is what the last attempt taught; the zero Verdict if there was none.
func (o outcome) last() outbound.Verdict {
	if len(o.verdicts) == 0 {
		return outbound.Verdict{}
	}
	return o.verdicts[len(o.verdicts)-1]
}

// deliveries are those that the adapter counted.
func (o outcome) deliveries() (n int) {
	for _, v := range o.verdicts {
		n += v.Deliveries
	}
	return n
}

// say describes the outcome without its values.
func (o outcome) say() string {
	if o.err == nil {
		return "a reply labelled " + orDefault(string(o.reply.Label), "nothing") + " (" + string(o.reply.Evidence) + ")"
	}
	return "effect " + outbound.EffectOf(o.err).String() + ", " + o.err.Error()
}

// inject arms faults for the sample's operation.
func (tr *trial) inject(faults ...Fault) {
	tr.Helper()
	for i := range faults {
		faults[i].Operation = tr.row.Name
	}
	tr.fake.Inject(faults...)
}

// requests are those of the operation that arrived.
func (tr *trial) requests() []Request { return tr.fake.Requests(tr.row.Name) }

// effects is the fake's truth.
func (tr *trial) effects() int { return tr.fake.Effects(tr.row.Name) }

// wantEffects compares the fake's truth.
func (tr *trial) wantEffects(want int) {
	tr.Helper()
	if got := tr.effects(); got != want {
		tr.Errorf("the provider counts %d effects of one command, want %d", got, want)
	}
}

// truthful compares what a call claims with the fake's truth.
func (tr *trial) truthful(o outcome) {
	tr.Helper()
	effects := tr.effects()
	switch claim := outbound.EffectOf(o.err); {
	case claim == outbound.EffectApplied && effects == 0:
		tr.Errorf("the call claims an effect, but the provider counts none: %s", o.say())
	case claim == outbound.EffectNone && effects > 0:
		tr.Errorf("the call claims a proof that nothing happened, but the provider counts %d effects: %s", effects, o.say())
	}
}

// wait lets the bubble's clock pass.
func (tr *trial) wait(d time.Duration) {
	tr.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-tr.Context().Done():
		tr.Fatalf("the test ended while the kit waited")
	}
}

// watched is an adapter whose verdicts are noted.
type watched struct {
	outbound.Adapter
	mu       sync.Mutex
	verdicts []outbound.Verdict
}

// finding is a watched adapter that can look up.
type finding struct {
	*watched
	outbound.Finder
}

// watch returns a, noting what it answers, with its ability to look up.
func watch(a outbound.Adapter) (*watched, outbound.Adapter) {
	w := &watched{Adapter: a}
	if f, ok := a.(outbound.Finder); ok {
		return w, finding{w, f}
	}
	return w, w
}

func (w *watched) Send(ctx context.Context, d *outbound.Delivery) []outbound.Verdict {
	verdicts := w.Adapter.Send(ctx, d)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.verdicts = append(w.verdicts, verdicts...)
	return verdicts
}

func (w *watched) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.verdicts)
}

func (w *watched) since(n int) []outbound.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]outbound.Verdict(nil), w.verdicts[n:]...)
}
