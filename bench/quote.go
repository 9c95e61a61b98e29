package main

import (
	"fmt"
	"os"
	"strings"
)

// The page's figures stand between these lines.
const (
	figuresBegin = "<!-- figures: written by make bench -->"
	figuresEnd   = "<!-- end of figures -->"
)

// quote writes the figures into the page, where it has a place for them.
func (r *result) quote(page string) error {
	text, err := os.ReadFile(page)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), figuresBegin)
	_, after, ends := strings.Cut(rest, figuresEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for figures, between %q and %q", page, figuresBegin, figuresEnd)
	}
	return os.WriteFile(page, []byte(before+figuresBegin+"\n"+r.markdown()+figuresEnd+after), 0o644)
}

// markdown is the result as tables.
func (r *result) markdown() string {
	var t strings.Builder
	m := r.Machine
	fmt.Fprintf(&t, "\nMeasured on %s (%s run): %s, %d cores, %s, %s", r.Date.Format("2 January 2006"), r.Mode, m.Processor, m.Cores, m.Kernel, m.Go)
	if m.PostgreSQL != "" {
		fmt.Fprintf(&t, ", PostgreSQL %s", m.PostgreSQL)
	}
	t.WriteString(".\n\n| ratio | callers | value | rounds from | to | wanted |\n| --- | ---: | ---: | ---: | ---: | --- |\n")
	for _, x := range r.Ratios {
		fmt.Fprintf(&t, "| `%s` | %d | %s | %s | %s | %s |\n", x.Name, x.Callers,
			strings.TrimSpace(number(x.Value)+" "+x.Unit), number(x.Low), number(x.High), x.wanted())
	}
	t.WriteString("\n")
	for _, work := range plotted {
		if len(r.of(work)) > 0 {
			fmt.Fprintf(&t, "![%s: calls per second](benchmarks/%[1]s.svg)\n", work)
		}
	}
	t.WriteString("\n| work | callers | contender | median | low | high | unit | p50 ms | p99 ms | worst ms |\n" +
		"| --- | ---: | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |\n")
	for _, m := range r.Measurements {
		told := []string{"", "", ""}
		if m.Worst > 0 {
			told = []string{number(m.P50), number(m.P99), number(m.Worst)}
		}
		fmt.Fprintf(&t, "| %s | %d | %s | %s | %s | %s | %s | %s |\n", m.Work, m.Callers, m.Contender,
			number(m.Median), number(m.Low), number(m.High), m.Unit, strings.Join(told, " | "))
	}
	if len(r.Figures) > 0 {
		t.WriteString("\n| figure | value | |\n| --- | ---: | --- |\n")
	}
	for _, f := range r.Figures {
		fmt.Fprintf(&t, "| `%s` | %s %s | %s |\n", f.Name, number(f.Value), f.Unit, f.Note)
	}
	return t.String()
}
