// Package memory is a ledger that lives and dies with its process: for tests,
// examples and trying things out. What it holds protects nobody after a crash.
//
// It decides with recordstore's own functions and is what the other stores are
// compared with.
package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Options tune a Store. A nil *Options means all defaults.
type Options struct {
	// Now is the ledger's clock. Defaults to time.Now.
	Now func() time.Time
}

// Store is a ledger in memory. It is safe for concurrent use, needs no closing
// and starts no goroutine.
type Store struct {
	now func() time.Time

	mu       sync.Mutex
	records  map[recordstore.ID]recordstore.Record
	trail    map[recordstore.ID][]recordstore.Entry
	frontier map[string]int32
	pins     *recordstore.Pins
	restored time.Time
}

var (
	_ recordstore.Store     = (*Store)(nil)
	_ recordstore.Forgetter = (*Store)(nil)
	_ recordstore.Queue     = (*Store)(nil)
	_ recordstore.Desk      = (*Store)(nil)
	_ recordstore.Purger    = (*Store)(nil)
	_ recordstore.Planner   = (*Store)(nil)
	_ recordstore.Restorer  = (*Store)(nil)
)

// New returns an empty ledger. opts may be nil.
func New(opts *Options) *Store {
	s := &Store{
		now:      time.Now,
		records:  make(map[recordstore.ID]recordstore.Record),
		trail:    make(map[recordstore.ID][]recordstore.Entry),
		frontier: make(map[string]int32),
	}
	if opts != nil && opts.Now != nil {
		s.now = opts.Now
	}
	return s
}

// Attach implements recordstore.Store.
func (s *Store) Attach(ctx context.Context, p recordstore.Pins) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: attach: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins == nil {
		s.pins = &p
	}
	return s.pins.Compare(p)
}

// Claim implements recordstore.Store.
func (s *Store) Claim(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	if err := c.Check(); err != nil {
		return recordstore.Claimed{}, fmt.Errorf("memory: claim: %w", err)
	}
	return s.decide(ctx, "claim", c, recordstore.Take)
}

// Plan implements recordstore.Planner. There are no transactions in memory: what
// is planned is there at once and stays.
func (s *Store) Plan(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	if err := c.CheckPlan(); err != nil {
		return recordstore.Claimed{}, fmt.Errorf("memory: plan: %w", err)
	}
	return s.decide(ctx, "plan", c, recordstore.Plan)
}

// decide answers c as table says, and writes the record where it changed.
func (s *Store) decide(ctx context.Context, verb string, c recordstore.Claim,
	table func(recordstore.Claim, *recordstore.Record, int32, time.Time) (recordstore.Record, recordstore.Decision),
) (recordstore.Claimed, error) {
	if err := ctx.Err(); err != nil {
		return recordstore.Claimed{}, fmt.Errorf("memory: %s: %w", verb, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	c.NotAfter, c.LostBefore = micro(c.NotAfter), micro(c.LostBefore)

	var found *recordstore.Record
	var version int64
	if rec, ok := s.records[c.ID]; ok {
		own := rec
		found, version = &own, rec.Version
	}
	next, decision := table(c, found, s.frontier[c.Class], now)
	if next.Version > version {
		s.put(&next)
	} else {
		ownBytes(&next)
	}
	return recordstore.Claimed{Decision: decision, Record: next, Now: now}, nil
}

// Renew implements recordstore.Store.
func (s *Store) Renew(ctx context.Context, id recordstore.ID, holder string, fence int64, lease time.Duration) error {
	_, err := s.change(ctx, "renew", id, nil, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Renewed(rec, holder, fence, lease, now)
	})
	return err
}

// Settle implements recordstore.Store.
func (s *Store) Settle(ctx context.Context, st recordstore.Settlement) (recordstore.Record, error) {
	if err := st.Check(); err != nil {
		return recordstore.Record{}, fmt.Errorf("memory: settle: %w", err)
	}
	return s.change(ctx, "settle", st.ID, st.Entry, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Settled(rec, st, now)
	})
}

// Report implements recordstore.Store.
func (s *Store) Report(ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
	if err := r.Check(); err != nil {
		return recordstore.Record{}, fmt.Errorf("memory: report: %w", err)
	}
	return s.change(ctx, "report", id, r.Entry, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Reported(rec, r, now), nil
	})
}

