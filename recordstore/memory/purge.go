package memory

import (
	"context"
	"fmt"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Purge implements recordstore.Purger. It looks at every record, in one step.
func (s *Store) Purge(ctx context.Context, limit int) (recordstore.Purged, error) {
	if err := ctx.Err(); err != nil {
		return recordstore.Purged{}, fmt.Errorf("memory: purge: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	var done recordstore.Purged
	for _, rec := range s.records {
		if next, ok := recordstore.Emptied(rec, now); ok && done.Bodies < limit {
			s.put(&next)
			done.Bodies++
		}
	}
	for id, rec := range s.records {
		if done.Records >= limit {
			break
		}
		if next, ok := recordstore.Tombstone(rec, now); ok {
			s.put(&next)
		} else if recordstore.Purgeable(rec, now) {
			s.frontier[rec.Class] = max(s.frontier[rec.Class], id.Day)
			delete(s.records, id)
		} else {
			continue
		}
		delete(s.trail, id)
		done.Records++
	}
	return done, nil
}
