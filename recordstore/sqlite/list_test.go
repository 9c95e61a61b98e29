package sqlite_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// waiting seeds n uncertain records that are due.
func waiting(t testing.TB, s *sqlite.Store, n int) {
	t.Helper()
	begin := time.Now().Add(-48 * time.Hour).Truncate(time.Second)
	recs := make([]recordstore.Record, n)
	for i := range recs {
		at := begin.Add(time.Duration(i) * time.Second)
		hash := sha256.Sum256(fmt.Append(nil, i))
		recs[i] = recordstore.Record{
			ID: recordstore.ID{Day: 20_000}, Scope: hash, Provider: "stripe", Account: "acct_1/live", Operation: "refund.create",
			CommandID: fmt.Sprint("c", i), Class: "money", Derivation: "v1", Fingerprint: []byte{1, 2}, State: recordstore.Uncertain,
			Holder: "h", Fence: 1, Version: 2, ClaimedAt: at, CreatedAt: at, LeaseEndsAt: at.Add(time.Minute), DueAt: at.Add(time.Hour),
		}
		copy(recs[i].ID.KeyHash[:], hash[:])
	}
	if err := s.Seed(t.Context(), recs...); err != nil {
		t.Fatal(err)
	}
}

// All pages of what is open, in either order, show each of many records once.
func TestListManyOpen(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "ledger.db"), nil)
	const many = 2_500
	waiting(t, s, many)
	for _, order := range []recordstore.Order{recordstore.OldestFirst, recordstore.NewestFirst} {
		q := recordstore.ListQuery{Filter: recordstore.Filter{Open: true}, Order: order, Limit: 999}
		seen := map[recordstore.ID]bool{}
		for {
			page, err := s.List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, rec := range page.Records {
				seen[rec.ID] = true
			}
			if q.From = page.Next; q.From == nil {
				break
			}
		}
		if len(seen) != many {
			t.Errorf("%d records were shown in order %q, want %d", len(seen), order, many)
		}
	}
}

// A list neither waits for a writer nor keeps one waiting; a call that was given up
// says so.
func TestListBesideAWriter(t *testing.T) {
	h := &harness{}
	s := h.Open(t, time.Now).(*sqlite.Store)
	waiting(t, s, 10)
	_, commit, _ := h.Begin(t, s)
	page, err := s.List(t.Context(), recordstore.ListQuery{Filter: recordstore.Filter{Open: true}, Limit: 5})
	if err != nil || len(page.Records) != 5 {
		t.Errorf("beside a writer: %d records, %v", len(page.Records), err)
	}
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tally(t.Context(), recordstore.Filter{}); err == nil || errors.Is(err, recordstore.ErrTooLong) {
		t.Errorf("a closed ledger: %v", err)
	}
}

// BenchmarkListOpen is a page of 100 among 100,000 open records.
func BenchmarkListOpen(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "ledger.db"), nil)
	waiting(b, s, 100_000)
	for b.Loop() {
		page, err := s.List(b.Context(), recordstore.ListQuery{Filter: recordstore.Filter{Open: true}, Limit: 100})
		if err != nil || len(page.Records) != 100 {
			b.Fatalf("%d records, %v", len(page.Records), err)
		}
	}
}
