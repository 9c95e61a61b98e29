package providertest

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Kit is an adapter, the provider it speaks to, and calls to judge it by.
type Kit struct {
	// New makes the adapter, as its package's New does, for a provider at baseURL
	// that only rt reaches. Required. It is called several times in a case: each
	// adapter stands for a process of its own. Credentials that it sends need eight
	// characters at least, so that they can be searched for.
	New func(tb testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter

	// Provider returns the fake's dialect with empty state, as JSONDialect makes it.
	// Its operations have the names of the adapter's rows. Required.
	Provider func() Dialect

	// Samples are the operations that are judged. Required.
	Samples []Sample

	// Secrets are credentials that the adapter sends elsewhere than in the header
	// Authorization: no log line, span, error or record may show them either.
	Secrets []string
}

// Sample is one operation, and calls of it. Each function makes the same call
// for the same arguments; seed is the id that Seed gave.
type Sample struct {
	// Call is a call that the provider executes. Required.
	Call func(cmd outbound.Command, seed string) outbound.Call

	// Seed is put in place before the calls, as an order to capture. It needs a
	// dialect that is a Seeder. Defaults to nothing.
	Seed any

	// The following are optional. Without one, the cases that need it are not run,
	// and the log of the test says so.

	// Other is a call of the same operation that means something else.
	Other func(cmd outbound.Command, seed string) outbound.Call
	// Refused is a call that the provider decides against, as a declined card.
	Refused func(cmd outbound.Command, seed string) outbound.Call
	// Rejected is a call that the provider's validation does not accept.
	Rejected func(cmd outbound.Command, seed string) outbound.Call
	// Card is a call that carries CardNumber and CardCode wherever it can. Only
	// this finds a place of Sensitive or Codes that is misspelt.
	Card func(cmd outbound.Command, seed string) outbound.Call

	// WeakLookup says that a look-up may not find an effect that is there, as where
	// it needs an id that no answer told. It may say nothing wrong all the same.
	WeakLookup bool
}

// The card data of Sample.Card.
const (
	CardNumber = "4000056655665556"
	CardCode   = "7391"
)

// Run judges an adapter: each case for each sample, as the subtest
// "refund.create/label/replay". A case that fails says what it saw, why that
// matters, and what the row or the codec should say. Cases that do not apply to
// a row, as those about keys to an operation without one, do not run.
//
// Everything runs in one process over an in-memory network, each case in a
// testing/synctest bubble: back-offs and windows take no time. The adapter must
// send over the transport that it is given.
func Run(t *testing.T, k Kit) {
	t.Helper()
	rows := k.rows(t)
	for i, s := range k.Samples {
		var left []string
		for _, c := range cases() {
			if why := c.without(rows[i], s); why != "" {
				if !slices.Contains(left, why) {
					left = append(left, why)
				}
				if !c.runsWithout(rows[i]) {
					continue
				}
			}
			if c.needs.fits(rows[i]) {
				t.Run(rows[i].Name+"/"+c.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { c.judge(t, k, s) })
				})
			}
		}
		if len(left) > 0 {
			t.Logf("%s: for more cases, give the sample %s", rows[i].Name, strings.Join(left, ", "))
		}
	}
}

// rows returns each sample's row, and ends the test where the kit cannot work.
func (k Kit) rows(tb testing.TB) (rows []rs.Operation) {
	tb.Helper()
	if k.New == nil || k.Provider == nil || len(k.Samples) == 0 {
		tb.Fatalf("providertest: a Kit needs New, Provider and Samples")
	}
	profile, err := k.New(tb, "http://provider.test", &http.Transport{}).Profile()
	if err != nil {
		tb.Fatalf("providertest: the adapter's settings are wrong: %v", err)
	}
	namer, _ := k.Provider().(Namer)
	for i, s := range k.Samples {
		if s.Call == nil {
			tb.Fatalf("providertest: Samples[%d] needs a Call", i)
		}
		call := s.Call(outbound.Command{ID: "kit"}, "seed")
		if call.Err != nil {
			tb.Fatalf("providertest: the call of Samples[%d] cannot be made: %v", i, call.Err)
		}
		row, ok := rs.Find(profile.Operations, call.Operation)
		if !ok {
			tb.Fatalf("providertest: Samples[%d] calls %q, which is in no row of the adapter", i, call.Operation)
		}
		if namer != nil && !slices.Contains(namer.Operations(), row.Name) {
			tb.Fatalf("providertest: the dialect has no operation %q: name its operations as the rows do", row.Name)
		}
		rows = append(rows, row)
	}
	return rows
}

// needs says which rows a case is for.
type needs uint8

const (
	anyRow   needs = iota
	keyed          // rows with a key
	keyless        // rows without
	windowed       // rows that state a window
	marked         // rows with marks
	findable       // rows with a look-up
	stored         // rows whose failures are stored
)

func (n needs) fits(row rs.Operation) bool {
	switch n {
	case keyed:
		return row.HasKey()
	case keyless:
		return !row.HasKey()
	case windowed:
		return row.Window > 0
	case marked:
		return len(row.Marks) > 0
	case findable:
		return row.Lookup != ""
	case stored:
		return row.Failures == rs.Stored
	}
	return true
}

// testCase is one thing that an adapter must do.
type testCase struct {
	name  string
	needs needs
	gift  gift   // what the sample must bring
	why   string // why it matters
	mend  string // what the row or codec should say
	run   func(*trial)
}

// gift is an optional part of a Sample.
type gift string

const (
	nothing  gift = ""
	other    gift = "Other"
	refused  gift = "Refused"
	rejected gift = "Rejected"
	carded   gift = "Card"
)

func (g gift) in(s Sample) bool {
	switch g {
	case other:
		return s.Other != nil
	case refused:
		return s.Refused != nil
	case rejected:
		return s.Rejected != nil
	case carded:
		return s.Card != nil
	}
	return true
}

// without names what the sample lacks for a case that its row would be for.
func (c testCase) without(row rs.Operation, s Sample) string {
	if !c.needs.fits(row) || c.gift.in(s) {
		return ""
	}
	return string(c.gift)
}

// runsWithout reports whether a case has something to judge without its gift: the
// places for card data that the row names.
func (c testCase) runsWithout(row rs.Operation) bool {
	return c.gift == carded && len(row.Sensitive)+len(row.Codes) > 0
}

// judge runs the case in the caller's bubble.
func (c testCase) judge(tb testing.TB, k Kit, s Sample) {
	tb.Helper()
	defer func() {
		if tb.Failed() {
			tb.Logf("why it matters: %s", c.why)
			tb.Logf("what to change: %s", c.mend)
		}
	}()
	tr := newTrial(tb, k, s)
	c.run(tr)
}

func cases() []testCase {
	return slices.Concat(wireCases(), unknownCases(), proofCases(), labelCases(), timeCases(), lookupCases(), secretCases())
}
