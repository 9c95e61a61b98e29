package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/internal/groupcommit"
)

// What steps share at most.
const (
	defaultWorkers = 8
	defaultQueue   = 16_384
	maxBatch       = 128
	maxShared      = 64 << 10 // Bytes that one step sends; a larger one goes alone.

	patience = 50 * time.Millisecond  // How long a transaction counts as a worker.
	lockWait = 250 * time.Millisecond // How long a batch waits for one lock.
)

// asked is a step on one record: a statement, and where its only row goes.
type asked struct {
	sql  string
	args []any
	into []any
}

// gathered is how a Store takes its steps: it implements groupcommit.Ledger.
type gathered struct{ store *Store }

// groupOf returns what gathers the steps of s, nil where each goes alone. More
// workers than connections would only keep steps from gathering.
func (o *Options) groupOf(s *Store) *groupcommit.Group[*asked] {
	if o == nil {
		o = &Options{}
	}
	if o.Direct || s.pool == nil {
		return nil
	}
	limits := groupcommit.Options{Workers: defaultWorkers, Queue: defaultQueue, Batch: maxBatch, Patience: patience}
	if o.Workers > 0 {
		limits.Workers = o.Workers
	}
	if o.Queue > 0 {
		limits.Queue = o.Queue
	}
	limits.Workers = min(limits.Workers, int(s.pool.Config().MaxConns))
	return groupcommit.New(gathered{s}, limits)
}

// onRecord runs a statement on one record that returns one row, and scans it into
// variables that are not read after an error. Other goroutines' may run in the
// same transaction; it is committed when onRecord returns.
func (s *Store) onRecord(ctx context.Context, id recordstore.ID, sql string, args, into []any) error {
	return s.gather(ctx, id, &asked{sql, args, into}, false)
}

// claiming is onRecord for what may be refused when too much waits.
func (s *Store) claiming(ctx context.Context, id recordstore.ID, sql string, args, into []any) error {
	return s.gather(ctx, id, &asked{sql, args, into}, true)
}

func (s *Store) gather(ctx context.Context, id recordstore.ID, a *asked, refusable bool) error {
	if s.group == nil || s.invalid != nil || size(a.args) > maxShared {
		return gathered{s}.Alone(ctx, a)
	}
	return s.group.Do(ctx, id, a, refusable)
}

// size returns about how many bytes arguments take.
func size(args []any) (n int) {
	for _, arg := range args {
		if b, ok := arg.([]byte); ok {
			n += len(b)
		}
	}
	return n
}

// Alone implements groupcommit.Ledger.
func (g gathered) Alone(ctx context.Context, a *asked) error {
	return g.store.one(ctx, a.sql, a.args, a.into)
}

// limitWaits bounds each wait for a lock, which other steps in the transaction
// would share, for this transaction. What meets it waits on its own afterwards.
var limitWaits = fmt.Sprintf(`SELECT set_config('lock_timeout', '%dms', true)`, lockWait.Milliseconds())

// Together implements groupcommit.Ledger. The statements go to the server at once,
// without BEGIN and COMMIT: up to the Sync at the end they are one transaction,
// which an error undoes, and no state of the connection outlives it.
func (g gathered) Together(ctx context.Context, steps []*asked) (errs []error, ok bool) {
	conn, err := g.store.pool.Acquire(ctx)
	if err != nil {
		return nil, false
	}
	defer conn.Release()
	batch := &pgx.Batch{}
	batch.Queue(limitWaits)
	for _, a := range steps {
		batch.Queue(a.sql, a.args...)
	}
	results := conn.SendBatch(ctx, batch)
	errs, err = scan(results, steps)
	if closed := results.Close(); err != nil || closed != nil {
		return nil, false
	}
	return errs, true
}

// scan reads what each step came to. That it has no row is an answer.
func scan(from pgx.BatchResults, steps []*asked) ([]error, error) {
	if _, err := from.Exec(); err != nil {
		return nil, err
	}
	errs := make([]error, len(steps))
	for i, a := range steps {
		errs[i] = from.QueryRow().Scan(a.into...)
		if err := errs[i]; err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return nil, err
		}
	}
	return errs, nil
}

// Close refuses new claims and settlements, and what else changes one record, and
// returns when those under way are committed. The pool stays the caller's.
func (s *Store) Close() {
	if s.group != nil {
		s.group.Close()
	}
}
