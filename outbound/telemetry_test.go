package outbound_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// watched collects all that a client shows.
type watched struct {
	metrics *sdkmetric.ManualReader
	spans   *tracetest.SpanRecorder
	opts    outbound.Telemetry
	logs    bytes.Buffer
	mu      sync.Mutex
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logs.Write(b)
}

func watch() *watched {
	w := &watched{metrics: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	w.opts = outbound.Telemetry{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.metrics)),
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans)),
		Logger:         slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	return w
}

// counts returns every counter's points, "calls result=uncertain" as 2, and holds
// each to its provider and operation.
func (w *watched) counts(t *testing.T, operation string) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.metrics.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok {
				continue
			}
			for _, p := range sum.DataPoints {
				name := strings.TrimPrefix(m.Name, "samekey.")
				for _, a := range p.Attributes.ToSlice() {
					switch a.Key {
					case "samekey.provider", "samekey.operation":
					default:
						name += " " + strings.TrimPrefix(string(a.Key), "samekey.") + "=" + a.Value.String()
					}
				}
				got[name] = p.Value
				if v, _ := p.Attributes.Value("samekey.provider"); v.AsString() != "bank" {
					t.Errorf("%s: provider %q", name, v.AsString())
				}
				if v, _ := p.Attributes.Value("samekey.operation"); v.AsString() != operation {
					t.Errorf("%s: operation %q, want %q", name, v.AsString(), operation)
				}
			}
		}
	}
	return got
}

const (
	newCall  = "calls label=new_execution origin=provider result=new_execution"
	replayed = "calls label=original_replay origin=ledger result=ledger_replay"
	unknown  = "calls result=uncertain"
	first    = "deliveries delivery=first"
	resend   = "deliveries delivery=resend"
)

