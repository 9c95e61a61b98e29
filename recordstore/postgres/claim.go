package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// maxAsks bounds how often one step is asked. It is asked again only where
// another transaction changed the record under it, so that each time somebody
// else got on.
const maxAsks = 16

// errContended is the end of a step that found no quiet moment.
var errContended = fmt.Errorf("the record changed under each of %d tries: call again", maxAsks)

// Claim implements recordstore.Store. Nothing is written where nothing is taken,
// so that a replay and a call in flight cost a read.
//
// A record that another transaction has written and not yet committed, as a plan
// in a caller's transaction, is waited for until ctx's deadline. The decision is
// then InFlight, with a record that holds the ID alone: how long that transaction
// stays open is not known. To find this out takes up to half a second more.
func (s *Store) Claim(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	if err := c.Check(); err != nil {
		return recordstore.Claimed{}, fmt.Errorf("postgres: claim: %w", err)
	}
	c.NotAfter, c.LostBefore = c.NotAfter.Truncate(time.Microsecond), c.LostBefore.Truncate(time.Microsecond) // what the server compares with
	var claimed recordstore.Claimed
	err := s.step(ctx, func() (done bool, err error) {
		done, err = s.claimOnce(ctx, &c, &claimed)
		return done, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		if now, pending := s.pending(ctx, c); pending {
			return recordstore.Claimed{Decision: recordstore.InFlight, Record: recordstore.Record{ID: c.ID}, Now: now}, nil
		}
	}
	if err != nil {
		return recordstore.Claimed{}, fmt.Errorf("postgres: claim: %w", noMonth(err))
	}
	return claimed, nil
}

// claimArgs are the parameters of begin, and one more of claim.
func (s *Store) claimArgs(c *recordstore.Claim) []any {
	return []any{
		s.clock(), c.ID.Day, c.ID.KeyHash[:], c.Class, c.Fingerprints, timestamp(c.LostBefore), c.SealVersion,
		c.Holder, timestamp(c.NotAfter), micros(c.Lease), micros(max(c.Window, 0)),
		c.Derivation, sealed(c.Request), c.Scope[:], c.Provider, c.Account, c.Operation, c.CommandID,
		int64(c.Replay / time.Microsecond), int64(c.Evidence / time.Microsecond), c.Derivations,
	}
}

// begin writes the record of a new command, and reports whether it did. The time
// is all of that record that is not in the claim.
func (s *Store) begin(ctx context.Context, c *recordstore.Claim, args []any) (time.Time, bool, error) {
	now := new(time.Time) // a batch may still write it after an error
	on := s.on(c.ID)
	err := s.gather(ctx, &asked{c.ID, on.begin, &on.beginMany, args, []any{now}}, true)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return time.Time{}, false, nil
	case err != nil:
		return time.Time{}, false, err
	}
	return *now, true, nil
}

// claimOnce is one statement where the record is new, else two. It is not done if
// what it saw explains no decision: the record is not to be seen yet, or changed
// after it was seen. Many callers wait here at once, which is why it hands little
// over their stacks.
func (s *Store) claimOnce(ctx context.Context, c *recordstore.Claim, claimed *recordstore.Claimed) (done bool, err error) {
	args := s.claimArgs(c)
	last := len(args) - 1
	now, did, err := s.begin(ctx, c, args[:last:last])
	switch {
	case err != nil:
		return false, err
	case did:
		newlyClaimed(c, now.UTC(), claimed)
		return true, nil
	}
	return s.take(ctx, c, args, claimed)
}

// newlyClaimed is the answer to the claim of a new command, whose record lies behind
// no frontier. The server keeps whole microseconds.
func newlyClaimed(c *recordstore.Claim, now time.Time, claimed *recordstore.Claimed) {
	claimed.Now = now
	claimed.Record, claimed.Decision = recordstore.Take(*c, nil, 0, now)
	rec := &claimed.Record
	for _, t := range []*time.Time{&rec.LeaseEndsAt, &rec.SentUntil, &rec.WindowEndsAt, &rec.ReplayUntil, &rec.EvidenceUntil} {
		*t = t.Truncate(time.Microsecond)
	}
}

// take takes the record that is there, or says why not.
func (s *Store) take(ctx context.Context, c *recordstore.Claim, args []any, claimed *recordstore.Claimed) (done bool, err error) {
	var (
		now      time.Time
		frontier int32
		held     bool
		r        row
	)
	into := append([]any{&now, &frontier, &held}, r.fields()...)
	if err := s.gather(ctx, &asked{id: c.ID, sql: s.on(c.ID).claim, args: args, into: into}, true); err != nil {
		return false, err
	}
	now = now.UTC()
	rec, found := r.read(c.ID)
	if held {
		*claimed = recordstore.Claimed{Decision: recordstore.Held(rec, now), Record: rec, Now: now}
		return true, nil
	}
	var before *recordstore.Record
	if found {
		before = &rec
	}
	next, decision := recordstore.Take(*c, before, frontier, now)
	if next.Version != rec.Version { // Take would have written
		return false, nil
	}
	*claimed = recordstore.Claimed{Decision: decision, Record: next, Now: now}
	return true, nil
}

// step asks until it is done. A serialization failure, where the server's default
// isolation is stricter than read committed, is a change under the step.
func (s *Store) step(ctx context.Context, ask func() (done bool, err error)) error {
	for range maxAsks {
		done, err := ask()
		if e, said := errors.AsType[*pgconn.PgError](err); said && e.Code == "40001" {
			continue
		}
		if done || err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errContended
}
