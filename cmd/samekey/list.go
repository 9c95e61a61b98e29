package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// listFlags say which records are listed.
type listFlags struct {
	filter    recordstore.Filter
	states    []string
	olderThan time.Duration
	newest    bool
	limit     int
	asJSON    bool
}

func (l *listFlags) addTo(cmd *cobra.Command, states bool) {
	if states {
		cmd.Flags().StringSliceVar(&l.states, "state", nil, "only records in these `states`, as uncertain,planned")
	}
	cmd.Flags().StringVar(&l.filter.Provider, "provider", "", "only records of this provider, as stripe")
	cmd.Flags().StringVar(&l.filter.Account, "account", "", "only records of this account, with its mode, as acct_1Nv0/live")
	cmd.Flags().StringVar(&l.filter.Operation, "operation", "", "only records of this operation, as refund.create")
	cmd.Flags().StringVar(&l.filter.Class, "class", "", "only records of this class: money, object or notification")
	cmd.Flags().DurationVar(&l.olderThan, "older-than", 0, "only records that have waited longer, as 15m")
	cmd.Flags().BoolVar(&l.newest, "newest", false, "the newest first (default the oldest)")
	cmd.Flags().IntVar(&l.limit, "limit", 50, "at most so many records")
	cmd.Flags().BoolVar(&l.asJSON, "json", false, "print an object with the records as JSON")
}

// known are the states that a command line may name.
var known = []recordstore.State{
	recordstore.Planned, recordstore.Sending, recordstore.Succeeded, recordstore.Refused,
	recordstore.NotExecuted, recordstore.Uncertain, recordstore.ManualReview, recordstore.Abandoned,
}

// statesOf reads names of states. Errors are wrong usage.
func statesOf(names []string) (states []recordstore.State, err error) {
	for _, name := range names {
		state := recordstore.State(name)
		if !slices.Contains(known, state) {
			return nil, fmt.Errorf("there is no state %q: the states are %s", name, strings.Trim(fmt.Sprint(known), "[]"))
		}
		states = append(states, state)
	}
	return states, nil
}

func (l *listFlags) check(*cobra.Command, []string) (err error) {
	switch {
	case l.limit < 1:
		return fmt.Errorf("--limit %d lists nothing: give 1 or more", l.limit)
	case l.olderThan < 0:
		return fmt.Errorf("--older-than %v lies in the future: give a span of the past, as 15m", l.olderThan)
	}
	if len(l.states) > 0 {
		l.filter.States, err = statesOf(l.states)
	}
	return err
}

func openCommand(flags *ledgerFlags) *cobra.Command {
	l := listFlags{filter: recordstore.Filter{Open: true}}
	cmd := &cobra.Command{
		Use:   "open",
		Short: "List what is not settled and nobody is at work on, the oldest first",
		Long: `Open lists the records whose outcome is open and which nobody is at work on: planned,
uncertain, in review, left by a sender that died. It tells since when each waits and
when it is looked at next. Where some wait for a person it ends with exit code 4.` + exitCodes,
		Example: "  samekey ledger open\n" +
			"  samekey ledger open --older-than 15m --provider stripe\n" +
			"  samekey ledger open --state manual_review --json",
		Args:    cobra.NoArgs,
		PreRunE: l.check,
		RunE:    run(l.run(flags, "nothing is open: every command that was sent has its outcome")),
	}
	l.addTo(cmd, true)
	return cmd
}

func reviewCommand(flags *ledgerFlags) *cobra.Command {
	l := listFlags{filter: recordstore.Filter{States: []recordstore.State{recordstore.ManualReview}}}
	cmd := &cobra.Command{
		Use:   "review",
		Short: "List what only a person can decide, the oldest first",
		Long: `Review lists the records that neither a resend nor a look-up can settle. Look at each
at the provider's dashboard, then decide with ` + "`samekey ledger resolve`" + `. Where there
are any it ends with exit code 4.` + exitCodes,
		Example: "  samekey ledger review\n  samekey ledger review --class money --json",
		Args:    cobra.NoArgs,
		PreRunE: l.check,
		RunE:    run(l.run(flags, "nothing is in review")),
	}
	l.addTo(cmd, false)
	return cmd
}

