// Semanticsdoc writes docs/replay-semantics.md from the providers' operation
// rows. It takes the file's path as its only argument.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

//go:generate go run . ../../docs/replay-semantics.md

// provider is one chapter of the page.
type provider struct {
	name string
	rows []replaysemantics.Operation
}

func providers() []provider {
	return []provider{
		{"Stripe", stripe.Operations()},
		{"PayPal", paypal.Operations()},
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "semanticsdoc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("give the file to write, as docs/replay-semantics.md")
	}
	page, err := render(providers())
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], page, 0o644)
}
