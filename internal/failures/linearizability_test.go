package failures

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

const (
	workers  = 8
	keys     = 4
	rounds   = 6
	stepsOf  = 6 // Of one worker in one round.
	lease    = time.Minute
	window   = time.Hour
	patience = time.Minute // Of the checker.
)

// workerClock is the clock that one worker's steps are taken at. It stands still
// while a step is under way, so that the model knows the time of each.
type workerClock struct{ micros atomic.Int64 }

func (c *workerClock) now() time.Time { return time.UnixMicro(c.micros.Load()).UTC() }

// opener returns the i-th worker's handle on the ledger. Its clock is c's.
type opener func(i int, c *workerClock) recordstore.Store

// crowd is workers that step on the same few records.
type crowd struct {
	stores []recordstore.Store
	clocks []*workerClock
	skew   time.Duration // Between the clocks of neighbours.
	began  time.Time

	mu      sync.Mutex
	claims  map[recordstore.ID][]recordstore.Record // That somebody was given.
	history []porcupine.Operation
}

func newCrowd(open opener, skew time.Duration) *crowd {
	c := &crowd{skew: skew, began: time.Now()}
	for i := range workers {
		clock := &workerClock{}
		c.clocks = append(c.clocks, clock)
		c.stores = append(c.stores, open(i, clock))
	}
	return c
}

// play lets all workers step on new records and returns what happened. The clocks
// move between the rounds only.
func (c *crowd) play(t *testing.T, seed uint64) []porcupine.Operation {
	t.Helper()
	c.claims, c.history = map[recordstore.ID][]recordstore.Record{}, nil
	r := rand.New(rand.NewPCG(seed, 0))
	var ids [keys]recordstore.ID
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC).Add(time.Duration(seed) * 24 * time.Hour)
	for i := range ids {
		ids[i] = recordstore.ID{Day: int32(now.Unix() / 86400), KeyHash: [16]byte{byte(seed), byte(seed >> 8), byte(i)}}
	}
	for round := range rounds {
		for i, clock := range c.clocks {
			clock.micros.Store(now.Add(time.Duration(i) * c.skew).UnixMicro())
		}
		var all sync.WaitGroup
		for i := range workers {
			r := rand.New(rand.NewPCG(seed, uint64(1+round*workers+i)))
			all.Go(func() {
				for range stepsOf {
					if err := c.take(t.Context(), i, c.choose(r, i, ids[r.IntN(keys)])); err != nil {
						t.Errorf("seed %d: %v", seed, err)
						return
					}
				}
			})
		}
		all.Wait()
		now = now.Add([]time.Duration{time.Second, lease / 2, lease, lease + time.Microsecond, window}[r.IntN(5)])
	}
	return c.history
}

// choose makes up a step of worker i: as somebody who holds id, or held it, or
// wants to.
func (c *crowd) choose(r *rand.Rand, i int, id recordstore.ID) step {
	s := step{now: c.clocks[i].now(), id: id}
	c.mu.Lock()
	given := c.claims[id]
	c.mu.Unlock()
	dice := r.IntN(100)
	if len(given) == 0 || dice < 30 {
		s.kind, s.claim = "claim", claimOf(id, fmt.Sprintf("%d-%d", i, r.IntN(1000)))
		return s
	}
	last := given[max(0, len(given)-1-r.IntN(3))] // mostly the latest
	switch {
	case dice < 60:
		s.kind = "settle"
		s.settlement = recordstore.Settlement{ID: id, Holder: last.Holder, Fence: last.Fence, Noted: last.Noted, Result: resultOf(r, recordstore.Uncertain,
			recordstore.Uncertain, recordstore.NotExecuted, recordstore.NotExecuted, recordstore.Succeeded, recordstore.Refused, recordstore.ManualReview)}
	case dice < 75:
		s.kind, s.holder, s.fence, s.lease = "renew", last.Holder, last.Fence, lease
	case dice < 80:
		s.kind, s.result = "report", resultOf(r, recordstore.Succeeded, recordstore.Refused, recordstore.Refused)
	case dice < 85:
		s.kind, s.claim = "claim", claimOf(id, last.Holder) // asked again, after an unknown commit
	default:
		s.kind = "get"
	}
	return s
}

