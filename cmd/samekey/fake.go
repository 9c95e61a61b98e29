package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// adminPath is where a fake's admin API stands, beside the provider's own paths.
const adminPath = "/_fake"

func fakeCommand() *cobra.Command {
	var stripeFake, paypalFake fakeAt
	var opts fakeprovider.Options
	var lenient bool
	var maxObjects int
	cmd := &cobra.Command{
		Use:   "fake",
		Short: "Serve fake payment providers until interrupted",
		Long: `Fake serves stateful fakes of Stripe and PayPal with their idempotency rules, for
tests in any language. Each takes any credential of the right shape. Faults,
effects, the virtual clock, webhooks and seeds are under ` + adminPath + ` on the same
address; ` + adminPath + `/openapi.json describes them. There is no authentication: only
loopback addresses are taken.`,
		Example: "  samekey fake --stripe 127.0.0.1:12111 --paypal 127.0.0.1:12112\n" +
			"  curl -d '{\"kind\":\"drop_after_apply\",\"operation\":\"refund.create\"}' http://127.0.0.1:12111" + adminPath + "/faults",
		Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if opts.MaxKeys < 1 || maxObjects < 1 {
				return errors.New("--max-keys and --max-objects must be at least 1")
			}
			stripeFake.name, stripeFake.dialect = "stripe", fakestripe.New(fakestripe.Config{Lenient: lenient, MaxObjects: maxObjects})
			paypalFake.name, paypalFake.dialect = "paypal", fakepaypal.New(fakepaypal.Config{Lenient: lenient, MaxObjects: maxObjects})
			return serveFakes(cmd.Context(), cmd.OutOrStdout(), &opts, []fakeAt{stripeFake, paypalFake})
		}),
	}
	cmd.Flags().StringVar(&stripeFake.addr, "stripe", "", "loopback address of the Stripe fake, host:port (port 0: any free one)")
	cmd.Flags().StringVar(&paypalFake.addr, "paypal", "", "loopback address of the PayPal fake, host:port")
	cmd.Flags().StringVar(&stripeFake.webhook, "stripe-webhook", "", "loopback URL that Stripe's webhooks go to; the signing secret is printed")
	cmd.Flags().StringVar(&paypalFake.webhook, "paypal-webhook", "", "loopback URL that PayPal's webhooks go to; the webhook id is printed")
	cmd.Flags().Uint64Var(&opts.Seed, "seed", 1, "makes ids and faults by probability repeatable")
	cmd.Flags().BoolVar(&opts.Strict, "strict", false, "refuse writes without an idempotency key")
	cmd.Flags().BoolVar(&lenient, "lenient", false, "accept parameters that an operation does not have, and any PayPal token")
	cmd.Flags().IntVar(&opts.MaxKeys, "max-keys", 200_000, "keys that each fake holds; further ones get a 503")
	cmd.Flags().IntVar(&maxObjects, "max-objects", 200_000, "objects that each fake holds; creating more gets a 503")
	return cmd
}

// fakeAt is a fake as the flags ask for it.
type fakeAt struct {
	name, addr, webhook string
	dialect             func() fakeprovider.Dialect
}

// serveFakes serves until ctx ends. It prints one line for each fake, and one for
// each webhook endpoint, once the fake can be reached.
func serveFakes(ctx context.Context, out io.Writer, opts *fakeprovider.Options, fakes []fakeAt) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, len(fakes))
	served := 0
	for _, f := range fakes {
		if f.addr == "" && f.webhook != "" {
			return fmt.Errorf("--%s-webhook needs --%s, as --%s 127.0.0.1:12111", f.name, f.name, f.name)
		}
		if f.addr == "" {
			continue
		}
		served++
		listener, err := listenLoopback(f.addr)
		if err != nil {
			return err
		}
		fake := fakeprovider.New(f.dialect, opts)
		defer fake.Close()
		server := fakeprovider.NewHTTPServer(fake)
		server.Handler = withAdmin(fake)
		defer func() { _ = server.Close() }()
		go func() { failed <- server.Serve(listener) }()
		base := "http://" + listener.Addr().String()
		fmt.Fprintf(out, "%s %s admin %s%s\n", f.name, base, base, adminPath)
		if err := addWebhook(out, fake, f, base); err != nil {
			return err
		}
	}
	if served == 0 {
		return errors.New("name at least one address, as --stripe 127.0.0.1:12111")
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// withAdmin serves a fake and its admin API on one address. The provider's paths
// arrive as they were sent.
func withAdmin(fake *fakeprovider.Fake) http.Handler {
	admin := http.StripPrefix(adminPath, fake.Admin())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, adminPath+"/") {
			admin.ServeHTTP(w, r)
			return
		}
		fake.ServeHTTP(w, r)
	})
}

// addWebhook adds the endpoint of the flag and prints what its webhooks are
// checked with.
func addWebhook(out io.Writer, fake *fakeprovider.Fake, f fakeAt, base string) error {
	if f.webhook == "" {
		return nil
	}
	e, err := fake.AddEndpoint(fakeprovider.Endpoint{URL: f.webhook, Base: base})
	if err != nil {
		return fmt.Errorf("--%s-webhook: %w", f.name, err)
	}
	line := fmt.Sprintf("%s webhook %s id %s", f.name, e.URL, e.ID)
	if e.Secret != "" {
		line += " secret " + e.Secret
	}
	fmt.Fprintln(out, line)
	return nil
}

// listenLoopback refuses addresses that other machines could reach.
func listenLoopback(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%q is no address: write it as 127.0.0.1:12111", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%q is no loopback address: a fake has no authentication, so write 127.0.0.1:PORT", addr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", addr)
}
