package grpcadapter_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed-6b5e302b/samekey/grpcadapter"
	"github.com/seed-6b5e302b/samekey/grpcadapter/internal/incidents"
	"github.com/seed-6b5e302b/samekey/internal/fakeincident"
	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/carriers"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

var entrances = []string{"rest", "graphql", "grpc"}

// shared is what the service's handbook says where its entrances share keys.
var shared = &rs.Fact{States: "a key is one key on all entrances", URL: "https://incidents.test/handbook", Read: "2026-12-01", Grade: rs.Documented}

// world is a service with its three entrances.
type world struct {
	*fakeincident.Service
	base   string
	conn   *grpc.ClientConn
	types  incidents.Types
	shared *rs.Fact
}

func newWorld(t *testing.T, joined bool) *world {
	t.Helper()
	types, err := incidents.NewTypes()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Service: fakeincident.New(joined), types: types}
	if joined {
		w.shared = shared
	}
	web := httptest.NewServer(w.Handler())
	t.Cleanup(web.Close)
	w.base = web.URL
	w.conn = serve(t, incidents.NewServer(w.Service, types))
	return w
}

// serve starts a server in memory and connects to it.
func serve(t *testing.T, server *grpc.Server, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	pipe := bufconn.Listen(1 << 16)
	go server.Serve(pipe)
	t.Cleanup(server.Stop)
	dial := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) })
	return connect(t, "passthrough:///pipe", append(opts, dial)...)
}

func connect(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	opts = append(append(grpcadapter.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials())), opts...)
	conn, err := grpc.NewClient(target, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func (w *world) way(name string) carriers.Carrier {
	switch name {
	case "rest":
		return incidents.REST(w.base)
	case "graphql":
		return incidents.GraphQL(w.base)
	}
	return incidents.GRPC(w.conn, w.types)
}

// client is a process that prefers the first of these entrances.
func (w *world) client(t *testing.T, ledger recordstore.Store, names ...string) *outbound.Client {
	t.Helper()
	var ways []carriers.Carrier
	for _, name := range names {
		ways = append(ways, w.way(name))
	}
	c, err := outbound.New(incidents.Adapter(w.shared, ways...), ledger, &outbound.Options{
		Bodies: outbound.PlainBodies(), Retry: outbound.Retry{Attempts: 1}, Wait: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.WithoutCancel(t.Context())) })
	return c
}

// preferring lists all entrances, one of them first.
func preferring(first string) []string {
	names := []string{first}
	for _, name := range entrances {
		if name != first {
			names = append(names, name)
		}
	}
	return names
}

// ledgers opens the same ledger anew at each call, as another process would.
func ledgers(t *testing.T) map[string]func(t *testing.T) func() recordstore.Store {
	return map[string]func(t *testing.T) func() recordstore.Store{
		"memory": func(*testing.T) func() recordstore.Store {
			s := memory.New(nil)
			return func() recordstore.Store { return s }
		},
		"sqlite": func(t *testing.T) func() recordstore.Store {
			path := filepath.Join(t.TempDir(), "ledger.db")
			return func() recordstore.Store {
				s, err := sqlite.Open(path, nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return s
			}
		},
		"postgres": func(t *testing.T) func() recordstore.Store {
			dsn := pgtest.DSN(t)
			if err := postgres.Migrate(t.Context(), pgtest.Open(t, dsn), nil); err != nil {
				t.Fatal(err)
			}
			return func() recordstore.Store { return postgres.New(pgtest.Open(t, dsn), nil) }
		},
	}
}

var (
	alert = fakeincident.Alert{Alert: "a-17", Service: "checkout", Severity: "high"}
	cmd   = incidents.CommandOf(alert.Alert)
)

func open(t *testing.T, c *outbound.Client, a fakeincident.Alert) (*outbound.Reply, error) {
	t.Helper()
	return c.Do(t.Context(), carriers.Call("incident.create", incidents.CommandOf(a.Alert), a))
}

// keys returns the keys that came in by all entrances.
func (w *world) keys() (all []string) {
	for _, name := range entrances {
		all = append(all, w.Keys(name)...)
	}
	return all
}

// R1, R31: the contract is the same on every entrance. Without a command refused; the
// same key and body give the same answer; the same key with another body is a conflict.
func TestContract(t *testing.T) {
	t.Parallel()
	for _, name := range entrances {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			c := w.client(t, memory.New(nil), name)
			if _, err := c.Do(t.Context(), carriers.Call("incident.create", outbound.Command{}, alert)); !errors.Is(err, outbound.ErrInvalid) || len(w.keys()) > 0 {
				t.Errorf("without a command: %v, and %d requests", err, len(w.keys()))
			}
			first, err := open(t, c, alert)
			if err != nil || first.Label != outbound.NewExecution || first.ExternalRef != "inc_1" {
				t.Fatalf("first: %+v, %v", first, err)
			}
			again, err := open(t, c, alert)
			if err != nil || again.Label != outbound.OriginalReplay || !bytes.Equal(again.Body, first.Body) {
				t.Errorf("again: %+v, %v", again, err)
			}
			_, err = c.Do(t.Context(), carriers.Call("incident.create", cmd, fakeincident.Alert{Alert: "a-17", Service: "checkout", Severity: "low"}))
			if !errors.Is(err, outbound.ErrFingerprintConflict) || len(w.keys()) != 1 {
				t.Errorf("another body: %v, and %d requests", err, len(w.keys()))
			}
		})
	}
}

