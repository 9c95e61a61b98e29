package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// claimSQL inserts the record or takes it, as recordstore.Take decides. It returns
// the record where it did, and no row where it did not, also for a claim that
// already holds. r is the record found, excluded the one that would be new.
const claimSQL = `
WITH clock(now) AS (SELECT ` + nowSQL + `)
INSERT INTO samekey_records AS r (` + columns + `)
SELECT :day, :key_hash, :scope_hash, :provider, :account, :operation, :command_id, :class, :derivation, :request_hash,
	'sending', :lost_before IS NOT NULL, '', '', 0, :lost_before IS NOT NULL, 0, '', '', :holder, 1, now, now + :lease,
	0, CASE WHEN :window > 0 AND :lost_before IS NULL THEN now + :window END, coalesce(:lost_before, now + :lease),
	CASE WHEN :request IS NULL THEN 0 ELSE :seal_version END, 0, '', '', '',
	'', NULL, NULL, 0, :not_after, now + :replay, now + :evidence, NULL, now,
	1, :request, NULL, NULL
FROM clock
WHERE EXISTS (SELECT 1 FROM samekey_records WHERE day = :day AND key_hash = :key_hash) OR ` + mayBegin + `
ON CONFLICT (day, key_hash) DO UPDATE SET
	taken_from = r.state,
	doubt = NOT ` + unsent + ` OR ` + behind + `,
	look_only = r.look_only OR ` + unsent + ` AND ` + behind + `,
	checks = CASE WHEN ` + unsent + ` AND NOT ` + behind + ` OR NOT ` + unsent + ` AND r.doubt THEN r.checks ELSE 0 END,
	window_ends_at = CASE WHEN NOT ` + unsent + ` THEN r.window_ends_at
		WHEN :window > 0 AND NOT ` + behind + ` THEN excluded.claimed_at + :window END,
	sent_until = CASE WHEN ` + maySend + ` THEN excluded.lease_expires_at
		WHEN ` + behind + ` THEN max(coalesce(r.sent_until, 0), :lost_before) ELSE r.sent_until END,
	replay_until = CASE WHEN ` + unsent + ` THEN max(coalesce(r.replay_until, 0), excluded.replay_until) ELSE r.replay_until END,
	evidence_until = CASE WHEN ` + unsent + ` THEN max(coalesce(r.evidence_until, 0), excluded.evidence_until) ELSE r.evidence_until END,
	state = 'sending',
	holder = excluded.holder,
	fence = r.fence + 1,
	version = r.version + 1,
	claimed_at = excluded.claimed_at,
	lease_expires_at = excluded.lease_expires_at,
	due_at = CASE WHEN r.state = 'uncertain' THEN r.due_at END,
	not_after = ` + earliestNotAfter + `,
	seal_version = CASE WHEN r.request IS NULL AND r.body_purged_at IS NULL AND :request IS NOT NULL THEN :seal_version ELSE r.seal_version END,
	request = CASE WHEN r.body_purged_at IS NULL THEN coalesce(r.request, excluded.request) ELSE r.request END
WHERE hex(r.request_hash) IN (SELECT value FROM json_each(:request_hashes))
	AND r.derivation IN (SELECT value FROM json_each(:derivations))
	AND r.seal_version <= :seal_version
	AND (r.state = 'uncertain'
		OR (r.state = 'sending' AND r.holder <> :holder AND r.lease_expires_at <= excluded.claimed_at)
		OR (` + unsent + ` AND (` + behind + ` OR coalesce(excluded.claimed_at < ` + earliestNotAfter + `, 1))))
RETURNING ` + columns

// mayBegin is whether a record may be made where there is none.
const mayBegin = `(:day <= now / 86400000000 + 1
		AND (:day = 0 OR :day > coalesce((SELECT f.day FROM samekey_frontier AS f WHERE f.class = :class), 0))
		AND (:not_after IS NULL OR now < :not_after))`

// maySend is whether the claim that takes r may send, as recordstore.Held decides.
const maySend = `r.noted = '' AND NOT r.look_only AND r.derivation <> 'foreign' AND CASE WHEN ` + unsent + ` THEN NOT ` + behind + `
		ELSE excluded.claimed_at < r.window_ends_at AND coalesce(excluded.claimed_at < ` + earliestNotAfter + `, 1) END`

// unsent is said of a record whose claim begins without doubt.
const unsent = `(r.state IN ('planned', 'not_executed'))`

