package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/adyen"
	"github.com/seed-6b5e302b/samekey/providers/pagerduty"
	"github.com/seed-6b5e302b/samekey/providers/square"
	"github.com/seed-6b5e302b/samekey/providers/toss"
)

// Names of providers, modes and operations are part of every key: none is ever taken
// away or reused. New ones are added at the end of the file. Stripe's and PayPal's
// stand beside their rows.
func TestNamesOnlyGrow(t *testing.T) {
	golden, err := os.ReadFile("testdata/operation_names.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(strings.TrimSpace(string(golden)), "\n")
	var now []string
	for _, a := range []*httpadapter.Adapter{
		square.New(square.Config{Merchant: "m"}), square.New(square.Config{Merchant: "m", Sandbox: true}),
		adyen.New(adyen.Config{Account: "a", BaseURL: "https://live.example"}), adyen.New(adyen.Config{Account: "a", Test: true}),
		toss.New(toss.Config{Account: "m"}), toss.New(toss.Config{Account: "m", Test: true}),
		pagerduty.New(pagerduty.Config{Account: "p", RoutingKey: "r"}),
	} {
		p, err := a.Profile()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range p.Operations {
			now = append(now, strings.Join([]string{p.Provider, p.Mode, o.Name, o.Method, o.Path}, " "))
		}
	}
	for _, name := range known {
		if !slices.Contains(now, name) {
			t.Errorf("%q was taken away or changed: keys made with it are out in the world", name)
		}
	}
	for _, name := range now {
		if !slices.Contains(known, name) {
			t.Errorf("%q is new: add it at the end of testdata/operation_names.txt", name)
		}
	}
}
