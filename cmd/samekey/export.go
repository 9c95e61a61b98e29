package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// progressEvery is how often a command that takes long says how far it is.
const progressEvery = 2 * time.Second

// progress tells on standard error how far a command is.
type progress struct {
	out  io.Writer
	last time.Time
	verb string
}

func newProgress(cmd *cobra.Command, verb string) *progress {
	return &progress{cmd.ErrOrStderr(), time.Now(), verb}
}

func (p *progress) at(n int) {
	if now := time.Now(); now.Sub(p.last) >= progressEvery {
		p.last = now
		fmt.Fprintf(p.out, "samekey: %s %d so far\n", p.verb, n)
	}
}

// span reads --since and --until.
type span struct{ since, until pastOrSpan }

func (s *span) addTo(cmd *cobra.Command) {
	cmd.Flags().Var(&s.since, "since", "only records claimed since: a `time` as 2026-11-30T03:10:00Z, or how long ago, as 24h")
	cmd.Flags().Var(&s.until, "until", "only records claimed before: a `time`, or how long ago")
}

func (s *span) narrow(f *recordstore.Filter, now time.Time) {
	f.After, f.Before = s.since.from(now), s.until.from(now)
}

// pastOrSpan is a flag that holds a time, or how long ago it was.
type pastOrSpan struct {
	at  time.Time
	ago time.Duration
}

// Set implements the flag's value.
func (p *pastOrSpan) Set(s string) error {
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		p.ago = d
		return nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return errors.New("write day, time and zone, as 2026-11-30T03:10:00Z, or how long ago, as 24h")
	}
	p.at = t
	return nil
}

// String implements the flag's value.
func (p *pastOrSpan) String() string {
	if p.ago > 0 {
		return p.ago.String()
	}
	if p.at.IsZero() {
		return ""
	}
	return p.at.Format(time.RFC3339)
}

// Type names the flag's value in a help text.
func (p *pastOrSpan) Type() string { return "TIME" }

func (p *pastOrSpan) from(now time.Time) time.Time {
	if p.ago > 0 {
		return now.Add(-p.ago)
	}
	return p.at
}

func exportCommand(flags *ledgerFlags) *cobra.Command {
	var f recordstore.Filter
	var states []string
	var during span
	var trail bool
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print records as JSON, one a line, without bodies",
		Long: `Export prints every record that it is asked for on a line of its own, in the order of
the primary key, as ` + "`show --json`" + ` does but without timeline and bodies; with --trail
also what happened to each. It reads page by page and keeps no call waiting. How far
it is stands on standard error.` + exitCodes,
		Example: "  samekey ledger export --since 24h > day.jsonl\n" +
			"  samekey ledger export --state refused,manual_review --trail | jq .error_code",
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) (err error) {
			f.States, err = statesOf(states)
			return err
		},
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return flags.work(cmd.Context(), 0, func(ctx context.Context, s store, about recordstore.About) error {
				during.narrow(&f, about.Now)
				return export(ctx, cmd.OutOrStdout(), newProgress(cmd, "exported"), s, about, f, trail)
			})
		}),
	}
	cmd.Flags().StringSliceVar(&states, "state", nil, "only records in these `states`, as uncertain,planned")
	cmd.Flags().StringVar(&f.Provider, "provider", "", "only records of this provider")
	cmd.Flags().StringVar(&f.Account, "account", "", "only records of this account, with its mode")
	cmd.Flags().StringVar(&f.Operation, "operation", "", "only records of this operation")
	cmd.Flags().StringVar(&f.Class, "class", "", "only records of this class")
	cmd.Flags().BoolVar(&trail, "trail", false, "with each record's trail")
	during.addTo(cmd)
	return cmd
}

