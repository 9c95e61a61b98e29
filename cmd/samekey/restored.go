package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

func restoredCommand(flags *ledgerFlags) *cobra.Command {
	var since instant
	var lift bool
	cmd := &cobra.Command{
		Use:   "restored (--since TIME | --clear)",
		Short: "Tell a ledger that it was restored from a backup, or that this is over",
		Long: `Restored tells a ledger that records written before TIME may be lost: TIME is when
the last service that calls providers was stopped. From then on a command that is
older, by the day in its ID, or whose ID carries no day, is looked up at the provider
before it is sent, where it has no record. Services read this when they start: stop
them before, start them after (docs/runbooks.md).` + exitCodes,
		Example: "  samekey ledger restored --since 2026-11-30T03:10:00Z\n" +
			"  samekey ledger restored --clear\n" +
			"  samekey ledger restored --sqlite /var/lib/shop/ledger.db --since 2026-11-30T04:10:00+01:00",
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if lift == !since.IsZero() {
				return errors.New("give either --since TIME or --clear")
			}
			return nil
		},
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), ledgerTimeout)
			defer cancel()
			return markRestored(ctx, cmd.OutOrStdout(), flags, since.Time)
		}),
	}
	cmd.Flags().Var(&since, "since", "when the last service was stopped, as 2026-11-30T03:10:00Z")
	cmd.Flags().BoolVar(&lift, "clear", false, "lift it: the commands of that time are through")
	return cmd
}

// markRestored marks a ledger, or lifts the mark where since is zero, and says what
// the ledger then holds.
func markRestored(ctx context.Context, out io.Writer, flags *ledgerFlags, since time.Time) error {
	ledger, closed, err := flags.open(ctx)
	if err != nil {
		return err
	}
	defer closed()
	if err := ledger.MarkRestored(ctx, since); err != nil {
		return err
	}
	marked, err := ledger.Restored(ctx)
	if err != nil {
		return err
	}
	if marked.IsZero() {
		fmt.Fprintln(out, "lifted: services that are started from now on look nothing up because of a restore")
		return nil
	}
	fmt.Fprintf(out, "restored since %s: services that are started from now on look up what has no record and is of %s or before, or of no day\n",
		marked.Format(time.RFC3339Nano), marked.Format(time.DateOnly))
	return nil
}

// instant is a flag that holds a past time.
type instant struct{ time.Time }

// clockSkew is how far another machine's clock may be ahead.
const clockSkew = 5 * time.Minute

// Set implements the flag's value.
func (i *instant) Set(s string) error {
	t, err := time.Parse(time.RFC3339, s)
	switch {
	case err != nil:
		return errors.New("write day, time and zone, as 2026-11-30T03:10:00Z or 2026-11-30T04:10:00+01:00")
	case t.Unix() <= 0 || time.Until(t) > clockSkew:
		return errors.New("the time lies in the future or before 1970: give the one at which the last service was stopped")
	}
	i.Time = t
	return nil
}

// String implements the flag's value.
func (i *instant) String() string {
	if i.IsZero() {
		return ""
	}
	return i.Format(time.RFC3339Nano)
}

// Type names the flag's value in a help text.
func (i *instant) Type() string { return "TIME" }
