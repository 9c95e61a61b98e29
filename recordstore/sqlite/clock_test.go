package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

// R13: a clock that is set back must not open a provider's window again, in this
// process or in one that starts afterwards.
func TestClockSetBack(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	now := start
	opts := &sqlite.Options{Now: func() time.Time { return now }}
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, path, opts)

	c := command(1, "first")
	c.Lease, c.Window = time.Minute, time.Hour
	if _, err := s.Claim(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	now = start.Add(2 * time.Hour) // The window is closed, as another command's claim saw.
	if _, err := s.Claim(t.Context(), command(2, "first")); err != nil {
		t.Fatal(err)
	}
	now = start.Add(2 * time.Minute)
	for _, ledger := range []*sqlite.Store{s, open(t, path, opts)} {
		if _, at, err := ledger.Get(t.Context(), c.ID); err != nil || !at.Equal(start.Add(2*time.Hour)) {
			t.Errorf("Get says that it is %v, want the time of the newest claim (%v)", at, err)
		}
	}
	c.Holder = "second"
	got, err := open(t, path, opts).Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if got.Decision != recordstore.Lookup || !got.Now.Equal(start.Add(2*time.Hour)) {
		t.Errorf("the takeover decided %q at %v, want a look-up: the window has closed", got.Decision, got.Now)
	}
	settled, err := s.Settle(t.Context(), recordstore.Settlement{ID: c.ID, Holder: c.Holder, Fence: got.Record.Fence,
		Result: recordstore.Result{State: recordstore.Uncertain, DueIn: time.Minute}})
	if err != nil || settled.AnsweredAt.Before(settled.ClaimedAt) || !settled.DueAt.Equal(settled.AnsweredAt.Add(time.Minute)) {
		t.Errorf("settled at %v, claimed at %v, due at %v (%v)", settled.AnsweredAt, settled.ClaimedAt, settled.DueAt, err)
	}
}

// What a process has seen holds for it even before anything is claimed.
func TestClockOfOneProcess(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	now := start
	s := open(t, filepath.Join(t.TempDir(), "ledger.db"), &sqlite.Options{Now: func() time.Time { return now }})
	c := command(1, "first")
	c.Lease = time.Minute
	if _, err := s.Claim(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	now = start.Add(time.Minute)
	if _, _, err := s.Get(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	now = start
	c.Holder = "second"
	if got, err := s.Claim(t.Context(), c); err != nil || got.Decision != recordstore.Send {
		t.Errorf("the takeover decided %q: the lease had been seen to end (%v)", got.Decision, err)
	}
}