// R31: without a ledger in between each entrance itself keeps the contract that the
// adapter reads: a second ledger's same key and body get the same answer, and another
// body under the key proves nothing about the first.
func TestContractOfTheService(t *testing.T) {
	t.Parallel()
	for _, name := range entrances {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			first, err := open(t, w.client(t, memory.New(nil), name), alert)
			if err != nil {
				t.Fatal(err)
			}
			again, err := open(t, w.client(t, memory.New(nil), name), alert)
			if err != nil || !bytes.Equal(again.Body, first.Body) {
				t.Errorf("same key and body: %+v, %v", again, err)
			}
			other := w.client(t, memory.New(nil), name)
			_, err = other.Do(t.Context(), carriers.Call("incident.create", cmd, fakeincident.Alert{Alert: "a-17", Service: "x"}))
			if !errors.Is(err, outbound.ErrUncertain) || len(w.Incidents()) != 1 {
				t.Errorf("another body: %v, and %d incidents", err, len(w.Incidents()))
			}
			if _, err := open(t, w.client(t, memory.New(nil), name), fakeincident.Alert{Service: "x"}); !errors.Is(err, outbound.ErrRejected) || outbound.EffectOf(err) != outbound.EffectNone {
				t.Errorf("an alert without id: %v", err)
			}
		})
	}
}

// R29, R32: whichever entrance a command took, a duplicate by any other meets the same
// record and gets the same answer, and nothing is sent. Keys are the same on all.
func TestDuplicateByAnotherEntrance(t *testing.T) {
	t.Parallel()
	for kind, openLedger := range ledgers(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ledger := openLedger(t)
			for i, first := range entrances {
				w := newWorld(t, false)
				a := fakeincident.Alert{Alert: "dup-" + string(rune('a'+i)), Service: "checkout"}
				was, err := open(t, w.client(t, ledger(), preferring(first)...), a)
				if err != nil {
					t.Fatal(err)
				}
				key := w.Keys(first)
				for _, second := range entrances {
					got, err := open(t, w.client(t, ledger(), preferring(second)...), a)
					if err != nil || got.Label != outbound.OriginalReplay || got.StatusCode != was.StatusCode || !bytes.Equal(got.Body, was.Body) || got.ExternalRef != was.ExternalRef {
						t.Errorf("%s, then %s: %+v, %v; want the answer %+v", first, second, got, err, was)
					}
				}
				if len(w.Incidents()) != 1 || len(w.keys()) != 1 || len(key) != 1 {
					t.Errorf("%s: %d incidents, %d requests", first, len(w.Incidents()), len(w.keys()))
				}
			}
		})
	}
}

// R5, R32: a new execution gives one answer whatever entrance brings it.
func TestOneAnswerShape(t *testing.T) {
	t.Parallel()
	var bodies, keys []string
	for _, name := range entrances {
		w := newWorld(t, false)
		r, err := open(t, w.client(t, memory.New(nil), name), alert)
		if err != nil {
			t.Fatal(err)
		}
		bodies, keys = append(bodies, string(r.Body)), append(keys, w.Keys(name)...)
	}
	for i := range bodies {
		if bodies[i] != bodies[0] || keys[i] != keys[0] {
			t.Errorf("%s: the answer %s to a key that is the same: %v; want %s", entrances[i], bodies[i], keys[i] == keys[0], bodies[0])
		}
	}
}

