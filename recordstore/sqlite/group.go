package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/internal/groupcommit"
)

// What steps share at most.
const (
	defaultQueue = 16_384
	maxBatch     = 256
)

// step is a write on one record. It either answers, or returns an error of the
// database and counts as not taken.
type step struct {
	do    func(ctx context.Context, tx *sql.Tx, now sql.NamedArg) error
	until time.Time // So long it waits for the file.
}

// onRecord runs do, which writes no more than the record id and its trail, in one
// transaction with what other goroutines write meanwhile. do may run again where
// that one failed. What it returns is on disk when onRecord returns nil or
// ErrNotHeld.
func onRecord[T any](ctx context.Context, s *Store, id recordstore.ID, refusable bool,
	do func(ctx context.Context, tx *sql.Tx, now sql.NamedArg) (T, error)) (T, error) {
	var got, none T
	st := &step{until: time.Now().Add(s.busy), do: func(ctx context.Context, tx *sql.Tx, now sql.NamedArg) (err error) {
		got, err = do(ctx, tx, now)
		return err
	}}
	var err error
	if s.group == nil {
		err = gathered{s}.Alone(ctx, st)
	} else {
		err = s.group.Do(ctx, id, st, refusable)
	}
	if err != nil && !errors.Is(err, recordstore.ErrNotHeld) { // st may still be running
		return none, err
	}
	return got, err
}

// gathered is how a Store takes its steps: it implements groupcommit.Ledger.
type gathered struct{ store *Store }

// Alone implements groupcommit.Ledger.
func (g gathered) Alone(ctx context.Context, st *step) error {
	return g.store.writeUntil(ctx, st.until, func(tx *sql.Tx, now sql.NamedArg) error { return st.do(ctx, tx, now) })
}

// Together implements groupcommit.Ledger. The oldest step says how long it waits
// for the file; the others then go on waiting.
func (g gathered) Together(ctx context.Context, steps []*step) (errs []error, ok bool) {
	oldest := steps[0].until
	for _, st := range steps {
		if st.until.Before(oldest) {
			oldest = st.until
		}
	}
	errs = make([]error, len(steps))
	tx, err := g.store.begin(ctx, oldest)
	if err != nil {
		now := time.Now()
		for i, st := range steps {
			errs[i] = err
			if isBusy(err) && now.Before(st.until) {
				errs[i] = groupcommit.ErrAgain
			}
		}
		return errs, true
	}
	ctx = context.WithoutCancel(ctx) // an interrupted statement would undo them all
	for i, st := range steps {
		if errs[i] = st.do(ctx, tx, g.store.now()); !answers(errs[i]) {
			_ = tx.Rollback() // What fails is found when each goes alone.
			return nil, false
		}
	}
	return errs, tx.Commit() == nil
}

// answers reports whether a step that ends with err said something about its
// record, which it did not change where err is not nil.
func answers(err error) bool {
	return err == nil || errors.Is(err, sql.ErrNoRows) || errors.Is(err, recordstore.ErrNotHeld) || errors.Is(err, recordstore.ErrInvalid)
}

// begin begins a transaction that may write. It asks for the file about every
// millisecond: SQLite's own waiting grows to 100 ms, in which another process that
// writes all the time would seldom let it in.
func (s *Store) begin(ctx context.Context, until time.Time) (*sql.Tx, error) {
	for {
		tx, err := s.writer.BeginTx(ctx, nil)
		if err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("database is locked by another writer: %w", ctx.Err())
		}
		if err == nil || !isBusy(err) || !time.Now().Before(until) {
			return tx, err
		}
	}
}
