package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	c.NotAfter = c.NotAfter.Truncate(time.Microsecond) // what the server compares with
	var claimed recordstore.Claimed
	err := s.step(ctx, func() (done bool, err error) {
		claimed, done, err = s.claimOnce(ctx, c)
		return done, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		if now, pending := s.pending(ctx, c); pending {
			return recordstore.Claimed{Decision: recordstore.InFlight, Record: recordstore.Record{ID: c.ID}, Now: now}, nil
		}
	}
	if err != nil {
		return recordstore.Claimed{}, fmt.Errorf("postgres: claim: %w", err)
	}
	return claimed, nil
}

// claimOnce is one statement. It is not done if what it saw explains no decision:
// the record is not to be seen yet, or changed after it was seen.
func (s *Store) claimOnce(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, bool, error) {
	var (
		now      time.Time
		frontier int32
		held     bool
		r        row
	)
	args := []any{
		s.clock(), c.ID.Day, c.ID.KeyHash[:], c.Class, c.Fingerprints, c.Derivations, c.SealVersion,
		c.Holder, timestamp(c.NotAfter), micros(c.Lease), micros(max(c.Window, 0)),
		c.Derivation, sealed(c.Request), c.Scope[:], c.Provider, c.Account, c.Operation, c.CommandID,
		int64(c.Replay / time.Microsecond), int64(c.Evidence / time.Microsecond), timestamp(c.LostBefore),
	}
	if err := s.one(ctx, s.sql.claim, args, append([]any{&now, &frontier, &held}, r.fields()...)); err != nil {
		return recordstore.Claimed{}, false, err
	}
	now = now.UTC()
	rec, found := r.read(c.ID)
	if held {
		return recordstore.Claimed{Decision: recordstore.Held(rec, now), Record: rec, Now: now}, true, nil
	}
	var before *recordstore.Record
	if found {
		before = &rec
	}
	next, decision := recordstore.Take(c, before, frontier, now)
	if next.Version != rec.Version { // Take would have written
		return recordstore.Claimed{}, false, nil
	}
	return recordstore.Claimed{Decision: decision, Record: next, Now: now}, true, nil
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