// R8, R32: the first delivery's answer is lost, and the process that comes next prefers
// another entrance. Where the service remembers keys together it may go there; where it
// does not, or nobody knows, it goes where the first went. There is one incident, in
// one window.
func TestMoveAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for kind, openLedger := range ledgers(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ledger := openLedger(t)
			for _, joined := range []bool{true, false} {
				for _, first := range entrances {
					for _, second := range entrances {
						w := newWorld(t, joined)
						a := fakeincident.Alert{Alert: strings.Join([]string{"lost", first, second, map[bool]string{true: "j", false: "s"}[joined]}, "-")}
						w.LoseNext(first, 1)
						if r, err := open(t, w.client(t, ledger(), preferring(first)...), a); !errors.Is(err, outbound.ErrUncertain) {
							t.Fatalf("%s: %+v, %v, want an unknown outcome", first, r, err)
						}
						r, err := open(t, w.client(t, ledger(), preferring(second)...), a)
						if err != nil || len(w.Incidents()) != 1 || r.ExternalRef != "inc_1" {
							t.Errorf("%s, then %s, joined %v: %+v, %v, %d incidents", first, second, joined, r, err, len(w.Incidents()))
						}
						want := map[string]int{first: 1}
						if joined {
							want[second]++
						} else {
							want[first]++
						}
						for _, name := range entrances {
							if got := w.Keys(name); len(got) != want[name] {
								t.Errorf("%s, then %s, joined %v: %d requests by %s, want %d", first, second, joined, len(got), name, want[name])
							}
						}
						if keys := w.keys(); len(keys) != 2 || keys[0] != keys[1] {
							t.Errorf("%s, then %s: the keys differ", first, second)
						}
					}
				}
			}
		})
	}
}

// R8, R21: with keys apart, a process that has no way to the first entrance sends
// nothing, and says so. One that has it ends the command.
func TestSplitWithoutTheFirstEntrance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	ledger := memory.New(nil)
	w.LoseNext("rest", 1)
	if _, err := open(t, w.client(t, ledger, preferring("rest")...), alert); !errors.Is(err, outbound.ErrUncertain) {
		t.Fatalf("first: %v", err)
	}
	_, err := open(t, w.client(t, ledger, "grpc", "graphql"), alert)
	if !errors.Is(err, outbound.ErrUncertain) || !strings.Contains(err.Error(), `fixed for carrier "rest"`) || len(w.keys()) != 1 {
		t.Errorf("without REST: %v, and %d requests", err, len(w.keys()))
	}
	if r, err := open(t, w.client(t, ledger, preferring("grpc")...), alert); err != nil || r.ExternalRef != "inc_1" || len(w.Incidents()) != 1 {
		t.Errorf("with REST: %+v, %v, %d incidents", r, err, len(w.Incidents()))
	}
}

// A client without a ledger that turns to GraphQL after a timeout of REST opens a second
// incident where keys are apart: what the tests above are about is there.
func TestNaiveClientOpensTwo(t *testing.T) {
	t.Parallel()
	for _, joined := range []bool{true, false} {
		w := newWorld(t, joined)
		w.LoseNext("rest", 1)
		post := func(path, key, body string) error {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Idempotency-Key", key)
			resp, err := http.DefaultClient.Do(r)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
		if err := post("/v1/incidents", "k", `{"alert":"a"}`); err == nil {
			t.Fatal("the answer was not lost")
		}
		if err := post("/graphql", "k", `{"query":"mutation { createIncident }","variables":{"input":{"alert":"a","idempotencyKey":"k"}}}`); err != nil {
			t.Fatal(err)
		}
		if got, want := len(w.Incidents()), map[bool]int{true: 1, false: 2}[joined]; got != want {
			t.Errorf("joined %v: %d incidents, want %d", joined, got, want)
		}
	}
}

// R10: two processes, one by REST and one by gRPC, at once: one request, one incident.
func TestTwoEntrancesAtOnce(t *testing.T) {
	t.Parallel()
	for kind, openLedger := range ledgers(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ledger := openLedger(t)
			w := newWorld(t, false)
			entered, release := make(chan string, 2), make(chan struct{})
			w.Hold(entered, release)
			one, other := w.client(t, ledger(), preferring("rest")...), w.client(t, ledger(), preferring("grpc")...)
			done := make(chan error, 1)
			go func() {
				_, err := one.Do(t.Context(), carriers.Call("incident.create", cmd, alert))
				done <- err
			}()
			if by := <-entered; by != "rest" {
				t.Fatalf("the first request came by %s", by)
			}
			_, err := open(t, other, alert)
			close(release)
			if !errors.Is(err, outbound.ErrInFlight) {
				t.Errorf("at once: %v, want in flight", err)
			}
			if err := <-done; err != nil {
				t.Errorf("the first: %v", err)
			}
			if r, err := open(t, other, alert); err != nil || r.Label != outbound.OriginalReplay || len(w.keys()) != 1 || len(w.Incidents()) != 1 {
				t.Errorf("afterwards: %+v, %v, %d requests, %d incidents", r, err, len(w.keys()), len(w.Incidents()))
			}
		})
	}
}