// listed is what --json prints.
type listed struct {
	Now     time.Time    `json:"now"`
	More    bool         `json:"more"`
	Records []recordView `json:"records"`
}

func (l *listFlags) run(flags *ledgerFlags, none string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		return flags.work(cmd.Context(), ledgerTimeout, func(ctx context.Context, s store, about recordstore.About) error {
			list, more, err := l.read(ctx, s, about)
			if err != nil {
				return err
			}
			if l.asJSON {
				err = l.writeJSON(ctx, s, cmd.OutOrStdout(), list, more, about)
			} else {
				writeList(cmd.OutOrStdout(), list, more, about, none)
			}
			if err != nil {
				return err
			}
			people, err := l.people(ctx, s, about, list, more)
			if err == nil && people > 0 {
				err = endf(exitPerson, "%s for a person", waits(people))
			}
			return err
		})
	}
}

// people counts the records that wait for a person: those that are shown, or where
// not all are, those that match.
func (l *listFlags) people(ctx context.Context, s store, about recordstore.About, shown []recordstore.Listed, more bool) (n int, err error) {
	if more && (len(l.filter.States) == 0 || slices.Contains(l.filter.States, recordstore.ManualReview)) {
		all := *l
		all.filter.States, all.limit = []recordstore.State{recordstore.ManualReview}, recordstore.MaxList
		if shown, _, err = all.read(ctx, s, about); err != nil {
			return 0, err
		}
	}
	for _, rec := range shown {
		if rec.State == recordstore.ManualReview {
			n++
		}
	}
	return n, nil
}

// read lists up to the limit, page by page.
func (l *listFlags) read(ctx context.Context, s store, about recordstore.About) (all []recordstore.Listed, more bool, err error) {
	q := recordstore.ListQuery{Filter: l.filter}
	if l.newest {
		q.Order = recordstore.NewestFirst
	}
	if l.olderThan > 0 {
		q.Before = about.Now.Add(-l.olderThan)
	}
	for len(all) < l.limit {
		q.Limit = min(recordstore.MaxList, l.limit-len(all))
		page, err := s.List(ctx, q)
		if err != nil {
			return nil, false, err
		}
		all = append(all, page.Records...)
		if q.From = page.Next; q.From == nil {
			return all, false, nil
		}
	}
	return all, true, nil
}

func (l *listFlags) writeJSON(ctx context.Context, s store, out io.Writer, list []recordstore.Listed, more bool, about recordstore.About) error {
	v := listed{Now: about.Now, More: more, Records: []recordView{}}
	for _, rec := range list {
		view := viewOf(rec, about)
		words := explain.Record(rec.Record, knownOf(rec.Record, nil, about))
		if rec.State == recordstore.NotExecuted || rec.State == recordstore.ManualReview { // the trail says whose word it is
			var err error
			if words, err = explained(ctx, s, rec.Record, about); err != nil {
				return err
			}
		}
		view.Explained = &words
		v.Records = append(v.Records, view)
	}
	return writeJSON(out, v)
}

func writeList(out io.Writer, list []recordstore.Listed, more bool, about recordstore.About, none string) {
	if len(list) == 0 {
		fmt.Fprintln(out, none)
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WAITS\tSINCE\tSTATE\tPROVIDER\tOPERATION\tCOMMAND\tNEXT\tCODE\tVERSION")
	for _, rec := range list {
		since := recordstore.Since(rec.Record)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", explain.Span(about.Now.Sub(since)), explain.Clock(since), rec.State,
			printable(rec.Provider), printable(rec.Operation), printable(rec.CommandID), explain.Next(rec.Record, about.Now), dash(rec.ErrorCode), rec.Version)
	}
	_ = w.Flush() // a reader that went away needs no more
	if more {
		fmt.Fprintf(out, "These are the first %d; more follow: --limit, or narrow them.\n", len(list))
	}
	fmt.Fprintln(out, "\nOne of them in full: samekey ledger show COMMAND")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return printable(s)
}

// printable quotes what could move a terminal's cursor.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strings.Trim(strconv.Quote(s), `"`)
	}
	return s
}
