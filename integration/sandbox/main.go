// Sandbox asks the real sandboxes of Stripe and PayPal whether what samekey
// believes of them is so. It prints a line for each fact: whether it holds, has
// changed, or, where nobody has published it, what it turned out to be.
//
// It takes credentials from the environment and refuses those of live accounts.
// docs/sandbox.md says what it does there and what it leaves behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// The exit codes.
const (
	exitHolds     = 0 // every fact was checked, and holds
	exitChanged   = 1 // some fact is not so any more
	exitUsage     = 2 // no credentials, or some that are refused
	exitUnchecked = 3 // no fact has changed, but some could not be checked
)

func main() {
	limit := flag.Duration("timeout", 5*time.Minute, "how long all of it may take")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: sandbox [-timeout 5m]; the credentials come from the environment: docs/sandbox.md")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := context.WithTimeout(context.Background(), *limit)
	code := program(ctx, os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// program runs the suites that the environment has credentials for, and returns
// the exit code.
func program(ctx context.Context, env func(string) string, out, errs io.Writer) int {
	suites, err := configured(env)
	if err != nil {
		fmt.Fprintln(errs, "sandbox:", err)
		return exitUsage
	}
	return report(ctx, suites, out)
}

// report runs suites and prints what they found.
func report(ctx context.Context, suites []suite, out io.Writer) int {
	var all []result
	calls := 0
	for _, s := range suites {
		all = append(all, s.run(ctx)...)
		calls += s.api.made()
	}
	return conclude(out, all, calls)
}

// The only addresses that credentials are sent to.
const (
	stripeAddress = "https://api.stripe.com"
	paypalAddress = "https://api-m.sandbox.paypal.com"
)

// configured reads the environment. It names no value of it in an error.
func configured(environment func(string) string) ([]suite, error) {
	// A value that was read from a file often ends with a line break, which no header takes.
	env := func(name string) string { return strings.TrimSpace(environment(name)) }
	var suites []suite
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: 20 * time.Second}
	if key := env("STRIPE_SECRET_KEY"); key != "" {
		if !strings.HasPrefix(key, "sk_test_") && !strings.HasPrefix(key, "rk_test_") {
			return nil, errors.New("STRIPE_SECRET_KEY is not a test key: take one that begins with sk_test_ or rk_test_")
		}
		suites = append(suites, stripeSuite(stripeSettings{
			base: stripeAddress, transport: transport, key: key, connected: env("STRIPE_CONNECTED_ACCOUNT"), patience: 90 * time.Second,
		}))
	}
	id, secret := env("PAYPAL_CLIENT_ID"), env("PAYPAL_CLIENT_SECRET")
	if (id == "") != (secret == "") {
		return nil, errors.New("PAYPAL_CLIENT_ID and PAYPAL_CLIENT_SECRET belong together: set both, of an app of the sandbox")
	}
	if mode := env("PAYPAL_ENVIRONMENT"); mode != "" && mode != "sandbox" {
		return nil, errors.New("PAYPAL_ENVIRONMENT is not sandbox: this runs against PayPal's sandbox only, so take the credentials of a sandbox app")
	}
	if id != "" {
		suites = append(suites, paypalSuite(paypalSettings{
			base: paypalAddress, transport: transport, id: id, secret: secret,
			otherID: env("PAYPAL_OTHER_CLIENT_ID"), otherSecret: env("PAYPAL_OTHER_CLIENT_SECRET"),
		}))
	}
	if len(suites) == 0 {
		return nil, errors.New("no credentials: set STRIPE_SECRET_KEY to a test key, or PAYPAL_CLIENT_ID and PAYPAL_CLIENT_SECRET to those of a sandbox app")
	}
	return suites, nil
}
