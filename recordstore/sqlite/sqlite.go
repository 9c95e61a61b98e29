// Package sqlite is a ledger in one file, for one machine and several processes.
//
// Every claim and every settlement is on disk when its call returns (write-ahead
// log, synchronous FULL). Those that come while one is being written go together in
// the next transaction; each gets its own answer, and where a transaction fails each
// is written again, alone. The file belongs on a local disk: on a network file
// system SQLite's locks, and with them the ledger, do not hold. Where several
// machines meet use package postgres.
//
// The ledger's clock is that of the machine, but never behind the time of the
// newest claim in the file, nor behind what this process has seen before: a clock
// that is set back neither opens a window of the provider again nor makes a record
// older than its own past. A clock that was far ahead when something was claimed
// therefore holds the ledger's time still until the machine has caught up.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/internal/groupcommit"
)

// Options tune a Store. A nil *Options means all defaults.
type Options struct {
	// BusyTimeout is how long a call waits while another process writes. Defaults
	// to 2 s. A context that ends sooner ends the wait. Open waits five times as
	// long for processes that create or migrate the same file.
	BusyTimeout time.Duration

	// Existing opens nothing but a ledger that is there, in the version of this
	// build: for tools, so that a mistyped path makes no file, and no ledger in
	// somebody else's. Defaults to false: Open creates and migrates.
	Existing bool

	// Now is the machine's clock. Defaults to time.Now; for tests.
	Now func() time.Time

	// Queue is how many claims, settlements and other steps on one record may wait
	// for those that are being written. A claim beyond it is
	// recordstore.ErrOverloaded. Defaults to 16,384.
	Queue int

	// Direct writes each step in a transaction of its own. By default those that
	// gather while one is written go together in the next.
	Direct bool
}

const defaultBusyTimeout = 2 * time.Second

// openTries is how many busy timeouts Open waits for processes that create or
// migrate the same file.
const openTries = 5

// maxReaders is how many reads may run beside each other and beside the writer.
const maxReaders = 4

// Store is a ledger in one file. It is safe for concurrent use, by any number of
// processes on one machine. Close it when done.
type Store struct {
	path    string
	clock   clock
	writer  *sql.DB // One connection: writers of one process queue here, not at the file's lock.
	readers *sql.DB
	busy    time.Duration
	group   *groupcommit.Group[*step] // nil: each step alone.

	claim, settle, renew, find, get *sql.Stmt
}

var (
	_ recordstore.Store     = (*Store)(nil)
	_ recordstore.Durable   = (*Store)(nil)
	_ recordstore.Forgetter = (*Store)(nil)
	_ recordstore.Queue     = (*Store)(nil)
	_ recordstore.Desk      = (*Store)(nil)
	_ recordstore.Purger    = (*Store)(nil)
	_ recordstore.Restorer  = (*Store)(nil)
	_ recordstore.Planner   = planner{}
)

// Open creates or opens the ledger at path and brings its schema up to date. Many
// processes may open one path at once. A new file can be read and written by its
// owner only; its folder must exist. A ledger that was written by a newer build is
// recordstore.ErrSchema. opts may be nil.
func Open(path string, opts *Options) (*Store, error) {
	return open(path, opts, sqlite.NewConnector)
}

// open is Open with a choice of connector, so that tests can count statements.
func open(path string, opts *Options, connect func(dsn string) (driver.Connector, error)) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	busy, now := opts.BusyTimeout, opts.Now
	if busy <= 0 {
		busy = defaultBusyTimeout
	}
	if now == nil {
		now = time.Now
	}
	abs, err := create(path, opts.Existing)
	if err != nil {
		return nil, err
	}
	s := &Store{path: abs, clock: clock{own: now}, busy: busy}
	if !opts.Direct {
		queue := opts.Queue
		if queue <= 0 {
			queue = defaultQueue
		}
		s.group = groupcommit.New(gathered{s}, groupcommit.Options{Workers: 1, Batch: maxBatch, Queue: queue})
	}
	if s.writer, err = pool(abs, time.Millisecond, 1, "", connect); err != nil { // begin waits
		return nil, err
	}
	if s.readers, err = pool(abs, busy, maxReaders, "query_only(1)", connect); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if opts.Existing {
		err = checkExisting(context.Background(), s.readers)
	}
	if err == nil {
		err = s.prepare(openTries * busy)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: open %s: %w", path, err), s.Close())
	}
	return s, nil
}

