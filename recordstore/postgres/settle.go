package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Settle implements recordstore.Store.
func (s *Store) Settle(ctx context.Context, st recordstore.Settlement) (recordstore.Record, error) {
	if err := st.Check(); err != nil {
		return recordstore.Record{}, fmt.Errorf("postgres: settle: %w", err)
	}
	args := append(s.resultArgs(st.ID, st.Result), st.Holder, st.Fence, text(st.Noted))
	var rec recordstore.Record
	err := s.step(ctx, func() (bool, error) {
		now, changed, found, err := s.change(ctx, s.sql.settle, args, st.ID)
		if err != nil || changed {
			rec = found
			return true, err
		}
		next, err := recordstore.Settled(found, st, now)
		rec = found
		// Where Settled would write, the record changed after it was seen.
		return err != nil || next.Version == found.Version, err
	})
	if err != nil {
		return rec, fmt.Errorf("postgres: settle: %w", err)
	}
	return rec, nil
}

// Report implements recordstore.Store.
func (s *Store) Report(ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
	args := s.resultArgs(id, r)
	var rec recordstore.Record
	err := s.step(ctx, func() (bool, error) {
		now, changed, found, err := s.change(ctx, s.sql.report, args, id)
		if err != nil || changed {
			rec = found
			return true, err
		}
		rec = found
		to, _ := recordstore.ReportMove(found, r.State, now)
		return to == "", nil // otherwise the record changed after it was seen
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
		return true, s.one(ctx, s.sql.renew, args, []any{&renewed, &found})
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
	var (
		now time.Time
		r   row
	)
	err := s.one(ctx, s.sql.get, []any{s.clock(), id.Day, id.KeyHash[:]}, append([]any{&now}, r.fields()...))
	if err != nil {
		return recordstore.Record{}, time.Time{}, fmt.Errorf("postgres: get: %w", missing(err))
	}
	rec, _ := r.read(id)
	return rec, now.UTC(), nil
}

// resultArgs are the parameters that settle and report share.
func (s *Store) resultArgs(id recordstore.ID, r recordstore.Result) []any {
	return []any{
		s.clock(), id.Day, id.KeyHash[:], string(r.State),
		text(r.Evidence), text(r.Outcome), text(r.ErrorCode), number(r.Deliveries),
		number(r.ResponseStatus), sealed(r.ResponseHeader), sealed(r.ResponseBody), number(r.SealVersion),
		text(r.ExternalRef), text(r.ObjectStatus), text(r.RequestID), micros(max(r.DueIn, 0)),
	}
}

// change runs settle or report and returns the clock, whether the record was
// changed, and the record.
func (s *Store) change(ctx context.Context, sql string, args []any, id recordstore.ID) (time.Time, bool, recordstore.Record, error) {
	var (
		now     time.Time
		changed bool
		r       row
	)
	err := s.one(ctx, sql, args, append([]any{&now, &changed}, r.fields()...))
	if err != nil {
		return time.Time{}, false, recordstore.Record{}, missing(err)
	}
	rec, _ := r.read(id)
	return now.UTC(), changed, rec, nil
}

// missing gives the absence of a row the contract's name.
func missing(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return recordstore.ErrNotFound
	}
	return err
}
