package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// TakeDue implements recordstore.Queue. It looks at every record.
func (s *Store) TakeDue(ctx context.Context, q recordstore.DueQuery) ([]recordstore.Record, time.Time, error) {
	err := q.Check()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("memory: take due: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	q.LostBefore = micro(q.LostBefore)
	var due []recordstore.Record
	for _, rec := range s.records {
		if _, ok := recordstore.TakenDue(rec, q, now); ok {
			due = append(due, rec)
		}
	}
	taken := recordstore.Turns(due, q.Limit)
	for i, rec := range taken {
		next, _ := recordstore.TakenDue(rec, q, now)
		s.put(&next)
		taken[i] = next
	}
	return taken, now, nil
}

// FindCrashed implements recordstore.Queue. It looks at every record and keeps no
// watermark, so that full makes no difference.
func (s *Store) FindCrashed(ctx context.Context, _ bool, limit int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("memory: find crashed: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	found := 0
	for _, rec := range s.records {
		if found < limit && recordstore.Crashed(rec, now) {
			rec.DueAt = now
			rec.Version++
			s.put(&rec)
			found++
		}
	}
	return found, nil
}

// Wake implements recordstore.Queue.
func (s *Store) Wake(ctx context.Context, id recordstore.ID, externalRef string) (recordstore.Record, error) {
	return s.change(ctx, "wake", id, nil, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Woken(rec, externalRef, now), nil
	})
}

// Backlog implements recordstore.Queue. It looks at every record.
func (s *Store) Backlog(ctx context.Context, provider string) (recordstore.Backlog, error) {
	if err := ctx.Err(); err != nil {
		return recordstore.Backlog{}, fmt.Errorf("memory: backlog: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var recs []recordstore.Record
	for _, rec := range s.records {
		if rec.Provider == provider {
			recs = append(recs, rec)
		}
	}
	return recordstore.BacklogOf(recs, s.clock()), nil
}
