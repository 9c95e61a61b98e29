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
	args := append(s.resultArgs(st.ID, st.Result), st.Holder, st.Fence, text(st.Noted))
	var rec recordstore.Record
	err := s.step(ctx, func() (done bool, err error) {
		var r row
		err = s.one(ctx, s.sql.settle, args, r.fields())
		if err == nil {
			rec, _ = r.read(st.ID)
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return true, err
		}
		var now time.Time
		if rec, now, err = s.read(ctx, st.ID); err != nil {
			return true, err
		}
		next, err := recordstore.Settled(rec, st, now)
		return err != nil || next.Version == rec.Version, err // else it became ours between the two: ask again
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
	err := s.step(ctx, func() (done bool, err error) {
		var (
			now     time.Time
			changed bool
			found   row
		)
		if err := s.one(ctx, s.sql.report, args, append([]any{&now, &changed}, found.fields()...)); err != nil {
			return true, missing(err)
		}
		rec, _ = found.read(id)
		to, _ := recordstore.ReportMove(rec, r.State, now)
		return changed || to == "", nil // else it changed after it was seen: ask again
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
	err := s.one(ctx, s.sql.get, []any{s.clock(), id.Day, id.KeyHash[:]}, append([]any{&now}, r.fields()...))
	rec, _ := r.read(id)
	return rec, now.UTC(), missing(err)
}

// resultArgs are the parameters that settle and report share.
func (s *Store) resultArgs(id recordstore.ID, r recordstore.Result) []any {
	return []any{
		s.clock(), id.Day, id.KeyHash[:], string(r.State),
		text(r.Evidence), text(r.Outcome), text(r.ErrorCode), number(r.Deliveries),
		number(r.ResponseStatus), sealed(r.ResponseHeader), sealed(r.ResponseBody), number(r.SealVersion),
		text(r.ExternalRef), text(r.ObjectStatus), text(r.RequestID), micros(max(r.DueIn, 0)),
		r.LookOnly, r.Blurred,
	}
}

// missing gives the absence of a row the contract's name.
func missing(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return recordstore.ErrNotFound
	}
	return err
}
