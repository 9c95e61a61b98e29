package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

func showCommand(flags *ledgerFlags) *cobra.Command {
	var t target
	var asJSON, bodies bool
	cmd := &cobra.Command{
		Use:   "show CMD",
		Short: "Tell what happened to a command, whether it is safe to press the button, and what to do",
		Long: `Show prints each record of a command and of its steps: what happened, whether the
button may be pressed again, what to do, and a timeline of claims, answers, look-ups,
webhooks and verdicts. CMD is the command's ID, or the mark of one record. A record
can also be found by the provider's own ids; then the whole ledger is read.

The bodies of request and answer are shown with --bodies only, to those who hold the
seal key: ` + sealKeysHelp + exitCodes,
		Example: "  samekey ledger show 0193f6a2-1c3d-7e4f-8a5b-6c7d8e9f0a1b\n" +
			"  samekey ledger show ord_7/seller-3 --operation transfer.create --json\n" +
			"  samekey ledger show --external-ref re_3MmlLrLkdIwHu7ix0uke3Ezy",
		PreRunE: func(_ *cobra.Command, args []string) error { return t.check(args) },
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			return flags.work(cmd.Context(), ledgerTimeout, func(ctx context.Context, s store, about recordstore.About) error {
				return show(ctx, cmd.OutOrStdout(), s, about, &t, asJSON, bodies)
			})
		}),
	}
	t.addTo(cmd, true)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array of records as JSON")
	cmd.Flags().BoolVar(&bodies, "bodies", false, "show what was sent and answered, opened with the seal key")
	return cmd
}

func show(ctx context.Context, out io.Writer, s store, about recordstore.About, t *target, asJSON, bodies bool) error {
	var sealer outbound.Sealer
	if bodies {
		var err error
		if sealer, err = sealerFromEnv(); err != nil {
			return err
		}
	}
	found, err := t.find(ctx, s, about)
	if err != nil {
		return err
	}
	views := []recordView{}
	people := 0
	for i, rec := range found {
		trail, err := s.Trail(ctx, rec.ID)
		if err != nil {
			return err
		}
		words := explain.Record(rec.Record, knownOf(rec.Record, trail, about))
		events := explain.Timeline(rec.Record, trail, about.Now)
		view := viewOf(rec, about)
		view.Explained, view.Timeline = &words, events
		if view.SealHint, err = sealHint(ctx, s, rec); err != nil {
			return err
		}
		if bodies && view.SealHint != "" {
			return errors.New(view.SealHint)
		}
		if bodies {
			if view.Opened, err = openBodies(ctx, s, rec.ID, sealer); err != nil {
				return err
			}
		}
		if words.Person {
			people++
		}
		if views = append(views, view); !asJSON {
			if i > 0 {
				fmt.Fprintln(out)
			}
			writeRecord(out, &view, about.Now)
		}
	}
	if asJSON {
		err = writeJSON(out, views)
	} else if len(found) == maxShown {
		fmt.Fprintf(out, "\nThese are the first %d records: narrow them with --operation or a step.\n", maxShown)
	}
	if err == nil && people > 0 {
		err = endf(exitPerson, "%s for a person", waits(people))
	}
	return err
}

// waits counts records that wait.
func waits(n int) string {
	if n == 1 {
		return "1 record waits"
	}
	return fmt.Sprintf("%d records wait", n)
}

func openBodies(ctx context.Context, s store, id recordstore.ID, sealer outbound.Sealer) (*openedView, error) {
	rec, _, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	opened, err := outbound.OpenRecord(rec, sealer)
	if err != nil {
		return nil, err
	}
	v := &openedView{Answer: string(opened.Body)}
	if opened.Request != nil {
		v.Method, v.Target, v.Request = opened.Request.Method, opened.Request.Target, string(opened.Request.Body)
	}
	return v, nil
}

// writeRecord prints a record for people.
func writeRecord(out io.Writer, v *recordView, now time.Time) {
	fmt.Fprintf(out, "%s %s   command %s\n", v.Provider, v.Operation, v.Command)
	state := fmt.Sprintf("%s since %s (%s), effect %s", v.State, explain.Clock(v.Since), explain.Ago(now.Sub(v.Since)), v.Effect)
	if v.Outcome != "" {
		state += ", outcome " + v.Outcome
	}
	fmt.Fprintf(out, "  %s\n  account %s, record %s, version %d\n\n", state, v.Account, v.Record, v.Version)
	writeWords(out, v.Explained)
	if v.Explained.Person {
		ref := ""
		if v.ExternalRef != "" && !strings.ContainsAny(v.ExternalRef, " \"'`$\\;&|<>()") {
			ref = " --external-ref " + printable(v.ExternalRef)
		}
		fmt.Fprintf(out, "    samekey ledger resolve %s --version %d --verdict applied%s --name NAME --reason WHAT-YOU-SAW\n", v.Record, v.Version, ref)
	}
	fmt.Fprintln(out)
	ahead := false
	for _, e := range v.Timeline {
		if e.Ahead && !ahead {
			fmt.Fprintf(out, "  %s  ---- now\n", explain.Clock(now))
			ahead = true
		}
		who := ""
		if e.Who != "" {
			who = " (" + e.Who + ")"
		}
		fmt.Fprintf(out, "  %s  %-13s  %s%s\n", explain.Clock(e.At), strings.ReplaceAll(e.What, "_", " "), printable(e.Text), printable(who))
	}
	if v.SealHint != "" {
		fmt.Fprintf(out, "\n  Bodies: %s\n", printable(v.SealHint))
	}
	writeOpened(out, v)
}

// writeWords prints the three questions and their answers.
func writeWords(out io.Writer, w *explain.Words) {
	for _, part := range [][2]string{
		{"What happened?", w.Happened}, {"Is it safe to press the button?", w.Safe}, {"What to do?", w.Do},
	} {
		fmt.Fprintf(out, "  %s\n%s", part[0], wrapped("    ", part[1]))
	}
}

func writeOpened(out io.Writer, v *recordView) {
	if v.Opened == nil {
		return
	}
	sent := "none is kept"
	if v.Opened.Method != "" {
		sent = v.Opened.Method + " " + v.Opened.Target + "\n" + v.Opened.Request
	}
	answer := v.Opened.Answer
	if answer == "" {
		answer = "none is kept"
	}
	fmt.Fprintf(out, "\n  Request:\n%s  Answer:\n%s", indented(sent), indented(answer))
}

// indented puts a text under a heading. What is no printable text is quoted, so that
// a body cannot move a terminal's cursor.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		b.WriteString("    " + printable(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

// wrapped breaks a text into lines of at most 90 characters.
func wrapped(indent, text string) string {
	var b strings.Builder
	line := indent
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > 90 && line != indent {
			b.WriteString(line + "\n")
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}