// take takes a step and writes down when it was asked and answered.
func (c *crowd) take(ctx context.Context, worker int, s step) error {
	store := c.stores[worker]
	var a answer
	var claimed recordstore.Claimed
	var err error
	called := time.Since(c.began)
	switch s.kind {
	case "claim":
		claimed, err = store.Claim(ctx, s.claim)
		a = answer{decision: claimed.Decision, record: claimed.Record, now: claimed.Now}
	case "settle":
		a.record, err = store.Settle(ctx, s.settlement)
	case "renew":
		err = store.Renew(ctx, s.id, s.holder, s.fence, s.lease)
	case "report":
		a.record, err = store.Report(ctx, s.id, s.result)
	case "get":
		a.record, a.now, err = store.Get(ctx, s.id)
	}
	returned := time.Since(c.began)
	known, contract := contractError(err)
	if !known {
		return fmt.Errorf("%s: %w", s, err)
	}
	a.err = contract
	c.mu.Lock()
	defer c.mu.Unlock()
	if rec := a.record; rec.State == recordstore.Sending {
		c.claims[s.id] = append(c.claims[s.id], rec) // another's too: its fence may be tried
	}
	c.history = append(c.history, porcupine.Operation{
		ClientId: worker, Input: s, Output: plain(a), Call: called.Nanoseconds(), Return: returned.Nanoseconds(),
	})
	return nil
}

func claimOf(id recordstore.ID, holder string) recordstore.Claim {
	return recordstore.Claim{
		ID: id, Scope: [32]byte{7}, Provider: "stripe", Account: "acct_1/live", Operation: "refund.create",
		CommandID: "refund-1", Class: "money", Derivation: "k1", Derivations: []string{"k1"},
		Fingerprints: [][]byte{{1, 2, 3}}, SealVersion: 1, Request: []byte("sealed request"), Holder: holder,
		Lease: lease, Window: window, Replay: 7 * 24 * time.Hour, Evidence: 400 * 24 * time.Hour,
	}
}

func resultOf(r *rand.Rand, states ...recordstore.State) recordstore.Result {
	out := recordstore.Result{
		State: states[r.IntN(len(states))], Evidence: "status_code", Deliveries: 1, ResponseStatus: 200 + r.IntN(300), RequestID: fmt.Sprint(r.IntN(1000)),
	}
	if out.State.Final() {
		out.SealVersion, out.ResponseBody, out.ExternalRef = 1, []byte("sealed answer"), fmt.Sprintf("re_%d", r.IntN(1000))
	}
	if out.State == recordstore.Uncertain {
		out.DueIn, out.LookOnly = time.Minute, r.IntN(4) == 0
	}
	return out
}

// linearizable reports whether one ledger that does one step at a time could have
// given the same answers. Where it could not, the history is drawn.
func linearizable(t *testing.T, history []porcupine.Operation) bool {
	t.Helper()
	verdict, info := porcupine.CheckOperationsVerbose(sequential(), history, patience)
	if verdict == porcupine.Unknown {
		t.Fatalf("the checker found no answer in %v", patience)
	}
	if verdict == porcupine.Illegal {
		path := filepath.Join(t.ArtifactDir(), "history.html")
		if err := porcupine.VisualizePath(sequential(), info, path); err != nil {
			t.Error(err)
		}
		t.Logf("the history is drawn in %s (kept with -artifacts)", path)
	}
	return verdict == porcupine.Ok
}

// R10: many workers that claim, settle, renew, report and read the same records
// at once, through several handles on one ledger, get the answers of a ledger that
// does one step at a time. On PostgreSQL the clocks of the workers differ too, by
// up to several leases: whatever time a step is taken at, it is one step.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	for _, ledger := range []struct {
		name  string
		plays uint64
		skew  time.Duration
		open  func(t *testing.T) opener
	}{
		{"sqlite", 12, 0, openSQLite(false)},
		{"sqlite direct", 6, 0, openSQLite(true)},
		{"postgres in batches", 20, 0, openPostgresShared},
		{"postgres", 20, 0, openPostgres},
		{"postgres with clocks that differ", 20, lease / 2, openPostgres},
	} {
		t.Run(ledger.name, func(t *testing.T) {
			t.Parallel()
			c := newCrowd(ledger.open(t), ledger.skew)
			for seed := range ledger.plays {
				if history := c.play(t, seed); !linearizable(t, history) {
					t.Fatalf("%d steps with seed %d are not those of any ledger", len(history), seed)
				}
			}
		})
	}
}

// openSQLite opens one file twice. The two handles share a clock: a ledger in a
// file lives on one machine.
func openSQLite(direct bool) func(t *testing.T) opener {
	return func(t *testing.T) opener {
		path := filepath.Join(t.TempDir(), "ledger.db")
		return twoHandles(func(_ int, now func() time.Time) recordstore.Store {
			s, err := sqlite.Open(path, &sqlite.Options{Now: now, BusyTimeout: time.Minute, Direct: direct})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			return s
		})
	}
}

// twoHandles opens two handles, which the workers share, so that their steps
// gather. The clocks are those of the first workers: they do not differ.
func twoHandles(open func(i int, now func() time.Time) recordstore.Store) opener {
	var handles []recordstore.Store
	return func(i int, c *workerClock) recordstore.Store {
		if len(handles) < 2 {
			handles = append(handles, open(i, c.now))
		}
		return handles[i%2]
	}
}

