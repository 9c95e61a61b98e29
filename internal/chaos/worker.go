package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// workerEnv holds a worker's order.
const workerEnv = "SAMEKEY_CHAOS_WORKER"

// order is what a worker process has to do.
type order struct {
	Ledger place
	URLs   map[string]string // Of the fakes, by provider.
	Build  build
	Work   work
	StopAt step // "" does not stop.
	Jobs   []job
}

// work is what a worker does.
type work string

const (
	doCalls     work = "calls"     // Calls each of Jobs once.
	doPlans     work = "plans"     // Plans each of Jobs.
	doReconcile work = "reconcile" // Reconciles until it is killed.
	doPurge     work = "purge"     // Purges in small batches until nothing is left.
	doFeed      work = "feed"      // Reconciles, and calls what comes in on stdin.
)

// Worker does what the environment orders and reports true, or reports false in a
// process that is no worker. It is the first thing a program that starts workers
// calls.
func Worker() bool {
	text := os.Getenv(workerEnv)
	if text == "" {
		return false
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos worker:", err)
		os.Exit(1)
	}
	return true
}

// said is a line that a worker tells its parent.
type said struct {
	Stopped bool   `json:",omitempty"` // A goroutine has reached StopAt.
	Job     string `json:",omitempty"` // The call of this command has ended,
	Code    string `json:",omitempty"` // so; "" for a reply.
	Again   bool   `json:",omitempty"` // Calling again can change the answer.
}

// process is a worker from within.
type process struct {
	order
	ledger  *ledger
	clients map[string]*outbound.Client

	mu  sync.Mutex // guards out
	out *json.Encoder
}

func (o order) run(ctx context.Context) error {
	p := &process{order: o, clients: map[string]*outbound.Client{}, out: json.NewEncoder(os.Stdout)}
	var err error
	if p.ledger, err = open(ctx, o.Ledger, false); err != nil {
		return err
	}
	defer p.ledger.close()
	g := gate{stop: o.StopAt, reached: func() { p.say(said{Stopped: true}) }}
	for name, url := range o.URLs {
		adapter := gatedAdapter{o.Build.adapterOf(name, url, newTransport(g)), g}
		if p.clients[name], err = o.Build.newClient(adapter, gatedStore{p.ledger.store, g}); err != nil {
			return err
		}
	}
	switch o.Work {
	case doCalls:
		return p.each(func(j job) error { return p.call(ctx, j) })
	case doPlans:
		return p.each(func(j job) error { return p.plan(ctx, j, g) })
	case doReconcile:
		opts := quick()
		if o.StopAt == beforeFind || o.StopAt == afterFind {
			opts.ResendFor = time.Nanosecond
		}
		return p.reconcile(ctx, opts)
	case doPurge:
		return p.purge(ctx, g)
	case doFeed:
		return p.feed(ctx, g)
	}
	return fmt.Errorf("no work %q", o.Work)
}

func (p *process) say(s said) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Encode(s) // a parent that has gone needs no answer
}

// call calls until the ledger could be asked: a busy machine may keep a claim
// waiting for longer than it waits.
func (p *process) call(ctx context.Context, j job) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := p.clients[j.Kind.provider()].Do(ctx, j.call())
		if !errors.Is(err, outbound.ErrStore) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// each works off all jobs at once and tells how each ended.
func (p *process) each(f func(job) error) error {
	var all sync.WaitGroup
	for _, j := range p.Jobs {
		all.Go(func() { p.tell(j, f(j)) })
	}
	all.Wait()
	return nil
}

func (p *process) tell(j job, err error) { p.say(saidOf(j, err)) }

func saidOf(j job, err error) said {
	s := said{Job: j.ID}
	if err != nil {
		s.Code = "not ours: " + err.Error()
		s.Again = true // the transaction of a plan, say
		if e, ok := errors.AsType[*outbound.Error](err); ok {
			s.Code = string(e.Code)
			_, s.Again = outbound.RetryAfter(err)
		}
	}
	return s
}

func (p *process) plan(ctx context.Context, j job, g gate) error {
	j.Plan = true
	return p.ledger.plan(ctx, p.clients[j.Kind.provider()], j.ID, j.call(), func(committed bool) {
		if committed {
			g.at(afterCommit)
		} else {
			g.at(beforeCommit)
		}
	})
}

func (p *process) reconcile(ctx context.Context, opts *outbound.ReconcilerOptions) error {
	r, err := outbound.NewReconciler(opts, p.clients["stripe"], p.clients["paypal"])
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// purgeBatch is small, so that a purge has many steps to die between.
const purgeBatch = 3

func (p *process) purge(ctx context.Context, g gate) error {
	for {
		n, err := p.ledger.Purge(ctx, purgeBatch)
		if err != nil || n == (recordstore.Purged{}) {
			return err
		}
		if n.Records > 0 {
			g.at(afterPurge)
		}
	}
}

// feed reconciles and works off the jobs that come in, one a line.
func (p *process) feed(ctx context.Context, g gate) error {
	failed := make(chan error, 2)
	go func() { failed <- p.reconcile(ctx, quick()) }()
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			var j job
			if err := json.Unmarshal(lines.Bytes(), &j); err != nil {
				failed <- err
				return
			}
			go func() {
				if j.Plan {
					p.tell(j, p.plan(ctx, j, g))
					return
				}
				_, err := p.clients[j.Kind.provider()].Do(ctx, j.call())
				p.tell(j, err)
			}()
		}
		failed <- lines.Err() // the parent has gone
	}()
	return <-failed
}
