package outbound

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// ScopeName is the instrumentation scope.
const ScopeName = "github.com/seed-6b5e302b/samekey/outbound"

// Telemetry says where spans, metrics and log lines go. None of them ever holds
// a raw key, a credential, a body or card data; command IDs stand in spans and
// log lines in clear.
//
// Counters, each by samekey.provider and samekey.operation: samekey.calls,
// .deliveries, .blocked, .leases, .became_uncertain, .reconciled, .reviews,
// .unrecorded, .contradicted, .command.reused, .shadow and .unnamed. samekey.call.duration is
// a histogram in seconds. Gauges of what waits, by provider: samekey.uncertain,
// .uncertain.age.p95, .review and .due.
type Telemetry struct {
	TracerProvider trace.TracerProvider // Defaults to the global one.
	MeterProvider  metric.MeterProvider // Defaults to the global one.
	Logger         *slog.Logger         // Defaults to none.
}

// telemetry holds what is counted. Every metric carries samekey.provider and
// samekey.operation; all attributes come from short lists.
type telemetry struct {
	provider   string
	operations map[string]row
	tracer     trace.Tracer
	spans      map[string]string // Names by operation.
	start      []trace.SpanStartOption
	log        *slog.Logger

	calls      metric.Int64Counter     // samekey.result, samekey.origin, samekey.label
	duration   metric.Float64Histogram // samekey.result
	deliveries metric.Int64Counter     // samekey.delivery
	blocked    metric.Int64Counter
	leases     metric.Int64Counter // samekey.lease
	doubts     metric.Int64Counter
	reconciles metric.Int64Counter // samekey.how, samekey.evidence
	reviews    metric.Int64Counter
	untold     metric.Int64Counter
	clashes    metric.Int64Counter
	reuses     metric.Int64Counter
	shadows    metric.Int64Counter // samekey.result
	unnamed    metric.Int64Counter

	uncertain metric.Int64Gauge // By provider, as the next three.
	inReview  metric.Int64Gauge
	due       metric.Int64Gauge
	oldest    metric.Float64Gauge
}

func newTelemetry(o Telemetry, provider string, operations map[string]row) (*telemetry, error) {
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &telemetry{
		provider: provider, operations: operations, tracer: o.TracerProvider.Tracer(ScopeName), log: o.Logger,
		spans: map[string]string{other: provider + " " + other}, start: []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)},
	}
	for name := range operations {
		t.spans[name] = provider + " " + name
	}
	meter := o.MeterProvider.Meter(ScopeName)
	var errs []error
	for _, c := range []struct {
		counter          *metric.Int64Counter
		name, unit, what string
	}{
		{&t.calls, "samekey.calls", "{call}", "Calls by result (new_execution, provider_replay, latest_status, ledger_replay, or the error's code), and by the answer's origin and label where there is one."},
		{&t.deliveries, "samekey.deliveries", "{request}", "Requests that may have reached the wire: first, resend with the same key, or hidden (sent again by net/http itself)."},
		{&t.blocked, "samekey.blocked", "{call}", "Calls that met the same command on its way elsewhere, whether they then waited or not."},
		{&t.leases, "samekey.leases", "{lease}", "Leases that ended before their call: expired ones taken over here, own ones lost to others."},
		{&t.doubts, "samekey.became_uncertain", "{command}", "Commands whose effect became unknown."},
		{&t.reconciles, "samekey.reconciled", "{command}", "Commands whose effect was unknown and is known now, by how (call, lookup, resend, webhook) and by what showed it."},
		{&t.reviews, "samekey.reviews", "{command}", "Commands that were sent to manual review."},
		{&t.untold, "samekey.unrecorded", "{answer}", "Answers that the ledger could not be told at once."},
		{&t.clashes, "samekey.contradicted", "{fact}", "Facts that contradict what the ledger held."},
		{&t.reuses, "samekey.command.reused", "{call}", "Second requests of an operation that had already succeeded under one context."},
		{&t.shadows, "samekey.shadow", "{call}", "Calls in shadow mode by what the ledger would have decided."},
		{&t.unnamed, "samekey.unnamed", "{request}", "Writes that a drop-in passed on without a command."},
	} {
		var err error
		*c.counter, err = meter.Int64Counter(c.name, metric.WithUnit(c.unit), metric.WithDescription(c.what))
		errs = append(errs, err)
	}
	for _, g := range []struct {
		gauge      *metric.Int64Gauge
		name, what string
	}{
		{&t.uncertain, "samekey.uncertain", "Records whose effect is not known."},
		{&t.inReview, "samekey.review", "Records that wait for a person."},
		{&t.due, "samekey.due", "Records that wait for the reconciler."},
	} {
		var err error
		*g.gauge, err = meter.Int64Gauge(g.name, metric.WithUnit("{record}"), metric.WithDescription(g.what))
		errs = append(errs, err)
	}
	var err1, err2 error
	t.oldest, err1 = meter.Float64Gauge("samekey.uncertain.age.p95", metric.WithUnit("s"), metric.WithDescription("Age of records whose effect is not known, 95th percentile."))
	t.duration, err2 = meter.Float64Histogram("samekey.call.duration", metric.WithUnit("s"), metric.WithDescription("Duration of calls by result."))
	return t, errors.Join(append(errs, err1, err2)...)
}

