package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// act is what a person does to records, and answers for.
type act struct {
	target
	reason, name string
	asJSON       bool
}

func (a *act) addTo(cmd *cobra.Command) {
	a.target.addTo(cmd, false)
	cmd.Flags().StringVar(&a.reason, "reason", "", "what was seen, and where: kept in the record's trail (required)")
	cmd.Flags().StringVar(&a.name, "name", "", "who decides: kept in the record's trail (required)")
	cmd.Flags().BoolVar(&a.asJSON, "json", false, "print the records afterwards as JSON")
}

func (a *act) check(args []string) error {
	switch {
	case strings.TrimSpace(a.reason) == "":
		return errors.New(`--reason is required: say what was seen, and where, as --reason "no refund on ch_3Nv0 at the dashboard"`)
	case strings.TrimSpace(a.name) == "":
		return errors.New("--name is required: the name of who decides")
	}
	return a.target.check(args)
}

// verdicts are the words of --verdict.
var verdicts = map[string]outbound.Resolution{
	"applied":    {Effect: outbound.EffectApplied},
	"none":       {Effect: outbound.EffectNone},
	"send-again": {Effect: outbound.EffectNone, SendAgain: true},
}

func resolveCommand(flags *ledgerFlags) *cobra.Command {
	var a act
	var verdict, ref string
	var version int64
	var force bool
	cmd := &cobra.Command{
		Use:   "resolve CMD --version N --verdict applied|none|send-again --name NAME --reason REASON",
		Short: "Settle one record by a person's verdict",
		Long: `Resolve settles a record that is uncertain or in review, by the verdict of a person
who looked at the provider's dashboard:

  applied     the object is there: the command has succeeded
  none        it is not there and cannot come any more: the command is ended
  send-again  the same, and the same command may be sent again

--version is the one that ` + "`samekey ledger show`" + ` printed: a record that moved since is not
touched (exit code 5), so that two people cannot decide against each other. Name and
reason stay in its trail. A truth that arrives later and contradicts the verdict
brings the record back to review.

none and send-again are refused while a request may still be under way: until 15
minutes, or the operation's own time, after the last lease. --force decides anyway, as
when the provider's support has confirmed that nothing can come.` + exitCodes,
		Example: "  samekey ledger resolve 0193f6a2-1c3d-7e4f-8a5b-6c7d8e9f0a1b --version 4 --verdict applied \\\n" +
			"    --external-ref re_3Nv0 --name ada --reason \"re_3Nv0 over 10.00 EUR is at the dashboard\"",
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if _, known := verdicts[verdict]; !known {
				return fmt.Errorf("--verdict %q is none: it is applied, none or send-again; see --help", verdict)
			}
			if version < 1 {
				return errors.New("--version is required: the one that `samekey ledger show` printed")
			}
			return a.check(args)
		},
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			r := verdicts[verdict]
			r.Version, r.ExternalRef, r.Reason, r.Operator = version, ref, a.reason, a.name
			return flags.work(cmd.Context(), ledgerTimeout, func(ctx context.Context, s store, about recordstore.About) error {
				return resolve(ctx, cmd.OutOrStdout(), s, about, &a, r, force)
			})
		}),
	}
	a.addTo(cmd)
	cmd.Flags().StringVar(&verdict, "verdict", "", "applied, none or send-again (required)")
	cmd.Flags().Int64Var(&version, "version", 0, "the record's version that was seen (required)")
	cmd.Flags().BoolVar(&force, "force", false, "decide none or send-again though a request may still be under way")
	cmd.Flags().StringVar(&ref, "external-ref", "", "the provider's `id` of the object, where there is one")
	return cmd
}

func resolve(ctx context.Context, out io.Writer, s store, about recordstore.About, a *act, r outbound.Resolution, force bool) error {
	rec, err := a.one(ctx, s, about)
	if err != nil {
		return err
	}
	v, err := r.Verdict(rec.ID)
	if err != nil {
		return err
	}
	early := explain.TooEarly(rec, horizonOf(rec.Provider, rec.Operation), about.Now)
	if _, refused := recordstore.Resolved(rec, v, about.Now); refused == nil && r.Effect == outbound.EffectNone && early != "" && !force {
		return fmt.Errorf("nothing was changed: it cannot be known yet that %s had no effect: %s; --force decides anyway", labelOf(rec), early)
	}
	after, err := s.Resolve(ctx, v)
	if errors.Is(err, recordstore.ErrNotHeld) {
		return notResolved(after, r.Version)
	}
	if err != nil {
		return err
	}
	return a.report(ctx, out, s, after, "resolved: "+labelOf(after)+" is now "+string(after.State))
}

