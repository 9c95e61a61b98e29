package chaos

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Config is one random run. Ledger and Seed are required.
type Config struct {
	Ledger   Ledger
	Seed     uint64        // Of ids, faults, the mix of commands and whom to kill; the machine's timing stays its own.
	Duration time.Duration // Over which the commands are spread, and workers killed. Defaults to 30 s.
	Commands int           // Defaults to 2,000.
	Workers  int           // Defaults to 8.
	Log      io.Writer     // Defaults to nowhere.

	programs []program // Of the workers, in turn. Defaults to two builds of this program, as during a deploy.
}

// Ledger is a new, empty ledger: one of both.
type Ledger struct {
	SQLite   string // Path of a file that is not there yet.
	Postgres string // DSN of an empty database.
}

const (
	faultChance = 0.2
	killEvery   = 300 * time.Millisecond
	slots       = 6 // Jobs at once of each worker.

	// redeliverAfter is when a job queue gives a dead worker's job to another: late
	// enough for a reconciler to come first.
	redeliverAfter = 3 * time.Second
	patience       = 5 // Deliveries of a job, after which unknown is left to the reconcilers.
	drainFor       = 2 * time.Minute
)

// run is a random run under way.
type run struct {
	Config
	ledger    *ledger
	providers providers
	clients   map[string]*outbound.Client // Of the parent, which nobody kills.
	rand      *rand.Rand
	jobs      []job
	crew      *crew
}

// Run sends the commands of c through workers that are killed at random, waits
// until everything is resolved, and counts. An error means that the run itself
// failed; whether the promise was kept is Result.Err.
func Run(ctx context.Context, c Config) (Result, error) {
	fillZero(&c.Duration, 30*time.Second)
	fillZero(&c.Commands, 2000)
	fillZero(&c.Workers, 8)
	if c.Log == nil {
		c.Log = io.Discard
	}
	if len(c.programs) == 0 {
		c.programs = []program{{build: middle}, {build: nextBuild}}
	}
	r := &run{Config: c, clients: map[string]*outbound.Client{}, rand: rand.New(rand.NewPCG(c.Seed, 3))}
	var err error
	if r.ledger, err = open(ctx, place(c.Ledger), true); err != nil {
		return Result{}, err
	}
	defer r.ledger.close()
	if r.providers, err = newProviders(c.Seed); err != nil {
		return Result{}, err
	}
	defer r.providers.close()
	for name, p := range r.providers {
		if r.clients[name], err = middle.newClient(middle.adapterOf(name, p.server.URL, p.server.Transport()), r.ledger.store); err != nil {
			return Result{}, err
		}
	}
	if err := r.prepare(); err != nil {
		return Result{}, err
	}
	return r.run(ctx)
}

