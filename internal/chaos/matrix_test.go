package chaos

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// cell is one step at which a process is killed.
type cell struct {
	name  string
	work  work
	stop  step
	fault fakeprovider.Fault // Met by the first request of each job; none if its Kind is "".

	lost    bool // The jobs' answers were lost before, and events have made their records due.
	applied bool // The kill waits until the provider has performed all.
	stops   int  // How often the worker stops. Defaults to once for each job.
	never   bool // Nobody but the caller, who calls again, can know of the command.
}

// cells are the steps, in the order of a command's life. Every cell is played on
// each durable store, with the money operations of both providers at once.
var cells = []cell{
	{name: "before claim", work: doCalls, stop: beforeClaim, never: true},
	{name: "after claim", work: doCalls, stop: afterClaim},
	{name: "after write, arrives later", work: doCalls, stop: afterWrite,
		fault: fakeprovider.Fault{Kind: fakeprovider.LateApply, Delay: 500 * time.Millisecond}},
	{name: "after write, never arrives", work: doCalls, stop: afterWrite, fault: fakeprovider.Fault{Kind: fakeprovider.DropBeforeApply}},
	{name: "after write, performed after the takeover", work: doCalls, stop: afterWrite,
		fault: fakeprovider.Fault{Kind: fakeprovider.LateApply, Delay: 4 * time.Second}},
	{name: "after write, runs until after the takeover", work: doCalls, stop: afterWrite,
		fault: fakeprovider.Fault{Kind: fakeprovider.LateApply, Delay: 4 * time.Second, Running: true}},
	{name: "after the provider applied", work: doCalls, applied: true,
		fault: fakeprovider.Fault{Kind: fakeprovider.Hang, Applied: true}},
	{name: "after the response", work: doCalls, stop: afterResponse},
	{name: "before settle", work: doCalls, stop: beforeSettle},
	{name: "after settle", work: doCalls, stop: afterSettle},
	{name: "before renewal", work: doCalls, stop: beforeRenew, fault: fakeprovider.Fault{Kind: fakeprovider.SlowApply}},
	{name: "after renewal", work: doCalls, stop: afterRenew, fault: fakeprovider.Fault{Kind: fakeprovider.SlowApply}},

	{name: "reconciler, after take", work: doReconcile, stop: afterTake, lost: true, stops: 2}, // one for each provider
	{name: "reconciler, before look-up", work: doReconcile, stop: beforeFind, lost: true},
	{name: "reconciler, after look-up", work: doReconcile, stop: afterFind, lost: true},
	{name: "reconciler, before renewal", work: doReconcile, stop: beforeRenew, lost: true},
	{name: "reconciler, after renewal", work: doReconcile, stop: afterRenew, lost: true},
	{name: "reconciler, after write", work: doReconcile, stop: afterWrite, lost: true},
	{name: "reconciler, after the response", work: doReconcile, stop: afterResponse, lost: true},
	{name: "reconciler, before settle", work: doReconcile, stop: beforeSettle, lost: true},
	{name: "reconciler, after settle", work: doReconcile, stop: afterSettle, lost: true},

	{name: "before plan commit", work: doPlans, stop: beforeCommit, never: true},
	{name: "after plan commit", work: doPlans, stop: afterCommit},
}

var stores = []string{"sqlite", "postgres"}

// R8, R20, C09, C22: a process is killed with SIGKILL exactly at each step of a command's
// life. With a reconciler running elsewhere each command ends with one effect by
// the provider's own count, no record is left in the air, and the label of the
// answer is what the provider saw.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, c := range cells {
		for _, store := range stores {
			t.Run(c.name+"/"+store, func(t *testing.T) {
				t.Parallel()
				c.play(t, store)
			})
		}
	}
}

func (c cell) play(t *testing.T, store string) {
	kinds := moneyKinds
	if c.work == doPlans && store == "sqlite" { // one writer: a transaction that is open keeps all others out
		kinds = kinds[:1]
	}
	s := newScene(t, store, kinds...)
	s.attach()
	if c.lost {
		s.loseAnswers()
	}
	if c.fault.Kind != "" {
		s.inject(c.fault)
	}
	worker := s.start(c.work, c.stop)
	if c.applied {
		s.awaitApplied()
	} else {
		stops := c.stops
		if stops == 0 {
			stops = len(s.jobs)
		}
		if err := worker.await(func(stopped, _ int) bool { return stopped >= stops }); err != nil {
			t.Fatal(err)
		}
	}
	s.reconcile()
	worker.kill()
	for _, p := range s.providers {
		if k := c.fault.Kind; k == fakeprovider.Hang || k == fakeprovider.SlowApply {
			p.fake.Release() // the worker has gone; what it asked for happens now
		}
	}
	s.awaitResolved()
	if c.never {
		s.wantEffects(0)
		s.wantOrders(0)
	} else {
		s.wantEffects(1)
	}
	s.redeliver()
	s.wantEffects(1)
	s.wantNothingLeft()
}

