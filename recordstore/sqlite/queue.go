package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// maxVisits is at how many scopes one TakeDue looks, on each side of where it begins.
const maxVisits = 10_000

// takeable is whether r may be taken, as recordstore.TakenDue decides.
const takeable = `r.due_at <= (SELECT now FROM clock)
	AND (r.state IN ('planned', 'not_executed', 'uncertain') OR (r.state = 'sending' AND coalesce(r.lease_expires_at, 0) <= (SELECT now FROM clock)))
	AND CASE WHEN :accounts = '[]' THEN substr(r.account, -length(:suffix)) = :suffix
		ELSE r.account IN (SELECT value FROM json_each(:accounts)) END
	AND r.derivation IN (SELECT value FROM json_each(:derivations))
	AND hex(substr(r.request_hash, 1, 1)) IN (SELECT value FROM json_each(:versions))
	AND r.seal_version <= :seal_version`

// takeDueSQL takes due records: all of them where they are not more than wanted
// (few), and otherwise in turn over owners. visited walks from owner to owner by the index
// that begins with them: from a point that differs at each call (lap 0), then from
// the first owner up to that point (lap 1), and stops once it has found as many
// with something to take as are wanted. turns takes of each owner the oldest
// record, then of each the next, until the limit is reached. So what is read
// depends on the limit and the number of owners, not on how much is due.
const takeDueSQL = `
WITH RECURSIVE clock(now) AS MATERIALIZED (SELECT ` + nowSQL + `),
few(yes) AS MATERIALIZED (SELECT count(*) <= :limit FROM (
	SELECT 1 FROM samekey_records WHERE provider = :provider AND due_at <= (SELECT now FROM clock) LIMIT :limit + 1)),
visited(lap, scope, found) AS (
	SELECT column1, column2, 0 FROM (VALUES (0, :begin), (1, x'')) WHERE NOT (SELECT yes FROM few)
	UNION ALL
	SELECT v.lap,
		(SELECT r.scope_hash FROM samekey_records AS r INDEXED BY samekey_records_turn
			WHERE r.provider = :provider AND r.due_at IS NOT NULL AND r.scope_hash > v.scope ORDER BY r.scope_hash LIMIT 1),
		v.found + EXISTS (SELECT 1 FROM samekey_records AS r INDEXED BY samekey_records_turn
			WHERE r.provider = :provider AND r.scope_hash = v.scope AND ` + takeable + `)
	FROM visited AS v
	WHERE v.scope IS NOT NULL AND (v.lap = 0 OR v.scope < :begin) AND v.found < :limit
	ORDER BY 1
	LIMIT :visits
),
turns(turn, due_at, id, scope) AS (
	SELECT 0, d.due_at, d.rowid, v.scope
	FROM visited AS v CROSS JOIN samekey_records AS d
	WHERE (v.lap = 0 OR v.scope < :begin)
		AND d.rowid = (SELECT r.rowid FROM samekey_records AS r INDEXED BY samekey_records_turn
			WHERE r.provider = :provider AND r.scope_hash = v.scope AND ` + takeable + `
			ORDER BY r.due_at, r.rowid LIMIT 1)
	UNION ALL
	SELECT t.turn + 1, d.due_at, d.rowid, t.scope
	FROM turns AS t CROSS JOIN samekey_records AS d
	WHERE d.rowid = (SELECT r.rowid FROM samekey_records AS r INDEXED BY samekey_records_turn
			WHERE r.provider = :provider AND r.scope_hash = t.scope AND (r.due_at, r.rowid) > (t.due_at, t.id) AND ` + takeable + `
			ORDER BY r.due_at, r.rowid LIMIT 1)
	ORDER BY 1, 2
	LIMIT :limit
)
UPDATE samekey_records AS r SET
	taken_from = CASE WHEN ` + unsent + ` THEN taken_from ELSE state END,
	doubt = doubt OR NOT ` + unsent + `,
	holder = CASE WHEN ` + unsent + ` THEN holder ELSE :holder END,
	fence = fence + (NOT ` + unsent + `),
	claimed_at = CASE WHEN ` + unsent + ` THEN claimed_at ELSE (SELECT now FROM clock) END,
	lease_expires_at = CASE WHEN ` + unsent + ` THEN lease_expires_at ELSE (SELECT now FROM clock) + :lease END,
	sent_until = CASE WHEN NOT ` + unsent + ` AND ` + behind + ` THEN max(coalesce(sent_until, 0), :lost_before) ELSE sent_until END,
	state = CASE WHEN ` + unsent + ` THEN state ELSE 'sending' END,
	due_at = (SELECT now FROM clock) + :lease,
	checks = CASE WHEN ` + unsent + ` OR doubt THEN checks + 1 ELSE 1 END,
	version = version + 1
WHERE rowid IN (SELECT id FROM turns
	UNION ALL SELECT r.rowid FROM samekey_records AS r INDEXED BY samekey_records_due
	WHERE (SELECT yes FROM few) AND r.provider = :provider AND ` + takeable + `)
RETURNING ` + columns