func fillZero[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// prepare makes the commands, shuffled, and arms the faults. One in fifty cannot
// be decided, one in ten of the others is planned.
func (r *run) prepare() error {
	for n := range r.Commands {
		k := moneyKinds[n%len(moneyKinds)]
		switch n % 100 {
		case 17:
			k = stripeUsage
		case 58:
			k = paypalPatch
		}
		j, err := r.providers.job(k, n)
		if err != nil {
			return err
		}
		j.Plan = k != paypalPatch && k != stripeUsage && n/5%10 == 0
		r.jobs = append(r.jobs, j)
	}
	r.rand.Shuffle(len(r.jobs), func(i, k int) { r.jobs[i], r.jobs[k] = r.jobs[k], r.jobs[i] })
	return r.inject()
}

// decidable are the faults after which a provider can still be asked. A stored
// 500 that was not executed is none of them.
func decidable() []fakeprovider.Fault {
	const short = 100 * time.Millisecond
	return []fakeprovider.Fault{
		{Kind: fakeprovider.DropBeforeApply},
		{Kind: fakeprovider.DropAfterApply},
		{Kind: fakeprovider.ResetReused},
		{Kind: fakeprovider.Hang, Delay: short, Applied: true},
		{Kind: fakeprovider.Hang, Delay: short},
		{Kind: fakeprovider.SlowApply, Delay: short},
		{Kind: fakeprovider.SlowApply, Delay: 3 * time.Second}, // longer than a lease
		{Kind: fakeprovider.LateApply, Delay: short},
		{Kind: fakeprovider.LateApply, Delay: short, Running: true},
		{Kind: fakeprovider.Truncate},
		{Kind: fakeprovider.Empty},
		{Kind: fakeprovider.Oversized, Size: maxBody + 1},
		{Kind: fakeprovider.Status500},
		{Kind: fakeprovider.Status500, Applied: true, Stored: true},
		{Kind: fakeprovider.HTML502, Applied: true},
		{Kind: fakeprovider.Status503},
		{Kind: fakeprovider.Status424},
		{Kind: fakeprovider.RateLimit},
		{Kind: fakeprovider.LockTimeout},
		{Kind: fakeprovider.Unauthorized},
		{Kind: fakeprovider.InFlight},
		{Kind: fakeprovider.Redirect},
	}
}

// inject gives every decidable fault an equal share of the chance: a request
// meets the first that strikes. Of the undecidable kinds every answer is lost.
func (r *run) inject() error {
	kinds := decidable()
	share, left := faultChance/float64(len(kinds)), 1.0
	for _, f := range kinds {
		f.Times, f.Chance = -1, share/left
		left -= share
		for _, k := range moneyKinds {
			f.Operation = operations[k]
			if err := r.providers[k.provider()].fake.Inject(f); err != nil {
				return err
			}
		}
	}
	return errors.Join(
		r.providers["stripe"].fake.Inject(fakeprovider.Fault{
			Kind: fakeprovider.Status500, Operation: operations[stripeUsage], Applied: true, Stored: true, Times: -1}),
		r.providers["paypal"].fake.Inject(fakeprovider.Fault{
			Kind: fakeprovider.DropAfterApply, Operation: operations[paypalPatch], Times: -1}),
	)
}

func (r *run) run(ctx context.Context) (Result, error) {
	urls := map[string]string{}
	for name, p := range r.providers {
		urls[name] = p.server.URL
	}
	r.crew = newCrew(order{Ledger: place(r.Ledger), URLs: urls, Work: doFeed}, r.programs, r.Workers)
	if err := r.crew.start(); err != nil {
		return Result{}, err
	}
	defer r.crew.stop()
	killing, quiet := context.WithTimeout(ctx, r.Duration)
	defer quiet()
	var killer sync.WaitGroup
	var kills int
	var killErr error
	killer.Go(func() { kills, killErr = r.crew.killAtRandom(killing, r.rand) })
	begun := time.Now()
	err := r.load(ctx)
	killer.Wait()
	if err := errors.Join(err, killErr); err != nil {
		return Result{}, err
	}
	fmt.Fprintf(r.Log, "load: %v, %d kills\n", time.Since(begun).Round(time.Second), kills)
	if err := r.drain(ctx); err != nil {
		return Result{}, err
	}
	fmt.Fprintf(r.Log, "drained after %v\n", time.Since(begun).Round(time.Second))
	r.crew.stop()
	result, err := r.count(ctx)
	result.Kills = kills
	return result, err
}

// load spreads the jobs over the duration, and returns when each has an end.
func (r *run) load(ctx context.Context) error {
	pause := r.Duration / time.Duration(len(r.jobs))
	tick := time.NewTicker(max(pause, time.Microsecond))
	defer tick.Stop()
	var wg sync.WaitGroup
	errs := make(chan error, len(r.jobs))
	for _, j := range r.jobs {
		wg.Go(func() { errs <- r.deliver(ctx, j) })
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	wg.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

// deliver is what a job queue does with one job: hand it out until it has an end.
// The patch, which nothing protects from being sent twice, is called from here, so
// that whether its answer is lost is the fault's doing alone.
func (r *run) deliver(ctx context.Context, j job) error {
	for tries := 0; ; tries++ {
		var s said
		var err error
		if j.Kind == paypalPatch {
			_, err = r.clients["paypal"].Do(ctx, j.call())
			s = saidOf(j, err)
			err = nil
		} else {
			s, err = r.crew.do(ctx, j)
		}
		pause := 200 * time.Millisecond
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errDied):
			pause = redeliverAfter
		case err != nil:
			return err
		case s.Code == "" || s.Code == string(outbound.ErrManualReview):
			return nil
		case s.Code == string(outbound.ErrUncertain) && tries >= patience:
			return nil // the reconcilers have it
		case !s.Again:
			return fmt.Errorf("%s ended as %s", j.ID, s.Code)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drain waits until nothing is unresolved. Meanwhile events of the provider come
// in about what is uncertain, again and again; what was proved not to have
// happened, as a plan whose first request met a 429, is called by its owner; and a
// person gives up what cannot be decided, which would climb its ladder for long.
func (r *run) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	for {
		open, err := r.ledger.waiting(ctx, unresolved...)
		idle, err2 := r.ledger.waiting(ctx, recordstore.NotExecuted)
		if err = errors.Join(err, err2); err == nil && len(open)+len(idle) == 0 {
			return nil
		}
		lost := r.undecidable()
		for _, f := range open {
			err = errors.Join(err, r.tell(ctx, f, lost))
		}
		for _, f := range idle {
			_, _ = r.clients[f.provider].Do(ctx, r.byID(f.command).call()) // the ledger says what came of it
		}
		select {
		case <-time.After(400 * time.Millisecond):
		case <-ctx.Done():
			fmt.Fprintf(r.Log, "after %v %d records are still unresolved: %v\n", drainFor, len(open), err)
			return nil // counted as what they are
		}
	}
}

// tell tells the ledger of one record that is open what its provider, or a person,
// would.
func (r *run) tell(ctx context.Context, f found, lost map[string]bool) error {
	client, cmd := r.clients[f.provider], outbound.Command{ID: f.command}
	if f.operation == operations[stripeUsage] {
		key, err := client.Key(cmd, f.operation, "")
		if hash := sha256.Sum256([]byte(key.Raw())); err == nil && lost[string(hash[:])] {
			err = client.Abandon(ctx, outbound.Abandonment{Command: cmd, Operation: f.operation,
				Reason: "the provider lost its answer", Operator: "chaos"})
		}
		if err != nil {
			return err
		}
	}
	return client.Observe(ctx, outbound.Observation{
		Provider: f.provider, Command: cmd, Operations: []string{f.operation}, EventType: "chaos",
	})
}

func (r *run) byID(id string) job {
	i := slices.IndexFunc(r.jobs, func(j job) bool { return j.ID == id })
	j := r.jobs[i]
	j.Plan = false
	return j
}
