// Package recordstoretest judges implementations of recordstore.Store. Authors of
// a store call Run from a test; nobody else needs this package.
//
// A store that decides in SQL is held to the functions of package recordstore
// (Take, Settled, Reported, Renewed) over a grid of records, field by field.
// The suite is itself proved by broken stores, each of which fails its case.
package recordstoretest

import (
	"slices"
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

// Run judges the stores that h opens. A case that fails says why it exists. The
// cases run one after another; those on the frontier only where the store is a
// recordstore.Forgetter.
func Run(t *testing.T, h Harness) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) { c.judge(t, h) })
	}
}

// testCase is one thing that a store must do.
type testCase struct {
	name string
	why  string // Printed when the case fails.
	run  func(*ledger)
}

func (c testCase) judge(t testing.TB, h Harness) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("this case exists because %s", c.why)
		}
	}()
	clock := &clock{now: start}
	c.run(&ledger{TB: t, Store: h.Open(t, clock.Now), harness: h, clock: clock})
}

func cases() []testCase {
	return slices.Concat(claimCases(), frontierCases(), settleCases(), reportCases(), valueCases(), concurrentCases(), gridCases())
}
