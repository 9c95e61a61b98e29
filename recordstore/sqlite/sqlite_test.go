package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/recordstoretest"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// patience is how long the tests' racing writers wait for each other: SQLite keeps
// no queue, and the machine may be busy.
const patience = time.Minute

// harness opens ledgers in files.
type harness struct {
	path   string
	now    func() time.Time
	direct bool // Each step in a transaction of its own.
}

func (h *harness) Open(t testing.TB, now func() time.Time) recordstore.Store {
	h.path, h.now = filepath.Join(t.TempDir(), "ledger.db"), now
	return h.Reopen(t)
}

func (h *harness) Reopen(t testing.TB) recordstore.Store {
	return open(t, h.path, &sqlite.Options{Now: h.now, BusyTimeout: patience, Direct: h.direct})
}

func (h *harness) Seed(t testing.TB, s recordstore.Store, recs ...recordstore.Record) {
	if err := s.(*sqlite.Store).Seed(t.Context(), recs...); err != nil {
		t.Fatal(err)
	}
}

// Begin starts a transaction of a service that keeps the ledger beside its own
// tables: with its own handle on the file.
func (h *harness) Begin(t testing.TB, s recordstore.Store) (p recordstore.Planner, commit, rollback func() error) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+h.path+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*sqlite.Store).Tx(tx), tx.Commit, tx.Rollback
}

func open(t testing.TB, path string, opts *sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// R10, R20, R23, C25, C26: the suite names what each of its cases proves.
func TestStore(t *testing.T) { recordstoretest.Run(t, &harness{}) }