// R15, R26: everything that must be told apart is, each with provider and
// operation, and an ordinary call counts as nothing else.
func TestMetricsTellApart(t *testing.T) {
	again := paid
	again.Evidence = "replay_header"
	hidden := paid
	hidden.Deliveries = 2
	twice := func(_ context.Context, _ int, _ *outbound.Delivery) []outbound.Verdict {
		return []outbound.Verdict{lost, paid}
	}
	for _, tt := range []struct {
		why    string
		answer func(context.Context, int, *outbound.Delivery) []outbound.Verdict
		run    func(b *telemetryBench)
		want   map[string]int64
	}{
		{"new call", always(paid), func(b *telemetryBench) { b.do("a"); b.do("b") }, map[string]int64{newCall: 2, first: 2}},
		{"ledger replay", always(paid), func(b *telemetryBench) { b.do("a"); b.do("a") }, map[string]int64{newCall: 1, replayed: 1, first: 1}},
		{"same-key resend inside a call, latest status", twice, func(b *telemetryBench) { b.do("a") },
			map[string]int64{"calls label=latest_status origin=provider result=latest_status": 1, first: 1, resend: 1}},
		{"became uncertain, same-key resend, provider replay", inTurn(lost, again), func(b *telemetryBench) { b.do("a"); b.do("a") },
			map[string]int64{
				unknown: 1, "became_uncertain": 1, first: 1, resend: 1,
				"calls label=original_replay origin=provider result=provider_replay": 1, "reconciled evidence=replay_header how=call": 1,
			}},
		{"uncertain still", always(lost), func(b *telemetryBench) { b.do("a"); b.do("a") }, map[string]int64{unknown: 2, "became_uncertain": 1, first: 1, resend: 1}},
		{"reconciled by a look-up", always(lost), func(b *telemetryBench) {
			b.do("a")
			b.ledger.advance(24 * time.Hour)
			b.adapter.find = func(*outbound.Lookup) (outbound.Finding, error) {
				return outbound.Finding{Effect: outbound.EffectApplied}, nil
			}
			b.do("a")
		}, map[string]int64{
			unknown: 1, "became_uncertain": 1, first: 1,
			"calls label=latest_status origin=provider result=latest_status": 1, "reconciled evidence=lookup how=call": 1,
		}},
		{"a refusal and its replay", always(declined), func(b *telemetryBench) { b.do("a"); b.do("a") },
			map[string]int64{
				"calls label=new_execution origin=provider result=refused": 1, "calls label=original_replay origin=ledger result=refused": 1, first: 1,
			}},
		{"fingerprint conflict", always(paid), func(b *telemetryBench) {
			b.do("a")
			other := pay("a", "pay.stored")
			other.Message.Body = []byte("amount=4711")
			b.client.Do(b.ctx, other)
		}, map[string]int64{newCall: 1, "calls result=fingerprint_conflict": 1, first: 1}},
		{"concurrent send blocked", nil, func(b *telemetryBench) {
			b.adapter.answer = func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
				b.do("a")
				return []outbound.Verdict{paid}
			}
			b.do("a")
		}, map[string]int64{newCall: 1, "calls result=in_flight": 1, "blocked": 1, first: 1}},
		{"lease expired, lease lost", nil, func(b *telemetryBench) {
			b.adapter.answer = func(_ context.Context, n int, _ *outbound.Delivery) []outbound.Verdict {
				if n == 1 {
					b.ledger.advance(3 * time.Minute)
					b.do("a")
				}
				return []outbound.Verdict{lost}
			}
			b.do("a")
		}, map[string]int64{unknown: 2, "leases lease=expired": 1, "leases lease=lost": 1, first: 1, resend: 1}},
		{"hidden delivery", always(hidden), func(b *telemetryBench) { b.do("a") },
			map[string]int64{"calls label=latest_status origin=provider result=latest_status": 1, first: 1, "deliveries delivery=hidden": 1}},
		{"contradicted, sent to review", nil, func(b *telemetryBench) {
			b.adapter.answer = func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
				rec := recordOf(b.t, b.client, b.ledger, pay("a", "pay.stored"))
				rec.State, rec.Holder, rec.Fence = recordstore.Refused, "another", 2
				b.ledger.Seed(rec)
				return []outbound.Verdict{paid}
			}
			b.do("a")
		}, map[string]int64{"calls label=latest_status origin=provider result=latest_status": 1, first: 1, "leases lease=lost": 1, "contradicted": 1, "reviews": 1}},
		{"one command used twice", always(paid), func(b *telemetryBench) {
			b.ctx = outbound.WithCommand(b.ctx, outbound.Command{ID: "a"})
			b.do("a")
			b.do("a")
		}, map[string]int64{newCall: 1, replayed: 1, first: 1, "command.reused": 1}},
		{"shadow", nil, func(b *telemetryBench) { shadow(b.client, "a", paid); shadow(b.client, "a", paid) },
			map[string]int64{"shadow result=send": 1, "shadow result=replay": 1}},
	} {
		t.Run(tt.why, func(t *testing.T) {
			w := watch()
			b := &telemetryBench{t: t, ctx: t.Context(), ledger: newLedger(), adapter: &scripted{answer: tt.answer}}
			b.client = client(t, b.adapter, b.ledger, &outbound.Options{Telemetry: w.opts})
			tt.run(b)
			if got := w.counts(t, "pay.stored"); !maps.Equal(got, tt.want) {
				t.Errorf("counted\n%v, want\n%v", got, tt.want)
			}
		})
	}
}

type telemetryBench struct {
	t       *testing.T
	ctx     context.Context
	ledger  *ledgerAt
	adapter *scripted
	client  *outbound.Client
}

// do makes a call whose outcome is for the counters to tell.
func (b *telemetryBench) do(id string) { b.client.Do(b.ctx, pay(id, "pay.stored")) }

// A call that waits for another has been blocked once, and a ledger that is away
// is seen at once.
func TestMetricsOfWaitingAndOfALedgerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch()
		a := &scripted{answer: func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
			time.Sleep(3 * time.Second)
			return []outbound.Verdict{paid}
		}}
		ledger := &counting{Store: memory.New(nil)}
		c := client(t, a, ledger, &outbound.Options{Telemetry: w.opts, Wait: time.Minute})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { c.Do(t.Context(), pay("a", "pay.stored")) })
		}
		wg.Wait()
		ledger.cut("Settle")
		c.Do(t.Context(), pay("b", "pay.stored"))
		ledger.cut("Claim")
		c.Do(t.Context(), pay("c", "pay.stored"))
		ledger.cut()
		want := map[string]int64{newCall: 2, replayed: 2, "blocked": 2, first: 2, "unrecorded": 1, "calls result=store": 1}
		if got := w.counts(t, "pay.stored"); !maps.Equal(got, want) {
			t.Errorf("counted\n%v, want\n%v", got, want)
		}
	})
}