// other stands for an operation that is not in the table, since a caller may have
// written anything there. OpenTelemetry's conventions call such values so.
const other = "_OTHER"

func (t *telemetry) operation(name string) string {
	if _, known := t.operations[name]; known {
		return name
	}
	return other
}

// count adds n to a counter, and costs nothing where nobody listens.
func (t *telemetry) count(ctx context.Context, c metric.Int64Counter, n int64, operation string, pairs ...string) {
	if c.Enabled(ctx) {
		c.Add(ctx, n, t.attrs(operation, pairs...))
	}
}

// attrs are the attributes of a metric: pairs of names and values, of which those
// without a value are left out.
func (t *telemetry) attrs(operation string, pairs ...string) metric.MeasurementOption {
	a := make([]attribute.KeyValue, 0, 5)
	a = append(a, attribute.String("samekey.provider", t.provider), attribute.String("samekey.operation", t.operation(operation)))
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			a = append(a, attribute.String(pairs[i], pairs[i+1]))
		}
	}
	return metric.WithAttributes(a...)
}

// observation is one call as it is seen from outside.
type observation struct {
	t       *telemetry
	span    trace.Span
	from    time.Time
	call    Call
	blocked bool // It met the same command on its way elsewhere.
}

func (t *telemetry) begin(ctx context.Context, call Call) (context.Context, observation) {
	name, known := t.spans[call.Operation]
	if !known {
		name = t.spans[other]
	}
	ctx, span := t.tracer.Start(ctx, name, t.start...)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("samekey.provider", t.provider),
			attribute.String("samekey.operation", t.operation(call.Operation)),
			attribute.String("samekey.command.id", cleanText(call.Command.ID)))
	}
	return ctx, observation{t: t, span: span, from: time.Now(), call: call}
}

// claimed notes what the claim met.
func (o *observation) claimed(ctx context.Context, c *recordstore.Claimed) {
	if o.span.IsRecording() {
		o.span.AddEvent("claim", trace.WithAttributes(
			attribute.String("samekey.decision", string(c.Decision)), attribute.Int64("samekey.fence", c.Record.Fence)))
	}
	if c.Decision == recordstore.InFlight && !o.blocked {
		o.blocked = true
		o.t.count(ctx, o.t.blocked, 1, o.call.Operation)
	}
	held := c.Decision == recordstore.Send || c.Decision == recordstore.Lookup
	if held && c.Record.TakenFrom == recordstore.Sending {
		o.t.count(ctx, o.t.leases, 1, o.call.Operation, "samekey.lease", "expired")
		o.t.log.WarnContext(ctx, "samekey: an expired lease was taken over", o.t.who(o.call)...)
	}
}

