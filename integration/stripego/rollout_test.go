package stripego_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stripe/stripe-go/v86"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/seed-6b5e302b/samekey/internal/pgtest"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// C29: an application whose own loop makes a fresh key at each try pays twice when
// an answer is lost, and again when its job runs another time. In Shadow it sends
// exactly what it did without samekey, and the metric and the log tell of each
// duplicate in the words of docs/rollout.md: lookup, then replay.
func TestShadowOfAFreshKeyAtEachTry(t *testing.T) {
	t.Parallel()
	below, above, counts := &wiretap{}, &wiretap{}, &shadowCounts{}
	b := newBench(t, setting{
		dropin:  &dropin.Options{Shadow: true},
		options: outbound.Options{Telemetry: outbound.Telemetry{MeterProvider: counts}},
		wire:    func(base http.RoundTripper) http.RoundTripper { below.base = base; return below },
	})
	above.base, b.trips.base = b.transport, above
	charge := b.charge()
	refund := func() string { // the application, as it is before samekey
		for range 3 {
			p := &stripe.RefundCreateParams{Charge: &charge, Amount: count(500)}
			p.SetIdempotencyKey(rand.Text())
			r, err := b.sc.V1Refunds.Create(b.named("refund_1"), p)
			if err == nil {
				return r.ID
			}
		}
		t.Fatal("no refund within three tries")
		return ""
	}

	// The first try's answer is lost, those of stripe-go's two own retries too.
	b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create", Times: 3})
	first := refund()
	counts.want(t, map[string]int64{"send": 1, "lookup": 3})
	second := refund() // the job runs another time
	counts.want(t, map[string]int64{"send": 1, "lookup": 3, "replay": 1})
	if got := b.fake.Effects("refund.create"); got != 3 || first == second {
		t.Errorf("%d refunds, want the application's three: Shadow prevents nothing", got)
	}

	if b.fake.Armed() != 0 || len(above.seen()) != 5 {
		t.Errorf("stripe-go called its transport %d times, want 5", len(above.seen()))
	}
	if sent, made := strings.Join(below.seen(), "\n"), strings.Join(above.seen(), "\n"); sent != made {
		t.Errorf("Shadow sent\n%s\nwant what stripe-go made\n%s", sent, made)
	}
	keys := make(map[[32]byte]bool)
	for _, r := range b.fake.Requests("refund.create") {
		keys[r.KeyHash] = true
	}
	if len(keys) != 3 || keys[sha256.Sum256([]byte(b.key("refund_1", "refund.create")))] {
		t.Errorf("%d keys arrived, want the application's three and none of samekey's", len(keys))
	}
	for _, result := range []string{"send", "lookup", "replay"} {
		line := `msg="samekey: shadow" provider=stripe operation=refund.create command=refund_1 result=` + result
		if !strings.Contains(b.logs.String(), line) {
			t.Errorf("no log line says %s:\n%s", line, b.logs)
		}
	}
}

// R3: keys are those that the service sends with its ledger before an outage,
// without it under KeysOnly, and with it after. A command that was on its way at
// either change has one effect.
func TestKeysOnlyInALedgerOutage(t *testing.T) {
	t.Parallel()
	ledger := newDatabase(t)
	var keysOnly atomic.Bool
	b := newBench(t, setting{
		ledger:  postgres.New(ledger.pool, nil),
		options: outbound.Options{Bodies: outbound.NoBodies(), KeysOnly: func(context.Context) bool { return keysOnly.Load() }},
	})
	charge := b.charge()
	lose := func(command string) {
		t.Helper()
		b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create", Times: 9})
		if a := b.refundOf(b.named(command), charge, 100); a.err == nil {
			t.Fatalf("%s: the answer was not lost", command)
		}
		b.fake.ClearFaults()
	}
	replayed := func(command string) {
		t.Helper()
		a := b.refundOf(b.named(command), charge, 100)
		if a.err != nil || a.header.Get("Idempotent-Replayed") != "true" {
			t.Fatalf("%s: got %v with %v, want Stripe's replay", command, a.err, a.header)
		}
	}

	lose("before")
	ledger.stop()
	before := len(b.fake.Requests(""))
	b.wantError(b.refundOf(b.named("during"), charge, 100), http.StatusServiceUnavailable, outbound.ErrStore, outbound.EffectUnknown)
	if n := len(b.fake.Requests("")); n != before {
		t.Errorf("%d requests were sent without a record though KeysOnly was off", n-before)
	}

	keysOnly.Store(true)
	replayed("before")
	lose("during")
	replayed("during")

	ledger.start()
	keysOnly.Store(false)
	replayed("during")
	replayed("before")
	for _, command := range []string{"before", "during"} {
		if n := b.fake.EffectsOfKey(b.key(command, "refund.create")); n != 1 {
			t.Errorf("%s: %d effects under the derived key, want 1", command, n)
		}
	}
	want := map[[32]byte]bool{}
	for _, command := range []string{"before", "during"} {
		want[sha256.Sum256([]byte(b.key(command, "refund.create")))] = true
	}
	for i, r := range b.fake.Requests("refund.create") {
		if !want[r.KeyHash] {
			t.Errorf("delivery %d has a key of neither command", i+1)
		}
	}
	if n := b.fake.Effects("refund.create"); n != 2 {
		t.Errorf("%d refunds, want one for each command", n)
	}
}

