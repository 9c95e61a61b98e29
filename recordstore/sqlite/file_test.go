package sqlite_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/sqlite"
)

func TestOddPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder?with=odd&names#100% ünï;")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"my ledger.db", "what?mode=memory", "100%41.db", "part#1", "a&b=c;d'e\"f.db", "file:x.db", "ünï.db"} {
		path := filepath.Join(dir, name)
		s := open(t, path, nil)
		if _, err := s.Claim(t.Context(), command(1, "first")); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q: the ledger is not in its file: %v", name, err)
		}
		again := open(t, path, nil)
		if _, _, err := again.Get(t.Context(), command(1, "").ID); err != nil {
			t.Errorf("%q, opened again: %v", name, err)
		}
	}
}

func TestRelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	open(t, "ledger.db", nil)
	if _, err := os.Stat("ledger.db"); err != nil {
		t.Error(err)
	}
}

// The ledger and the files beside it are for their owner only; a mode that an
// operator chose is kept.
func TestFileMode(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger.db")
	s := open(t, path, nil)
	if _, err := s.Claim(t.Context(), command(1, "first")); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 3 {
		t.Fatalf("files are %v, want the ledger, its log and its index (%v)", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v (%v)", filepath.Base(f), info.Mode(), err)
		}
	}

	shared := filepath.Join(dir, "shared.db")
	if err := os.WriteFile(shared, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o640); err != nil {
		t.Fatal(err)
	}
	open(t, shared, nil)
	if info, err := os.Stat(shared); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the chosen mode became %v (%v)", info.Mode(), err)
	}
}

func TestBadPaths(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":                                   "give a path",
		":memory:":                           "give a path",
		filepath.Join(dir, "none", "l.db"):   "create it first",
		dir:                                  "directory",
		text:                                 "not a database",
		filepath.Join(dir, "nul\x00byte.db"): "invalid",
	} {
		s, err := sqlite.Open(path, nil)
		if err == nil {
			_ = s.Close() // The test has failed already.
			t.Errorf("%q was opened", path)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error is %q, want one line with %q", path, err, want)
		}
	}
	if got, err := os.ReadFile(text); err != nil || !strings.HasPrefix(string(got), "not a database") {
		t.Errorf("the file that is no ledger was changed (%v)", err)
	}
}

// What a ledger holds is there after its process has gone.
func TestReopenKeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, path, nil)
	c := command(1, "first")
	got, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.Settle(t.Context(), recordstore.Settlement{ID: c.ID, Holder: c.Holder, Fence: got.Record.Fence,
		Result: recordstore.Result{State: recordstore.Succeeded, ExternalRef: "re_1", ResponseBody: []byte("sealed")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, _, err := open(t, path, nil).Get(t.Context(), c.ID)
	if err != nil || again.State != want.State || again.ExternalRef != "re_1" || string(again.ResponseBody) != "sealed" || again.Version != want.Version {
		t.Errorf("after reopening: %q, %q, version %d (%v)", again.State, again.ExternalRef, again.Version, err)
	}
}

// A tool that is given a wrong path makes no file, and changes none.
func TestOpenExisting(t *testing.T) {
	dir := t.TempDir()
	only := &sqlite.Options{Existing: true}
	missing := filepath.Join(dir, "missing.db")
	if s, err := sqlite.Open(missing, only); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file opened: %v, %v", s, err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the missing file: %v, want none", err)
	}

	other := filepath.Join(dir, "other.db")
	db, err := sql.Open("sqlite", other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE theirs (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database at all\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{other, text} {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := sqlite.Open(path, only); err == nil {
			t.Errorf("%s opened as a ledger: %v", filepath.Base(path), s)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("%s was changed (%v)", filepath.Base(path), err)
		}
	}
	if _, err := sqlite.Open(other, only); !errors.Is(err, recordstore.ErrSchema) {
		t.Errorf("a database without a ledger: %v, want ErrSchema", err)
	}

	path := filepath.Join(dir, "ledger.db")
	open(t, path, nil)
	open(t, path, only)
}
