package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/reprocess"
)

// ownerTimeout bounds the question whose a credential is.
const ownerTimeout = 30 * time.Second

const reprocessHelp = `A manifest names consumer, effect version, reason, who wants it, the file of its
targets, how many there are, the share already done, the expected external calls, and
whether external writes are allowed: docs/reprocessing.md shows one.

`

func reprocessCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reprocess",
		Short: "Run past events again, on purpose and by a manifest",
		Long: `Reprocess makes the effects of past events anew, after a consumer's effect version was
raised, or those that are missing. Plan first, then shadow, then run. ` + reprocessHelp + exitCodes[2:],
		Example: "  samekey reprocess plan refunds-v2.json\n" +
			"  samekey reprocess shadow refunds-v2.json\n" +
			"  samekey reprocess run refunds-v2.json --rate 5",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(reprocessPlanCommand(), reprocessShadowCommand(), reprocessRunCommand())
	return cmd
}

func reprocessPlanCommand() *cobra.Command {
	r := reprocessing{}
	cmd := r.command("plan MANIFEST", "Check a manifest against its targets and the ledger, send nothing",
		`Plan reads the manifest, all targets and the ledger, and says what a run would do. Exit
code 4 says that the manifest's numbers differ: a run is refused.`, "read", r.plan)
	cmd.Example = "  samekey reprocess plan refunds-v2.json\n  samekey reprocess plan refunds-v2.json --sqlite /var/lib/shop/ledger.db --json"
	return cmd
}

func reprocessShadowCommand() *cobra.Command {
	r := reprocessing{}
	cmd := r.command("shadow MANIFEST", "Compare what a run would send with what was sent before, send nothing",
		`Shadow makes the key and fingerprint of every target, compares a sample of 100 with what
earlier effect versions sent, and keeps its report beside the manifest. Over 10,000
targets a run is refused without it. Exit code 4 says that the manifest's numbers differ.`, "read", r.shadow)
	cmd.Example = "  samekey reprocess shadow refunds-v2.json\n  samekey reprocess shadow refunds-v2.json --json"
	return cmd
}

func reprocessRunCommand() *cobra.Command {
	r := reprocessing{}
	cmd := r.command("run MANIFEST", "Make the effect of each target once, however often it is begun",
		`Run calls the provider for each target whose effect is not there. It may be interrupted
or killed anywhere and begun again, and several may run: the ledger knows what is done.
A target that fails stops no other; many errors in a row stop the run. Its report is
kept beside the manifest. Exit code 4 says that targets failed, or that nobody knows yet:
run it again, then look at them; 1 that it was stopped.`, "", r.run)
	cmd.Example = "  samekey reprocess run refunds-v2.json\n  samekey reprocess run refunds-v2.json --rate 5 --parallel 2 --json"
	f := cmd.Flags()
	f.Float64Var(&r.opts.Rate, "rate", 10, "calls begun a second, repetitions among them")
	f.IntVar(&r.opts.Parallel, "parallel", 4, "calls at one time")
	f.IntVar(&r.opts.MaxErrors, "max-errors", 20, "errors in a row that stop the run")
	f.DurationVar(&r.opts.Patience, "patience", 5*time.Minute, "how long to wait for outcomes that are not known")
	f.DurationVar(&r.lease, "lease", 2*time.Minute, "how long a target stays claimed after this process died")
	return cmd
}

// reprocessing is one run of a command of reprocess.
type reprocessing struct {
	flags  ledgerFlags
	opts   reprocess.RunOptions
	lease  time.Duration
	asJSON bool

	out, log io.Writer
	progress *progress
}

func (r *reprocessing) command(use, short, long, verb string, do func(context.Context, *reprocess.Batch, *reprocess.Runner) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long + "\n\n" + reprocessHelp + credentialsHelp + exitCodes,
		Args: cobra.ExactArgs(1),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if r.lease != 0 && r.lease < time.Second {
				return errors.New("--lease is shorter than any call: give 1s or more")
			}
			if o := r.opts; cmd.Flag("rate") != nil && (o.Rate <= 0 || o.Parallel < 1 || o.MaxErrors < 1 || o.Patience <= 0) {
				return errors.New("--rate, --parallel, --max-errors and --patience must be above 0")
			}
			return r.flags.check(cmd)
		},
		RunE: run(func(cmd *cobra.Command, args []string) error {
			r.out, r.log, r.progress = cmd.OutOrStdout(), &lines{to: cmd.ErrOrStderr()}, newProgress(cmd, verb)
			return r.flags.work(cmd.Context(), 0, func(ctx context.Context, s store, _ recordstore.About) error {
				return r.with(ctx, s, args[0], do)
			})
		}),
	}
	r.flags.addSQLite(cmd)
	r.flags.addPostgres(cmd)
	cmd.Flags().BoolVar(&r.asJSON, "json", false, "print an object as JSON")
	return cmd
}

// with reads the manifest and gives its batch to do, with a client of its provider
// that admits its version and no other.
func (r *reprocessing) with(ctx context.Context, s store, path string, do func(context.Context, *reprocess.Batch, *reprocess.Runner) error) (err error) {
	batch, err := reprocess.Load(path)
	if err != nil {
		return err
	}
	client, err := r.client(s, batch)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, client.Close(closing))
	}()
	if err := owned(ctx, client.Adapter()); err != nil {
		return err
	}
	runner, err := reprocess.New(batch, client)
	if err != nil {
		return err
	}
	return do(ctx, batch, runner)
}

// owned asks the provider whether the credential is of the account that is given. The
// account is part of every key: under another one all that was done looks undone.
func owned(ctx context.Context, a outbound.Adapter) error {
	profile, err := a.Profile()
	if err != nil {
		return err
	}
	checker, able := a.(interface {
		CheckOwner(ctx context.Context, account string) error
	})
	if !able {
		return fmt.Errorf("%s cannot be asked whose the credential is: nothing is run again", profile.Provider)
	}
	asking, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	if err := checker.CheckOwner(asking, profile.Account); err != nil {
		return fmt.Errorf("account %s: the provider does not confirm that the credential is of it, and under a wrong account every effect would happen again: %w", printable(profile.Account), err)
	}
	return nil
}

func (r *reprocessing) client(s store, batch *reprocess.Batch) (*outbound.Client, error) {
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
	logger := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelError}))
	for _, a := range adapters {
		profile, err := a.Profile()
		if err != nil {
			return nil, err
		}
		if profile.Provider == batch.Manifest.Provider {
			return outbound.New(a, s, &outbound.Options{
				Bodies: sealer, Secret: secret, Lease: r.lease, Retry: outbound.Retry{Attempts: 1}, // the run repeats, at its rate
				EffectVersions: reprocess.Admitted(batch), Telemetry: outbound.Telemetry{Logger: logger},
			})
		}
	}
	return nil, fmt.Errorf("the manifest is for provider %q, whose credentials are not given: see --help", batch.Manifest.Provider)
}
