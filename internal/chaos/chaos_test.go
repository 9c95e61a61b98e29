package chaos

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

func TestMain(m *testing.M) {
	if Worker() {
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil { // most of their time is waiting for leases to end
		panic(err)
	}
	os.Exit(m.Run())
}

// newPlace is a place for a ledger of a kind, which goes when the test ends.
func newPlace(t *testing.T, store string) place {
	if store == "sqlite" {
		return place{SQLite: filepath.Join(t.TempDir(), "ledger.db")}
	}
	return place{Postgres: pgtest.DSN(t)}
}

// scene is a ledger, both fakes, and the clients of a process that is not killed.
type scene struct {
	t         *testing.T
	place     place
	ledger    *ledger
	providers providers
	clients   map[string]*outbound.Client
	jobs      []job
}

func newScene(t *testing.T, store string, kinds ...kind) *scene {
	t.Helper()
	s := &scene{t: t, place: newPlace(t, store), clients: map[string]*outbound.Client{}}
	var err error
	if s.ledger, err = open(t.Context(), s.place, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.ledger.close)
	if s.providers, err = newProviders(1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.providers.close)
	for name, p := range s.providers {
		if s.clients[name], err = middle.newClient(middle.adapterOf(name, p.server.URL, p.server.Transport()), s.ledger.store); err != nil {
			t.Fatal(err)
		}
	}
	for n, k := range kinds {
		j, err := s.providers.job(k, n)
		if err != nil {
			t.Fatal(err)
		}
		s.jobs = append(s.jobs, j)
	}
	return s
}

// inject arms one fault for each job's operation.
func (s *scene) inject(f fakeprovider.Fault) {
	s.t.Helper()
	for _, j := range s.jobs {
		f.Operation = operations[j.Kind]
		if err := s.providers[j.Kind.provider()].fake.Inject(f); err != nil {
			s.t.Fatal(err)
		}
	}
}

// start starts a worker, which is killed when the test ends at the latest.
func (s *scene) start(w work, stop step) *child {
	s.t.Helper()
	return s.startProgram(program{build: middle}, w, stop)
}

func (s *scene) startProgram(pr program, w work, stop step) *child {
	s.t.Helper()
	o := order{Ledger: s.place, URLs: map[string]string{}, Work: w, StopAt: stop, Jobs: s.jobs}
	for name, p := range s.providers {
		o.URLs[name] = p.server.URL
	}
	c, err := pr.start(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.kill)
	return c
}

// reconcile runs a reconciler in this process until the test ends.
func (s *scene) reconcile() {
	s.t.Helper()
	s.reconcileWith(quick())
}

func (s *scene) reconcileWith(opts *outbound.ReconcilerOptions) {
	s.t.Helper()
	r, err := outbound.NewReconciler(opts, s.clients["stripe"], s.clients["paypal"])
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.t.Errorf("the reconciler ended with %v", err)
		}
	})
}

// awaitResolved waits until no record is in the air.
func (s *scene) awaitResolved() {
	s.t.Helper()
	var open []found
	s.poll("records are left behind", func() (err error) {
		if open, err = s.ledger.waiting(s.t.Context(), unresolved...); err == nil && len(open) > 0 {
			err = errors.New("records are in the air")
		}
		return err
	})
}

// poll asks until there is no error, for a minute at most: processes die, and
// leases end, in their own time.
func (s *scene) poll(what string, ask func() error) {
	s.t.Helper()
	over := time.Now().Add(time.Minute)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(over) {
			s.t.Fatalf("%s: %v\n%s", what, err, s.air())
		}
		time.Sleep(100 * time.Millisecond) // what is waited for needs the ledger, and the machine, itself
	}
}

// air describes the records that are in the air.
func (s *scene) air() string {
	var b strings.Builder
	for _, j := range s.jobs {
		rec, now, err := s.ledger.Get(s.t.Context(), s.idOf(j))
		trail, _ := s.ledger.Trail(s.t.Context(), s.idOf(j))
		fmt.Fprintf(&b, "%s: %s, %d checks, due in %v, lease ends in %v, %v; the trail ends with %v\n",
			j.ID, rec.State, rec.Checks, rec.DueAt.Sub(now), rec.LeaseEndsAt.Sub(now), err, trail[max(0, len(trail)-3):])
	}
	return b.String()
}

func (s *scene) idOf(j job) recordstore.ID {
	s.t.Helper()
	p, err := middle.adapterOf(j.Kind.provider(), s.providers[j.Kind.provider()].server.URL, nil).Profile()
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := keyderive.Derive(keyderive.Input{ // Client.Key has none for an operation without one
		Provider: p.Provider, Account: p.Account + "/" + p.Mode, Operation: operations[j.Kind], CommandID: j.ID,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return recordstore.ID{Day: key.Day(), KeyHash: key.Hash()}
}

// wantEffects compares with the fakes' own count.
func (s *scene) wantEffects(want int) {
	s.t.Helper()
	for _, j := range s.jobs {
		if n, err := s.providers.effects(j, s.clients[j.Kind.provider()]); err != nil || n != want {
			s.t.Errorf("%s has %d effects (%v), want %d", j.ID, n, err, want)
		}
	}
}

// redeliver calls every command once more, as its job queue does, and holds the
// labels to what the fakes saw.
func (s *scene) redeliver() {
	s.t.Helper()
	for _, j := range s.jobs {
		name := j.Kind.provider()
		reply := s.deliver(j)
		if err := s.providers[name].witness().truthful(j, s.clients[name], reply); err != nil {
			s.t.Error(err)
		}
	}
}

// deliver calls one command until it has an answer: a busy machine may keep the
// ledger waiting for longer than a claim waits.
func (s *scene) deliver(j job) *outbound.Reply {
	s.t.Helper()
	var reply *outbound.Reply
	s.poll(j.ID+", delivered again", func() (err error) {
		reply, err = s.clients[j.Kind.provider()].Do(s.t.Context(), j.call())
		return err
	})
	return reply
}

// exec changes the ledger behind the store's back.
func (s *scene) exec(postgres, sqlite string) {
	s.t.Helper()
	if s.place.SQLite == "" {
		conn, err := pgx.Connect(s.t.Context(), s.place.Postgres)
		if err != nil {
			s.t.Fatal(err)
		}
		defer conn.Close(s.t.Context())
		if _, err := conn.Exec(s.t.Context(), postgres); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	db, err := sql.Open("sqlite", s.place.SQLite+"?_pragma=busy_timeout(5000)")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(s.t.Context(), sqlite); err != nil {
		s.t.Fatal(err)
	}
}

// wantNothingLeft is the end of every test: each record has an end.
func (s *scene) wantNothingLeft() {
	s.t.Helper()
	left, err := s.ledger.waiting(s.t.Context(), append([]recordstore.State{recordstore.ManualReview, recordstore.NotExecuted}, unresolved...)...)
	if err != nil || len(left) > 0 {
		s.t.Errorf("left behind: %v, %v", left, err)
	}
}
