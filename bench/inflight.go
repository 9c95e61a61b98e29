package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// manyCalls is how many calls are held in flight at once.
const manyCalls = 10_000

// inFlight measures the memory of a process of its own in which 10,000 calls wait
// for the provider: over HTTP/2, as Stripe and PayPal speak it, and over HTTP/1.1,
// where each has a connection; and what net/http takes of that by itself.
func inFlight(ctx context.Context, b *bench) error {
	remote, err := b.provider(ctx)
	if err != nil {
		return err
	}
	_, dsn, err := b.ledger(ctx, "inflight")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	protocols, makers := []string{"http2"}, []string{"samekey"}
	if !b.quick {
		protocols, makers = append(protocols, "http1"), append(makers, "alone")
	}
	for _, protocol := range protocols {
		for _, who := range makers {
			cmd := exec.CommandContext(ctx, self, "-child=inflight", dsn, remote.url, strconv.Itoa(manyCalls), protocol, who)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				return err
			}
			var megabytes, seconds float64
			if _, err := fmt.Sscan(string(out), &megabytes, &seconds); err != nil {
				return fmt.Errorf("the process with the calls said %q: %w", out, err)
			}
			note := "most that was resident, samekey"
			if who == "alone" {
				note = "the same by net/http alone"
			}
			b.result.figure("inflight_"+protocol+"_"+who, megabytes, "MB", note)
			if protocol == "http2" && who == "samekey" {
				b.result.ratio("inflight_10000", manyCalls, "MB", megabytes)
			}
		}
	}
	return nil
}

// holdCalls is the process: it makes calls until all of them wait, prints how much
// memory it took at most, in megabytes, and in how many seconds they were made, and
// wants every one of them to end well.
func holdCalls(ctx context.Context, args []string) error {
	if len(args) != 5 {
		return errors.New("-child=inflight takes a database, the provider's URL, a number of calls, a protocol and who makes them")
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(args[0])
	if err != nil {
		return err
	}
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	remote := &provider{url: args[1]}
	b := newBench("quick")
	defer b.close()
	// Callers come in as they would at a busy service, not all in one instant.
	gate := make(chan struct{}, 64)
	transport := newTransport()
	if args[3] == "http2" {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	rt := passing{transport, gate}
	client, err := b.client(remote.held(), postgres.New(pool, nil), rt)
	if err != nil {
		return err
	}
	call := func(ctx context.Context) error { return refund(ctx, client) }
	if args[4] == "alone" {
		post := poster(rt, remote.held())
		call = func(ctx context.Context) error { return post(ctx, outbound.NewCommandID()) }
	}
	failed := make(chan error, n)
	var working sync.WaitGroup
	start := time.Now()
	for range n {
		gate <- struct{}{}
		working.Go(func() {
			if err := call(ctx); err != nil {
				failed <- err
			}
		})
	}
	if err := awaitWaiting(ctx, remote, n, failed); err != nil {
		return err
	}
	elapsed := time.Since(start)
	most, err := peakMemory()
	if err != nil {
		return err
	}
	if err := remote.release(ctx); err != nil {
		return err
	}
	working.Wait()
	select {
	case err := <-failed:
		return fmt.Errorf("a call that was held failed: %w", err)
	default:
	}
	fmt.Println(most, elapsed.Seconds())
	return nil
}

// passing lets the next caller in once a request is on its way.
type passing struct {
	base http.RoundTripper
	gate <-chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (p passing) RoundTrip(r *http.Request) (*http.Response, error) {
	<-p.gate
	return p.base.RoundTrip(r)
}

// awaitWaiting returns when the provider holds n requests.
func awaitWaiting(ctx context.Context, remote *provider, n int, failed <-chan error) error {
	for {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		switch got, err := remote.waiting(ctx); {
		case err != nil:
			return err
		case got == n:
			return nil
		}
	}
}

// peakMemory is the most that this process had resident, in megabytes. It is known
// on Linux.
func peakMemory() (float64, error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kilobytes / 1000, err
		}
	}
	return 0, errors.New("/proc/self/status tells no VmHWM")
}
