package postgres

import (
	"context"
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
	id   recordstore.ID
	sql  string
	many *many // The same for many records; nil where there is none.
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
	return s.gather(ctx, &asked{id: id, sql: sql, args: args, into: into}, false)
}

// gather is onRecord for a step as it stands. It may be refused when too much waits.
func (s *Store) gather(ctx context.Context, a *asked, refusable bool) error {
	if s.group == nil || s.invalid != nil || size(a.args) > maxShared {
		return gathered{s}.Alone(ctx, a)
	}
	return s.group.Do(ctx, a.id, a, refusable)
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

// Together implements groupcommit.Ledger. The statements go to the server at once,
// without BEGIN and COMMIT: up to the Sync at the end they are one transaction,
// which an error undoes, and no state of the connection outlives it.
func (g gathered) Together(ctx context.Context, steps []*asked) (errs []error, ok bool) {
	conn, err := g.store.pool.Acquire(ctx)
	if err != nil {
		return nil, false
	}
	defer conn.Release()
	errs = make([]error, len(steps))
	batch := &pgx.Batch{}
	batch.Queue(manySettings)
	var reads []func(pgx.BatchResults) error
	for _, run := range runs(steps) {
		reads = append(reads, run.queue(batch, errs)...)
	}
	results := conn.SendBatch(ctx, batch)
	_, err = results.Exec()
	for _, read := range reads {
		if err == nil {
			err = read(results)
		}
	}
	if closed := results.Close(); err != nil || closed != nil {
		return nil, false
	}
	return errs, true
}

// Close refuses new claims and settlements, and what else changes one record, and
// returns when those under way are committed. The pool stays the caller's.
func (s *Store) Close() {
	if s.group != nil {
		s.group.Close()
	}
}
