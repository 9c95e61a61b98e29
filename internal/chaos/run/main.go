// Command run kills workers at random while they pay, and asks the providers
// afterwards: see `make chaos`. Its last line counts; its exit code is 1 if a
// command had not exactly one effect, or anything else of the promise was broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/chaos"
	"github.com/seed-6b5e302b/samekey/internal/pgtest"
)

func main() {
	if chaos.Worker() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	duration := flag.Duration("duration", 30*time.Second, "over which the commands are spread")
	seedText := flag.String("seed", "", "of an earlier run, to repeat its faults and kills (default a new one)")
	store := flag.String("store", "postgres", "postgres or sqlite")
	commands := flag.Int("commands", 2000, "how many commands")
	flag.Parse()
	if *duration <= 0 || *commands <= 0 || flag.NArg() > 0 {
		return errors.New("usage: run [-duration 30s] [-seed N] [-store postgres|sqlite] [-commands 2000]")
	}
	seed := rand.Uint64()
	if *seedText != "" {
		var err error
		if seed, err = strconv.ParseUint(*seedText, 10, 64); err != nil {
			return fmt.Errorf("the seed %q is no number: take it from an earlier run's first line", *seedText)
		}
	}
	ledger, drop, err := ledgerOf(*store)
	if err != nil {
		return err
	}
	defer drop()
	fmt.Printf("chaos on %s, seed %d\n", *store, seed)
	result, err := chaos.Run(ctx, chaos.Config{Ledger: ledger, Seed: seed, Duration: *duration, Commands: *commands, Log: os.Stdout})
	if err != nil {
		return err
	}
	fmt.Printf("kills %d faults %d undecidable %d labels %v\n", result.Kills, result.Faults, result.Undecidable, result.Labels)
	err = result.Err()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		err = errors.New("failed; repeat with SEED=" + strconv.FormatUint(seed, 10))
	}
	fmt.Println(result)
	return err
}

// ledgerOf makes an empty ledger of a kind, which drop removes.
func ledgerOf(store string) (l chaos.Ledger, drop func(), err error) {
	switch store {
	case "postgres":
		server, err := pgtest.Start()
		if err != nil {
			return l, nil, err
		}
		return chaos.Ledger{Postgres: server.DSN}, server.Stop, nil
	case "sqlite":
		dir, err := os.MkdirTemp("", "samekey-chaos-")
		if err != nil {
			return l, nil, err
		}
		return chaos.Ledger{SQLite: filepath.Join(dir, "ledger.db")}, func() { _ = os.RemoveAll(dir) }, nil
	}
	return l, nil, fmt.Errorf("no store %q: write postgres or sqlite", store)
}
