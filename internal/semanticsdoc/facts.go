package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// factList numbers a provider's facts from 1 in the order of their first row.
type factList []rs.Fact

func numbered(rows []rs.Operation) (l factList) {
	for _, o := range rows {
		for _, f := range o.Facts {
			if !slices.Contains(l, f) {
				l = append(l, f)
			}
		}
	}
	return l
}

// of returns the numbers of a row's facts, neighbours joined: "1–4, 9".
func (l factList) of(o rs.Operation) string {
	var numbers []int
	for _, f := range o.Facts {
		numbers = append(numbers, 1+slices.Index(l, f))
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	var runs []string
	for i := 0; i < len(numbers); {
		j := i + 1
		for j < len(numbers) && numbers[j] == numbers[j-1]+1 {
			j++
		}
		if first, last := numbers[i], numbers[j-1]; first == last {
			runs = append(runs, fmt.Sprint(first))
		} else {
			runs = append(runs, fmt.Sprintf("%d–%d", first, last))
		}
		i = j
	}
	return strings.Join(runs, ", ")
}

// unverified returns what a row states and no source shows.
func unverified(o rs.Operation) string {
	var states []string
	for _, f := range o.Facts {
		if f.Grade == rs.Unverified {
			states = append(states, f.States)
		}
	}
	return strings.Join(states, "; ")
}

func sources(w *bytes.Buffer, p provider, l factList) {
	fmt.Fprintf(w, "\n### %s: the sources\n\n", p.name)
	fmt.Fprintln(w, "| no. | fact | known from | read on | source |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for i, f := range l {
		fmt.Fprintf(w, "| %d | %s | %s | %s | <%s> |\n", i+1, cell(f.States), gradeWord(f.Grade), f.Read, f.URL)
	}
}

func gradeWord(g rs.Grade) string {
	switch g {
	case rs.Reported:
		return "a public report"
	case rs.Documented:
		return "documentation"
	case rs.Specified:
		return "specification"
	case rs.SourceCode:
		return "source code"
	case rs.Wire:
		return "a published exchange"
	case rs.Measured:
		return "measured"
	}
	return "**unverified**"
}
