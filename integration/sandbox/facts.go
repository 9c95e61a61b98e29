package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// fact is something that a provider is believed to do, and can be asked about.
type fact struct {
	id     string // within its suite, as "key.mismatch"
	states string
	grade  rs.Grade
	// want are the observations with which the fact holds. For a fact that nobody
	// has shown, they are what samekey's fake does by default.
	want []string
	// setting is the switch of the fake that decides the fact; "" for none.
	setting string
	// rows are the facts of samekey's operation rows that it checks, by what they
	// state.
	rows []string
}

// scenario is a few calls that show some facts.
type scenario struct {
	facts []fact
	// needs says what to set where the scenario cannot run; "" if it can.
	needs string
	run   func(ctx context.Context, n *notes) error
}

// notes are what a scenario has seen, by the facts' ids.
type notes struct{ seen map[string]string }

// saw notes an observation. It is made of statuses, codes and words of this
// program, never of what a provider wrote as a text.
func (n *notes) saw(id, format string, args ...any) { n.seen[id] = fmt.Sprintf(format, args...) }

// suite is all that is asked of one provider.
type suite struct {
	provider  string
	api       *api
	prepare   func(context.Context) error // nil for nothing
	scenarios []scenario
	clean     func(context.Context) // takes away what can be; nil for nothing
}

type verdict string

const (
	holds     verdict = "holds"
	changed   verdict = "CHANGED"
	learned   verdict = "learned"
	unchecked verdict = "not checked"
)

// result is what became of a fact.
type result struct {
	provider string
	fact     fact
	verdict  verdict
	got      string // what was seen, or why nothing was
}

// run makes the suite's calls, one scenario after the other. A scenario that
// fails leaves the facts that it has not yet shown unchecked.
func (s suite) run(ctx context.Context) []result {
	var failed error
	if s.prepare != nil {
		failed = s.prepare(ctx)
	}
	var all []result
	for _, sc := range s.scenarios {
		n := &notes{seen: map[string]string{}}
		err := failed
		switch {
		case err != nil:
		case sc.needs != "":
			err = errors.New(sc.needs)
		default:
			err = sc.run(ctx, n)
		}
		for _, f := range sc.facts {
			all = append(all, s.judge(f, n, err))
		}
	}
	if s.clean != nil && failed == nil {
		// What was made is taken away also when the time is over.
		cleaning, stop := context.WithTimeout(context.WithoutCancel(ctx), cleaningTime)
		s.clean(cleaning)
		stop()
	}
	return all
}

func (s suite) judge(f fact, n *notes, err error) result {
	r := result{provider: s.provider, fact: f}
	got, shown := n.seen[f.id]
	r.got = s.api.redact(got)
	switch {
	case !shown && err == nil:
		r.verdict, r.got = unchecked, "the calls did not show it"
	case !shown:
		r.verdict, r.got = unchecked, s.api.redact(line(err.Error()))
	case f.grade == rs.Unverified:
		r.verdict = learned
	case slices.Contains(f.want, got):
		r.verdict = holds
	default:
		r.verdict = changed
	}
	return r
}

// line makes one short line of an error.
func line(s string) string {
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "?")
	return s[:min(len(s), 300)]
}

// agrees reports whether samekey's fake does by default what was learned.
func (r result) agrees() bool { return slices.Contains(r.fact.want, r.got) }

// note is what the table says of a result beside its verdict.
func (r result) note() string {
	switch {
	case r.verdict == changed:
		return r.got + "; the fact says: " + strings.Join(r.fact.want, ", or: ")
	case r.verdict == learned && r.agrees():
		return r.got + ", as the fake does"
	case r.verdict == learned && r.fact.setting != "":
		return r.got + "; the fake does so with " + r.fact.setting
	case r.verdict == learned:
		return r.got + "; the fake: " + strings.Join(r.fact.want, ", or: ")
	}
	return r.got
}

// conclude writes the table and the sums, and returns the exit code.
func conclude(out io.Writer, all []result, calls int) int {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	sums := map[verdict]int{}
	other := 0
	for _, r := range all {
		sums[r.verdict]++
		if r.verdict == learned && !r.agrees() {
			other++
		}
		grade := string(r.fact.grade)
		if grade == "" {
			grade = "?"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.provider, r.verdict, grade, r.fact.states, r.note())
	}
	_ = w.Flush()
	fmt.Fprintf(out, "%d hold, %d changed, %d learned (%d other than the fake's default), %d not checked; %d calls\n",
		sums[holds], sums[changed], sums[learned], other, sums[unchecked], calls)
	switch {
	case sums[changed] > 0:
		return exitChanged
	case sums[unchecked] > 0:
		return exitUnchecked
	}
	return exitHolds
}
