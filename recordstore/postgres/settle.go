package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Settle implements recordstore.Store. Only a settlement that changes nothing
// needs a second statement, which reads why.
func (s *Store) Settle(ctx context.Context, st recordstore.Settlement) (recordstore.Record, error) {
	if err := st.Check(); err != nil {
		return recordstore.Record{}, fmt.Errorf("postgres: settle: %w", err)
	}
	on := s.on(st.ID)
	a := asked{id: st.ID, sql: on.end, many: &on.endMany}
	a.args = append(s.resultArgs(st.ID, st.Result), st.Holder, st.Fence, text(st.Noted), st.Uncounted)
	if st.Entry != nil {
		a.sql, a.many, a.args = on.settle, nil, append(a.args, entryArgs(st.Entry)...)
	}
	rec, err := s.settleBy(ctx, a, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Settled(rec, st, now)
	})
	if err != nil {
		return rec, fmt.Errorf("postgres: settle: %w", err)
	}
	return rec, nil
}

// Report implements recordstore.Store.
func (s *Store) Report(ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
	if err := r.Check(); err != nil {
		return recordstore.Record{}, fmt.Errorf("postgres: report: %w", err)
	}
	rec, err := s.change(ctx, s.on(id).report, id, append(s.resultArgs(id, r), entryArgs(r.Entry)...), func(rec recordstore.Record, now time.Time) recordstore.Record {
		return recordstore.Reported(rec, r, now)
	})
	if err != nil {
		return recordstore.Record{}, fmt.Errorf("postgres: report: %w", err)
	}
	return rec, nil
}

// Renew implements recordstore.Store.
func (s *Store) Renew(ctx context.Context, id recordstore.ID, holder string, fence int64, lease time.Duration) error {
	var renewed, found bool
	err := s.step(ctx, func() (bool, error) {
		args := []any{s.clock(), id.Day, id.KeyHash[:], holder, fence, micros(lease)}
		return true, s.onRecord(ctx, id, s.on(id).renew, args, []any{&renewed, &found})
	})
	switch {
	case err == nil && !found:
		err = recordstore.ErrNotFound
	case err == nil && !renewed:
		err = recordstore.ErrNotHeld
	}
	if err != nil {
		return fmt.Errorf("postgres: renew: %w", err)
	}
	return nil
}

// Get implements recordstore.Store.
func (s *Store) Get(ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error) {
	rec, now, err := s.read(ctx, id)
	if err != nil {
		return recordstore.Record{}, time.Time{}, fmt.Errorf("postgres: get: %w", err)
	}
	return rec, now, nil
}

func (s *Store) read(ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error) {
	var (
		now time.Time
		r   row
	)
	err := s.one(ctx, s.on(id).get, []any{s.clock(), id.Day, id.KeyHash[:]}, append([]any{&now}, r.fields()...))
	rec, _ := r.read(id)
	return rec, now.UTC(), missing(err)
}

// change runs a statement that changes one record as next does, and returns the
// record that the ledger holds afterwards. The statement returns the time, whether
// it changed the record, and the record.
func (s *Store) change(ctx context.Context, sql string, id recordstore.ID, args []any,
	next func(recordstore.Record, time.Time) recordstore.Record) (recordstore.Record, error) {
	var rec recordstore.Record
	err := s.step(ctx, func() (done bool, err error) {
		var (
			now     time.Time
			changed bool
			found   row
		)
		if err := s.onRecord(ctx, id, sql, args, append([]any{&now, &changed}, found.fields()...)); err != nil {
			return true, missing(err)
		}
		rec, _ = found.read(id)
		return changed || next(rec, now).Version == rec.Version, nil // else it changed after it was seen: ask again
	})
	return rec, err
}

// settleBy takes a step that changes one record as next does, and returns no row
// where it changes nothing. next then says what that means, of the record as
// it is read after that.
func (s *Store) settleBy(ctx context.Context, a asked,
	next func(recordstore.Record, time.Time) (recordstore.Record, error)) (recordstore.Record, error) {
	var rec recordstore.Record
	err := s.step(ctx, func() (done bool, err error) {
		var r row
		asking := a
		asking.into = r.fields()
		err = s.gather(ctx, &asking, false)
		if err == nil {
			rec, _ = r.read(a.id)
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return true, err
		}
		var now time.Time
		if rec, now, err = s.read(ctx, a.id); err != nil {
			return true, err
		}
		moved, err := next(rec, now)
		return err != nil || moved.Version == rec.Version, err // else it may be moved now: ask again
	})
	return rec, err
}

// resultArgs are the parameters that settle, report and resolve share.
func (s *Store) resultArgs(id recordstore.ID, r recordstore.Result) []any {
	return []any{
		s.clock(), id.Day, id.KeyHash[:], string(r.State),
		text(r.Evidence), text(r.Outcome), text(r.ErrorCode), number(r.Deliveries),
		number(r.ResponseStatus), sealed(r.ResponseHeader), sealed(r.ResponseBody), number(r.SealVersion),
		text(r.ExternalRef), text(r.ObjectStatus), text(r.RequestID), micros(max(r.DueIn, 0)),
		r.LookOnly, r.Blurred,
	}
}

// entryArgs are an entry's parameters, NULLs for none.
func entryArgs(e *recordstore.Entry) []any {
	if e == nil {
		e = &recordstore.Entry{}
	}
	return []any{text(e.Kind), text(e.Actor), text(e.Text)}
}

// missing gives the absence of a row the contract's name.
func missing(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return recordstore.ErrNotFound
	}
	return err
}
