package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// settleSQL ends a claim, as recordstore.Settled does. It returns no row where the
// claim is not held, or was settled before.
const settleSQL = `
UPDATE samekey_records SET
	state = :state,
	noted = '',
	doubt = doubt AND :state <> 'not_executed',
	look_only = :state = 'uncertain' AND (look_only OR :look_only),
	blurred = blurred OR :blurred,
	evidence = :evidence,
	outcome = :outcome,
	error_code = :error_code,
	deliveries = deliveries + :deliveries,
	response_status = :response_status,
	response_headers = CASE WHEN body_purged_at IS NULL THEN :response_headers END,
	response_body = CASE WHEN body_purged_at IS NULL THEN :response_body END,
	seal_version = max(seal_version, :seal_version),
	external_ref = coalesce(nullif(:external_ref, ''), external_ref),
	object_status = coalesce(nullif(:object_status, ''), object_status),
	provider_request_id = coalesce(nullif(:provider_request_id, ''), provider_request_id),
	answered_at = ` + nowSQL + `,
	due_at = CASE WHEN :due_in <= 0 OR :state = 'not_executed' AND NOT from_plan THEN NULL
		WHEN :state = 'uncertain' AND ` + waits + ` THEN due_at
		ELSE ` + nowSQL + ` + :due_in END,
	checks = CASE WHEN :uncounted THEN max(checks - 1, 0) ELSE checks END,
	request = CASE WHEN :state IN ('succeeded', 'refused') THEN NULL ELSE request END,
	version = version + 1
WHERE day = :day AND key_hash = :key_hash
	AND state = 'sending' AND holder = :holder AND fence = :fence AND noted = :noted
RETURNING ` + columns

// waits is whether a check was due when the holder took the record: else the due
// time, where there is one, is the end of the lease.
const waits = `(due_at IS NOT NULL AND due_at IS NOT lease_expires_at)`

// renewSQL prolongs a live lease, as recordstore.Renewed does.
const renewSQL = `
UPDATE samekey_records SET
	lease_expires_at = max(lease_expires_at, ` + nowSQL + ` + :lease),
	due_at = CASE WHEN ` + waits + ` THEN due_at ELSE max(lease_expires_at, ` + nowSQL + ` + :lease) END,
	sent_until = max(lease_expires_at, ` + nowSQL + ` + :lease),
	version = version + 1
WHERE day = :day AND key_hash = :key_hash
	AND state = 'sending' AND holder = :holder AND fence = :fence AND lease_expires_at > ` + nowSQL

// settleArgs returns the arguments of settleSQL but for the time.
func settleArgs(s recordstore.Settlement) []any {
	return append(key(s.ID),
		sql.Named("holder", s.Holder),
		sql.Named("fence", s.Fence),
		sql.Named("noted", string(s.Noted)),
		sql.Named("uncounted", s.Uncounted),
		sql.Named("state", string(s.State)),
		sql.Named("evidence", s.Evidence),
		sql.Named("outcome", s.Outcome),
		sql.Named("error_code", s.ErrorCode),
		sql.Named("deliveries", s.Deliveries),
		sql.Named("look_only", s.LookOnly),
		sql.Named("blurred", s.Blurred),
		sql.Named("response_status", s.ResponseStatus),
		sql.Named("response_headers", blob(s.ResponseHeader)),
		sql.Named("response_body", blob(s.ResponseBody)),
		sql.Named("seal_version", s.SealVersion),
		sql.Named("external_ref", s.ExternalRef),
		sql.Named("object_status", s.ObjectStatus),
		sql.Named("provider_request_id", s.RequestID),
		sql.Named("due_in", s.DueIn.Microseconds()),
	)
}

// Settle implements recordstore.Store.
func (s *Store) Settle(ctx context.Context, st recordstore.Settlement) (recordstore.Record, error) {
	if err := st.Check(); err != nil {
		return recordstore.Record{}, fmt.Errorf("sqlite: settle: %w", err)
	}
	args := settleArgs(st)
	rec, err := onRecord(ctx, s, st.ID, false, func(ctx context.Context, tx *sql.Tx, now sql.NamedArg) (rec recordstore.Record, err error) {
		err = scan(tx.StmtContext(ctx, s.settle).QueryRowContext(ctx, append(args, now)...), &rec)
		if err == nil && st.Entry != nil {
			return rec, note(ctx, tx, st.ID, st.Entry.Stamped(recordstore.Record{State: recordstore.Sending}, rec, rec.AnsweredAt))
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return rec, err
		}
		rec, at, err := read(ctx, tx.StmtContext(ctx, s.find), st.ID, now)
		if err == nil {
			_, err = recordstore.Settled(rec, st, at)
		}
		return rec, err
	})
	return rec, wrap("settle", err)
}

// Renew implements recordstore.Store.
func (s *Store) Renew(ctx context.Context, id recordstore.ID, holder string, fence int64, lease time.Duration) error {
	args := append(key(id), sql.Named("holder", holder), sql.Named("fence", fence), sql.Named("lease", lease.Microseconds()))
	_, err := onRecord(ctx, s, id, false, func(ctx context.Context, tx *sql.Tx, now sql.NamedArg) (none struct{}, err error) {
		res, err := tx.StmtContext(ctx, s.renew).ExecContext(ctx, append(args, now)...)
		if err != nil {
			return none, err
		}
		if n, err := res.RowsAffected(); err != nil || n == 1 {
			return none, err
		}
		if _, _, err := read(ctx, tx.StmtContext(ctx, s.find), id, now); err != nil {
			return none, err
		}
		return none, recordstore.ErrNotHeld
	})
	return wrap("renew", err)
}

// Report implements recordstore.Store.
func (s *Store) Report(ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
	if err := r.Check(); err != nil {
		return recordstore.Record{}, wrap("report", err)
	}
	return s.change(ctx, "report", id, r.Entry, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Reported(rec, r, now), nil
	})
}

// change replaces the record of id by what move makes of it and appends e to its
// trail, if that is another one. What it serves is rare: it reads, decides and
// writes the row, in one transaction. The record is returned with ErrNotHeld too.
func (s *Store) change(ctx context.Context, call string, id recordstore.ID, e *recordstore.Entry,
	move func(recordstore.Record, time.Time) (recordstore.Record, error)) (recordstore.Record, error) {
	next, err := onRecord(ctx, s, id, false, func(ctx context.Context, tx *sql.Tx, now sql.NamedArg) (next recordstore.Record, err error) {
		rec, at, err := read(ctx, tx.StmtContext(ctx, s.find), id, now)
		if err != nil {
			return next, err
		}
		if next, err = move(rec, at); err != nil || next.Version == rec.Version {
			return next, err
		}
		if _, err = tx.ExecContext(ctx, putSQL, values(&next)...); err != nil || e == nil {
			return next, err
		}
		return next, note(ctx, tx, id, e.Stamped(rec, next, at))
	})
	return next, wrap(call, err)
}

// wrap gives an error of a call its place. A row that is not there is ErrNotFound.
func wrap(call string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		err = recordstore.ErrNotFound
	}
	return fmt.Errorf("sqlite: %s: %w", call, err)
}
