package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

var _ recordstore.Lister = (*Store)(nil)

// maxReading bounds one list or tally. Readers hold no writer up, but they keep
// the write-ahead log from being taken in.
const maxReading = 30 * time.Second

// since is recordstore.Since, isOpen is recordstore.IsOpen.
const (
	since  = `coalesce(claimed_at, created_at)`
	isOpen = `(state IN ('planned', 'uncertain', 'manual_review')
		OR state = 'not_executed' AND due_at IS NOT NULL
		OR state = 'sending' AND coalesce(lease_expires_at, 0) <= (SELECT now FROM clock))`
	sealedBytes = `(coalesce(length(request), 0) + coalesce(length(response_headers), 0) + coalesce(length(response_body), 0))`
)

// question is a statement that is put together for one filter, so that each
// condition is there only where it is asked, and keeps none from an index.
type question struct {
	args  []any
	where []string
}

// arg adds an argument and returns its name.
func (q *question) arg(v any) string {
	name := fmt.Sprintf("a%d", len(q.args))
	q.args = append(q.args, sql.Named(name, v))
	return ":" + name
}

// equal adds a condition, unless nothing is asked.
func (q *question) equal(column, value string) {
	if value != "" {
		q.where = append(q.where, column+" = "+q.arg(value))
	}
}

// ask adds the conditions of f but for its states.
func (q *question) ask(f recordstore.Filter) {
	q.equal("provider", f.Provider)
	q.equal("account", f.Account)
	q.equal("operation", f.Operation)
	q.equal("class", f.Class)
	q.equal("external_ref", f.ExternalRef)
	q.equal("provider_request_id", f.RequestID)
	if !f.After.IsZero() {
		q.where = append(q.where, since+" >= "+q.arg(micros(f.After)))
	}
	if !f.Before.IsZero() {
		q.where = append(q.where, since+" < "+q.arg(micros(f.Before)))
	}
	if f.CommandID != "" {
		id := q.arg(f.CommandID)
		q.where = append(q.where, "day = "+q.arg(f.Day),
			fmt.Sprintf("(command_id = %s OR substr(command_id, 1, length(%[1]s) + 1) = %[1]s || '/')", id))
	}
}

// narrow adds the states of f.
func (q *question) narrow(f recordstore.Filter) {
	if len(f.States) > 0 {
		places := make([]string, len(f.States))
		for i, state := range f.States {
			places[i] = q.arg(string(state))
		}
		q.where = append(q.where, "state IN ("+strings.Join(places, ", ")+")")
	}
	if f.Open {
		q.where = append(q.where, isOpen)
	}
}

// choose returns a statement for the page's rows among those of source that more
// says, sorted by a column that stands in for recordstore.Since.
func (q *question) choose(lq recordstore.ListQuery, source, by, more string) string {
	where := append(slices.Clone(q.where), more)
	if !lq.After.IsZero() { // the bounds once more, on the column that the index has
		where = append(where, by+" >= "+q.arg(micros(lq.After)))
	}
	if !lq.Before.IsZero() {
		where = append(where, by+" < "+q.arg(micros(lq.Before)))
	}
	if lq.From != nil {
		at, day, key := q.arg(micros(lq.From.Since)), q.arg(lq.From.ID.Day), q.arg(lq.From.ID.KeyHash[:])
		switch lq.Order {
		case recordstore.ByIdentity:
			where = append(where, fmt.Sprintf("(day, key_hash) > (%s, %s)", day, key))
		case recordstore.NewestFirst:
			where = append(where, fmt.Sprintf("%s <= %s AND (%[1]s, day, key_hash) < (%[2]s, %s, %s)", by, at, day, key))
		default:
			where = append(where, fmt.Sprintf("%s >= %s AND (%[1]s, day, key_hash) > (%[2]s, %s, %s)", by, at, day, key))
		}
	}
	return "SELECT * FROM (SELECT rowid AS id, " + by + " AS since, day, key_hash FROM samekey_records" + source + " WHERE " +
		strings.Join(where, " AND ") + ordering(lq.Order, "", by) + " LIMIT " + q.arg(lq.Limit+1) + ")"
}

