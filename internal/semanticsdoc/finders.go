package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"time"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// findersIntro is what stands before the tables of look-ups.
//
//go:embed finders.md
var findersIntro []byte

// renderFinders returns the page of look-ups, the operations that have none
// first. Rows that replaysemantics.Check refuses are an error.
func renderFinders(providers []provider) ([]byte, error) {
	page := bytes.NewBuffer(bytes.Clone(findersIntro))
	for _, p := range providers {
		if err := rs.Check(p.rows); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	fmt.Fprint(page, "\n## Cannot be looked up\n\n")
	lost := 0
	for _, p := range providers {
		for _, o := range p.rows {
			if o.Lookup != "" {
				continue
			}
			if lost++; lost == 1 {
				fmt.Fprint(page, "| provider | operation | while the key is kept | after that |\n|---|---|---|---|\n")
			}
			fmt.Fprintf(page, "| %s | %s | %s | a person decides |\n", p.name, reference(p, o), whileKept(o))
		}
	}
	if lost == 0 {
		fmt.Fprintln(page, "None.")
	}
	for _, p := range providers {
		finders(page, p)
	}
	return page.Bytes(), nil
}

// whileKept is what is done about an unknown outcome that no look-up finds.
func whileKept(o rs.Operation) string {
	switch {
	case !o.HasKey():
		return "no key: a person decides at once"
	case o.Window == 0:
		return "resent within one call"
	}
	return "resent, " + span(o.Window)
}

func finders(w *bytes.Buffer, p provider) {
	if !slices.ContainsFunc(p.rows, func(o rs.Operation) bool { return o.Lookup != "" }) {
		return
	}
	fmt.Fprintf(w, "\n## %s\n\n", p.name)
	fmt.Fprintln(w, "| operation | found by | proved absent when | not before | settled by the events alone |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, o := range p.rows {
		if o.Lookup == "" {
			continue
		}
		before := "never"
		if o.Absence != "" {
			before = span(cmp.Or(o.Horizon, 15*time.Minute))
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", reference(p, o), cell(o.Lookup),
			cell(cmp.Or(o.Absence, "never")), before, cmp.Or(codeList(o.ConclusiveEventTypes), "none"))
	}
}

// reference links to the operation's section on the other page.
func reference(p provider, o rs.Operation) string {
	return fmt.Sprintf("[%s](replay-semantics.md#%s)", o.Name, anchor(p, o))
}