// attach makes the first use of the ledger. On SQLite that writes, and a plan's
// transaction would keep it waiting.
func (s *scene) attach() {
	s.t.Helper()
	s.poll("the ledger is not attached", func() error {
		_, err := s.clients["stripe"].Status(s.t.Context(), outbound.Command{ID: "nobody"}, operations[stripeRefund])
		if errors.Is(err, recordstore.ErrNotFound) {
			return nil
		}
		return err
	})
}

// loseAnswers calls all jobs while every answer is lost on its way, so that their
// records are uncertain, and lets an event of the provider make them due.
func (s *scene) loseAnswers() {
	s.t.Helper()
	s.inject(fakeprovider.Fault{Kind: fakeprovider.HTML502, Applied: true, Times: -1})
	for _, j := range s.jobs {
		s.poll(j.ID+", all answers lost", func() error {
			_, err := s.clients[j.Kind.provider()].Do(s.t.Context(), j.call())
			if errors.Is(err, outbound.ErrUncertain) {
				return nil
			}
			return err
		})
	}
	for _, p := range s.providers {
		p.fake.ClearFaults()
	}
	for _, j := range s.jobs {
		name := j.Kind.provider()
		err := s.clients[name].Observe(s.t.Context(), outbound.Observation{
			Provider: name, Command: outbound.Command{ID: j.ID}, Operations: []string{operations[j.Kind]}, EventType: "chaos",
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// awaitApplied waits until every job's effect is there.
func (s *scene) awaitApplied() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for _, j := range s.jobs {
		err := s.providers[j.Kind.provider()].fake.Await(ctx, operations[j.Kind], func(now fakeprovider.Snapshot) bool { return now.Effects > 0 })
		if err != nil {
			s.t.Fatalf("%s is not applied: %v", j.ID, err)
		}
	}
}

func (s *scene) wantOrders(want int) {
	s.t.Helper()
	if n, err := s.ledger.orders(s.t.Context()); err != nil || n != want {
		s.t.Errorf("%d orders are written (%v), want %d", n, err, want)
	}
}

// R20: a process is killed while its settlements wait inside the database. What
// the server does with a statement whose client has gone is either: the record is
// settled, or a reconciler finds it.
func TestKilledDuringSettle(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			const most = 10 // A busy machine may be late for a settlement, which waits for as long as its lease.
			for try := 1; !killDuringSettle(t, store); try++ {
				if try == most {
					t.Fatalf("in %d tries no settlement waited for the lock", most)
				}
			}
		})
	}
}

// killDuringSettle reports whether a settlement waited when its process was killed.
func killDuringSettle(t *testing.T, store string) bool {
	t.Helper()
	s := newScene(t, store, moneyKinds...)
	s.inject(fakeprovider.Fault{Kind: fakeprovider.SlowApply})
	worker := s.start(doCalls, intoSettle)
	s.awaitHeld()
	unlock := s.lock()
	for _, p := range s.providers {
		p.fake.Release()
	}
	if err := worker.await(func(stopped, _ int) bool { return stopped >= len(s.jobs) }); err != nil {
		t.Fatal(err)
	}
	waited := s.blocked()
	worker.kill()
	s.reconcile()
	unlock()
	s.awaitResolved()
	s.wantEffects(1)
	s.redeliver()
	s.wantEffects(1)
	s.wantNothingLeft()
	return waited
}

// awaitHeld waits until the fakes hold every job's request.
func (s *scene) awaitHeld() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	want := map[string]int{}
	for _, j := range s.jobs {
		want[j.Kind.provider()]++
	}
	for name, n := range want {
		if err := s.providers[name].fake.Await(ctx, "", func(now fakeprovider.Snapshot) bool { return now.Held == n }); err != nil {
			s.t.Fatalf("%s does not hold %d requests: %v", name, n, err)
		}
	}
}

// lock keeps writers waiting until unlock: on every record, or on the file.
func (s *scene) lock() (unlock func()) {
	s.t.Helper()
	ctx := context.Background() // outlives the test's own context in a clean-up
	if s.place.SQLite == "" {
		conn, err := pgx.Connect(ctx, s.place.Postgres)
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, "BEGIN; SELECT FROM samekey.record FOR UPDATE"); err != nil {
			s.t.Fatal(err)
		}
		once := sync.OnceFunc(func() { _ = conn.Close(ctx) }) // which rolls back
		s.t.Cleanup(once)
		return once
	}
	db, err := sql.Open("sqlite", s.place.SQLite+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		s.t.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	once := sync.OnceFunc(func() { _ = errors.Join(tx.Rollback(), db.Close()) })
	s.t.Cleanup(once)
	return once
}

// blocked waits until a statement waits for the lock, and reports false if none does
// while a lease lives. On SQLite a worker that settles waits inside itself.
func (s *scene) blocked() bool {
	s.t.Helper()
	if s.place.SQLite != "" {
		return true
	}
	conn, err := pgx.Connect(s.t.Context(), s.place.Postgres)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.t.Context())
	for over := time.Now().Add(lease); time.Now().Before(over); time.Sleep(5 * time.Millisecond) {
		var waiting int
		err := conn.QueryRow(s.t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting)
		if err != nil {
			s.t.Fatal(err)
		}
		if waiting > 0 {
			return true
		}
	}
	return false
}
