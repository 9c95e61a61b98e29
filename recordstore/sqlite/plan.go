package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// planSQL inserts a planned record, as recordstore.Plan does. It returns no row
// where it did not.
const planSQL = `
WITH clock(now) AS (SELECT ` + nowSQL + `)
INSERT INTO samekey_records (` + columns + `)
SELECT :day, :key_hash, :scope_hash, :provider, :account, :operation, :command_id, :class, :derivation, :request_hash,
	'planned', 0, '', '', 1, 0, 0, '', '', '', 0, NULL, NULL,
	0, NULL, NULL, CASE WHEN :request IS NULL THEN 0 ELSE :seal_version END, 0, '', '', '',
	'', NULL, now, 0, :not_after, now + :replay, now + :evidence, NULL, now,
	1, :request, NULL, NULL
FROM clock
WHERE ` + mayBegin + `
ON CONFLICT (day, key_hash) DO NOTHING
RETURNING ` + columns

// planArgs returns the arguments of planSQL but for the time.
func planArgs(c recordstore.Claim) []any {
	return append(key(c.ID),
		sql.Named("scope_hash", c.Scope[:]),
		sql.Named("provider", c.Provider),
		sql.Named("account", c.Account),
		sql.Named("operation", c.Operation),
		sql.Named("command_id", c.CommandID),
		sql.Named("class", c.Class),
		sql.Named("derivation", c.Derivation),
		sql.Named("request_hash", c.Fingerprints[0]),
		sql.Named("seal_version", c.SealVersion),
		sql.Named("request", blob(c.Request)),
		sql.Named("not_after", micros(c.NotAfter)),
		sql.Named("replay", c.Replay.Microseconds()),
		sql.Named("evidence", c.Evidence.Microseconds()),
	)
}

// Tx returns a planner that writes within tx, a transaction of the caller on the
// same file: a plan becomes visible, and is sent, when the caller commits. Begin it
// with BEGIN IMMEDIATE (with modernc.org/sqlite _txlock=immediate), so that it
// waits for other writers once and does not fail in its middle; as long as it is
// open, no claim can be written. The planner is used by one goroutine at a time and
// not after tx has ended.
func (s *Store) Tx(tx *sql.Tx) recordstore.Planner { return planner{s, tx} }

type planner struct {
	store *Store
	tx    *sql.Tx
}

// Plan implements recordstore.Planner.
func (p planner) Plan(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	if err := c.CheckPlan(); err != nil {
		return recordstore.Claimed{}, wrap("plan", err)
	}
	c.NotAfter = c.NotAfter.Truncate(time.Microsecond)
	got, err := p.plan(ctx, c)
	if err != nil {
		return recordstore.Claimed{}, wrap("plan", err)
	}
	p.store.clock.observe(got.Now.UnixMicro())
	return got, nil
}

func (p planner) plan(ctx context.Context, c recordstore.Claim) (got recordstore.Claimed, err error) {
	now := p.store.now()
	err = scan(p.tx.QueryRowContext(ctx, planSQL, append(planArgs(c), now)...), &got.Record)
	if !errors.Is(err, sql.ErrNoRows) {
		got.Decision, got.Now = recordstore.Send, got.Record.CreatedAt
		return got, err
	}
	row := p.tx.QueryRowContext(ctx, getSQL, append(key(c.ID), now)...)
	found, frontier, at, err := met(ctx, p.tx, row, c, now)
	if err != nil {
		return recordstore.Claimed{}, err
	}
	next, d := recordstore.Plan(c, found, frontier, at)
	if found == nil && d == recordstore.Send {
		return recordstore.Claimed{}, errDisagree
	}
	return recordstore.Claimed{Decision: d, Record: next, Now: at}, nil
}
