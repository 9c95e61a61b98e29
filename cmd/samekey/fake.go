package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// adminPath is where a fake's admin API stands, beside the provider's own paths.
const adminPath = "/_fake"

func fakeCommand() *cobra.Command {
	var stripeAddr, paypalAddr string
	var seed uint64
	cmd := &cobra.Command{
		Use:   "fake",
		Short: "Serve fake payment providers until interrupted",
		Long: `Fake serves stateful fakes of Stripe and PayPal with their idempotency rules, for
tests in any language. Each takes any credential of the right shape. Faults,
effects, the virtual clock and seeds are under ` + adminPath + ` on the same address
(docs/testing.md). There is no authentication: only loopback addresses are taken.`,
		Example: "  samekey fake --stripe 127.0.0.1:12111 --paypal 127.0.0.1:12112\n" +
			"  curl -d '{\"kind\":\"drop_after_apply\",\"operation\":\"refund.create\"}' http://127.0.0.1:12111" + adminPath + "/faults",
		Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if stripeAddr == "" && paypalAddr == "" {
				return errors.New("name at least one address, as --stripe 127.0.0.1:12111")
			}
			return serveFakes(cmd.Context(), cmd.OutOrStdout(), seed, []fakeAt{
				{"stripe", stripeAddr, fakestripe.New(fakestripe.Config{})},
				{"paypal", paypalAddr, fakepaypal.New(fakepaypal.Config{})},
			})
		}),
	}
	cmd.Flags().StringVar(&stripeAddr, "stripe", "", "loopback address of the Stripe fake, host:port (port 0: any free one)")
	cmd.Flags().StringVar(&paypalAddr, "paypal", "", "loopback address of the PayPal fake, host:port")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "makes ids and faults by probability repeatable")
	return cmd
}

type fakeAt struct {
	name, addr string
	dialect    func() fakeprovider.Dialect
}

// serveFakes serves until ctx ends. It prints one line for each fake once it
// can be reached.
func serveFakes(ctx context.Context, out io.Writer, seed uint64, fakes []fakeAt) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, len(fakes))
	for _, f := range fakes {
		if f.addr == "" {
			continue
		}
		listener, err := listenLoopback(f.addr)
		if err != nil {
			return err
		}
		fake := fakeprovider.New(f.dialect, &fakeprovider.Options{Seed: seed})
		defer fake.Close()
		server := fakeprovider.NewHTTPServer(fake)
		mux := http.NewServeMux()
		mux.Handle(adminPath+"/", http.StripPrefix(adminPath, fake.Admin()))
		mux.Handle("/", fake)
		server.Handler = mux
		defer func() { _ = server.Close() }()
		go func() { failed <- server.Serve(listener) }()
		fmt.Fprintf(out, "%s http://%s admin http://%s%s\n", f.name, listener.Addr(), listener.Addr(), adminPath)
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
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
