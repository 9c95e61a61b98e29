package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// dueQuery asks for the records of command.
func dueQuery(holder string) recordstore.DueQuery {
	return recordstore.DueQuery{
		Provider: command(0, "").Provider, Accounts: []string{command(0, "").Account}, Derivations: []string{"k1"},
		Fingerprints: []byte{command(0, "").Fingerprints[0][0]}, SealVersion: 1, Holder: holder, Lease: time.Hour, Limit: 5,
	}
}

// takeAll takes due records in parts until there are none, and prints them.
func takeAll(s *sqlite.Store, _ string) error {
	for n := 0; ; n++ {
		taken, _, err := s.TakeDue(context.Background(), dueQuery(fmt.Sprintf("%d/%d", os.Getpid(), n)))
		if err != nil || len(taken) == 0 {
			return err
		}
		for _, rec := range taken {
			fmt.Printf("%x\n", rec.ID.KeyHash)
		}
	}
}

// planTwice plans command 1 and commits, and command 2 and does not.
func planTwice(s *sqlite.Store, path string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		return err
	}
	for n := 1; n <= 2; n++ {
		tx, err := db.BeginTx(context.Background(), nil)
		if err != nil {
			return err
		}
		if _, err := s.Tx(tx).Plan(context.Background(), command(n, "")); err != nil {
			return err
		}
		if n == 1 {
			if err := tx.Commit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// R10, C22: several processes that ask at once never take one record, and what a
// killed one took is due again when its lease ends.
func TestProcessesTakeEachRecordOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, path, nil)
	for n := range commands {
		got, err := s.Claim(t.Context(), command(n, "dead"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Settle(t.Context(), recordstore.Settlement{ID: got.Record.ID, Holder: "dead", Fence: 1,
			Result: recordstore.Result{State: recordstore.Uncertain, DueIn: time.Microsecond}})
		if err != nil {
			t.Fatal(err)
		}
	}
	children := make([]child, processes)
	for i := range children {
		children[i] = startChild(t, path, "take")
	}
	for _, c := range children {
		if err := c.start.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	taken := map[string]int{}
	var wg sync.WaitGroup
	for _, c := range children {
		wg.Go(func() {
			for _, line := range c.finish(t) {
				mu.Lock()
				taken[line]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for n := range commands {
		if got := taken[fmt.Sprintf("%x", command(n, "").ID.KeyHash)]; got != 1 {
			t.Errorf("record %d was taken %d times", n, got)
		}
	}

	if again, _, err := s.TakeDue(t.Context(), dueQuery("too early")); err != nil || len(again) != 0 {
		t.Errorf("%d records were taken while their leases live (%v)", len(again), err)
	}
	later := open(t, path, &sqlite.Options{Now: func() time.Time { return time.Now().Add(time.Hour) }})
	q := dueQuery("survivor")
	q.Limit = 2 * commands
	if again, _, err := later.TakeDue(t.Context(), q); err != nil || len(again) != commands {
		t.Errorf("%d records came back after the leases, want %d (%v)", len(again), commands, err)
	}
}

// A process that is killed after the commit leaves a plan that is sent; one that is
// killed before it leaves nothing.
func TestPlanOfAKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	c := startChild(t, path, "plan")
	if err := c.start.Close(); err != nil {
		t.Fatal(err)
	}
	c.finish(t)

	s := open(t, path, nil)
	taken, _, err := s.TakeDue(t.Context(), dueQuery("survivor"))
	if err != nil || len(taken) != 1 || taken[0].ID != command(1, "").ID || taken[0].State != recordstore.Planned {
		t.Errorf("%d records are due, want the plan that was committed (%v)", len(taken), err)
	}
	for n, from := range map[int]recordstore.State{1: recordstore.Planned, 2: ""} {
		got, err := s.Claim(t.Context(), command(n, "survivor"))
		if err != nil || got.Decision != recordstore.Send || got.Record.TakenFrom != from {
			t.Errorf("command %d: %q from %q, want a send from %q (%v)", n, got.Decision, got.Record.TakenFrom, from, err)
		}
	}
}
