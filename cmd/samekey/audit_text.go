package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/internal/audit"
)

// advice says in a line what a class of findings asks of a person.
func advice(class audit.Class) string {
	switch class {
	case audit.Duplicate:
		return "one intent took effect twice: look at both at the provider, and take one back there"
	case audit.Foreign:
		return "sent under another account's name: look for each command under the right one, before anybody sends again"
	case audit.Unrecorded:
		return "a ledger's mark and no record: find out which program sent it, before anybody sends again"
	case audit.Contradicted:
		return "the record says that nothing happened: do not send again under a new command ID"
	case audit.Missing:
		return "the record says applied: look the object up at the provider before anybody relies on it"
	case audit.Unsettled:
		return "nothing is wrong but that nobody settled it: samekey reconcile --once"
	}
	return "made by somebody else: right if people or other programs work there too"
}

// writeAudit prints a report for people.
func writeAudit(out io.Writer, r *audit.Report) {
	fmt.Fprintf(out, "%s %s, %s to %s\n", r.Provider, printable(r.Account), explain.Clock(r.Since), explain.Clock(r.Until))
	fmt.Fprintf(out, "effects at the provider %d: matched %d, in flight %d, made by others %d; records %d\n",
		r.Effects, r.Matched, r.InFlight, r.Counts[audit.Outside], r.Records)
	for _, class := range audit.Classes() {
		if r.Counts[class] > 0 {
			writeClass(out, r, class)
		}
	}
	if len(r.Counts) == min(r.Counts[audit.Outside], 1) && r.Complete {
		fmt.Fprintln(out, "\neverything that can be compared agrees")
	}
	writeUnsaid(out, r)
	fmt.Fprintln(out)
}

func writeClass(out io.Writer, r *audit.Report, class audit.Class) {
	fmt.Fprintf(out, "\n%s %d: %s\n", strings.ToUpper(string(class)), r.Counts[class], advice(class))
	shown := 0
	for _, f := range r.Findings {
		if f.Class != class {
			continue
		}
		shown++
		parts := []string{explain.Clock(f.At)}
		if f.At.IsZero() {
			parts[0] = "-"
		}
		for _, part := range []string{f.Operation, f.Command, f.State, strings.Join(f.Refs, " and ")} {
			if part != "" {
				parts = append(parts, printable(part))
			}
		}
		fmt.Fprintf(out, "  %s\n", strings.Join(parts, "  "))
		fmt.Fprintf(out, "    %s\n", printable(f.Why))
		if f.Command != "" {
			fmt.Fprintf(out, "    samekey ledger show %s\n", f.Record)
		}
	}
	if more := r.Counts[class] - shown; more > 0 {
		fmt.Fprintf(out, "  and %d more: ask for a shorter time\n", more)
	}
}

// writeUnsaid prints what the report says nothing of, and why.
func writeUnsaid(out io.Writer, r *audit.Report) {
	if len(r.NotYetKnown)+len(r.NotCompared)+len(r.Accounts) > 0 || !r.Complete {
		fmt.Fprintln(out)
	}
	for _, why := range slices.Sorted(maps.Keys(r.NotYetKnown)) {
		fmt.Fprintf(out, "not yet known %d: %s\n", r.NotYetKnown[why], printable(why))
	}
	for _, operation := range slices.Sorted(maps.Keys(r.NotCompared)) {
		fmt.Fprintf(out, "not compared %d: no list by time shows %s\n", r.NotCompared[operation], printable(operation))
	}
	for _, account := range slices.Sorted(maps.Keys(r.Accounts)) {
		fmt.Fprintf(out, "left alone %d: records of account %s, whose credentials are not these\n", r.Accounts[account], printable(account))
	}
	for _, l := range r.Lists {
		if l.Incomplete != "" {
			fmt.Fprintf(out, "INCOMPLETE %s: %s; what it does not show may be there\n", printable(l.Name), printable(l.Incomplete))
		}
	}
}