func export(ctx context.Context, out io.Writer, p *progress, s store, about recordstore.About, f recordstore.Filter, trail bool) error {
	buffered := bufio.NewWriter(out)
	enc := json.NewEncoder(buffered)
	enc.SetEscapeHTML(false)
	q := recordstore.ListQuery{Filter: f, Order: recordstore.ByIdentity, Limit: recordstore.MaxList}
	n := 0
	for {
		page, err := s.List(ctx, q)
		if err != nil {
			return fmt.Errorf("after %d records: %w", n, err)
		}
		for _, rec := range page.Records {
			view := viewOf(rec, about)
			if trail {
				err = view.withTrail(ctx, s, rec.ID)
				if errors.Is(err, recordstore.ErrNotFound) { // purged since the page was read
					err = nil
				}
			}
			if err == nil {
				err = enc.Encode(view)
			}
			if err != nil {
				return fmt.Errorf("after %d records: %w", n, err)
			}
			n++
			p.at(n)
		}
		if q.From = page.Next; q.From == nil {
			break
		}
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	if n == 0 {
		return endf(exitNothing, "the ledger holds no such record")
	}
	return nil
}

func statsCommand(flags *ledgerFlags) *cobra.Command {
	var f recordstore.Filter
	var during span
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count records by provider, operation and state, with ages and sizes",
		Long: `Stats counts what the ledger holds, tells how old the oldest of each kind is, what it
may have forgotten, and how large it is. It reads the whole ledger, or with --since
the claims of that time.` + exitCodes,
		Example: "  samekey ledger stats\n  samekey ledger stats --since 24h --provider stripe --json",
		Args:    cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return flags.work(cmd.Context(), ledgerTimeout, func(ctx context.Context, s store, about recordstore.About) error {
				during.narrow(&f, about.Now)
				tallies, err := s.Tally(ctx, f)
				switch {
				case err != nil:
					return err
				case asJSON:
					return writeJSON(cmd.OutOrStdout(), statsOf(about, tallies))
				}
				writeStats(cmd.OutOrStdout(), about, tallies)
				return nil
			})
		}),
	}
	cmd.Flags().StringVar(&f.Provider, "provider", "", "only records of this provider")
	cmd.Flags().StringVar(&f.Operation, "operation", "", "only records of this operation")
	cmd.Flags().StringVar(&f.Class, "class", "", "only records of this class")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an object as JSON")
	during.addTo(cmd)
	return cmd
}

// stats are what --json prints.
type stats struct {
	Now           time.Time         `json:"now"`
	Schema        int               `json:"schema_version"`
	Derivation    string            `json:"derivation,omitempty"`
	Secret        string            `json:"secret_fingerprint,omitempty"`
	Bytes         int64             `json:"bytes"`
	ForgottenUpTo map[string]string `json:"forgotten_up_to"` // By class.
	SweptTo       time.Time         `json:"swept_to,omitzero"`
	Restored      time.Time         `json:"restored,omitzero"`
	Records       int               `json:"records"`
	Groups        []group           `json:"groups"`
}

type group struct {
	Provider    string    `json:"provider"`
	Operation   string    `json:"operation"`
	Class       string    `json:"class"`
	State       string    `json:"state"`
	Records     int       `json:"records"`
	Open        int       `json:"open"`
	Oldest      time.Time `json:"oldest"`
	Newest      time.Time `json:"newest"`
	SealedBytes int64     `json:"sealed_bytes"`
}

func statsOf(about recordstore.About, tallies []recordstore.Tally) stats {
	s := stats{
		Now: about.Now, Schema: about.Schema, Bytes: about.Bytes, SweptTo: about.SweptTo, Restored: about.Restored,
		ForgottenUpTo: map[string]string{}, Groups: []group{},
	}
	if about.Pins != nil {
		s.Derivation, s.Secret = about.Pins.Derivation, about.Pins.Secret
	}
	for class, day := range about.Frontier {
		s.ForgottenUpTo[class] = dateOf(day)
	}
	for _, t := range tallies {
		s.Records += t.Records
		s.Groups = append(s.Groups, group{t.Provider, t.Operation, t.Class, string(t.State), t.Records, t.Open, t.Oldest, t.Newest, t.Sealed})
	}
	return s
}

func writeStats(out io.Writer, about recordstore.About, tallies []recordstore.Tally) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROVIDER\tOPERATION\tCLASS\tSTATE\tRECORDS\tOPEN\tOLDEST\tNEWEST\tSEALED")
	records, open := 0, 0
	for _, t := range tallies {
		records, open = records+t.Records, open+t.Open
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", printable(t.Provider), printable(t.Operation), printable(t.Class), t.State,
			t.Records, t.Open, explain.Ago(about.Now.Sub(t.Oldest)), explain.Ago(about.Now.Sub(t.Newest)), bytesOf(t.Sealed))
	}
	_ = w.Flush() // a reader that went away needs no more
	fmt.Fprintf(out, "\n%d records, %d open; %s on disk\n", records, open, bytesOf(about.Bytes))
	for _, class := range slices.Sorted(maps.Keys(about.Frontier)) {
		fmt.Fprintf(out, "records of class %s up to %s may have been removed\n", printable(class), dateOf(about.Frontier[class]))
	}
	if !about.Restored.IsZero() {
		fmt.Fprintf(out, "restored from a backup: what was written before %s may be lost (docs/runbooks.md)\n", explain.Clock(about.Restored))
	}
	if about.SweptTo.IsZero() {
		fmt.Fprintln(out, "no reconciler ever looked for senders that died")
	} else {
		fmt.Fprintf(out, "a reconciler last moved its mark to claims of %s\n", explain.Clock(about.SweptTo))
	}
}

// bytesOf writes a size.
func bytesOf(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	size, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB"}
	for len(names) > 1 && size >= unit {
		size, names = size/unit, names[1:]
	}
	return fmt.Sprintf("%.1f %s", size, names[0])
}
