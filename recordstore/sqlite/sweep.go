package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// sweepSQL reads the ledger's time, its newest claim and the sweep's watermark.
const sweepSQL = `SELECT ` + nowSQL + `,
	coalesce((SELECT max(claimed_at) FROM samekey_records), 0), coalesce((SELECT claimed_at FROM samekey_sweep), 0)`

// sendersSQL reads who sends, or died sending, and is not due: oldest claim first.
const sendersSQL = `SELECT rowid, claimed_at, coalesce(lease_expires_at, 0) <= :at FROM samekey_records
	WHERE claimed_at >= :since AND state = 'sending' AND due_at IS NULL ORDER BY claimed_at`

// crashedSQL makes records due that were found, if that is still so.
const crashedSQL = `UPDATE samekey_records SET due_at = :at, version = version + 1
	WHERE rowid IN (SELECT value FROM json_each(:ids))
		AND state = 'sending' AND due_at IS NULL AND coalesce(lease_expires_at, 0) <= :at`

const markSQL = `INSERT INTO samekey_sweep VALUES (1, :mark)
	ON CONFLICT DO UPDATE SET claimed_at = max(claimed_at, excluded.claimed_at)`

// swept is what a sweep saw: the rows of crashed senders, and the claim before
// which all senders have ended or are among them.
type swept struct {
	ids  []int64
	mark int64
}

// FindCrashed implements recordstore.Queue. It reads every claim since the
// watermark, with full every claim of the ledger, beside writers; only what it
// finds is written. The watermark stays at the oldest call that may still be alive.
func (s *Store) FindCrashed(ctx context.Context, full bool, limit int) (int, error) {
	var at time.Time
	var newest, since int64
	if err := s.readers.QueryRowContext(ctx, sweepSQL, s.now()).Scan(timestamp{&at}, &newest, &since); err != nil {
		return 0, wrap("find crashed", err)
	}
	s.clock.observe(at.UnixMicro())
	from := since
	if full {
		from = 0
	}
	seen, err := s.senders(ctx, from, newest, at, limit)
	if err != nil || len(seen.ids) == 0 && seen.mark <= since {
		return 0, wrap("find crashed", err)
	}
	found, err := s.makeDue(ctx, seen, at)
	return found, wrap("find crashed", err)
}

// senders walks the claims from one on. Claims are made in the order of their
// times, so that none comes to stand before newest any more.
func (s *Store) senders(ctx context.Context, from, newest int64, at time.Time, limit int) (seen swept, err error) {
	seen = swept{ids: []int64{}, mark: newest}
	rows, err := s.readers.QueryContext(ctx, sendersSQL, sql.Named("since", from), sql.Named("at", micros(at)))
	if err != nil {
		return seen, err
	}
	defer func() { _ = rows.Close() }() // Rows.Err has told what went wrong.
	for rows.Next() {
		var id, claimed int64
		var dead bool
		if err := rows.Scan(&id, &claimed, &dead); err != nil {
			return seen, err
		}
		if dead && len(seen.ids) < limit {
			seen.ids = append(seen.ids, id)
			continue
		}
		if seen.mark = min(seen.mark, claimed); dead {
			return seen, nil
		}
	}
	return seen, rows.Err()
}

// makeDue writes what was seen. If something moved in between, the watermark stays
// for the next sweep.
func (s *Store) makeDue(ctx context.Context, seen swept, at time.Time) (found int, err error) {
	ids, err := json.Marshal(seen.ids)
	if err != nil {
		return 0, err
	}
	err = s.write(ctx, func(tx *sql.Tx, _ sql.NamedArg) error {
		if found, err = affected(tx.ExecContext(ctx, crashedSQL, sql.Named("ids", string(ids)), sql.Named("at", micros(at)))); err != nil {
			return err
		}
		if found < len(seen.ids) {
			return nil
		}
		_, err := tx.ExecContext(ctx, markSQL, sql.Named("mark", seen.mark))
		return err
	})
	if err != nil {
		return 0, err
	}
	return found, nil
}

// affected returns how many rows a statement changed.
func affected(res sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// backlogSQL counts what waits. Senders that died are found where they are due,
// and among the claims since the last sweep.
const backlogSQL = `
WITH clock(now) AS MATERIALIZED (SELECT ` + nowSQL + `),
waiting(claimed_at) AS MATERIALIZED (
	SELECT claimed_at FROM samekey_records INDEXED BY samekey_records_open
	WHERE provider = :provider AND state = 'uncertain'
	UNION ALL
	SELECT claimed_at FROM samekey_records INDEXED BY samekey_records_due
	WHERE provider = :provider AND due_at IS NOT NULL
		AND state = 'sending' AND coalesce(lease_expires_at, 0) <= (SELECT now FROM clock)
	UNION ALL
	SELECT claimed_at FROM samekey_records INDEXED BY samekey_records_claimed
	WHERE provider = :provider AND due_at IS NULL AND claimed_at >= coalesce((SELECT claimed_at FROM samekey_sweep), 0)
		AND state = 'sending' AND coalesce(lease_expires_at, 0) <= (SELECT now FROM clock)
)
SELECT now,
	(SELECT count(*) FROM samekey_records INDEXED BY samekey_records_due WHERE provider = :provider AND due_at <= now),
	(SELECT count(*) FROM waiting),
	(SELECT count(*) FROM samekey_records INDEXED BY samekey_records_open WHERE provider = :provider AND state = 'manual_review'),
	(SELECT claimed_at FROM waiting ORDER BY claimed_at DESC
		LIMIT 1 OFFSET (SELECT max((95 * count(*) + 99) / 100 - 1, 0) FROM waiting))
FROM clock`

// Backlog implements recordstore.Queue. It reads what waits for the provider (what
// is due now or later, uncertain or in review) and the claims of all providers
// since the last FindCrashed, beside writers.
func (s *Store) Backlog(ctx context.Context, provider string) (recordstore.Backlog, error) {
	var b recordstore.Backlog
	var at, claimed time.Time
	err := s.readers.QueryRowContext(ctx, backlogSQL, s.now(), sql.Named("provider", provider)).
		Scan(timestamp{&at}, &b.Due, &b.Uncertain, &b.Review, timestamp{&claimed})
	if err != nil {
		return recordstore.Backlog{}, wrap("backlog", err)
	}
	s.clock.observe(at.UnixMicro())
	if b.Uncertain > 0 {
		b.UncertainP95 = at.Sub(claimed)
	}
	return b, nil
}