// Get implements recordstore.Store.
func (s *Store) Get(ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error) {
	if err := ctx.Err(); err != nil {
		return recordstore.Record{}, time.Time{}, fmt.Errorf("memory: get: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, ok := s.records[id]
	if !ok {
		return recordstore.Record{}, time.Time{}, fmt.Errorf("memory: get: %w", recordstore.ErrNotFound)
	}
	ownBytes(&rec)
	return rec, s.clock(), nil
}

// RaiseFrontier implements recordstore.Forgetter.
func (s *Store) RaiseFrontier(ctx context.Context, class string, day int32) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: raise frontier: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frontier[class] = max(s.frontier[class], day)
	return nil
}

// MarkRestored implements recordstore.Restorer. A ledger in memory has no backup:
// it is for tests of what follows a restore.
func (s *Store) MarkRestored(ctx context.Context, t time.Time) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: mark restored: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restored = micro(t)
	return nil
}

// Restored implements recordstore.Restorer.
func (s *Store) Restored(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, fmt.Errorf("memory: restored: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restored, nil
}

// Seed puts records into the ledger as they are, without asking whether a legal
// move leads to them: for tests that need a record in some state.
func (s *Store) Seed(recs ...recordstore.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rec := range recs {
		s.put(&rec)
	}
}

// change replaces the record of id by what move makes of it, and appends e to its
// trail if that is another one. The record is returned with move's error too.
func (s *Store) change(ctx context.Context, verb string, id recordstore.ID, e *recordstore.Entry,
	move func(recordstore.Record, time.Time) (recordstore.Record, error)) (recordstore.Record, error) {
	if err := ctx.Err(); err != nil {
		return recordstore.Record{}, fmt.Errorf("memory: %s: %w", verb, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, ok := s.records[id]
	if !ok {
		return recordstore.Record{}, fmt.Errorf("memory: %s: %w", verb, recordstore.ErrNotFound)
	}
	now := s.clock()
	next, err := move(rec, now)
	if err != nil {
		ownBytes(&next)
		return next, fmt.Errorf("memory: %s: %w", verb, err)
	}
	s.put(&next)
	if e != nil && next.Version > rec.Version {
		s.trail[id] = append(s.trail[id], e.Stamped(rec, next, now))
	}
	return next, nil
}

// put keeps rec, which it makes what a database would give back. The bytes that rec
// holds are then nobody's but the caller's: the store keeps others.
func (s *Store) put(rec *recordstore.Record) {
	tidy(rec)
	own := *rec
	ownBytes(&own)
	s.records[rec.ID] = own
}

func (s *Store) clock() time.Time { return micro(s.now()) }

// ownBytes gives rec bytes of its own.
func ownBytes(rec *recordstore.Record) {
	fields := [...]*[]byte{&rec.Fingerprint, &rec.Request, &rec.ResponseHeader, &rec.ResponseBody}
	size := 0
	for _, b := range fields {
		size += len(*b)
	}
	own := make([]byte, 0, size)
	for _, b := range fields {
		if len(*b) == 0 {
			continue
		}
		start := len(own)
		own = append(own, *b...)
		*b = own[start:len(own):len(own)]
	}
}

// tidy makes rec what a database would give back: whole microseconds, no empty
// slices.
func tidy(rec *recordstore.Record) {
	for _, b := range [...]*[]byte{&rec.Fingerprint, &rec.Request, &rec.ResponseHeader, &rec.ResponseBody} {
		if len(*b) == 0 {
			*b = nil
		}
	}
	for _, t := range [...]*time.Time{
		&rec.ClaimedAt, &rec.LeaseEndsAt, &rec.WindowEndsAt, &rec.SentUntil, &rec.AnsweredAt, &rec.DueAt, &rec.NotAfter,
		&rec.ReplayUntil, &rec.EvidenceUntil, &rec.BodyPurgedAt, &rec.CreatedAt,
	} {
		*t = micro(*t)
	}
}

func micro(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	if t.Nanosecond()%int(time.Microsecond) == 0 {
		return t.Round(0).UTC() // as most are, which costs less to find out than to cut off
	}
	return t.Truncate(time.Microsecond).UTC()
}
