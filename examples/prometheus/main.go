// Command prometheus shows samekey's metrics where Prometheus scrapes them. It
// needs no account: it refunds a charge of a fake Stripe, cent by cent.
//
//	samekey fake --stripe 127.0.0.1:12111 &
//	charge=$(curl -s -d '{"type":"charge","object":{}}' http://127.0.0.1:12111/_fake/seed | sed 's/.*"id":"\([^"]*\)".*/\1/')
//	go run ./prometheus -charge "$charge" &
//	curl -s http://127.0.0.1:9464/metrics | grep samekey
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9464", "address of /metrics")
	provider := flag.String("stripe", "http://127.0.0.1:12111", "base URL of Stripe: samekey fake --stripe 127.0.0.1:12111")
	charge := flag.String("charge", "", "a charge to refund, one cent each second")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen, *provider, *charge); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, provider, charge string) error {
	meters, metrics, err := Metrics()
	if err != nil {
		return err
	}
	payments, err := Payments(provider, meters)
	if err != nil {
		return err
	}
	reconciler, err := outbound.NewReconciler(nil, payments)
	if err != nil {
		return err
	}
	go func() { _ = reconciler.Run(ctx) }() // returns nil when ctx ends
	go refund(ctx, payments, charge)

	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	server := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close() // nothing is written that could be lost
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Metrics returns where samekey counts, and what Prometheus scrapes.
func Metrics() (*metric.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, nil, err
	}
	return metric.NewMeterProvider(metric.WithReader(exporter)), promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

// Payments returns a client that counts there.
func Payments(provider string, meters *metric.MeterProvider) (*outbound.Client, error) {
	adapter := stripe.New(stripe.Config{Account: "acct_1Nv0FG", SecretKey: "sk_test_example", Test: true, BaseURL: provider})
	return outbound.New(adapter, memory.New(nil), &outbound.Options{Telemetry: outbound.Telemetry{MeterProvider: meters}})
}

// refund refunds one cent each second, each under a command of its own, and the
// same command again as long as its effect is not known.
func refund(ctx context.Context, payments *outbound.Client, charge string) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	cmd := outbound.Command{ID: outbound.NewCommandID()}
	for charge != "" {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		_, err := payments.Do(ctx, stripe.RefundCreate(cmd, url.Values{"charge": {charge}, "amount": {"1"}}))
		if _, again := outbound.RetryAfter(err); !again {
			cmd = outbound.Command{ID: outbound.NewCommandID()}
		}
	}
}
