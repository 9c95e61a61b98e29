package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// eachLedgerOf runs test with a job whose ledger is new, in PostgreSQL and in a
// file. left counts its records that are in one of the states.
func eachLedgerOf(t *testing.T, test func(t *testing.T, j job, left func(states ...string) int)) {
	t.Run("postgres", func(t *testing.T) {
		dsn := pgtest.DSN(t)
		pool := pgtest.Open(t, dsn)
		if err := postgres.Migrate(t.Context(), pool, nil); err != nil {
			t.Fatal(err)
		}
		test(t, job{Postgres: dsn}, func(states ...string) (n int) {
			if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM samekey.record WHERE state = ANY($1)", states).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		})
	})
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger.db")
		test(t, job{SQLite: path}, func(states ...string) (n int) {
			for _, s := range states {
				n += rowsIn(t, path, s)
			}
			return n
		})
	})
}

// C09: a job that died after its delivery is redelivered to a new process: the
// same command has one effect, and a third process gets the recorded answer.
func TestC09_RedeliveredToANewProcess(t *testing.T) {
	eachLedgerOf(t, func(t *testing.T, j job, left func(...string) int) {
		fake := providertest.Stripe(t, nil)
		j.Kind, j.Provider, j.Command = "one", fake.URL, "job-17"
		j.Charge = fake.Seed(providertest.Charge{Amount: 2000, Currency: "eur"})
		fake.Inject(providertest.Fault{Kind: providertest.Hang, Operation: "refund.create", Applied: true})

		first := j.start(t)
		fake.AwaitHeld(1)
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = first.Wait() // it was killed
		if n := left("sending"); n != 1 {
			t.Errorf("the killed process left %d records that are being sent, want 1", n)
		}
		second, third := j.start(t).output(t), j.start(t).output(t)
		ref, found := strings.CutSuffix(second, " original_replay provider")
		if !found || !strings.HasPrefix(ref, "re_") || third != ref+" original_replay ledger" {
			t.Errorf("the second process ends with %q, the third with %q", second, third)
		}
		if fake.Effects("refund.create") != 1 || fake.Duplicates() != 0 || left("succeeded") != 1 {
			t.Errorf("%d effects, %d records done", fake.Effects("refund.create"), left("succeeded"))
		}
	})
}

// one makes one call, as often as RetryAfter says, and prints what it ends with.
func (j job) one() error {
	client, done, err := j.client(outbound.Telemetry{})
	if err != nil {
		return err
	}
	defer done()
	call := stripe.RefundCreate(cmd(j.Command), url.Values{"charge": {j.Charge}, "amount": {"500"}})
	reply, err := persist(client, call)
	if err != nil {
		return err
	}
	fmt.Println(reply.ExternalRef, reply.Label, reply.Origin)
	return nil
}

func (j job) client(tel outbound.Telemetry) (*outbound.Client, func(), error) {
	ledger, closeLedger, err := j.ledger()
	if err != nil {
		return nil, nil, err
	}
	opts := quick()
	opts.Wait, opts.MaxBody, opts.Telemetry = 500*time.Millisecond, 64<<10, tel
	client, err := outbound.New(adapterOf("stripe", j.Provider, &http.Transport{MaxIdleConnsPerHost: 64}), ledger, opts)
	if err != nil {
		return nil, nil, err
	}
	return client, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = client.Close(ctx) // what it could not write is what the tests look at
		closeLedger()
	}, nil
}

// persist calls until RetryAfter says that it is no use, or two minutes are over.
// It waits shorter than it is told.
func persist(c *outbound.Client, call outbound.Call) (*outbound.Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		reply, err := c.Do(ctx, call)
		after, again := outbound.RetryAfter(err)
		if !again {
			return reply, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(min(after, 20*time.Millisecond)):
		}
	}
}

const (
	stormProcesses  = 4
	stormGoroutines = 16
	stormCommands   = 500
	stormFaults     = 0.2
)

