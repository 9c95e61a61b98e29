package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/internal/audit"
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

func auditCommand() *cobra.Command {
	var flags ledgerFlags
	a := auditing{}
	cmd := &cobra.Command{
		Use:   "audit --since TIME",
		Short: "Compare the ledger with the provider's own lists",
		Long: `Audit reads what the provider itself lists of a time, Stripe's objects and events or
PayPal's Transaction Search, and the ledger's records, and names where they disagree:
two effects of one command, effects without a record, records without their effect,
open records whose effect is there. It compares keys, marks and ids, never amounts;
it changes nothing on either side. What a list cannot show, it calls not yet known. What
each class means and what to do: docs/audit.md.

Values stand in the environment, or in a file whose path is in the same name with _FILE:

  ` + envSecret + `             the ledger's secret, base64: compared with the ledger's, if given
` + providersHelp + `

Exit code 4 says that something was found; 1 that a list was not read to its end and
what was read agrees. Effects that somebody else made are told and, without --strict,
are no finding.` + exitCodes,
		Example: "  samekey audit --since 24h\n" +
			"  samekey audit --since 2026-11-30T00:00:00Z --until 2026-12-01T00:00:00Z --provider stripe --json\n" +
			"  samekey audit --since 720h --until 4h --provider paypal --strict",
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.check(cmd); err != nil {
				return err
			}
			return a.check()
		},
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return flags.work(cmd.Context(), 0, func(ctx context.Context, s store, about recordstore.About) error {
				a.progress = newProgress(cmd, "read")
				return a.run(ctx, cmd.OutOrStdout(), s, about)
			})
		}),
	}
	flags.addSQLite(cmd)
	flags.addPostgres(cmd)
	cmd.Flags().Var(&a.during.since, "since", "from this `time` on, as 2026-11-30T03:10:00Z, or how long ago, as 24h")
	cmd.Flags().Var(&a.during.until, "until", "before this `time`, or how long ago (default now)")
	cmd.Flags().StringVar(&a.provider, "provider", "", "stripe or paypal (default each whose credentials are given)")
	cmd.Flags().BoolVar(&a.strict, "strict", false, "count effects that somebody else made as findings too")
	cmd.Flags().IntVar(&a.limit, "limit", audit.DefaultLimit, "effects, and records, held in memory at once")
	cmd.Flags().BoolVar(&a.asJSON, "json", false, "print an object as JSON")
	return cmd
}

// auditing is one run of audit.
type auditing struct {
	during         span
	provider       string
	strict, asJSON bool
	limit          int
	progress       *progress
}

func (a *auditing) check() error {
	switch {
	case a.during.since.String() == "":
		return errors.New("--since is missing: give the time to begin at, or how long ago, as 24h")
	case a.provider != "" && a.provider != "stripe" && a.provider != "paypal":
		return fmt.Errorf("--provider %q: only stripe and paypal have lists to compare with", a.provider)
	case a.limit < 1:
		return fmt.Errorf("--limit %d holds nothing: give 1 or more", a.limit)
	}
	return nil
}

// audited is what --json prints.
type audited struct {
	Now      time.Time       `json:"now"`
	Complete bool            `json:"complete"` // Every list of every provider was read to its end.
	Found    int             `json:"found"`    // Findings that exit code 4 stands for.
	Reports  []*audit.Report `json:"reports"`
}

// checkSecret compares the secret, if one is given, with the ledger's. No key is
// made here, so that it may be left out.
func checkSecret(about recordstore.About) error {
	secret, err := secretFromEnv()
	if err != nil || secret.Fingerprint() == (keyderive.Secret{}).Fingerprint() || about.Pins == nil {
		return err
	}
	if err := about.Pins.Compare(recordstore.Pins{Derivation: keyderive.Version, Secret: secret.Fingerprint()}); err != nil {
		return fmt.Errorf("%s: %w", envSecret, err)
	}
	return nil
}

func (a *auditing) run(ctx context.Context, out io.Writer, s store, about recordstore.About) error {
	if err := checkSecret(about); err != nil {
		return err
	}
	adapters, err := adaptersFromEnv()
	if err != nil {
		return err
	}
	all := audited{Now: about.Now, Complete: true, Reports: []*audit.Report{}}
	for _, adapter := range adapters {
		profile, err := adapter.Profile()
		if err != nil {
			return err
		}
		if a.provider != "" && a.provider != profile.Provider {
			continue
		}
		report, err := a.compare(ctx, s, about, adapter, profile)
		if err != nil {
			return fmt.Errorf("%s: the audit could not complete: %w", profile.Provider, err)
		}
		all.Reports = append(all.Reports, report)
		all.Complete = all.Complete && report.Complete
		all.Found += a.found(report)
	}
	if len(all.Reports) == 0 {
		return fmt.Errorf("the credentials of %s are not given: samekey audit --help names the variables", a.provider)
	}
	if a.asJSON {
		if err := writeJSON(out, all); err != nil {
			return err
		}
	} else {
		for _, report := range all.Reports {
			writeAudit(out, report)
		}
	}
	return all.ending()
}

func (a *auditing) compare(ctx context.Context, s store, about recordstore.About, adapter outbound.Adapter, profile outbound.Profile) (*audit.Report, error) {
	lists, able := adapter.(audit.Lister)
	if !able {
		return nil, errors.New("it has no lists to compare with")
	}
	until := a.during.until.from(about.Now)
	if until.IsZero() {
		until = about.Now
	}
	return audit.Run(ctx, s, lists, audit.Options{
		Provider: profile.Provider, Account: profile.Account, Mode: profile.Mode,
		Since: a.during.since.from(about.Now), Until: until, About: about, Limit: a.limit,
		Progress: func(what string, n int) {
			a.progress.verb = profile.Provider + ": " + what
			a.progress.at(n)
		},
	})
}

// found counts the findings that somebody has to look at.
func (a *auditing) found(r *audit.Report) (n int) {
	for class, count := range r.Counts {
		if class != audit.Outside || a.strict {
			n += count
		}
	}
	return n
}

func (a *audited) ending() error {
	var unread []string
	for _, r := range a.Reports {
		for _, l := range r.Lists {
			if what := r.Provider + " " + l.Name; l.Incomplete != "" && !slices.Contains(unread, what) {
				unread = append(unread, what)
			}
		}
	}
	switch {
	case a.Found > 0 && len(unread) > 0:
		return endf(exitPerson, "%d found, and there may be more, since not every list was read to its end: docs/audit.md", a.Found)
	case a.Found > 0:
		return endf(exitPerson, "%d found: docs/audit.md says what to do", a.Found)
	case len(unread) > 0:
		return fmt.Errorf("the audit could not complete, not every list was read to its end: %s", printable(strings.Join(unread[:min(len(unread), 3)], ", ")))
	}
	return nil
}
