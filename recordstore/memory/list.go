package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

var _ recordstore.Lister = (*Store)(nil)

// List implements recordstore.Lister. It looks at every record.
func (s *Store) List(ctx context.Context, q recordstore.ListQuery) (recordstore.Listing, error) {
	err := q.Check()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return recordstore.Listing{}, fmt.Errorf("memory: list: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := recordstore.ListingOf(slices.Collect(maps.Values(s.records)), q, s.clock())
	for i := range list.Records {
		ownBytes(&list.Records[i].Record)
	}
	return list, nil
}

// Tally implements recordstore.Lister. It looks at every record.
func (s *Store) Tally(ctx context.Context, f recordstore.Filter) ([]recordstore.Tally, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory: tally: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return recordstore.TallyOf(slices.Collect(maps.Values(s.records)), f, s.clock()), nil
}

// About implements recordstore.Lister.
func (s *Store) About(ctx context.Context) (recordstore.About, error) {
	if err := ctx.Err(); err != nil {
		return recordstore.About{}, fmt.Errorf("memory: about: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	about := recordstore.About{Now: s.clock(), Frontier: maps.Clone(s.frontier), Restored: s.restored}
	if s.pins != nil {
		pins := *s.pins
		about.Pins = &pins
	}
	return about, nil
}