// create makes sure that path is a file, or finds that it is, and returns it in
// full.
func create(path string, existing bool) (string, error) {
	if path == "" || path == ":memory:" {
		return "", fmt.Errorf("sqlite: open: %q names no file; give a path, or use package memory", path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	mode := os.O_RDWR | os.O_CREATE
	if existing {
		mode = os.O_RDWR
	}
	f, err := os.OpenFile(abs, mode, 0o600)
	switch {
	case existing && errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("sqlite: open %s: there is no such file: %w", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("sqlite: open %s: the folder %s does not exist; create it first: %w", path, filepath.Dir(abs), err)
	case err != nil:
		return "", fmt.Errorf("sqlite: open: %w", err)
	}
	if err := f.Close(); err != nil {
		return "", fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	return abs, nil
}

// pool returns up to n connections to the file. Each of them starts a transaction
// with BEGIN IMMEDIATE.
func pool(abs string, busy time.Duration, n int, pragma string, connect func(string) (driver.Connector, error)) (*sql.DB, error) {
	q := url.Values{"_txlock": {"immediate"}, "_error_rc": {"1"}, "_dqs": {"0"}}
	q.Add("_pragma", "busy_timeout("+strconv.FormatInt(max(busy.Milliseconds(), 1), 10)+")")
	q.Add("_pragma", "synchronous(FULL)")
	if pragma != "" {
		q.Add("_pragma", pragma)
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: q.Encode()}
	c, err := connect(name.String())
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", abs, err)
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// prepare brings the file to write-ahead logging and to this build's schema,
// waiting for others that do the same, and prepares what is asked often.
func (s *Store) prepare(wait time.Duration) error {
	ctx := context.Background()
	if err := retry(wait, func() error { return useWAL(ctx, s.writer) }); err != nil {
		return err
	}
	if err := retry(wait, func() error { return migrate(ctx, s.writer, migrations) }); err != nil {
		return err
	}
	for _, p := range []struct {
		stmt **sql.Stmt
		db   *sql.DB
		text string
	}{
		{&s.claim, s.writer, claimSQL},
		{&s.settle, s.writer, settleSQL},
		{&s.renew, s.writer, renewSQL},
		{&s.find, s.writer, getSQL},
		{&s.get, s.readers, getSQL},
	} {
		var err error
		if *p.stmt, err = p.db.PrepareContext(ctx, p.text); err != nil {
			return err
		}
	}
	return nil
}

// useWAL switches the file to write-ahead logging, which it then keeps.
func useWAL(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil || mode == "wal" {
		return err
	}
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("write-ahead logging is not possible here (journal mode %s); use a local disk", mode)
	}
	return nil
}

// retry asks again while another process holds the file, until wait is over: of
// two that switch a new file to write-ahead logging at once SQLite refuses one
// without waiting.
func retry(wait time.Duration, ask func() error) error {
	const pause = 5 * time.Millisecond
	over := time.After(wait)
	for {
		err := ask()
		if err == nil || !isBusy(err) {
			return err
		}
		select {
		case <-over:
			return err
		case <-time.After(pause):
		}
	}
}

// isBusy reports whether err means that another process holds the file.
func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// Close closes the ledger's connections. Calls under way end first.
func (s *Store) Close() error {
	if s.group != nil {
		s.group.Close()
	}
	var errs []error
	for _, db := range []*sql.DB{s.readers, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sqlite: close %s: %w", s.path, err)
	}
	return nil
}

// Durable reports that the records outlive the process.
func (s *Store) Durable() bool { return true }

// write runs f in one transaction, begun with BEGIN IMMEDIATE, so that what f
// reads is what it changes. now is this process's time once it may write. With an
// error nothing was changed, or, where the commit itself failed, it is not known.
func (s *Store) write(ctx context.Context, f func(tx *sql.Tx, now sql.NamedArg) error) error {
	return s.writeUntil(ctx, time.Now().Add(s.busy), f)
}

// writeUntil is write that waits for another process no longer than that.
func (s *Store) writeUntil(ctx context.Context, until time.Time, f func(tx *sql.Tx, now sql.NamedArg) error) error {
	tx, err := s.begin(ctx, until)
	if err != nil {
		return err
	}
	if err := f(tx, s.now()); err != nil {
		_ = tx.Rollback() // The first error counts; an unfinished transaction is undone anyway.
		return err
	}
	return tx.Commit()
}

// now returns the time that statements start from.
func (s *Store) now() sql.NamedArg { return sql.Named("now", s.clock.read()) }
