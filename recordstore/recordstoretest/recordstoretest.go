// Package recordstoretest judges implementations of recordstore.Store. Authors of
// a store call Run from a test; nobody else needs this package.
//
// A store that decides in SQL is held to the functions of package recordstore
// (Take, Settled, Reported, Renewed, TakenDue, Resolved and so on) over a grid of
// records, field by field. The suite is itself proved by broken stores, each of
// which fails its case.
package recordstoretest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Harness opens the stores that Run judges.
type Harness interface {
	// Open returns a store on an empty ledger that takes its time from now. It is
	// called once for each case, and what it opens is closed by t.Cleanup.
	Open(t testing.TB, now func() time.Time) recordstore.Store

	// Reopen returns a second handle on the ledger that Open returned last, with the
	// same clock, as another process would open it. A store that lives in memory
	// returns the same store.
	Reopen(t testing.TB) recordstore.Store

	// Seed writes records into s as they are, best in one transaction, whatever
	// their state: no legal call leads to some of the records that the suite
	// needs. Times are whole microseconds. It is the test's own way in (a file
	// export_test.go), not an ability of the store.
	Seed(t testing.TB, s recordstore.Store, recs ...recordstore.Record)
}

// Lacking is an optional ability of a Harness. Lacks names the optional abilities
// that its stores do without: "Forgetter", "Queue", "Desk", "Purger", "Planner",
// "Restorer", "Lister".
// Their cases do not run. An ability that is missing and not named fails the
// suite, so that none is lost by a typing error.
type Lacking interface{ Lacks() []string }

// Transactor is an optional ability of a Harness whose stores plan inside a
// transaction of the caller. Without it the store itself must be the Planner, and
// what it plans is there at once.
type Transactor interface {
	// Begin starts a transaction on the ledger of s, as a service does for its own
	// tables, and returns what plans in it and how it ends. Each transaction of the
	// suite is ended.
	Begin(t testing.TB, s recordstore.Store) (p recordstore.Planner, commit, rollback func() error)
}

// Run judges the stores that h opens. A case that fails says why it exists. The
// cases run one after another; those on an optional ability not where h is
// Lacking it.
func Run(t *testing.T, h Harness) {
	for _, c := range cases() {
		if !slices.Contains(lacks(h), c.needs()) {
			t.Run(c.name, func(t *testing.T) { c.judge(t, h) })
		}
	}
}

// testCase is one thing that a store must do.
type testCase struct {
	name string
	why  string // Printed when the case fails.
	run  func(*ledger)
}

// needs returns the optional ability that the case is about, "" for none.
func (c testCase) needs() string {
	family, _, _ := strings.Cut(c.name, "/")
	switch family {
	case "frontier":
		return "Forgetter"
	case "due", "crashed", "wake", "backlog":
		return "Queue"
	case "desk", "trail":
		return "Desk"
	case "purge":
		return "Purger"
	case "plan":
		return "Planner"
	case "restored":
		return "Restorer"
	case "list", "tally", "about":
		return "Lister"
	}
	return ""
}

func (c testCase) judge(t testing.TB, h Harness) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("this case exists because %s", c.why)
		}
	}()
	clock := &clock{now: start}
	l := &ledger{TB: t, Store: h.Open(t, clock.Now), harness: h, clock: clock}
	if needs := c.needs(); needs != "" && !l.can(needs) {
		t.Fatalf("the store is no recordstore.%s; implement it, or let the harness name it in Lacks", needs)
	}
	c.run(l)
}

// lacks returns the abilities that the stores of h do without.
func lacks(h Harness) []string {
	if l, ok := h.(Lacking); ok {
		return l.Lacks()
	}
	return nil
}

// can reports whether the store under test has an optional ability.
func (l *ledger) can(ability string) (ok bool) {
	switch ability {
	case "Forgetter":
		_, ok = l.Store.(recordstore.Forgetter)
	case "Queue":
		_, ok = l.Store.(recordstore.Queue)
	case "Desk":
		_, ok = l.Store.(recordstore.Desk)
	case "Purger":
		_, ok = l.Store.(recordstore.Purger)
	case "Planner":
		if _, ok = l.harness.(Transactor); !ok {
			_, ok = l.Store.(recordstore.Planner)
		}
	case "Restorer":
		_, ok = l.Store.(recordstore.Restorer)
	case "Lister":
		_, ok = l.Store.(recordstore.Lister)
	}
	return ok && !slices.Contains(lacks(l.harness), ability)
}

func cases() []testCase {
	return slices.Concat(claimCases(), frontierCases(), settleCases(), reportCases(), valueCases(), concurrentCases(),
		gridCases(), queueCases(), wakeCases(), sweepCases(), deskCases(), purgeCases(), planCases(), restoredCases(), checkCases(),
		listCases())
}
