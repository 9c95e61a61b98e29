package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// purgeStep is how many rows one transaction of a purge changes.
const purgeStep = 200

// isSettled is whether retention counts for a row: a plan that is to be sent again
// is not settled.
const isSettled = `(state IN ('succeeded', 'refused', 'abandoned') OR state = 'not_executed' AND due_at IS NULL)`

// emptySQL clears bodies, as recordstore.Emptied does.
const emptySQL = `UPDATE samekey_records SET
	request = NULL, response_headers = NULL, response_body = NULL, body_purged_at = :at, version = version + 1
WHERE rowid IN (SELECT rowid FROM samekey_records
	WHERE ` + bodiless + ` = 0 AND ` + removedNext + ` <= :at AND ` + isSettled + ` LIMIT :limit)`

// outlived is whether nothing of a row is needed any more, and its day is 0 or
// over, as recordstore.Purgeable and Tombstone decide.
const outlived = bodiless + ` = 1 AND ` + removedNext + ` <= :at AND ` + isSettled + `
	AND day >= 0 AND day < :at / 86400000000 - 1`

const outlivedSQL = `SELECT rowid, class, day FROM samekey_records WHERE ` + outlived + ` LIMIT :limit`

// chosen is which of the rows found before are still outlived, and behind the
// frontier if they have a day.
const chosen = `FROM samekey_records AS r WHERE rowid IN (SELECT value FROM json_each(:ids)) AND ` + outlived + `
	AND (day = 0 OR day <= (SELECT f.day FROM samekey_frontier AS f WHERE f.class = r.class))`

// removeSQL removes the trails of the chosen, shrinks those of day 0 to a
// tombstone and deletes the others.
var removeSQL = [...]string{
	`DELETE FROM samekey_trail WHERE (day, key_hash) IN (SELECT day, key_hash ` + chosen + `)`,
	`UPDATE samekey_records SET object_status = '', provider_request_id = '', evidence_until = NULL, version = version + 1
		WHERE day = 0 AND rowid IN (SELECT rowid ` + chosen + `)`,
	`DELETE FROM samekey_records WHERE day > 0 AND rowid IN (SELECT rowid ` + chosen + `)`,
}

// Purge implements recordstore.Purger. Between its steps others may write.
func (s *Store) Purge(ctx context.Context, limit int) (recordstore.Purged, error) {
	var at time.Time
	if err := s.readers.QueryRowContext(ctx, timeSQL, s.now()).Scan(timestamp{&at}); err != nil {
		return recordstore.Purged{}, wrap("purge", err)
	}
	s.clock.observe(at.UnixMicro())
	var done recordstore.Purged
	var err error
	if done.Bodies, err = inSteps(limit, func(n int) (int, error) { return s.empty(ctx, at, n) }); err != nil {
		return done, wrap("purge", err)
	}
	done.Records, err = inSteps(limit, func(n int) (int, error) { return s.remove(ctx, at, n) })
	return done, wrap("purge", err)
}

// inSteps takes steps until limit is reached or one does less than it may.
func inSteps(limit int, step func(n int) (int, error)) (done int, err error) {
	for done < limit {
		n := min(purgeStep, limit-done)
		did, err := step(n)
		if done += did; err != nil || did < n {
			return done, err
		}
	}
	return done, nil
}

func (s *Store) empty(ctx context.Context, at time.Time, n int) (did int, err error) {
	err = s.write(ctx, func(tx *sql.Tx, _ sql.NamedArg) error {
		did, err = affected(tx.ExecContext(ctx, emptySQL, sql.Named("at", micros(at)), sql.Named("limit", n)))
		return err
	})
	return did, err
}

// remove raises the frontiers, each in a transaction of its own, and then removes
// up to n records.
func (s *Store) remove(ctx context.Context, at time.Time, n int) (did int, err error) {
	ids, days, err := s.outlived(ctx, at, n)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	for class, day := range days {
		if err := s.RaiseFrontier(ctx, class, day); err != nil {
			return 0, err
		}
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return 0, err
	}
	err = s.write(ctx, func(tx *sql.Tx, _ sql.NamedArg) error {
		did = 0
		for i, text := range removeSQL {
			changed, err := affected(tx.ExecContext(ctx, text, sql.Named("ids", string(list)), sql.Named("at", micros(at))))
			if err != nil {
				return err
			}
			if i > 0 { // Entries of a trail are not counted.
				did += changed
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return did, nil
}

// outlived returns up to n rows that may go, and for each class the newest of their
// days. Day 0 is no day.
func (s *Store) outlived(ctx context.Context, at time.Time, n int) (ids []int64, days map[string]int32, err error) {
	rows, err := s.readers.QueryContext(ctx, outlivedSQL, sql.Named("at", micros(at)), sql.Named("limit", n))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = rows.Close() }() // Rows.Err has told what went wrong.
	days = map[string]int32{}
	for rows.Next() {
		var id int64
		var class string
		var day int32
		if err := rows.Scan(&id, &class, &day); err != nil {
			return nil, nil, err
		}
		ids = append(ids, id)
		if day > 0 {
			days[class] = max(days[class], day)
		}
	}
	return ids, days, rows.Err()
}
