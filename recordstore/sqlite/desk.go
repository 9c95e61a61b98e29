package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Resolve implements recordstore.Desk.
func (s *Store) Resolve(ctx context.Context, v recordstore.Verdict) (recordstore.Record, error) {
	if err := v.Check(); err != nil {
		return recordstore.Record{}, wrap("resolve", err)
	}
	return s.change(ctx, "resolve", v.ID, v.Entry, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Resolved(rec, v, now)
	})
}

// Abandon implements recordstore.Desk.
func (s *Store) Abandon(ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
	if err := e.Check(); err != nil {
		return recordstore.Record{}, wrap("abandon", err)
	}
	return s.change(ctx, "abandon", id, &e, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Abandonment(rec, now), nil
	})
}

// Erase implements recordstore.Desk. The bytes may stay readable in free pages of
// the file until they are used again, or until VACUUM.
func (s *Store) Erase(ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
	if err := e.Check(); err != nil {
		return recordstore.Record{}, wrap("erase", err)
	}
	return s.change(ctx, "erase", id, &e, func(rec recordstore.Record, now time.Time) (recordstore.Record, error) {
		return recordstore.Erased(rec, now), nil
	})
}

// noteSQL appends an entry to a trail.
const noteSQL = `INSERT INTO samekey_trail (day, key_hash, version, at, kind, from_state, to_state, actor, text)
	VALUES (:day, :key_hash, :version, :at, :kind, :from, :to, :actor, :text)`

// note appends e, which is Stamped, to the trail of id.
func note(ctx context.Context, tx *sql.Tx, id recordstore.ID, e recordstore.Entry) error {
	_, err := tx.ExecContext(ctx, noteSQL, append(key(id),
		sql.Named("version", e.Version),
		sql.Named("at", micros(e.At)),
		sql.Named("kind", e.Kind),
		sql.Named("from", string(e.From)),
		sql.Named("to", string(e.To)),
		sql.Named("actor", e.Actor),
		sql.Named("text", e.Text),
	)...)
	return err
}

// trailSQL reads the end of a trail, newest first. It returns one row with version
// 0 where there is a record without a trail, and none where there is no record.
const trailSQL = `SELECT coalesce(e.version, 0), e.at, coalesce(e.kind, ''), coalesce(e.from_state, ''),
		coalesce(e.to_state, ''), coalesce(e.actor, ''), coalesce(e.text, '')
	FROM samekey_records AS r LEFT JOIN samekey_trail AS e ON e.day = r.day AND e.key_hash = r.key_hash
	WHERE r.day = :day AND r.key_hash = :key_hash
	ORDER BY e.version DESC LIMIT :limit`

// Trail implements recordstore.Desk. It does not wait for writers.
func (s *Store) Trail(ctx context.Context, id recordstore.ID) ([]recordstore.Entry, error) {
	trail, err := s.readTrail(ctx, id)
	if err == nil && len(trail) == 0 {
		err = recordstore.ErrNotFound
	}
	if err != nil {
		return nil, wrap("trail", err)
	}
	slices.Reverse(trail)
	if trail[0].Version == 0 {
		trail = nil
	}
	return trail, nil
}

// readTrail returns the rows of trailSQL.
func (s *Store) readTrail(ctx context.Context, id recordstore.ID) (trail []recordstore.Entry, err error) {
	rows, err := s.readers.QueryContext(ctx, trailSQL, append(key(id), sql.Named("limit", recordstore.MaxTrail))...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Rows.Err has told what went wrong.
	for rows.Next() {
		var e recordstore.Entry
		if err := rows.Scan(&e.Version, timestamp{&e.At}, &e.Kind, &e.From, &e.To, &e.Actor, &e.Text); err != nil {
			return nil, err
		}
		trail = append(trail, e)
	}
	return trail, rows.Err()
}
