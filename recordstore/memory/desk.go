package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Resolve implements recordstore.Desk.
func (s *Store) Resolve(ctx context.Context, v recordstore.Verdict) (recordstore.Record, error) {
	if err := v.Check(); err != nil {
		return recordstore.Record{}, fmt.Errorf("memory: resolve: %w", err)
	}
	return s.change(ctx, "resolve", v.ID, v.Entry, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Resolved(rec, v, now)
	})
}

// Abandon implements recordstore.Desk.
func (s *Store) Abandon(ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
	if err := e.Check(); err != nil {
		return recordstore.Record{}, fmt.Errorf("memory: abandon: %w", err)
	}
	return s.change(ctx, "abandon", id, &e, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Abandonment(rec, now), nil
	})
}

// Erase implements recordstore.Desk.
func (s *Store) Erase(ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
	if err := e.Check(); err != nil {
		return recordstore.Record{}, fmt.Errorf("memory: erase: %w", err)
	}
	return s.change(ctx, "erase", id, &e, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Erased(rec, now), nil
	})
}

// Trail implements recordstore.Desk.
func (s *Store) Trail(ctx context.Context, id recordstore.ID) ([]recordstore.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory: trail: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.records[id]; !ok {
		return nil, fmt.Errorf("memory: trail: %w", recordstore.ErrNotFound)
	}
	all := s.trail[id]
	return slices.Clone(all[max(0, len(all)-recordstore.MaxTrail):]), nil
}
