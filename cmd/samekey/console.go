package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/internal/console"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// envConsoleToken names the variable with what people sign in to the console with.
const envConsoleToken = "SAMEKEY_CONSOLE_TOKEN"

func consoleCommand() *cobra.Command {
	var flags ledgerFlags
	var o consoleFlags
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Show the ledger in a browser: what is open, one record's life, rates, reconcilers",
		Long: `Console serves pages on the loopback interface that show a ledger. It reads, and with
--allow-resolve records the verdicts of people; it talks to no provider and loads
nothing from elsewhere.

On loopback, reading alone needs no token: whoever may run programs on this machine can
read. A token is needed with --allow-resolve, --show-bodies, --host, or another address.
It stands in ` + envConsoleToken + `, in the file that ` + envConsoleToken + `_FILE names,
or in the file of --token-file, which is made with a new one where there is none. On
another address browsers must come by HTTPS: --tls-cert and --tls-key, or --behind-tls.

Bodies of request and answer are shown with --show-bodies only, one record at a time:
` + sealKeysHelp + ` docs/console.md`,
		Example: "  samekey console\n" +
			"  samekey console --allow-resolve --token-file ~/.samekey-console\n" +
			"  samekey console --sqlite /var/lib/shop/ledger.db --listen 127.0.0.1:9000",
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.check(cmd); err != nil {
				return err
			}
			return o.check()
		},
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return flags.work(cmd.Context(), 0, func(ctx context.Context, s store, _ recordstore.About) error {
				return o.serve(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), s)
			})
		}),
	}
	flags.addSQLite(cmd)
	flags.addPostgres(cmd)
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8484", "`address` to serve on")
	f.StringSliceVar(&o.hosts, "host", nil, "other `names` that browsers may call the console by, as that of a proxy in front: console.example.com")
	f.BoolVar(&o.resolve, "allow-resolve", false, "let people settle records by their verdict")
	f.BoolVar(&o.bodies, "show-bodies", false, "show what was sent and answered, where somebody asks, opened with the seal key")
	f.StringVar(&o.tokenFile, "token-file", "", "`path` of a file with the token; made with a new one where there is none")
	f.StringVar(&o.cert, "tls-cert", "", "`path` of the certificate to serve HTTPS with, PEM")
	f.StringVar(&o.key, "tls-key", "", "`path` of its private key, PEM")
	f.BoolVar(&o.behindTLS, "behind-tls", false, "a proxy in front speaks HTTPS with browsers")
	return cmd
}

// consoleFlags say how a console is served.
type consoleFlags struct {
	listen, tokenFile, cert, key string
	hosts                        []string
	resolve, bodies, behindTLS   bool
}

func (o *consoleFlags) check() error {
	_, port, err := net.SplitHostPort(o.listen)
	switch {
	case err != nil || port == "":
		return fmt.Errorf("--listen %q is no address: write it as 127.0.0.1:8484", o.listen)
	case (o.cert == "") != (o.key == ""):
		return errors.New("--tls-cert and --tls-key belong together: one of them is missing")
	case !o.onLoopback() && o.cert == "" && !o.behindTLS:
		return fmt.Errorf("--listen %s can be reached by other machines, and a token must not travel in the clear: give --tls-cert and --tls-key, or --behind-tls if a proxy in front speaks HTTPS", o.listen)
	}
	for _, h := range o.hosts {
		if h == "" || strings.ContainsAny(h, "/@ \t") {
			return fmt.Errorf("--host %q is no host name: write it as console.example.com, with its port where that is not the usual one", h)
		}
	}
	return nil
}

func (o *consoleFlags) onLoopback() bool {
	host, _, _ := net.SplitHostPort(o.listen) // check has split it
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// serve serves the console until ctx ends. It prints where, once it can be reached.
func (o *consoleFlags) serve(ctx context.Context, out, errOut io.Writer, s store) error {
	token, err := o.token(errOut)
	if err != nil {
		return err
	}
	opts := console.Options{
		Token: token, Secure: o.cert != "" || o.behindTLS, AllowResolve: o.resolve, Horizon: horizonOf,
		Log: slog.New(slog.NewTextHandler(errOut, nil)),
	}
	if o.bodies {
		if opts.Sealer, err = sealerFromEnv(); err != nil {
			return err
		}
	}
	var config *tls.Config
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return err
	}
	defer listener.Close() // Serve has closed it, unless it did not come to that
	opts.Hosts = o.names(listener.Addr())
	handler, err := console.New(s, opts)
	if err != nil {
		return err
	}
	scheme := "http"
	if config != nil {
		scheme, listener = "https", tls.NewListener(listener, config)
	}
	fmt.Fprintf(out, "console %s://%s\n", scheme, listener.Addr())
	return console.Serve(ctx, listener, handler, log.New(errOut, "samekey console: ", log.LstdFlags))
}

// names are those that the console answers to; nil: all.
func (o *consoleFlags) names(addr net.Addr) []string {
	if !o.onLoopback() && len(o.hosts) == 0 {
		return nil
	}
	names := []string{addr.String()}
	if _, port, err := net.SplitHostPort(addr.String()); err == nil {
		for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
			names = append(names, net.JoinHostPort(host, port))
		}
	}
	for _, h := range o.hosts {
		names = append(names, strings.ToLower(h))
	}
	return names
}

// token returns what people sign in with, or "" where none is needed and none given.
func (o *consoleFlags) token(errOut io.Writer) (string, error) {
	token, err := fromEnv(envConsoleToken)
	if err != nil {
		return "", err
	}
	switch {
	case token != "" && o.tokenFile != "":
		return "", fmt.Errorf("%s and --token-file both give a token: leave one of them", envConsoleToken)
	case o.tokenFile != "":
		if token, err = tokenIn(o.tokenFile, errOut); err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
	case token == "" && (!o.onLoopback() || len(o.hosts) > 0 || o.resolve || o.bodies):
		return "", fmt.Errorf("a token is needed here: put one of %d bytes or more into %s, or give --token-file PATH, which is made where there is none", console.MinToken, envConsoleToken)
	}
	if token != "" && len(token) < console.MinToken {
		return "", fmt.Errorf("the token has %d bytes: give %d or more, as `openssl rand -hex 20` makes them", len(token), console.MinToken)
	}
	return token, nil
}

// tokenIn reads the token in a file, which only its owner may read, and makes both
// where there is no file.
func tokenIn(path string, errOut io.Writer) (string, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return readToken(path)
	}
	if err != nil {
		return "", err
	}
	token := rand.Text()
	_, err = file.WriteString(token + "\n")
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path)) // half of one would be refused for ever
	}
	fmt.Fprintf(errOut, "samekey: a new token stands in %s (%s)\n", path, time.Now().UTC().Format(time.RFC3339))
	return token, nil
}

func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s can be read by other users: chmod 600 %s", path, path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(content))
	if len(content) > maxDSN || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s must hold the token and nothing else", path)
	}
	return token, nil
}
