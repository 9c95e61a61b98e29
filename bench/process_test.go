package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// The benchmarks are those of the group "process", for go test's own profiles:
//
//	go test -run '^$' -bench Do -memprofile mem.out .

func BenchmarkBare(b *testing.B) {
	post := poster(answering{}, memoryURL)
	benchmark(b, func(ctx context.Context) error { return post(ctx, "00000000-0000-8000-8000-000000000000") }, nil)
}

func BenchmarkDo(b *testing.B) {
	call, err := doing(answering{})
	benchmark(b, call, err)
}

func BenchmarkStripeGo(b *testing.B) {
	benchmark(b, stripeGo(&http.Client{Transport: answering{}}), nil)
}

func BenchmarkDropin(b *testing.B) {
	call, err := droppedIn(answering{})
	benchmark(b, call, err)
}

// BenchmarkLedger is the ledger's share of BenchmarkDo: its claim and settlement.
func BenchmarkLedger(b *testing.B) {
	store := memory.New(nil)
	benchmark(b, func(ctx context.Context) error { return ledgerCall(ctx, store) }, nil)
}

func benchmark(b *testing.B, call func(context.Context) error, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := call(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