// behind tells what recordstore.MayBeBehind does.
const behind = `coalesce(max(coalesce(r.created_at, 0), coalesce(r.claimed_at, 0), coalesce(r.answered_at, 0)) < :lost_before, 0)`

// earliestNotAfter is the earlier of two limits of which each may be missing.
const earliestNotAfter = `min(coalesce(r.not_after, excluded.not_after), coalesce(excluded.not_after, r.not_after))`

// claimArgs returns the arguments of claimSQL but for the time.
func claimArgs(c recordstore.Claim) ([]any, error) {
	hashes := make([]string, len(c.Fingerprints))
	for i, f := range c.Fingerprints {
		hashes[i] = fmt.Sprintf("%X", f)
	}
	known, err := json.Marshal(hashes)
	if err != nil {
		return nil, err
	}
	derivations, err := json.Marshal(c.Derivations)
	if err != nil {
		return nil, err
	}
	return append(planArgs(c),
		sql.Named("derivations", string(derivations)),
		sql.Named("request_hashes", string(known)),
		sql.Named("holder", c.Holder),
		sql.Named("lease", c.Lease.Microseconds()),
		sql.Named("window", c.Window.Microseconds()),
		sql.Named("lost_before", micros(c.LostBefore)),
	), nil
}

// Claim implements recordstore.Store.
func (s *Store) Claim(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	if err := c.Check(); err != nil {
		return recordstore.Claimed{}, fmt.Errorf("sqlite: claim: %w", err)
	}
	c.NotAfter, c.LostBefore = c.NotAfter.Truncate(time.Microsecond), c.LostBefore.Truncate(time.Microsecond)
	args, err := claimArgs(c)
	if err != nil {
		return recordstore.Claimed{}, fmt.Errorf("sqlite: claim: %w", err)
	}
	got, err := onRecord(ctx, s, c.ID, true, func(ctx context.Context, tx *sql.Tx, now sql.NamedArg) (got recordstore.Claimed, err error) {
		err = scan(tx.StmtContext(ctx, s.claim).QueryRowContext(ctx, append(args, now)...), &got.Record)
		if errors.Is(err, sql.ErrNoRows) {
			return s.explain(ctx, tx, c, now)
		}
		got.Now = got.Record.ClaimedAt
		got.Decision = recordstore.Held(got.Record, got.Now)
		return got, err
	})
	if err != nil {
		return recordstore.Claimed{}, fmt.Errorf("sqlite: claim: %w", err)
	}
	s.clock.observe(got.Now.UnixMicro())
	return got, nil
}

// errDisagree says that claimSQL refused what Take grants. It cannot happen as
// long as they say the same; nothing is sent if it does.
var errDisagree = errors.New("the claim statement and the decision table disagree")

// explain says why a claim wrote nothing. It runs in the claim's transaction and
// with its time, so that it sees what the claim saw.
func (s *Store) explain(ctx context.Context, tx *sql.Tx, c recordstore.Claim, now sql.NamedArg) (recordstore.Claimed, error) {
	row := tx.StmtContext(ctx, s.find).QueryRowContext(ctx, append(key(c.ID), now)...)
	found, frontier, at, err := met(ctx, tx, row, c, now)
	if err != nil {
		return recordstore.Claimed{}, err
	}
	next, d := recordstore.Take(c, found, frontier, at)
	holds := d == recordstore.Send || d == recordstore.Lookup
	if holds && (found == nil || next.Version != found.Version) { // Not our own claim, asked again.
		return recordstore.Claimed{}, errDisagree
	}
	return recordstore.Claimed{Decision: d, Record: next, Now: at}, nil
}

// met reads what c met: row is that of getSQL; found is nil where it is none.
func met(ctx context.Context, db querier, row *sql.Row, c recordstore.Claim, now sql.NamedArg) (
	found *recordstore.Record, frontier int32, at time.Time, err error) {
	var rec recordstore.Record
	err = scan(row, &rec, timestamp{&at})
	if errors.Is(err, sql.ErrNoRows) {
		err = db.QueryRowContext(ctx, frontierSQL, now, sql.Named("class", c.Class)).Scan(timestamp{&at}, &frontier)
		return nil, frontier, at, err
	}
	return &rec, 0, at, err
}

// frontierSQL reads the ledger's time and the frontier of a class.
const frontierSQL = `SELECT ` + nowSQL + `, coalesce((SELECT day FROM samekey_frontier WHERE class = :class), 0)`
