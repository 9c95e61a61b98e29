package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

const secret = "4242424242424242 sk_live_secret"

// secretive returns a claim that carries what no error may show.
func secretive() recordstore.Claim {
	return recordstore.Claim{
		ID: recordstore.ID{Day: 20000}, CommandID: secret, Provider: secret, Holder: secret, Lease: time.Minute,
		Fingerprints: [][]byte{[]byte(secret)}, Derivation: "k1", Derivations: []string{"k1"},
		SealVersion: 1, Request: []byte(strings.Repeat(secret, 1000)),
	}
}

// refused expects an error of the database itself, not one of the contract's.
func refused(t *testing.T, err error, code int) {
	t.Helper()
	var e *sqlite.Error
	if !errors.As(err, &e) || e.Code()&0xff != code {
		t.Fatalf("error is %v, want SQLite's code %d", err, code)
	}
	for _, contract := range []error{recordstore.ErrNotHeld, recordstore.ErrNotFound, recordstore.ErrInvalid, recordstore.ErrSchema} {
		if errors.Is(err, contract) {
			t.Errorf("%v claims to know what is in the ledger", err)
		}
	}
	if text := err.Error(); strings.Contains(text, "4242") || strings.Contains(text, "sk_live") || strings.Contains(text, "\n") {
		t.Errorf("the error shows values, or more than one line: %s", text)
	}
}

// occupy holds the file's write lock, as a stuck process would, until released.
func occupy(t *testing.T, path string) (release func()) {
	t.Helper()
	other, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := other.writer.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(), other.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestLockedFile(t *testing.T) {
	first := openTemp(t)
	release := occupy(t, first.path)
	s := openAgain(t, first.path, 20*time.Millisecond) // Nothing to migrate: no write.
	_, err := s.Claim(t.Context(), secretive())
	refused(t, err, sqlite3.SQLITE_BUSY)
	if _, _, err := s.Get(t.Context(), secretive().ID); !errors.Is(err, recordstore.ErrNotFound) {
		t.Errorf("Get beside a writer: error is %v, want ErrNotFound", err)
	}
	release()
	if got, err := s.Claim(t.Context(), secretive()); err != nil || got.Decision != recordstore.Send {
		t.Errorf("after the lock is gone: %q, %v", got.Decision, err)
	}
}

// A caller who gives up does not wait for the busy timeout, and nothing is
// written behind its back.
func TestGivingUpOnALockedFile(t *testing.T) {
	first := openTemp(t)
	s := openAgain(t, first.path, time.Hour)
	release := occupy(t, first.path)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Claim(ctx, secretive()); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error is %v, want context.DeadlineExceeded", err)
	}
	release()
	if _, _, err := s.Get(t.Context(), secretive().ID); !errors.Is(err, recordstore.ErrNotFound) {
		t.Errorf("Get: error is %v, want ErrNotFound", err)
	}
	if got, err := s.Claim(t.Context(), secretive()); err != nil || got.Decision != recordstore.Send {
		t.Errorf("the claim asked again: %q, %v", got.Decision, err)
	}
}

// A ledger that has to be migrated while another process holds it makes Open fail
// in bounded time.
func TestOpenOfALockedOldFile(t *testing.T) {
	s := openTemp(t)
	if _, err := s.writer.ExecContext(t.Context(), `UPDATE samekey_schema SET version = 0`); err != nil {
		t.Fatal(err)
	}
	tx, err := s.writer.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, second(Open(s.path, &Options{BusyTimeout: 10 * time.Millisecond})), sqlite3.SQLITE_BUSY)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

func TestFullDisk(t *testing.T) {
	s := openTemp(t)
	if _, err := s.writer.ExecContext(t.Context(), `PRAGMA max_page_count = 1`); err != nil {
		t.Fatal(err) // SQLite takes the present size for it.
	}
	_, err := s.Claim(t.Context(), secretive())
	refused(t, err, sqlite3.SQLITE_FULL)
	if _, err := s.writer.ExecContext(t.Context(), `PRAGMA max_page_count = 1000000`); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Claim(t.Context(), secretive()); err != nil || got.Decision != recordstore.Send {
		t.Errorf("with room again: %q, %v", got.Decision, err)
	}
}

func TestReadOnly(t *testing.T) {
	s := openTemp(t)
	if _, err := s.writer.ExecContext(t.Context(), `PRAGMA query_only = 1`); err != nil {
		t.Fatal(err)
	}
	_, err := s.Claim(t.Context(), secretive())
	refused(t, err, sqlite3.SQLITE_READONLY)
}

// What a ledger that cannot be written says of the reconciler's and people's calls.
func TestReadOnlyQueueAndDesk(t *testing.T) {
	s := openTemp(t)
	c := secretive()
	if err := s.Seed(t.Context(), recordstore.Record{ID: c.ID, State: recordstore.Sending, Fingerprint: []byte{1}, Holder: secret, Version: 1, ClaimedAt: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.ExecContext(t.Context(), `PRAGMA query_only = 1`); err != nil {
		t.Fatal(err)
	}
	e := recordstore.Entry{Kind: "erase", Actor: secret, Text: secret}
	_, eraseErr := s.Erase(t.Context(), c.ID, e)
	_, _, takeErr := s.TakeDue(t.Context(), recordstore.DueQuery{Provider: secret, Mode: secret, Holder: secret, Lease: 1, Limit: 1})
	_, sweepErr := s.FindCrashed(t.Context(), true, 1)
	_, wakeErr := s.Wake(t.Context(), c.ID, secret)
	_, purgeErr := s.Purge(t.Context(), 1)
	for _, err := range []error{eraseErr, takeErr, sweepErr, wakeErr, purgeErr} {
		refused(t, err, sqlite3.SQLITE_READONLY)
	}
	if b, err := s.Backlog(t.Context(), secret); err != nil || b.Due != 0 {
		t.Errorf("Backlog only reads: %+v, %v", b, err)
	}
	if trail, err := s.Trail(t.Context(), c.ID); err != nil || len(trail) != 0 {
		t.Errorf("%d entries of steps that were not taken (%v)", len(trail), err)
	}
}

// A plan on a handle of another file says so, and shows no values.
func TestPlanInAnotherFile(t *testing.T) {
	s := openTemp(t)
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "orders.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := s.Tx(tx).Plan(t.Context(), secretive()); err == nil || !strings.Contains(err.Error(), "samekey_records") ||
		strings.Contains(err.Error(), "4242") {
		t.Errorf("error is %v, want one that names the missing table", err)
	}
}

func TestClosed(t *testing.T) {
	s := openTemp(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), secretive()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Claim on a closed ledger: %v", err)
	}
	if _, _, err := s.Get(t.Context(), secretive().ID); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Get on a closed ledger: %v", err)
	}
}
