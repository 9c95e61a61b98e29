package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/recordstoretest"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// The whole suite holds with each step in a transaction of its own, too.
func TestStoreDirect(t *testing.T) { recordstoretest.Run(t, &harness{direct: true}) }

// atOnce runs f n times at once and waits.
func atOnce(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// callRight makes a call of a new command and returns what was wrong about it.
func callRight(s *sqlite.Store, n int) error {
	c := command(n, "caller "+strconv.Itoa(n))
	got, err := s.Claim(context.Background(), c)
	if err != nil || got.Decision != recordstore.Send || got.Record.ID != c.ID || got.Record.Holder != c.Holder || got.Record.Fence != 1 {
		return fmt.Errorf("claim %d: %v of fence %d, %w; want send of fence 1", n, got.Decision, got.Record.Fence, err)
	}
	rec, err := s.Settle(context.Background(), recordstore.Settlement{ID: c.ID, Holder: c.Holder, Fence: 1,
		Result: recordstore.Result{State: recordstore.Succeeded, Deliveries: 1, ExternalRef: c.CommandID}})
	if err != nil || rec.ID != c.ID || rec.State != recordstore.Succeeded || rec.ExternalRef != c.CommandID || rec.Version != 2 || rec.Deliveries != 1 {
		return fmt.Errorf("settle %d: %v of %s, version %d, %w; want succeeded, version 2", n, rec.State, rec.ExternalRef, rec.Version, err)
	}
	return nil
}

// A write that the file refuses takes its whole transaction with it. Nobody but its
// caller learns of that.
func TestPoisonInAGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, path, nil)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE TRIGGER refuse BEFORE INSERT ON samekey_records
		WHEN NEW.provider = 'poison' BEGIN SELECT RAISE(ABORT, 'refused by the test'); END`); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		atOnce(16, func(i int) {
			n := 16*round + i
			if i != 5 {
				if err := callRight(s, n); err != nil {
					t.Error(err)
				}
				return
			}
			c := command(n, "poisoned")
			c.Provider = "poison"
			if _, err := s.Claim(t.Context(), c); err == nil || !strings.Contains(err.Error(), "refused by the test") {
				t.Errorf("the claim that the file refuses: %v; want its own error", err)
			}
		})
	}
}

// Callers who give up return at once, and touch nobody. What became of their claim
// they learn by the same claim again.
func TestCancelledCallersInAGroup(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "ledger.db"), nil)
	for round := range 20 {
		atOnce(16, func(i int) {
			n := 16*round + i
			if i%2 == 0 {
				if err := callRight(s, n); err != nil {
					t.Error(err)
				}
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), rand.N(5*time.Millisecond))
			defer cancel()
			if _, err := s.Claim(ctx, command(n, "caller")); err != nil && ctx.Err() == nil {
				t.Errorf("a claim that was given up: %v", err)
			}
			got, err := s.Claim(t.Context(), command(n, "caller"))
			if err != nil || got.Decision != recordstore.Send || got.Record.Fence != 1 {
				t.Errorf("the same claim again: %v of fence %d, %v; want send of fence 1", got.Decision, got.Record.Fence, err)
			}
		})
	}
}

// R10: many callers who ask for the same few records at once, beside others: of
// each record one sends, and each caller gets the answer about its own.
func TestOneRecordInManyGroups(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "ledger.db"), nil)
	for round := range 10 {
		var sent [3]atomic.Int64
		atOnce(32, func(i int) {
			n := 1000 + 32*round + i
			if i%2 == 0 {
				if err := callRight(s, n); err != nil {
					t.Error(err)
				}
				return
			}
			c := command(3*round+i%3, strconv.Itoa(i))
			got, err := s.Claim(t.Context(), c)
			if err != nil || got.Record.ID != c.ID {
				t.Errorf("claim of %v: %v about %v", c.ID, err, got.Record.ID)
			}
			if got.Decision == recordstore.Send {
				sent[i%3].Add(1)
			} else if got.Decision != recordstore.InFlight {
				t.Errorf("%v; want in flight", got.Decision)
			}
		})
		for i := range sent {
			if n := sent[i].Load(); n != 1 {
				t.Errorf("%d callers may send one record", n)
			}
		}
	}
}

// Another process holds the file. Each caller waits for it as long as BusyTimeout
// says since it asked, however many wait before it, and then has SQLite's error.
func TestGroupOnALockedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	const busy = 300 * time.Millisecond
	s := open(t, path, &sqlite.Options{BusyTimeout: busy})
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	atOnce(16, func(i int) {
		begun := time.Now()
		_, err := s.Claim(t.Context(), command(i, "caller"))
		took := time.Since(begun)
		if err == nil || !strings.Contains(err.Error(), "locked") || took < busy || took > 10*busy {
			t.Errorf("claim %d: %v after %v; want that the file is locked, after %v", i, err, took, busy)
		}
	})
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	atOnce(16, func(i int) {
		if err := callRight(s, 100+i); err != nil {
			t.Error(err)
		}
	})
}

// A claim beyond the queue is told so at once, and nothing is written; settlements
// are not refused.
func TestFullQueue(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "ledger.db"), &sqlite.Options{Queue: 1})
	held := command(0, "caller")
	if _, err := s.Claim(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	var n, refused atomic.Int64
	for refused.Load() == 0 {
		atOnce(16, func(i int) {
			if i == 0 {
				_, err := s.Settle(t.Context(), recordstore.Settlement{ID: held.ID, Holder: held.Holder, Fence: 1,
					Result: recordstore.Result{State: recordstore.Succeeded}})
				if err != nil {
					t.Errorf("a settlement with the queue full: %v", err)
				}
				return
			}
			c := command(int(n.Add(1)), "caller")
			switch _, err := s.Claim(t.Context(), c); {
			case errors.Is(err, recordstore.ErrOverloaded):
				refused.Add(1)
				if _, _, err := s.Get(t.Context(), c.ID); !errors.Is(err, recordstore.ErrNotFound) {
					t.Errorf("a refused claim left a record: %v", err)
				}
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// What the test of two processes lets each of them do.
const (
	hurried = 32  // Callers.
	hurry   = 400 // Calls of all.
	longest = 2 * time.Second
)

// callInAHurry makes calls of this process's own commands and prints how long the
// slowest call took.
func callInAHurry(s *sqlite.Store, _ string) error {
	first := os.Getpid() % 1000 * hurry
	var worst atomic.Int64
	errs := make([]error, hurried)
	atOnce(hurried, func(i int) {
		for n := i; n < hurry && errs[i] == nil; n += hurried {
			begun := time.Now()
			errs[i] = callRight(s, first+n)
			for took := int64(time.Since(begun)); ; {
				seen := worst.Load()
				if took <= seen || worst.CompareAndSwap(seen, took) {
					break
				}
			}
		}
	})
	fmt.Println("slowest", worst.Load())
	return errors.Join(errs...)
}

// Two processes write to one file as fast as they can: all of it is right, and
// nobody waits longer than 2 s.
func TestTwoProcessesInAHurry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, path, nil)
	children := []child{startChild(t, path, "hurry"), startChild(t, path, "hurry")}
	for _, c := range children {
		if err := c.start.Close(); err != nil {
			t.Fatal(err)
		}
	}
	atOnce(len(children), func(i int) {
		lines := children[i].finish(t)
		var slowest time.Duration
		if len(lines) != 1 {
			t.Errorf("process %d printed %q", i, lines)
			return
		}
		if _, err := fmt.Sscanf(lines[0], "slowest %d", &slowest); err != nil || slowest > longest {
			t.Errorf("process %d: the slowest call took %v, %v; want at most %v", i, slowest, err, longest)
		}
		t.Logf("process %d: the slowest call took %v", i, slowest)
	})
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all, right int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*), sum(state = 'succeeded' AND fence = 1 AND version = 2) FROM samekey_records`).Scan(&all, &right); err != nil ||
		all != 2*hurry || right != all {
		t.Errorf("of %d records %d are settled once, %v; want %d", all, right, err, 2*hurry)
	}
	if err := callRight(s, 999_999); err != nil {
		t.Errorf("after the processes were killed: %v", err)
	}
}