// notResolved says why a verdict did nothing.
func notResolved(now recordstore.Record, seen int64) error {
	why := "it cannot be resolved as it is: a claim may be sending it, it is settled, or the ledger knows better"
	if now.Version != seen {
		why = fmt.Sprintf("you saw version %d, and it moved since", seen)
	}
	return endf(exitMoved, "nothing was changed: %s is %s in version %d; %s. Look again: samekey ledger show %s",
		labelOf(now), now.State, now.Version, why, markOf(now))
}

// report prints what became of one record.
func (a *act) report(ctx context.Context, out io.Writer, s store, rec recordstore.Record, line string) error {
	about, err := s.About(ctx)
	if err != nil {
		return err
	}
	words, err := explained(ctx, s, rec, about)
	if err != nil {
		return err
	}
	if a.asJSON {
		view := viewOf(recordstore.Unsealed(rec), about)
		view.Explained = &words
		if err := view.withTrail(ctx, s, rec.ID); err != nil {
			return err
		}
		return writeJSON(out, []recordView{view})
	}
	fmt.Fprintf(out, "%s (version %d, by %s).\n", line, rec.Version, a.name)
	writeWords(out, &words)
	return nil
}

func abandonCommand(flags *ledgerFlags) *cobra.Command {
	var a act
	cmd := &cobra.Command{
		Use:   "abandon CMD --name NAME --reason REASON",
		Short: "Forbid sending of one record",
		Long: `Abandon ends a record that was never sent, or that the provider provably did not
accept. On one that may have been sent it forbids sending, and looking up goes on. A
settled record stays as it is (exit code 5).` + exitCodes,
		Example: "  samekey ledger abandon 0193f6a2-1c3d-7e4f-8a5b-6c7d8e9f0a1b --name ada --reason \"order was cancelled by phone\"",
		PreRunE: func(_ *cobra.Command, args []string) error { return a.check(args) },
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return flags.work(cmd.Context(), ledgerTimeout, func(ctx context.Context, s store, about recordstore.About) error {
				return abandon(ctx, cmd.OutOrStdout(), s, about, &a)
			})
		}),
	}
	a.addTo(cmd)
	return cmd
}

func abandon(ctx context.Context, out io.Writer, s store, about recordstore.About, a *act) error {
	rec, err := a.one(ctx, s, about)
	if err != nil {
		return err
	}
	after, err := s.Abandon(ctx, rec.ID, recordstore.Entry{Kind: "abandon", Actor: a.name, Text: a.reason})
	if err != nil {
		return err
	}
	switch {
	case after.Version == rec.Version:
		return endf(exitMoved, "nothing was changed: %s is %s, and there is nothing left to forbid", labelOf(after), after.State)
	case after.State == recordstore.Abandoned:
		return a.report(ctx, out, s, after, "abandoned: "+labelOf(after)+" is not sent any more")
	}
	return a.report(ctx, out, s, after, "barred: "+labelOf(after)+" may have been sent; it is looked up, and not sent any more")
}

func eraseCommand(flags *ledgerFlags) *cobra.Command {
	var a act
	cmd := &cobra.Command{
		Use:   "erase CMD --name NAME --reason REASON",
		Short: "Remove the stored bodies of a command and of its steps now",
		Long: `Erase removes the sealed requests and answers of all records of a command and of its
steps, as a person's right to erasure may ask for. The evidence stays: state, ids and
times, the command's ID, the trail. A replay is then a look-up, and what is uncertain
can be resent only by a caller who brings the same request again.` + exitCodes,
		Example: "  samekey ledger erase 0193f6a2-1c3d-7e4f-8a5b-6c7d8e9f0a1b --name ada --reason \"erasure request 117\"",
		PreRunE: func(_ *cobra.Command, args []string) error { return a.check(args) },
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return flags.work(cmd.Context(), ledgerTimeout, func(ctx context.Context, s store, about recordstore.About) error {
				return erase(ctx, cmd.OutOrStdout(), s, about, &a)
			})
		}),
	}
	a.addTo(cmd)
	return cmd
}

func erase(ctx context.Context, out io.Writer, s store, about recordstore.About, a *act) error {
	found, err := a.find(ctx, s, about)
	if err != nil {
		return err
	}
	views := []recordView{}
	for _, was := range found {
		rec, err := s.Erase(ctx, was.ID, recordstore.Entry{Kind: "erase", Actor: a.name, Text: a.reason})
		if err != nil {
			return fmt.Errorf("%s: %w", labelOf(was.Record), err)
		}
		views = append(views, viewOf(recordstore.Unsealed(rec), about))
		if !a.asJSON {
			fmt.Fprintf(out, "erased: %d sealed bytes of %s (version %d, by %s)\n", was.Sealed, labelOf(rec), rec.Version, a.name)
		}
	}
	if a.asJSON {
		err = writeJSON(out, views)
	}
	if err == nil && len(found) == maxShown {
		err = fmt.Errorf("these were the first %d records: run it again with --operation or a step, until all are erased", maxShown)
	}
	return err
}
