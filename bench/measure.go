package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
)

// bench is one run: how long to measure, what is shared, and what came out.
type bench struct {
	quick  bool
	rounds int           // How often each contender is measured.
	window time.Duration // How long a contender is measured at a time.
	result *result

	server *pgtest.Server // Started by the first that needs it.
	remote *provider      // Likewise.
	temp   string
	closes []func()
}

func newBench(mode string) *bench {
	b := &bench{rounds: 5, window: 3 * time.Second, result: newResult(mode)}
	if mode == "quick" {
		b.quick, b.rounds, b.window = true, 3, 400*time.Millisecond
	}
	return b
}

func (b *bench) onClose(f func()) { b.closes = append(b.closes, f) }

func (b *bench) close() {
	for _, f := range slices.Backward(b.closes) {
		f()
	}
}

// say tells the person who waits what goes on.
func (b *bench) say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// sample is what one contender did in one window.
type sample struct {
	calls     int
	elapsed   time.Duration
	latencies []time.Duration // Sorted; empty where a contender does not tell.
}

func (s sample) perSecond() float64 { return float64(s.calls) / s.elapsed.Seconds() }

// contender does one kind of work with so many callers at once.
type contender struct {
	name string
	run  func(ctx context.Context, callers int, window time.Duration) (sample, error)
}

// calling is a contender that makes call over and over. call may be called by
// many goroutines.
func calling(name string, call func(ctx context.Context) error) contender {
	return contender{name, func(ctx context.Context, callers int, window time.Duration) (sample, error) {
		return load(ctx, callers, window, call)
	}}
}

// load has callers goroutines call for window, each its next call when the last
// one is done. The first error ends it.
func load(ctx context.Context, callers int, window time.Duration, call func(ctx context.Context) error) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	each := make([][]time.Duration, callers)
	var working sync.WaitGroup
	start := time.Now()
	for i := range each {
		working.Go(func() {
			for now := start; now.Sub(start) < window && ctx.Err() == nil; {
				if err := call(ctx); err != nil {
					cancel(err)
					return
				}
				done := time.Now()
				each[i] = append(each[i], done.Sub(now))
				now = done
			}
		})
	}
	working.Wait()
	s := sample{elapsed: time.Since(start), latencies: slices.Concat(each...)}
	slices.Sort(s.latencies)
	s.calls = len(s.latencies)
	return s, context.Cause(ctx)
}

// compare measures contenders in turn at each number of callers, so that what the
// machine does beside falls on all of them. It notes each one's figures in the
// result and returns calls per second, one value for each round.
func (b *bench) compare(ctx context.Context, work string, callers []int, contenders ...contender) (rates, error) {
	all := make(rates)
	for _, n := range callers {
		samples := make([][]sample, len(contenders))
		for round := range b.rounds {
			for i := range contenders {
				at := (i + round) % len(contenders)
				s, err := contenders[at].run(ctx, n, b.window)
				if err != nil {
					return nil, fmt.Errorf("%s with %d callers: %w", contenders[at].name, n, err)
				}
				samples[at] = append(samples[at], s)
			}
		}
		for i, c := range contenders {
			m := summary(work, c.name, n, samples[i])
			b.result.measured(m)
			all[rate{c.name, n}] = m.Rounds
			b.say("%-10s %3d callers  %-32s %s", work, n, c.name, m)
		}
	}
	return all, nil
}

// rates are calls per second by contender and callers, one value for each round.
type rates map[rate][]float64

type rate struct {
	contender string
	callers   int
}

// ratio is how often one contender's rate goes into another's, in each round.
func (r rates) ratio(of, over string, callers int) []float64 {
	a, b := r[rate{of, callers}], r[rate{over, callers}]
	each := make([]float64, len(a))
	for i := range a {
		each[i] = a[i] / b[i]
	}
	return each
}

// summary makes the figures of one contender.
func summary(work, name string, callers int, samples []sample) measurement {
	m := measurement{Work: work, Contender: name, Callers: callers, Unit: "calls/s"}
	var latencies []time.Duration
	for _, s := range samples {
		m.Rounds = append(m.Rounds, s.perSecond())
		latencies = append(latencies, s.latencies...)
	}
	slices.Sort(latencies)
	m.Median, m.Low, m.High = spread(m.Rounds)
	if len(latencies) > 0 {
		m.P50, m.P99, m.Worst = millis(quantile(latencies, 0.5)), millis(quantile(latencies, 0.99)), millis(latencies[len(latencies)-1])
	}
	return m
}

// spread returns the median and the extremes.
func spread(values []float64) (median, low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0, 0, 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]
}

// quantile returns the q-th part of sorted values, which are not empty.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
