package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	stripego "github.com/stripe/stripe-go/v86"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// memoryURL is where nobody listens: the transport in memory answers.
const memoryURL = "http://provider.test"

// inProcess measures what is left when neither the network nor a database takes
// any time: one caller, a transport that answers from memory, a ledger in memory.
func inProcess(ctx context.Context, b *bench) error {
	rt := answering{}
	steps := []struct {
		name string
		make func() (func(context.Context) error, error)
	}{
		{"net/http alone", func() (func(context.Context) error, error) {
			post := poster(rt, memoryURL)
			return func(ctx context.Context) error { return post(ctx, outbound.NewCommandID()) }, nil
		}},
		{"go-retryablehttp alone", func() (func(context.Context) error, error) { return retrying(rt), nil }},
		{"samekey, Do", func() (func(context.Context) error, error) { return doing(rt) }},
		{"stripe-go alone", func() (func(context.Context) error, error) { return stripeGo(&http.Client{Transport: rt}), nil }},
		{"stripe-go over samekey", func() (func(context.Context) error, error) { return droppedIn(rt) }},
	}
	took := make(map[string][]float64)
	allocated := make(map[string][]float64)
	for range b.rounds {
		for _, s := range steps {
			call, err := s.make()
			if err != nil {
				return err
			}
			c, err := costOf(ctx, b.window/2, call)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			took[s.name] = append(took[s.name], c.micros)
			allocated[s.name] = append(allocated[s.name], c.allocations)
		}
	}
	for _, s := range steps {
		for unit, rounds := range map[string][]float64{"µs": took[s.name], "allocations": allocated[s.name]} {
			m := measurement{Work: "process", Contender: s.name, Callers: 1, Unit: unit, Rounds: rounds}
			m.Median, m.Low, m.High = spread(rounds)
			b.result.measured(m)
			b.say("%-10s   1 callers  %-32s %s", "process", s.name, m)
		}
	}
	above := func(of, base []float64) []float64 {
		d := make([]float64, len(of))
		for i := range of {
			d[i] = of[i] - base[i]
		}
		return d
	}
	b.result.ratio("do_overhead", 1, "µs", above(took["samekey, Do"], took["net/http alone"])...)
	b.result.ratio("do_allocations", 1, "allocations", above(allocated["samekey, Do"], allocated["net/http alone"])...)
	quotient := make([]float64, b.rounds)
	for i := range quotient {
		quotient[i] = took["stripe-go over samekey"][i] / took["stripe-go alone"][i]
	}
	b.result.ratio("dropin_vs_stripego", 1, "", quotient...)
	return nil
}

// cost is what one call takes.
type cost struct{ micros, allocations float64 }

// costOf makes calls one after the other for window, after a few that count for
// nothing.
func costOf(ctx context.Context, window time.Duration, call func(context.Context) error) (cost, error) {
	for range 200 {
		if err := call(ctx); err != nil {
			return cost{}, err
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, n := time.Now(), 0
	for ; time.Since(start) < window; n++ {
		if err := call(ctx); err != nil {
			return cost{}, err
		}
	}
	elapsed := time.Since(start)
	runtime.ReadMemStats(&after)
	return cost{
		micros:      float64(elapsed.Nanoseconds()) / 1000 / float64(n),
		allocations: float64(after.Mallocs-before.Mallocs) / float64(n),
	}, nil
}

// answering is a transport that answers from memory.
type answering struct{}

var memoryAnswer = []byte(refundAnswer(1))

// RoundTrip implements http.RoundTripper.
func (answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	r.Body.Close()
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answerHeader(), Body: io.NopCloser(bytes.NewReader(memoryAnswer)), ContentLength: int64(len(memoryAnswer)), Request: r,
	}, nil
}

// retrying is go-retryablehttp alone.
func retrying(rt http.RoundTripper) func(context.Context) error {
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: rt}
	client.Logger = nil
	standard := client.StandardClient()
	return func(ctx context.Context) error {
		r, err := refundRequest(ctx, memoryURL, outbound.NewCommandID())
		if err != nil {
			return err
		}
		return answered(standard.Do(r))
	}
}

// inMemory is a client of samekey on a new ledger in memory.
func inMemory(rt http.RoundTripper) (*outbound.Client, error) {
	return outbound.New(stripe.New(stripe.Config{
		Account: account, Test: true, SecretKey: secretKey, Version: version, BaseURL: memoryURL, Transport: rt,
	}), memory.New(nil), nil)
}

func doing(rt http.RoundTripper) (func(context.Context) error, error) {
	client, err := inMemory(rt)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return refund(ctx, client) }, nil
}

// stripeGo makes the refund with Stripe's own SDK.
func stripeGo(client *http.Client) func(context.Context) error {
	sc := stripego.NewClient(secretKey, stripego.WithBackends(stripego.NewBackendsWithConfig(&stripego.BackendConfig{
		URL: stripego.String(memoryURL), HTTPClient: client, LeveledLogger: &stripego.LeveledLogger{Level: stripego.LevelNull},
		EnableTelemetry: stripego.Bool(false),
	})))
	return func(ctx context.Context) error {
		_, err := sc.V1Refunds.Create(ctx, &stripego.RefundCreateParams{
			Charge: stripego.String("ch_1MmlLrLkdIwHu7ix0uke3Ezy"), Amount: stripego.Int64(500),
		})
		return err
	}
}

// droppedIn is the same SDK, and what it sends goes through a drop-in.
func droppedIn(rt http.RoundTripper) (func(context.Context) error, error) {
	client, err := inMemory(rt)
	if err != nil {
		return nil, err
	}
	transport, err := dropin.New(client, nil)
	if err != nil {
		return nil, err
	}
	call := stripeGo(transport.Client())
	return func(ctx context.Context) error {
		return call(outbound.WithCommand(ctx, outbound.Command{ID: outbound.NewCommandID()}))
	}, nil
}
