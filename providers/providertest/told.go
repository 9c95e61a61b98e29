package providertest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// told keeps what clients tell their operators: log lines and spans.
type told struct {
	mu   sync.Mutex
	text strings.Builder
}

func (t *told) add(parts ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(&t.text, parts...)
}

// String returns everything that was told.
func (t *told) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// Write takes a log line.
func (t *told) Write(line []byte) (int, error) {
	t.add(string(line))
	return len(line), nil
}

func (t *told) telemetry() outbound.Telemetry {
	return outbound.Telemetry{
		TracerProvider: &tracers{told: t},
		Logger:         slog.New(slog.NewTextHandler(t, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// tracers makes spans that write down all they are given.
type tracers struct {
	embedded.TracerProvider
	told *told
}

func (p *tracers) Tracer(string, ...trace.TracerOption) trace.Tracer { return &tracer{told: p.told} }

type tracer struct {
	embedded.Tracer
	told *told
}

func (t *tracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	cfg := trace.NewSpanStartConfig(opts...)
	s := &span{told: t.told}
	s.told.add("span", name)
	s.SetAttributes(cfg.Attributes()...)
	return trace.ContextWithSpan(ctx, s), s
}

type span struct {
	noop.Span
	told *told
}

func (s *span) IsRecording() bool { return true }

func (s *span) SetName(name string) { s.told.add("name", name) }

func (s *span) SetStatus(_ codes.Code, description string) { s.told.add("status", description) }

func (s *span) RecordError(err error, opts ...trace.EventOption) {
	s.AddEvent("error: "+err.Error(), opts...)
}

func (s *span) AddEvent(name string, opts ...trace.EventOption) {
	cfg := trace.NewEventConfig(opts...)
	s.told.add("event", name)
	s.SetAttributes(cfg.Attributes()...)
}

func (s *span) SetAttributes(list ...attribute.KeyValue) {
	for _, kv := range list {
		s.told.add(string(kv.Key), kv.Value.String())
	}
}
