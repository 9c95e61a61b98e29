package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// closeTimeout is how long a command waits for answers that the ledger was not told.
const closeTimeout = 10 * time.Second

func reconcileCommand() *cobra.Command {
	var flags ledgerFlags
	var opts outbound.ReconcilerOptions
	var once, asJSON bool
	cmd := &cobra.Command{
		Use:   "reconcile [--once]",
		Short: "Find out unknown outcomes and send what was planned, once or until interrupted",
		Long: `Reconcile does what a service's own reconciler does: it finds senders that died, sends
again with the same key or asks the provider, and sends what was planned. Any number
may run, beside services too. With --once it works off what is due now and ends; with
exit code 4 where records went to review.

` + credentialsHelp + exitCodes,
		Example: "  samekey reconcile --once\n" +
			"  samekey reconcile --once --sqlite /var/lib/shop/ledger.db --json\n" +
			"  samekey reconcile --rate 2 --purge",
		Args:    cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return flags.check(cmd) },
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return flags.work(cmd.Context(), 0, func(ctx context.Context, s store, _ recordstore.About) error {
				r := reconciliation{store: s, out: cmd.OutOrStdout(), log: &lines{to: cmd.ErrOrStderr()}, asJSON: asJSON}
				return r.run(ctx, &opts, once)
			})
		}),
	}
	flags.addSQLite(cmd)
	flags.addPostgres(cmd)
	cmd.Flags().BoolVar(&once, "once", false, "work off what is due now and end")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was done as JSON")
	cmd.Flags().Float64Var(&opts.Rate, "rate", 0, "requests a second to each account of a provider (default 10)")
	cmd.Flags().BoolVar(&opts.Purge, "purge", false, "also remove what retention allows")
	return cmd
}

// reconciliation is one run of reconcile.
type reconciliation struct {
	store     store
	out, log  io.Writer
	asJSON    bool
	providers []string
}

func (r *reconciliation) run(ctx context.Context, opts *outbound.ReconcilerOptions, once bool) error {
	swept, err := r.reconcile(ctx, opts, once)
	switch {
	case !once, err != nil && swept == (outbound.Swept{}):
		return err
	case err != nil:
		return fmt.Errorf("%s; then: %w", sweptText(swept), err)
	}
	return r.report(ctx, swept)
}

// reconcile works until everything that is due is worked off, or until ctx ends, and
// closes its clients before it returns.
func (r *reconciliation) reconcile(ctx context.Context, opts *outbound.ReconcilerOptions, once bool) (swept outbound.Swept, err error) {
	clients, err := r.clients()
	if err != nil {
		return swept, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		for _, c := range clients {
			err = errors.Join(err, c.Close(closing))
		}
	}()
	reconciler, err := outbound.NewReconciler(opts, clients...)
	if err != nil {
		return swept, err
	}
	if !once {
		fmt.Fprintf(r.log, "samekey: reconciling %s until interrupted\n", strings.Join(r.providers, " and "))
		return swept, reconciler.Run(ctx)
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { r.watch(watching) })
	defer watch.Wait()
	defer stop()
	return reconciler.Sweep(ctx)
}

// lines is a writer for several goroutines.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// clients returns a client for each provider whose credentials are there.
func (r *reconciliation) clients() ([]*outbound.Client, error) {
	adapters, err := adaptersFromEnv()
	if err != nil {
		return nil, err
	}
	sealer, err := sealerFromEnv()
	if err != nil {
		return nil, err
	}
	secret, err := secretFromEnv()
	if err != nil {
		return nil, err
	}
	logger := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var clients []*outbound.Client
	for _, a := range adapters {
		c, err := outbound.New(a, r.store, &outbound.Options{Bodies: sealer, Secret: secret, Telemetry: outbound.Telemetry{Logger: logger}})
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
		profile, err := a.Profile()
		if err != nil {
			return nil, err
		}
		r.providers = append(r.providers, profile.Provider)
	}
	return clients, nil
}

// watch tells how much still waits, until ctx ends.
func (r *reconciliation) watch(ctx context.Context) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, p := range r.providers {
			if b, err := r.store.Backlog(ctx, p); err == nil {
				fmt.Fprintf(r.log, "samekey: %s: %d due, %d uncertain, %d in review\n", p, b.Due, b.Uncertain, b.Review)
			}
		}
	}
}

