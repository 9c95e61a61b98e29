// Semanticsdoc writes docs/replay-semantics.md and docs/finders.md from the
// providers' operation rows. It takes the folder's path as its only argument.
package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/seed-6b5e302b/samekey/providers/adyen"
	"github.com/seed-6b5e302b/samekey/providers/atmostonce"
	"github.com/seed-6b5e302b/samekey/providers/ietf"
	"github.com/seed-6b5e302b/samekey/providers/pagerduty"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/square"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/providers/toss"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

//go:generate go run . ../../docs

// provider is one chapter of the page.
type provider struct {
	name string
	rows []replaysemantics.Operation
}

func providers() []provider {
	return []provider{
		{"Stripe", stripe.Operations()},
		{"PayPal", paypal.Operations()},
		{"Adyen", adyen.Operations()},
		{"Square", square.Operations()},
		{"Toss Payments", toss.Operations()},
		{"PagerDuty", pagerduty.Operations()},
		// Of these two the operations are the user's.
		{"IETF draft", []replaysemantics.Operation{ietf.Operation("your.operation", http.MethodPost, "/your/path", 0)}},
		{"At most once", []replaysemantics.Operation{atmostonce.Operation("your.operation", http.MethodPost, "/your/path")}},
	}
}

// pages are the files of docs that are made of rows.
var pages = map[string]func([]provider) ([]byte, error){
	"replay-semantics.md": render,
	"finders.md":          renderFinders,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "semanticsdoc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("give the folder to write to, as docs")
	}
	for name, render := range pages {
		page, err := render(providers())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(args[0], name), page, 0o644); err != nil {
			return err
		}
	}
	return nil
}
