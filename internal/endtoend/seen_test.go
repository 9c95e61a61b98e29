package endtoend

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// seen holds all that a client logs, traces and measures.
type seen struct {
	logs   *lines
	spans  *tracetest.SpanRecorder
	tracer *trace.TracerProvider
	reader *metric.ManualReader
	meter  *metric.MeterProvider
}

// lines is a log that many goroutines write.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func newSeen(t *testing.T) *seen {
	s := openSeen()
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openSeen() *seen {
	s := &seen{logs: &lines{}, spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	s.tracer = trace.NewTracerProvider(trace.WithSpanProcessor(s.spans))
	s.meter = metric.NewMeterProvider(metric.WithReader(s.reader))
	return s
}

func (s *seen) close() error {
	if err := s.tracer.Shutdown(context.Background()); err != nil {
		return err
	}
	return s.meter.Shutdown(context.Background())
}

func (s *seen) telemetry() outbound.Telemetry {
	return outbound.Telemetry{TracerProvider: s.tracer, MeterProvider: s.meter, Logger: s.logger()}
}

func (s *seen) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// sum adds up the points of a counter that carry all the given attributes.
func (s *seen) sum(t *testing.T, counter string, with ...attribute.KeyValue) (total int64) {
	t.Helper()
	s.points(t, func(name string, set attribute.Set, value int64) {
		if name != counter {
			return
		}
		for _, kv := range with {
			if v, ok := set.Value(kv.Key); !ok || v != kv.Value {
				return
			}
		}
		total += value
	})
	return total
}

// points visits every point of every counter.
func (s *seen) points(t *testing.T, visit func(name string, set attribute.Set, value int64)) {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := s.reader.Collect(context.Background(), &data); err != nil {
		t.Fatal(err)
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				for _, p := range sum.DataPoints {
					visit(m.Name, p.Attributes, p.Value)
				}
			}
		}
	}
}

// all is everything as text, one channel after the other.
func (s *seen) all() (map[string]string, error) {
	var spans, metrics strings.Builder
	for _, span := range s.spans.Ended() {
		fmt.Fprintf(&spans, "%s %v %v %+v %+v %+v\n", span.Name(), span.Status(), span.Attributes(), span.Events(), span.Links(), span.Resource())
	}
	var data metricdata.ResourceMetrics
	if err := s.reader.Collect(context.Background(), &data); err != nil {
		return nil, err
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			fmt.Fprintf(&metrics, "%s %s %+v\n", m.Name, m.Description, m.Data)
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					fmt.Fprintln(&metrics, p.Attributes.ToSlice())
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					fmt.Fprintln(&metrics, p.Attributes.ToSlice())
				}
			}
		}
	}
	return map[string]string{"logs": s.logs.String(), "spans": spans.String(), "metrics": metrics.String()}, nil
}

// span is a span that has ended.
type span = trace.ReadOnlySpan