// takeDueArgs returns the arguments of takeDueSQL but for the time.
func takeDueArgs(q recordstore.DueQuery) ([]any, error) {
	versions := make([]string, len(q.Fingerprints))
	for i, v := range q.Fingerprints {
		versions[i] = fmt.Sprintf("%02X", v)
	}
	args := []any{
		sql.Named("provider", q.Provider),
		sql.Named("suffix", "/"+q.Mode),
		sql.Named("seal_version", q.SealVersion),
		sql.Named("holder", q.Holder),
		sql.Named("lease", q.Lease.Microseconds()),
		sql.Named("limit", q.Limit),
		sql.Named("visits", 2*maxVisits),
		sql.Named("lost_before", micros(q.LostBefore.Truncate(time.Microsecond))),
	}
	begin := sha256.Sum256([]byte(q.Holder)) // Random, as the holder is.
	args = append(args, sql.Named("begin", begin[:]))
	for name, list := range map[string][]string{"accounts": q.Accounts, "derivations": q.Derivations, "versions": versions} {
		text, err := json.Marshal(append([]string{}, list...)) // An empty list is not null.
		if err != nil {
			return nil, err
		}
		args = append(args, sql.Named(name, string(text)))
	}
	return args, nil
}

// TakeDue implements recordstore.Queue. Where more is due than q.Limit, and for more
// than 10,000 owners something waits, now or later, it may pass over owners and take
// less: it begins at another owner each time.
func (s *Store) TakeDue(ctx context.Context, q recordstore.DueQuery) ([]recordstore.Record, time.Time, error) {
	if err := q.Check(); err != nil {
		return nil, time.Time{}, wrap("take due", err)
	}
	args, err := takeDueArgs(q)
	if err != nil {
		return nil, time.Time{}, wrap("take due", err)
	}
	var taken []recordstore.Record
	var at time.Time
	err = s.write(ctx, func(tx *sql.Tx, now sql.NamedArg) error {
		if err := tx.QueryRowContext(ctx, timeSQL, now).Scan(timestamp{&at}); err != nil {
			return err
		}
		taken, err = records(tx.QueryContext(ctx, takeDueSQL, append(args, now)...))
		return err
	})
	if err != nil {
		return nil, time.Time{}, wrap("take due", err)
	}
	s.clock.observe(at.UnixMicro())
	return taken, at, nil
}

// timeSQL reads the ledger's time.
const timeSQL = `SELECT ` + nowSQL

// records reads the records of a query.
func records(rows *sql.Rows, err error) (recs []recordstore.Record, _ error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Rows.Err has told what went wrong.
	for rows.Next() {
		var rec recordstore.Record
		if err := rows.Scan(row(&rec)...); err != nil {
			return nil, err
		}
		recs = append(recs, rec)
	}
	return recs, rows.Err()
}

// Wake implements recordstore.Queue.
func (s *Store) Wake(ctx context.Context, id recordstore.ID, externalRef string) (recordstore.Record, error) {
	return s.change(ctx, "wake", id, nil, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Woken(rec, externalRef, now), nil
	})
}
