package outbound

import (
	"log/slog"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// ScopeName is the instrumentation scope.
const ScopeName = "github.com/seed-6b5e302b/samekey/outbound"

// Telemetry says where spans, metrics and log lines go.
type Telemetry struct {
	TracerProvider trace.TracerProvider // Defaults to the global one.
	MeterProvider  metric.MeterProvider // Defaults to the global one.
	Logger         *slog.Logger         // Defaults to none.
}