// Whatever a caller writes into Call.Operation, no metric and no span's name
// grows by it.
func TestAttributesComeFromShortLists(t *testing.T) {
	w := watch()
	c := client(t, &scripted{}, memory.New(nil), &outbound.Options{Telemetry: w.opts})
	for i := range 3 {
		c.Do(t.Context(), pay("a", fmt.Sprintf("pay.%d", i)))
		c.Shadow(t.Context(), pay("a", fmt.Sprintf("pay.%d", i)), func(context.Context) outbound.Verdict { return paid })
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Do(t.Context(), pay("a", "pay.closed"))
	want := map[string]int64{"calls result=invalid": 3, "shadow result=invalid": 3, "calls result=overloaded": 1}
	if got := w.counts(t, "_OTHER"); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
	for _, s := range w.spans.Ended() {
		if s.Name() != "bank _OTHER" {
			t.Errorf("a span is called %q", s.Name())
		}
	}
}

// R14: spans and log lines carry provider, operation, command ID and the
// provider's request id, say what the answer is, and hold neither key nor bodies
// nor credentials.
func TestSpansAndLogLines(t *testing.T) {
	w := watch()
	leaking := lost
	leaking.Err = errors.New("connection reset")
	a := &scripted{answer: inTurn(leaking, paid)}
	c := client(t, a, memory.New(nil), &outbound.Options{Telemetry: w.opts})
	call := pay("ord_1", "pay.stored")
	call.Credentials = []outbound.Field{{Name: "Authorization", Value: "Bearer sk_live_4eC39"}}
	if _, err := c.Do(t.Context(), call); err == nil {
		t.Fatal("the answer was not lost")
	}
	if _, err := c.Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}

	spans := w.spans.Ended()
	if len(spans) != 2 {
		t.Fatalf("%d spans, want 2", len(spans))
	}
	for i, want := range []map[string]string{
		{"samekey.result": "uncertain", "samekey.effect": "unknown", "error.type": "uncertain"},
		{"samekey.result": "latest_status", "samekey.effect": "applied", "samekey.label": "latest_status", "samekey.evidence": "status_code", "samekey.origin": "provider", "samekey.request.id": "req_1", "samekey.deliveries": "2"},
	} {
		want["samekey.provider"], want["samekey.operation"], want["samekey.command.id"] = "bank", "pay.stored", "ord_1"
		if got := texts(spans[i].Attributes()); !maps.Equal(got, want) {
			t.Errorf("span %d has %v, want %v", i, got, want)
		}
		if spans[i].Name() != "bank pay.stored" || len(spans[i].Events()) != 1 || spans[i].Events()[0].Name != "claim" {
			t.Errorf("span %d is %q with %v", i, spans[i].Name(), spans[i].Events())
		}
	}
	if spans[0].Status().Code != codes.Error || spans[1].Status().Code == codes.Error {
		t.Errorf("statuses %v and %v, want an error and none", spans[0].Status(), spans[1].Status())
	}

	lines := w.logs.String()
	for _, part := range []string{`"provider":"bank"`, `"operation":"pay.stored"`, `"command":"ord_1"`, `"request_id":"req_1"`, `"result":"uncertain"`, `"label":"latest_status"`} {
		if !strings.Contains(lines, part) {
			t.Errorf("no log line holds %s:\n%s", part, lines)
		}
	}
	shown := lines + fmt.Sprintf("%+v", w.counts(t, "pay.stored"))
	for _, s := range spans {
		shown += fmt.Sprintf("%+v %+v %+v", s.Attributes(), s.Events(), s.Status())
	}
	for _, secret := range []string{a.deliveries()[0].Key.Raw(), "amount=100", `{"id"`, `{\"id`, "sk_live"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q is shown:\n%s", secret, shown)
		}
	}
}

func texts(attrs []attribute.KeyValue) map[string]string {
	got := make(map[string]string)
	for _, a := range attrs {
		got[string(a.Key)] = a.Value.String()
	}
	return got
}

// Each kind of outcome has a log level that says who has to look.
func TestLogLevels(t *testing.T) {
	w := watch()
	c := client(t, &scripted{answer: inTurn(lost, declined)}, memory.New(nil), &outbound.Options{Telemetry: w.opts})
	for _, call := range []outbound.Call{pay("a", "pay.rerun"), pay("b", "pay.rerun"), pay("c", "no.such")} {
		c.Do(t.Context(), call)
	}
	var levels []string
	for line := range strings.Lines(w.logs.String()) {
		_, rest, _ := strings.Cut(line, `"level":"`)
		level, _, _ := strings.Cut(rest, `"`)
		levels = append(levels, level)
	}
	if want := []string{"WARN", "INFO", "ERROR"}; !slices.Equal(levels, want) {
		t.Errorf("levels %v, want %v: uncertain, refused, invalid", levels, want)
	}
}