// sweptView is what --json prints.
type sweptView struct {
	Found     int            `json:"dead_senders_found"`
	Sent      int            `json:"sent"`
	Resent    int            `json:"resent"`
	LookedUp  int            `json:"looked_up"`
	Settled   int            `json:"settled"`
	Postponed int            `json:"postponed"`
	ToReview  int            `json:"to_review"`
	Purged    int            `json:"purged"`
	Left      map[string]int `json:"uncertain_left"`       // By provider.
	Others    []string       `json:"providers_left_alone"` // Whose credentials are missing.
}

func (r *reconciliation) report(ctx context.Context, s outbound.Swept) error {
	view := sweptView{s.Found, s.Sent, s.Resent, s.LookedUp, s.Settled, s.Postponed, s.ToReview, s.Purged, map[string]int{}, []string{}}
	for _, p := range r.providers {
		b, err := r.store.Backlog(ctx, p)
		if err != nil {
			return err
		}
		view.Left[p] = b.Uncertain
	}
	page, err := r.store.List(ctx, recordstore.ListQuery{Filter: recordstore.Filter{Open: true}, Limit: recordstore.MaxList})
	if err != nil {
		return err
	}
	for _, rec := range page.Records {
		if !slices.Contains(r.providers, rec.Provider) && !slices.Contains(view.Others, rec.Provider) {
			view.Others = append(view.Others, rec.Provider)
		}
	}
	if r.asJSON {
		err = writeJSON(r.out, view)
	} else {
		fmt.Fprintln(r.out, sweptText(s))
		for _, p := range r.providers {
			fmt.Fprintf(r.out, "%s: %d uncertain are left\n", p, view.Left[p])
		}
		for _, p := range view.Others {
			fmt.Fprintf(r.out, "%s: left alone, its credentials are not given\n", printable(p))
		}
	}
	if err == nil && s.ToReview > 0 {
		err = endf(exitPerson, "%s for a person: samekey ledger review", waits(s.ToReview))
	}
	return err
}

func sweptText(s outbound.Swept) string {
	return fmt.Sprintf("dead senders found %d, sent %d, resent %d, looked up %d: settled %d, postponed %d, to review %d",
		s.Found, s.Sent, s.Resent, s.LookedUp, s.Settled, s.Postponed, s.ToReview)
}

func purgeCommand() *cobra.Command {
	var flags ledgerFlags
	var batch int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Remove the bodies and records whose retention is over",
		Long: `Purge removes bodies after their time for replays and records after their time as
evidence, in short steps beside services. Unresolved records stay. Before a record goes
the ledger notes up to which day it may have forgotten, so that an old command is
refused and never executed anew. It may be interrupted and run again at any time.` + exitCodes,
		Example: "  samekey purge\n  samekey purge --sqlite /var/lib/shop/ledger.db --batch 200 --json",
		Args:    cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if batch < 1 {
				return fmt.Errorf("--batch %d removes nothing: give 1 or more", batch)
			}
			return flags.check(cmd)
		},
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return flags.work(cmd.Context(), 0, func(ctx context.Context, s store, _ recordstore.About) error {
				return purge(ctx, cmd.OutOrStdout(), newProgress(cmd, "removed bodies and records:"), s, batch, asJSON)
			})
		}),
	}
	flags.addSQLite(cmd)
	flags.addPostgres(cmd)
	cmd.Flags().IntVar(&batch, "batch", 1000, "bodies, and records, removed in one step")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was removed as JSON")
	return cmd
}

func purge(ctx context.Context, out io.Writer, p *progress, s recordstore.Purger, batch int, asJSON bool) error {
	var total recordstore.Purged
	for {
		done, err := s.Purge(ctx, batch)
		total.Bodies += done.Bodies
		total.Records += done.Records
		if err != nil {
			return fmt.Errorf("after %d bodies and %d records: %w", total.Bodies, total.Records, err)
		}
		if done == (recordstore.Purged{}) {
			break
		}
		p.at(total.Bodies + total.Records)
	}
	if asJSON {
		return writeJSON(out, map[string]int{"bodies": total.Bodies, "records": total.Records})
	}
	fmt.Fprintf(out, "removed the bodies of %d records, and %d records\n", total.Bodies, total.Records)
	return nil
}
