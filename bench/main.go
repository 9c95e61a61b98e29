// Command bench measures samekey beside the alternatives, in one run on one
// machine: each comparison takes its contenders in turn, several times, and says
// what the ratio between them is. The full run writes docs/benchmarks.
//
//	go run .               everything, in about half an hour
//	go run . -mode quick   every ratio but those of River and of the growth to 10,000,000 records, in a minute
//	go run . -only call    one group of comparisons, not written anywhere
//
// It starts a PostgreSQL of its own with fsync and synchronous_commit on, and ends
// it. Absolute figures differ from machine to machine; the ratios are what to read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// group is a set of comparisons that share what they set up.
type group struct {
	name  string
	quick bool // It is part of the quick run.
	run   func(ctx context.Context, b *bench) error
}

// groups stand in the order in which they run: the ones that grow the server's
// files last.
func groups() []group {
	return []group{
		{"process", true, inProcess},
		{"ledger", true, ledgers},
		{"call", true, calls},
		{"sqlite", true, sqliteLedgers},
		{"latency", true, latency},
		{"inflight", true, inFlight},
		{"fake", true, fakeProvider},
		{"list", false, lists},
		{"purge", true, purges},
		{"growth", false, growth},
	}
}

func main() {
	mode := flag.String("mode", "full", "full, or quick: a minute, without growth")
	only := flag.String("only", "", "groups to run, separated by commas; all by default")
	out := flag.String("out", "", "folder to write results and plots into, beside the page that quotes them; nothing is written by default")
	child := flag.String("child", "", "for the command's own use: run as the part of another process that is named")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch *child {
	case "":
		err = run(ctx, *mode, *only, *out)
	case "provider":
		err = serveProvider()
	case "inflight":
		err = holdCalls(ctx, flag.Args())
	default:
		err = fmt.Errorf("no part is named %q", *child)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// run runs the groups and reports. What was measured before a failure is written
// all the same.
func run(ctx context.Context, mode, only, out string) error {
	if mode != "full" && mode != "quick" {
		return fmt.Errorf("-mode is full or quick, not %q", mode)
	}
	chosen, err := choose(mode, only)
	if err != nil {
		return err
	}
	b := newBench(mode)
	defer b.close()
	started := time.Now()
	for _, g := range chosen {
		b.say("== %s", g.name)
		if err := g.run(ctx, b); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", g.name, err), b.result.write(out))
		}
	}
	b.result.print(os.Stdout)
	b.say("== %s", time.Since(started).Round(time.Second))
	return b.result.write(out)
}

// choose returns the groups to run.
func choose(mode, only string) ([]group, error) {
	all := groups()
	if only == "" {
		return slices.DeleteFunc(all, func(g group) bool { return mode == "quick" && !g.quick }), nil
	}
	var chosen []group
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(g group) bool { return g.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: there is no group %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// folder returns a new folder that close removes.
func (b *bench) folder(name string) (string, error) {
	if b.temp == "" {
		var err error
		if b.temp, err = os.MkdirTemp("", "samekey-bench-"); err != nil {
			return "", err
		}
		b.onClose(func() { _ = os.RemoveAll(b.temp) }) // what is left goes with the machine
	}
	dir := filepath.Join(b.temp, name)
	return dir, os.MkdirAll(dir, 0o700)
}