// ordering sorts the rows of a table, or what stands for it, by a column.
func ordering(o recordstore.Order, table, by string) string {
	day, key := table+"day", table+"key_hash"
	switch o {
	case recordstore.NewestFirst:
		return " ORDER BY " + by + " DESC, " + day + " DESC, " + key + " DESC"
	case recordstore.ByIdentity:
		return " ORDER BY " + day + ", " + key
	}
	return " ORDER BY " + by + ", " + day + ", " + key
}

// maxProviders bounds the parts of one statement.
const maxProviders = 100

// The indexes that parts of a list are read along.
const (
	byDue    = " INDEXED BY samekey_records_due"
	byClaim  = " INDEXED BY samekey_records_claimed"
	byOpen   = " INDEXED BY samekey_records_open"
	anyIndex = ""
)

// parts returns the statements that together find the page: along the indexes on
// what waits, on what is due and on claims, as far as they serve.
func (q *question) parts(lq recordstore.ListQuery, providers []string) []string {
	states, waiting := lq.Waiting()
	if !waiting || len(providers) > maxProviders {
		q.narrow(lq.Filter)
		if lq.Order == recordstore.ByIdentity || lq.CommandID != "" || lq.ExternalRef != "" || lq.RequestID != "" {
			return []string{q.choose(lq, anyIndex, since, "true")}
		}
		return []string{
			q.choose(lq, byClaim, "claimed_at", "claimed_at IS NOT NULL"),
			q.choose(lq, byClaim, "created_at", "claimed_at IS NULL"),
		}
	}
	dead := "true"
	if lq.Open {
		dead = "coalesce(lease_expires_at, 0) <= (SELECT now FROM clock)"
	}
	var parts, due []string
	for _, state := range states {
		switch state {
		case recordstore.Planned, recordstore.NotExecuted:
			due = append(due, "state = '"+string(state)+"'")
		case recordstore.Sending: // the sweep's watermark: who was claimed before has ended or is due
			due = append(due, "state = 'sending' AND "+dead)
			parts = append(parts, q.choose(lq, byClaim, "claimed_at",
				"state = 'sending' AND due_at IS NULL AND claimed_at >= coalesce((SELECT claimed_at FROM samekey_sweep), 0) AND "+dead))
		default:
			for _, p := range providers {
				parts = append(parts, q.choose(lq, byOpen, "claimed_at", "state = '"+string(state)+"' AND provider = "+q.arg(p)))
			}
		}
	}
	if len(due) > 0 {
		parts = append(parts, q.choose(lq, byDue, since, "due_at IS NOT NULL AND ("+strings.Join(due, " OR ")+")"))
	}
	return parts
}

// waitersSQL walks from provider to provider along the index on what waits.
const waitersSQL = `WITH RECURSIVE p(name) AS (
	SELECT (SELECT min(provider) FROM samekey_records` + byOpen + ` WHERE state = 'uncertain' OR state = 'manual_review')
	UNION ALL
	SELECT (SELECT min(provider) FROM samekey_records` + byOpen + `
		WHERE (state = 'uncertain' OR state = 'manual_review') AND provider > name) FROM p WHERE name IS NOT NULL
) SELECT name FROM p WHERE name IS NOT NULL`

// List implements recordstore.Lister. It does not wait for writers.
func (s *Store) List(ctx context.Context, lq recordstore.ListQuery) (list recordstore.Listing, err error) {
	if err := lq.Check(); err != nil {
		return list, wrap("list", err)
	}
	err = s.reading(ctx, func(ctx context.Context, tx *sql.Tx) error {
		now := s.now()
		if err := tx.QueryRowContext(ctx, timeSQL, now).Scan(timestamp{&list.Now}); err != nil {
			return err
		}
		providers, err := each[string](func(rows *sql.Rows, name *string) error { return rows.Scan(name) }).of(tx.QueryContext(ctx, waitersSQL))
		if err != nil {
			return err
		}
		q := question{args: []any{now}}
		q.ask(lq.Filter)
		parts := q.parts(lq, providers)
		if len(parts) == 0 { // nothing is in review or uncertain, and nothing else was asked for
			return nil
		}
		text := "WITH clock(now) AS MATERIALIZED (" + timeSQL + "), page AS MATERIALIZED (" + strings.Join(parts, " UNION ALL ") +
			ordering(lq.Order, "", "since") + " LIMIT " + q.arg(lq.Limit+1) + ") SELECT " + sealedBytes + ", " + listed +
			" FROM page CROSS JOIN samekey_records AS r ON r.rowid = page.id" + ordering(lq.Order, "page.", "page.since")
		list.Records, err = each[recordstore.Listed](func(rows *sql.Rows, l *recordstore.Listed) error {
			return rows.Scan(append([]any{&l.Sealed}, row(&l.Record)...)...)
		}).of(tx.QueryContext(ctx, text, q.args...))
		return err
	})
	if err != nil {
		return recordstore.Listing{}, wrap("list", err)
	}
	s.clock.observe(list.Now.UnixMicro())
	return list.Cut(lq.Limit), nil
}