// wiretap notes requests, each whole on one line.
type wiretap struct {
	base http.RoundTripper
	mu   sync.Mutex
	all  []string
}

func (w *wiretap) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, errors.Join(err, r.Body.Close())
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	w.all = append(w.all, fmt.Sprintf("%s %s %v %d %q", r.Method, r.URL, r.Header, r.ContentLength, body))
	w.mu.Unlock()
	return w.base.RoundTrip(r)
}

func (w *wiretap) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

// shadowCounts is a MeterProvider that keeps samekey.shadow alone.
type shadowCounts struct {
	noop.MeterProvider
	mu sync.Mutex
	by map[string]int64
}

func (c *shadowCounts) Meter(string, ...metric.MeterOption) metric.Meter { return shadowMeter{c: c} }

type shadowMeter struct {
	noop.Meter
	c *shadowCounts
}

func (m shadowMeter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	if name != "samekey.shadow" {
		return noop.Int64Counter{}, nil
	}
	return shadowCounter{c: m.c}, nil
}

type shadowCounter struct {
	noop.Int64Counter
	c *shadowCounts
}

func (s shadowCounter) Enabled(context.Context) bool { return true }

func (s shadowCounter) Add(_ context.Context, n int64, opts ...metric.AddOption) {
	attrs := metric.NewAddConfig(opts).Attributes()
	result, _ := attrs.Value(attribute.Key("samekey.result"))
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.c.by == nil {
		s.c.by = make(map[string]int64)
	}
	s.c.by[result.AsString()] += n
}

func (c *shadowCounts) want(t *testing.T, want map[string]int64) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !maps.Equal(c.by, want) {
		t.Errorf("samekey.shadow counts %v, want %v", c.by, want)
	}
}

// database is a ledger's database that a test can shut while the server and the
// databases of other tests go on.
type database struct {
	*testing.T
	pool  *pgxpool.Pool
	admin *pgx.Conn // of another database of the server
	name  string
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	d := &database{T: t, pool: pgtest.Pool(t)}
	if err := postgres.Migrate(t.Context(), d.pool, nil); err != nil {
		t.Fatal(err)
	}
	config := d.pool.Config().ConnConfig
	d.name, config.Database = config.Database, "postgres"
	var err error
	if d.admin, err = pgx.ConnectConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.admin.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// stop ends every connection to the database and lets no other one in.
func (d *database) stop() {
	d.Helper()
	d.exec("ALTER DATABASE " + pgx.Identifier{d.name}.Sanitize() + " ALLOW_CONNECTIONS false")
	d.exec("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1", d.name)
	if err := d.pool.Ping(d.Context()); err == nil {
		d.Fatal("the ledger's database can still be reached")
	}
}

func (d *database) start() {
	d.Helper()
	d.exec("ALTER DATABASE " + pgx.Identifier{d.name}.Sanitize() + " ALLOW_CONNECTIONS true")
}

func (d *database) exec(sql string, args ...any) {
	d.Helper()
	if _, err := d.admin.Exec(d.Context(), sql, args...); err != nil {
		d.Fatal(err)
	}
}