func (o *observation) end(ctx context.Context, r *Reply, err *Error) {
	defer o.span.End()
	result := resultOf(r, err)
	answer := r
	if err != nil {
		answer = err.Answer
	}
	var origin, label string
	if answer != nil {
		origin, label = string(answer.Origin), string(answer.Label)
	}
	o.t.count(ctx, o.t.calls, 1, o.call.Operation, "samekey.result", result, "samekey.origin", origin, "samekey.label", label)
	if o.t.duration.Enabled(ctx) {
		o.t.duration.Record(ctx, time.Since(o.from).Seconds(), o.t.attrs(o.call.Operation, "samekey.result", result))
	}
	if o.span.IsRecording() {
		o.span.SetAttributes(attribute.String("samekey.result", result), attribute.String("samekey.effect", effectNow(err).String()))
		if answer != nil {
			o.span.SetAttributes(
				attribute.String("samekey.label", string(answer.Label)), attribute.String("samekey.evidence", string(answer.Evidence)),
				attribute.String("samekey.origin", string(answer.Origin)), attribute.String("samekey.request.id", answer.RequestID),
				attribute.Int("samekey.deliveries", answer.Deliveries))
		}
		if err != nil {
			o.span.SetAttributes(attribute.String("error.type", string(err.Code)))
			o.span.SetStatus(codes.Error, string(err.Code))
		}
	}
	o.t.logCall(ctx, o.call, result, answer, err)
}

func effectNow(err *Error) Effect {
	if err == nil {
		return EffectApplied
	}
	return err.Effect
}

// resultOf names what became of a call.
func resultOf(r *Reply, err *Error) string {
	switch {
	case err != nil:
		return string(err.Code)
	case r.Origin == FromLedger:
		return "ledger_replay"
	case r.Label == OriginalReplay:
		return "provider_replay"
	}
	return string(r.Label)
}

func (t *telemetry) logCall(ctx context.Context, call Call, result string, answer *Reply, err *Error) {
	level := slog.LevelInfo
	if err != nil {
		switch err.Code {
		case ErrRefused, ErrInFlight:
		case ErrInvalid, ErrFingerprintConflict, ErrManualReview:
			level = slog.LevelError
		default:
			level = slog.LevelWarn
		}
	}
	if !t.log.Enabled(ctx, level) {
		return
	}
	a := append(t.who(call), slog.String("result", result), slog.String("effect", effectNow(err).String()))
	if answer != nil {
		a = append(a, slog.String("label", string(answer.Label)), slog.String("evidence", string(answer.Evidence)),
			slog.String("origin", string(answer.Origin)), slog.Int("deliveries", answer.Deliveries),
			slog.String("external_ref", answer.ExternalRef), slog.String("request_id", answer.RequestID))
	}
	if err != nil {
		a = append(a, slog.String("error", clean(err.Error(), 2000)))
	}
	t.log.Log(ctx, level, "samekey: call", a...)
}

// who are the log fields that every line begins with.
func (t *telemetry) who(call Call) []any {
	return []any{slog.String("provider", t.provider), slog.String("operation", cleanText(call.Operation)), slog.String("command", cleanText(call.Command.ID))}
}

// delivered counts what went over the wire; doubt says that an earlier delivery
// of the command is unanswered.
func (t *telemetry) delivered(ctx context.Context, o *order, doubt bool, verdicts []Verdict) {
	first, resent, hidden := 0, 0, 0
	for _, v := range verdicts {
		switch n := v.deliveries(); {
		case n == 0:
		case doubt || first > 0:
			resent++
			hidden += n - 1
		default:
			first++
			hidden += n - 1
		}
	}
	for _, d := range [...]struct {
		kind string
		n    int
	}{{"first", first}, {"resend", resent}, {"hidden", hidden}} {
		if d.n > 0 {
			t.count(ctx, t.deliveries, int64(d.n), o.Operation, "samekey.delivery", d.kind)
		}
	}
	if hidden > 0 {
		t.log.WarnContext(ctx, "samekey: net/http sent a request again by itself", append(t.who(o.Call), slog.Int("hidden", hidden))...)
	}
}