// listed are the columns without the sealed ones.
var listed = func() string {
	names := strings.Split(columns, ",")
	for i, name := range names {
		switch name = strings.TrimSpace(name); name {
		case "request", "response_headers", "response_body":
			names[i] = "NULL"
		default:
			names[i] = "r." + name
		}
	}
	return strings.Join(names, ", ")
}()

// each reads one row of a query.
type each[T any] func(*sql.Rows, *T) error

// of reads the rows of a query.
func (scan each[T]) of(rows *sql.Rows, err error) (all []T, _ error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Rows.Err has told what went wrong.
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// Tally implements recordstore.Lister. It does not wait for writers.
func (s *Store) Tally(ctx context.Context, f recordstore.Filter) (all []recordstore.Tally, err error) {
	err = s.reading(ctx, func(ctx context.Context, tx *sql.Tx) error {
		q := question{args: []any{s.now()}}
		q.ask(f)
		q.narrow(f)
		text := "WITH clock(now) AS MATERIALIZED (" + timeSQL + ") SELECT provider, operation, class, state, count(*), sum(" + isOpen +
			"), min(" + since + "), max(" + since + "), sum(" + sealedBytes + ") FROM samekey_records WHERE " +
			strings.Join(append(q.where, "true"), " AND ") + " GROUP BY provider, operation, class, state"
		all, err = each[recordstore.Tally](func(rows *sql.Rows, t *recordstore.Tally) error {
			return rows.Scan(&t.Provider, &t.Operation, &t.Class, &t.State, &t.Records, &t.Open, timestamp{&t.Oldest}, timestamp{&t.Newest}, &t.Sealed)
		}).of(tx.QueryContext(ctx, text, q.args...))
		return err
	})
	if err != nil {
		return nil, wrap("tally", err)
	}
	recordstore.SortTallies(all)
	return all, nil
}

// About implements recordstore.Lister. It does not wait for writers.
func (s *Store) About(ctx context.Context) (about recordstore.About, err error) {
	err = s.reading(ctx, func(ctx context.Context, tx *sql.Tx) error {
		pins, err := s.pins(ctx, tx)
		switch {
		case err == nil:
			about.Pins = &pins
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		if about.Schema, err = readVersion(ctx, tx); err != nil {
			return err
		}
		const text = `SELECT (SELECT claimed_at FROM samekey_sweep), (SELECT at FROM samekey_restored), ` + nowSQL
		if err := tx.QueryRowContext(ctx, text, s.now()).Scan(timestamp{&about.SweptTo}, timestamp{&about.Restored}, timestamp{&about.Now}); err != nil {
			return err
		}
		type classDay struct {
			class string
			day   int32
		}
		days, err := each[classDay](func(rows *sql.Rows, d *classDay) error { return rows.Scan(&d.class, &d.day) }).of(
			tx.QueryContext(ctx, `SELECT class, day FROM samekey_frontier`))
		about.Frontier = map[string]int32{}
		for _, d := range days {
			about.Frontier[d.class] = d.day
		}
		return err
	})
	if err != nil {
		return recordstore.About{}, wrap("about", err)
	}
	for _, name := range []string{s.path, s.path + "-wal"} {
		if file, err := os.Stat(name); err == nil { // the log is not there where nobody wrote
			about.Bytes += file.Size()
		}
	}
	return about, nil
}

// reading runs do in a transaction that sees one state of the file, for a limited
// time.
func (s *Store) reading(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	limited, cancel := context.WithTimeout(ctx, maxReading)
	defer cancel()
	tx, err := s.readers.BeginTx(limited, &sql.TxOptions{ReadOnly: true})
	if err == nil {
		err = do(limited, tx)
		_ = tx.Rollback() // Nothing was written.
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w (given up after %v)", recordstore.ErrTooLong, maxReading)
	}
	return err
}
