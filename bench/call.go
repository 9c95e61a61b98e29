package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

// calls measures whole calls: a refund over loopback and all that is written
// about it, by samekey and by those that make work durable in PostgreSQL in
// another way.
func calls(ctx context.Context, b *bench) error {
	remote, err := b.provider(ctx)
	if err != nil {
		return err
	}
	pool, _, err := b.ledger(ctx, "call")
	if err != nil {
		return err
	}
	client, err := b.client(remote.url, postgres.New(pool, nil), newTransport())
	if err != nil {
		return err
	}
	durable, err := b.dbos(ctx, remote.url)
	if err != nil {
		return err
	}
	ours := calling("samekey, Stripe and PostgreSQL", func(ctx context.Context) error { return refund(ctx, client) })
	callers, contenders := []int{1, 64}, []contender{ours, durable}
	if !b.quick {
		queue, err := b.river(ctx, remote.url)
		if err != nil {
			return err
		}
		post := poster(newTransport(), remote.url)
		alone := calling("POST alone", func(ctx context.Context) error { return post(ctx, outbound.NewCommandID()) })
		callers, contenders = []int{1, 8, 64}, append(contenders, queue, alone)
	}
	r, err := b.compare(ctx, "call", callers, contenders...)
	if err != nil {
		return err
	}
	for _, n := range callers {
		b.result.ratio("call_vs_dbos", n, "", r.ratio(ours.name, durable.name, n)...)
		if !b.quick {
			b.result.ratio("call_vs_river", n, "", r.ratio(ours.name, contenders[2].name, n)...)
		}
	}
	return nil
}

const (
	account   = "acct_1Nv0FGQ9RKHgCVdK"
	secretKey = "sk_test_bench"
	version   = "2025-09-30.clover"
)

// client returns a client of Stripe's adapter on a ledger, with sealed bodies.
func (b *bench) client(base string, ledger recordstore.Store, rt http.RoundTripper) (*outbound.Client, error) {
	c, err := outbound.New(
		stripe.New(stripe.Config{Account: account, Test: true, SecretKey: secretKey, Version: version, BaseURL: base, Transport: rt}),
		ledger,
		&outbound.Options{Bodies: outbound.Seal(outbound.SealKey{ID: "bench", Bytes: []byte("0123456789abcdef0123456789abcdef")})})
	if err != nil {
		return nil, err
	}
	b.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			b.say("closing a client: %v", err)
		}
	})
	return c, nil
}

// newTransport keeps a connection for each of many callers.
func newTransport() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
}

// refundParams are what every contender sends.
func refundParams() url.Values {
	return url.Values{"charge": {"ch_1MmlLrLkdIwHu7ix0uke3Ezy"}, "amount": {"500"}}
}

// refund makes one refund under a new command.
func refund(ctx context.Context, client *outbound.Client) error {
	reply, err := client.Do(ctx, stripe.RefundCreate(outbound.Command{ID: outbound.NewCommandID()}, refundParams()))
	if err != nil {
		return err
	}
	if reply.Label != outbound.NewExecution || reply.Unrecorded != nil {
		return fmt.Errorf("a new command was answered with %q, recorded: %w", reply.Label, reply.Unrecorded)
	}
	return nil
}

// poster returns what makes one refund by net/http alone.
func poster(rt http.RoundTripper, base string) func(ctx context.Context, key string) error {
	client := &http.Client{Transport: rt}
	return func(ctx context.Context, key string) error {
		r, err := refundRequest(ctx, base, key)
		if err != nil {
			return err
		}
		return answered(client.Do(r))
	}
}

// refundRequest is what an SDK sends.
func refundRequest(ctx context.Context, base, key string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/refunds", strings.NewReader(refundParams().Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+secretKey)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("Stripe-Version", version)
	return r, nil
}

// answered reads an answer whole.
func answered(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the provider answered %d", resp.StatusCode)
	}
	return nil
}

// dbos is DBOS: a workflow whose one step makes the refund, waited for.
func (b *bench) dbos(ctx context.Context, base string) (contender, error) {
	dsn, err := b.database(ctx, "dbos")
	if err != nil {
		return contender{}, err
	}
	pool, err := b.pool(ctx, dsn)
	if err != nil {
		return contender{}, err
	}
	c, err := launchDBOS(ctx, pool)
	if err != nil {
		return contender{}, err
	}
	post := poster(newTransport(), base)
	workflow := func(c dbos.Context, key string) (string, error) {
		return dbos.RunAsStep(c, func(ctx context.Context) (string, error) { return key, post(ctx, key) })
	}
	dbos.RegisterWorkflow(c, workflow)
	if err := dbos.Launch(c); err != nil {
		return contender{}, err
	}
	b.onClose(func() { _ = dbos.Shutdown(c, 10*time.Second) }) // what it left goes with the server
	return calling("DBOS, a workflow of one step", func(context.Context) error {
		id := outbound.NewCommandID()
		handle, err := dbos.RunWorkflow(c, workflow, id, dbos.WithWorkflowID(id))
		if err != nil {
			return err
		}
		got, err := handle.GetResult()
		if err == nil && got != id {
			err = errors.New("the workflow returned another one's result")
		}
		return err
	}), nil
}

func launchDBOS(ctx context.Context, pool *pgxpool.Pool) (dbos.Context, error) {
	return dbos.NewContext(ctx, dbos.Config{
		AppName: "bench", SystemDBPool: pool, Logger: slog.New(slog.DiscardHandler), ApplicationVersion: "bench",
	})
}
