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
type Telemetry struct {
	TracerProvider trace.TracerProvider // Defaults to the global one.
	MeterProvider  metric.MeterProvider // Defaults to the global one.
	Logger         *slog.Logger         // Defaults to none.
}

// telemetry holds what is counted. Every counter carries samekey.provider and
// samekey.operation.
type telemetry struct {
	provider string
	tracer   trace.Tracer
	log      *slog.Logger

	calls        metric.Int64Counter     // samekey.result
	duration     metric.Float64Histogram // samekey.result
	deliveries   metric.Int64Counter     // samekey.delivery: first, resend, hidden
	leases       metric.Int64Counter     // samekey.lease: expired (taken over from another), lost (taken over from us)
	notRecorded  metric.Int64Counter
	contradict   metric.Int64Counter
	commandReuse metric.Int64Counter
	shadow       metric.Int64Counter // samekey.result
	reconciles   metric.Int64Counter // samekey.how
	reviews      metric.Int64Counter

	uncertain metric.Int64Gauge // by provider, as the next three
	inReview  metric.Int64Gauge
	due       metric.Int64Gauge
	oldest    metric.Float64Gauge
}

func newTelemetry(o Telemetry, provider string) (*telemetry, error) {
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &telemetry{provider: provider, tracer: o.TracerProvider.Tracer(ScopeName), log: o.Logger}
	meter := o.MeterProvider.Meter(ScopeName)
	var errs [14]error
	counter := func(i int, name, unit, what string) (c metric.Int64Counter) {
		c, errs[i] = meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		return c
	}
	t.calls = counter(0, "samekey.calls", "{call}", "Calls by result: new_execution, provider_replay, latest_status, ledger_replay, or the error's code.")
	t.deliveries = counter(1, "samekey.deliveries", "{request}", "Requests that may have reached the wire: first, resend with the same key, or hidden (sent again by net/http itself).")
	t.leases = counter(2, "samekey.leases", "{lease}", "Leases that ended before their call: expired ones taken over here, own ones lost to others.")
	t.notRecorded = counter(3, "samekey.unrecorded", "{answer}", "Answers that the ledger could not be told at once.")
	t.contradict = counter(4, "samekey.contradicted", "{fact}", "Facts that contradict what the ledger held as settled.")
	t.commandReuse = counter(5, "samekey.command.reused", "{call}", "Second requests of an operation that had already succeeded under one context.")
	t.shadow = counter(6, "samekey.shadow", "{call}", "Calls in shadow mode by what the ledger would have decided.")
	t.reconciles = counter(8, "samekey.reconciled", "{record}", "Unknown outcomes found out, by how: lookup, resend, webhook, verdict.")
	t.reviews = counter(9, "samekey.reviews", "{record}", "Records sent to manual review.")
	gauge := func(i int, name, what string) (g metric.Int64Gauge) {
		g, errs[i] = meter.Int64Gauge(name, metric.WithUnit("{record}"), metric.WithDescription(what))
		return g
	}
	t.uncertain = gauge(10, "samekey.uncertain", "Records whose effect is not known.")
	t.inReview = gauge(11, "samekey.review", "Records that wait for a person.")
	t.due = gauge(12, "samekey.due", "Records that wait for the reconciler.")
	t.oldest, errs[13] = meter.Float64Gauge("samekey.uncertain.age.p95", metric.WithUnit("s"), metric.WithDescription("Age of records whose effect is not known, 95th percentile."))
	t.duration, errs[7] = meter.Float64Histogram("samekey.call.duration", metric.WithUnit("s"), metric.WithDescription("Duration of calls by result."))
	return t, errors.Join(errs[:]...)
}

// attrs are the attributes of a metric; kind and value may be "".
func (t *telemetry) attrs(operation, kind, value string) metric.MeasurementOption {
	a := []attribute.KeyValue{attribute.String("samekey.provider", t.provider), attribute.String("samekey.operation", operation)}
	if kind != "" {
		a = append(a, attribute.String(kind, value))
	}
	return metric.WithAttributes(a...)
}

// observation is one call as it is seen from outside.
type observation struct {
	t    *telemetry
	span trace.Span
	from time.Time
	call Call
}

func (t *telemetry) begin(ctx context.Context, call Call) (context.Context, *observation) {
	ctx, span := t.tracer.Start(ctx, t.provider+" "+cleanText(call.Operation), trace.WithSpanKind(trace.SpanKindClient))
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("samekey.provider", t.provider),
			attribute.String("samekey.operation", cleanText(call.Operation)),
			attribute.String("samekey.command.id", cleanText(call.Command.ID)))
	}
	return ctx, &observation{t: t, span: span, from: time.Now(), call: call}
}