// settled counts what became of a claim: rec as it was claimed, j as it was
// judged, end as the ledger has it.
func (t *telemetry) settled(ctx context.Context, o *order, rec recordstore.Record, j judged, end settled) {
	now := end.record
	if end.lost && now.Fence != rec.Fence {
		t.count(ctx, t.leases, 1, o.Operation, "samekey.lease", "lost")
		t.log.WarnContext(ctx, "samekey: the lease was taken over while the call was on its way", t.who(o.Call)...)
	}
	clash := end.noted != "" && j.state != end.noted && j.state != recordstore.Uncertain
	if end.lost {
		clash = j.fact() && (clash || now.State != j.state && (now.State.Final() || now.State == recordstore.ManualReview))
	}
	if clash {
		t.contradicted(ctx, o.Call)
	}
	moved := !end.lost || j.fact() && now.State != end.was
	switch {
	case !moved:
	case now.State == recordstore.Uncertain && !rec.Doubt:
		t.count(ctx, t.doubts, 1, o.Operation)
	case now.State == recordstore.ManualReview:
		t.reviewed(ctx, o.Call)
	case now.State.Final() && (rec.Doubt || end.was == recordstore.Uncertain):
		how := "call"
		if o.check != nil {
			how = o.check.kind
		}
		t.reconciled(ctx, o.Call, how, now.Evidence)
	}
}

func (t *telemetry) contradicted(ctx context.Context, call Call) {
	t.count(ctx, t.clashes, 1, call.Operation)
	t.log.ErrorContext(ctx, "samekey: a fact contradicts the ledger", t.who(call)...)
}

func (t *telemetry) reviewed(ctx context.Context, call Call) {
	t.count(ctx, t.reviews, 1, call.Operation)
	t.log.ErrorContext(ctx, "samekey: a record needs a person", t.who(call)...)
}

func (t *telemetry) reconciled(ctx context.Context, call Call, how, evidence string) {
	t.count(ctx, t.reconciles, 1, call.Operation, "samekey.how", how, "samekey.evidence", evidence)
	t.log.InfoContext(ctx, "samekey: an unknown outcome was found out", append(t.who(call), slog.String("how", how), slog.String("evidence", evidence))...)
}

func (t *telemetry) unrecorded(ctx context.Context, o *order, err error) {
	t.count(ctx, t.untold, 1, o.Operation)
	t.log.ErrorContext(ctx, "samekey: an answer could not be recorded yet", append(t.who(o.Call), slog.String("error", clean(err.Error(), 2000)))...)
}

func (t *telemetry) reused(ctx context.Context, call Call) {
	t.count(ctx, t.reuses, 1, call.Operation)
	t.log.WarnContext(ctx, "samekey: one command was used for a second request of an operation that had succeeded: two intents need two commands", t.who(call)...)
}

func (t *telemetry) shadowed(ctx context.Context, call Call, result string, err error) {
	t.count(ctx, t.shadows, 1, call.Operation, "samekey.result", result)
	if err != nil {
		t.log.WarnContext(ctx, "samekey: shadow", append(t.who(call), slog.String("result", result), slog.String("error", clean(err.Error(), 2000)))...)
		return
	}
	t.log.InfoContext(ctx, "samekey: shadow", append(t.who(call), slog.String("result", result))...)
}

// backlog records how much waits in the ledger.
func (t *telemetry) backlog(ctx context.Context, b recordstore.Backlog) {
	with := metric.WithAttributes(attribute.String("samekey.provider", t.provider))
	t.uncertain.Record(ctx, int64(b.Uncertain), with)
	t.inReview.Record(ctx, int64(b.Review), with)
	t.due.Record(ctx, int64(b.Due), with)
	t.oldest.Record(ctx, b.UncertainP95.Seconds(), with)
}

func (t *telemetry) woken(ctx context.Context, rec recordstore.Record) {
	t.log.InfoContext(ctx, "samekey: an event woke a record", t.who(callOf(rec))...)
}

// callOf is what telemetry needs to know of a record's call.
func callOf(rec recordstore.Record) Call {
	return Call{Operation: rec.Operation, Command: commandOf(rec)}
}
