package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// intro is what stands before the providers' chapters.
//
//go:embed intro.md
var intro []byte

// render returns the page. Rows that replaysemantics.Check refuses are an error.
func render(providers []provider) ([]byte, error) {
	page := bytes.NewBuffer(bytes.Clone(intro))
	for _, p := range providers {
		if err := rs.Check(p.rows); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		chapter(page, p)
	}
	return page.Bytes(), nil
}

func chapter(w *bytes.Buffer, p provider) {
	facts := numbered(p.rows)
	fmt.Fprintf(w, "\n## %s\n\n", p.name)
	fmt.Fprintln(w, "| operation | class | key kept for | same key after a success | same key after a failure | answer lost: found by |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|")
	for _, o := range p.rows {
		fmt.Fprintf(w, "| [%s](#%s) | %s | %s | %s | %s | %s |\n",
			o.Name, anchor(p, o), o.Class, kept(o), again(o), afterFailure(o), cell(cmp.Or(o.Lookup, "nothing")))
	}
	for _, o := range p.rows {
		section(w, p, o, facts)
	}
	sources(w, p, facts)
}

func section(w *bytes.Buffer, p provider, o rs.Operation, facts factList) {
	fmt.Fprintf(w, "\n### <a id=%q></a>%s\n\n", anchor(p, o), o.Name)
	fmt.Fprintf(w, "`%s`, class %s.\n\n", strings.TrimSpace(o.Method+" "+o.Path), o.Class)
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(w, "- **%s:** %s\n", what, text)
		}
	}
	line("Key", keyLine(o))
	if o.HasKey() {
		line("Same key after a success", againInFull(o.Resend))
		line("Same key after a failure", failureInFull(o.Failures))
	}
	line("Answer lost", lookupLine(o))
	line("Finding nothing proves that there is no effect", absenceLine(o))
	line("Mark", placeList(o.Marks))
	line("Settled by the events alone", codeList(o.ConclusiveEventTypes))
	line("Request never stored if it fills", placeList(slices.Concat(o.Sensitive, o.Codes)))
	line("Does not count as another request", placeList(slices.Concat(o.Volatile, o.Codes)))
	line("In any order the same request", placeList(o.Unordered))
	line("Sources", facts.of(o))
	line("Unverified", unverified(o))
}

func keyLine(o rs.Operation) string {
	if !o.HasKey() {
		return "none: the provider does not deduplicate this operation"
	}
	return fmt.Sprintf("%s; at most %d characters; kept for %s", placeList(o.Keys), cmp.Or(o.KeyMax, 255), kept(o))
}

func lookupLine(o rs.Operation) string {
	switch {
	case o.Lookup == "":
		return "nothing finds the effect; a person decides"
	case o.ResendAfterAbsence:
		return o.Lookup + "; after a proof of absence the caller may ask to send again"
	}
	return o.Lookup
}

func absenceLine(o rs.Operation) string {
	switch {
	case o.Lookup == "":
		return ""
	case o.Absence == "":
		return "never"
	}
	return "from " + span(cmp.Or(o.Horizon, 15*time.Minute)) + " after the last possible delivery, when " + o.Absence
}

func kept(o rs.Operation) string {
	switch {
	case !o.HasKey():
		return "no key"
	case o.Window == 0:
		return "a time that is not published"
	}
	return span(o.Window)
}

// again is what a resend gives after a success, in short.
func again(o rs.Operation) string {
	switch o.Resend {
	case rs.Original:
		return "the original"
	case rs.Latest, rs.LatestOrRunAgain:
		return "the present state"
	case rs.ConflictWithLink:
		return "an error that names the object"
	}
	return "not sent twice"
}

func againInFull(r rs.Resend) string {
	switch r {
	case rs.Original:
		return "the stored first answer"
	case rs.Latest:
		return "the object's present state, not the first answer"
	case rs.LatestOrRunAgain:
		return "the object's present state; a failed first run is run again"
	case rs.ConflictWithLink:
		return "an error that names the existing object, which is then read"
	}
	return "never sent twice"
}

func afterFailure(o rs.Operation) string {
	switch {
	case !o.HasKey():
		return "not sent twice"
	case o.Failures == rs.Stored:
		return "the stored failure"
	}
	return "may run again"
}

func failureInFull(f rs.Failures) string {
	if f == rs.Stored {
		return "the stored failure: a decline on a resend is the first one's"
	}
	return "runs again, or is not known to be stored: a decline on a resend is not final"
}

func anchor(p provider, o rs.Operation) string {
	return strings.ToLower(strings.ReplaceAll(p.name+"-"+strings.ReplaceAll(o.Name, ".", "-"), " ", "-"))
}

// placeList names places by kind: header `A`, form fields `b`, `c`.
func placeList(places []rs.Place) string {
	var list []string
	for _, kind := range []struct {
		is        rs.PlaceKind
		quoted    bool
		one, more string
	}{
		{rs.InHeader, false, "header", "headers"}, {rs.InHeader, true, "in quotes, header", "in quotes, headers"},
		{rs.InForm, false, "form field", "form fields"}, {rs.InJSON, false, "JSON", "JSON"},
		{rs.InCustom, false, "by the codec:", "by the codec:"},
	} {
		var names []string
		for _, p := range places {
			if p.Kind == kind.is && p.Quoted == kind.quoted {
				names = append(names, p.Name)
			}
		}
		switch len(names) {
		case 0:
		case 1:
			list = append(list, kind.one+" "+codeList(names))
		default:
			list = append(list, kind.more+" "+codeList(names))
		}
	}
	return strings.Join(list, "; ")
}

func codeList(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// span prints a time in its largest whole unit; two days are still 48 h.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d%day == 0 && d > 3*day:
		return fmt.Sprintf("%d days", d/day)
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return d.String()
}

// cell makes text fit into a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