// claimed notes what the claim met.
func (o *observation) claimed(ctx context.Context, c recordstore.Claimed) {
	if o.span.IsRecording() {
		o.span.AddEvent("claim", trace.WithAttributes(
			attribute.String("samekey.decision", string(c.Decision)), attribute.Int64("samekey.fence", c.Record.Fence)))
	}
	held := c.Decision == recordstore.Send || c.Decision == recordstore.Lookup
	if held && c.Record.TakenFrom == recordstore.Sending {
		o.t.leases.Add(ctx, 1, o.t.attrs(o.call.Operation, "samekey.lease", "expired"))
		o.t.log.WarnContext(ctx, "samekey: an expired lease was taken over", o.t.who(o.call)...)
	}
}

func (o *observation) end(ctx context.Context, r *Reply, err *Error) {
	defer o.span.End()
	result := resultOf(r, err)
	operation := o.call.Operation
	if err != nil && err.Code == ErrInvalid {
		operation = "invalid" // it may be anything a caller wrote
	}
	with := o.t.attrs(operation, "samekey.result", result)
	o.t.calls.Add(ctx, 1, with)
	o.t.duration.Record(ctx, time.Since(o.from).Seconds(), with)
	answer := r
	if err != nil {
		answer = err.Answer
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
		a = append(a, slog.String("error", err.Error()))
	}
	t.log.Log(ctx, level, "samekey: call", a...)
}

// who are the log fields that every line begins with.
func (t *telemetry) who(call Call) []any {
	return []any{slog.String("provider", t.provider), slog.String("operation", cleanText(call.Operation)), slog.String("command", cleanText(call.Command.ID))}
}

func (t *telemetry) delivered(ctx context.Context, o *order, doubt bool, verdicts []Verdict) {
	first, resent, hidden := 0, 0, 0
	for _, v := range verdicts {
		if v.Deliveries == 0 {
			continue
		}
		if doubt || first > 0 {
			resent++
		} else {
			first++
		}
		hidden += v.Deliveries - 1
	}
	for kind, n := range map[string]int{"first": first, "resend": resent, "hidden": hidden} {
		if n > 0 {
			t.deliveries.Add(ctx, int64(n), t.attrs(o.Operation, "samekey.delivery", kind))
		}
	}
	if hidden > 0 {
		t.log.WarnContext(ctx, "samekey: net/http sent a request again by itself", append(t.who(o.Call), slog.Int("hidden", hidden))...)
	}
}

func (t *telemetry) leaseLost(ctx context.Context, o *order) {
	t.leases.Add(ctx, 1, t.attrs(o.Operation, "samekey.lease", "lost"))
	t.log.WarnContext(ctx, "samekey: the lease was taken over while the call was on its way", t.who(o.Call)...)
}

func (t *telemetry) unrecorded(ctx context.Context, o *order, err error) {
	t.notRecorded.Add(ctx, 1, t.attrs(o.Operation, "", ""))
	t.log.ErrorContext(ctx, "samekey: an answer could not be recorded yet", append(t.who(o.Call), slog.String("error", err.Error()))...)
}

func (t *telemetry) contradicted(ctx context.Context, o *order) {
	t.contradict.Add(ctx, 1, t.attrs(o.Operation, "", ""))
	t.log.ErrorContext(ctx, "samekey: a fact contradicts the ledger", t.who(o.Call)...)
}

func (t *telemetry) reused(ctx context.Context, call Call) {
	t.commandReuse.Add(ctx, 1, t.attrs(cleanText(call.Operation), "", ""))
	t.log.WarnContext(ctx, "samekey: one command was used for a second request of an operation that had succeeded: two intents need two commands", t.who(call)...)
}

func (t *telemetry) shadowed(ctx context.Context, call Call, result string, err error) {
	t.shadow.Add(ctx, 1, t.attrs(cleanText(call.Operation), "samekey.result", result))
	if err != nil {
		t.log.WarnContext(ctx, "samekey: shadow", append(t.who(call), slog.String("result", result), slog.String("error", err.Error()))...)
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

func (t *telemetry) reconciled(ctx context.Context, rec recordstore.Record, how string) {
	t.reconciles.Add(ctx, 1, t.attrs(rec.Operation, "samekey.how", how))
	t.log.InfoContext(ctx, "samekey: an unknown outcome was found out", append(t.whose(rec), slog.String("how", how))...)
}

func (t *telemetry) reviewed(ctx context.Context, rec recordstore.Record) {
	t.reviews.Add(ctx, 1, t.attrs(rec.Operation, "", ""))
	t.log.ErrorContext(ctx, "samekey: a record needs a person", t.whose(rec)...)
}

func (t *telemetry) woken(ctx context.Context, rec recordstore.Record) {
	t.log.InfoContext(ctx, "samekey: an event woke a record", t.whose(rec)...)
}

func (t *telemetry) whose(rec recordstore.Record) []any {
	return t.who(Call{Operation: rec.Operation, Command: commandOf(rec)})
}