// stormKinds are the faults of a storm. A stored 500 that was not executed is
// none of them: nobody can tell it from one that was before the look-up's horizon.
func stormKinds() []providertest.Fault {
	const short = 100 * time.Millisecond
	return []providertest.Fault{
		{Kind: providertest.DropBeforeApply},
		{Kind: providertest.DropAfterApply},
		{Kind: providertest.ResetReused},
		{Kind: providertest.Hang, Delay: short, Applied: true},
		{Kind: providertest.Hang, Delay: short},
		{Kind: providertest.SlowApply, Delay: short},
		{Kind: providertest.SlowApply, Delay: 3 * time.Second}, // longer than a lease
		{Kind: providertest.LateApply, Delay: short},
		{Kind: providertest.LateApply, Delay: short, Running: true},
		{Kind: providertest.Truncate},
		{Kind: providertest.Empty},
		{Kind: providertest.Oversized, Size: 100 << 10},
		{Kind: providertest.Status500},
		{Kind: providertest.Status500, Applied: true, Stored: true},
		{Kind: providertest.HTML502, Applied: true},
		{Kind: providertest.Status503},
		{Kind: providertest.Status424},
		{Kind: providertest.RateLimit},
		{Kind: providertest.LockTimeout},
		{Kind: providertest.Unauthorized},
		{Kind: providertest.InFlight},
		{Kind: providertest.Redirect},
	}
}

// injectStorm gives every kind an equal share of the chance: a request meets the
// first fault that strikes.
func injectStorm(fake *providertest.Fake) {
	kinds := stormKinds()
	share, left := stormFaults/float64(len(kinds)), 1.0
	for _, f := range kinds {
		f.Operation, f.Times, f.Chance = "refund.create", -1, share/left
		left -= share
		fake.Inject(f)
	}
}

// R10: four processes of sixteen goroutines call the same 500 commands through
// one ledger while every fifth delivery goes wrong: 500 effects, no record left
// in the air, and every caller ends with the same object.
func TestManyProcesses(t *testing.T) {
	eachLedgerOf(t, func(t *testing.T, j job, left func(...string) int) {
		seed := rand.Uint64()
		if text := os.Getenv("SAMEKEY_TEST_SEED"); text != "" {
			var err error
			if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("SAMEKEY_TEST_SEED=%d", seed)
		fake := providertest.Stripe(t, &providertest.Options{Seed: seed})
		j.Kind, j.Provider, j.Commands = "storm", fake.URL, stormCommands
		for range 25 {
			j.Charges = append(j.Charges, fake.Seed(providertest.Charge{Amount: 100_000, Currency: "eur"}))
		}
		injectStorm(fake)
		var children [stormProcesses]*process
		for i := range children {
			j.Process = i
			children[i] = j.start(t)
		}
		ends := map[string]map[string]int{}
		for _, child := range children {
			var refs map[string]string
			if err := json.Unmarshal([]byte(child.output(t)), &refs); err != nil {
				t.Fatal(err)
			}
			for command, ref := range refs {
				if ends[command] == nil {
					ends[command] = map[string]int{}
				}
				ends[command][ref]++
			}
		}
		faults := 0
		for _, r := range fake.Requests("refund.create") {
			if r.Fault != "" {
				faults++
			}
		}
		t.Logf("%d deliveries, %d with a fault", len(fake.Requests("refund.create")), faults)
		for command, refs := range ends {
			if len(refs) != 1 {
				t.Errorf("the callers of %s end with %v", command, refs)
			}
		}
		if len(ends) != stormCommands || fake.Effects("refund.create") != stormCommands || fake.Duplicates() != 0 {
			t.Errorf("%d commands, %d effects, %d duplicates", len(ends), fake.Effects("refund.create"), fake.Duplicates())
		}
		if faults < stormCommands/20 {
			t.Errorf("only %d faults struck", faults)
		}
		if open, done := left("sending", "uncertain", "manual_review", "not_executed"), left("succeeded"); open != 0 || done != stormCommands {
			t.Errorf("%d records are open and %d succeeded, want 0 and %d", open, done, stormCommands)
		}
	})
}

// storm calls every command in each of the goroutines and prints which object
// each command ended with.
func (j job) storm() error {
	client, done, err := j.client(outbound.Telemetry{})
	if err != nil {
		return err
	}
	defer done()
	var mu sync.Mutex
	refs, errs := map[string]string{}, make(chan error, stormGoroutines)
	for g := range stormGoroutines {
		go func() {
			first := (j.Process + g) % 4 * j.Commands / 4 // some start together, some elsewhere
			for i := range j.Commands {
				n := (first + i) % j.Commands
				call := stripe.RefundCreate(cmd(fmt.Sprintf("storm-%d", n)), url.Values{"charge": {j.Charges[n%len(j.Charges)]}, "amount": {"7"}})
				reply, err := persist(client, call)
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				if known, ok := refs[call.Command.ID]; ok && known != reply.ExternalRef {
					err = fmt.Errorf("%s ends with %s and %s", call.Command.ID, known, reply.ExternalRef)
				}
				refs[call.Command.ID] = reply.ExternalRef
				mu.Unlock()
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range stormGoroutines {
		if err := <-errs; err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(refs)
}