// openPostgres opens two pools, and a handle with a clock of its own for each
// worker.
func openPostgres(t *testing.T) opener {
	pools := openPools(t)
	return func(i int, c *workerClock) recordstore.Store {
		return postgres.New(pools[i%2], &postgres.Options{Now: c.now})
	}
}

// openPostgresShared opens two pools with a handle on each.
func openPostgresShared(t *testing.T) opener {
	pools := openPools(t)
	return twoHandles(func(i int, now func() time.Time) recordstore.Store {
		return postgres.New(pools[i], &postgres.Options{Now: now, Workers: 1})
	})
}

// openPools opens two pools on a new ledger.
func openPools(t *testing.T) [2]*pgxpool.Pool {
	dsn := pgtest.DSN(t)
	pools := [2]*pgxpool.Pool{pgtest.Open(t, dsn), pgtest.Open(t, dsn)}
	if err := postgres.Migrate(t.Context(), pools[0], nil); err != nil {
		t.Fatal(err)
	}
	return pools
}

// openMemory returns one store to all, made wrong by wrong.
func openMemory(wrong func(recordstore.Store) recordstore.Store) opener {
	var shared recordstore.Store
	return func(_ int, c *workerClock) recordstore.Store {
		if shared == nil {
			shared = wrong(memory.New(&memory.Options{Now: c.now}))
		}
		return shared
	}
}

// The checker is worth something only if it refuses ledgers that are wrong, and
// not the one that they are made of.
func TestTheCheckerRefusesBrokenLedgers(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]func(recordstore.Store) recordstore.Store{
		"sound":                         func(s recordstore.Store) recordstore.Store { return s },
		"lets two hold a claim":         func(s recordstore.Store) recordstore.Store { return twoHold{s} },
		"settles without looking first": func(s recordstore.Store) recordstore.Store { return unfenced{s} },
		"loses a settlement":            func(s recordstore.Store) recordstore.Store { return &forgetful{Store: s} },
		"reads what was":                func(s recordstore.Store) recordstore.Store { return &stale{Store: s} },
		"reports in two steps":          func(s recordstore.Store) recordstore.Store { return torn{s} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := uint64(50)
			if name == "sound" {
				tries = 10 // it takes them all
			}
			c := newCrowd(openMemory(wrong), 0)
			for seed := range tries {
				verdict, _ := porcupine.CheckOperationsVerbose(sequential(), c.play(t, seed), patience)
				if verdict == porcupine.Illegal {
					if name == "sound" {
						t.Fatalf("a sound ledger is refused, seed %d", seed)
					}
					return
				}
			}
			if name != "sound" {
				t.Errorf("a ledger that %s was found sound %d times", name, tries)
			}
		})
	}
}

// twoHold gives a claim to whoever asks while another holds it.
type twoHold struct{ recordstore.Store }

func (s twoHold) Claim(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	got, err := s.Store.Claim(ctx, c)
	if got.Decision == recordstore.InFlight {
		got.Decision = recordstore.Send
	}
	return got, err
}

// unfenced settles for whoever holds the record now.
type unfenced struct{ recordstore.Store }

func (s unfenced) Settle(ctx context.Context, st recordstore.Settlement) (recordstore.Record, error) {
	if rec, _, err := s.Get(ctx, st.ID); err == nil {
		st.Holder, st.Fence, st.Noted = rec.Holder, rec.Fence, rec.Noted
	}
	return s.Store.Settle(ctx, st)
}

// forgetful says that it settled and does not write every seventh time.
type forgetful struct {
	recordstore.Store
	calls atomic.Int64
}

func (s *forgetful) Settle(ctx context.Context, st recordstore.Settlement) (recordstore.Record, error) {
	if s.calls.Add(1)%7 != 0 {
		return s.Store.Settle(ctx, st)
	}
	rec, now, err := s.Get(ctx, st.ID)
	if err != nil {
		return rec, err
	}
	return recordstore.Settled(rec, st, now)
}

// stale reads from a copy that is never refreshed while it has one.
type stale struct {
	recordstore.Store
	copies sync.Map
}

func (s *stale) Get(ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error) {
	rec, now, err := s.Store.Get(ctx, id)
	if err != nil {
		return rec, now, err
	}
	first, _ := s.copies.LoadOrStore(id, rec)
	return first.(recordstore.Record), now, nil
}

// torn answers a report with what it read before it wrote.
type torn struct{ recordstore.Store }

func (s torn) Report(ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
	rec, now, err := s.Get(ctx, id)
	if err != nil {
		return rec, err
	}
	runtime.Gosched() // others may step in between
	if _, err := s.Store.Report(ctx, id, r); err != nil {
		return rec, err
	}
	return recordstore.Reported(rec, r, now), nil
}
