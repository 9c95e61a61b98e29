package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

var _ recordstore.Lister = (*Store)(nil)

// maxReading bounds one statement of a list or a tally on the server, which goes
// on when its client is gone.
const maxReading = 30 * time.Second

// since is recordstore.Since.
const since = `COALESCE(claimed_at, created_at)`

// question is a statement that is put together for one filter. The server then sees
// what is asked for and not what might be, and no condition keeps it from an index.
type question struct {
	args  []any
	where []string
}

// arg adds an argument and returns its place.
func (q *question) arg(v any, as string) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d::%s", len(q.args), as)
}

// equal adds a condition, unless nothing is asked.
func (q *question) equal(column, value string) {
	if value != "" {
		q.where = append(q.where, column+" = "+q.arg(value, "text"))
	}
}

// question begins one with the conditions of f but for its states. The time is
// $1, as everywhere.
func (s *Store) question(f recordstore.Filter) *question {
	q := &question{args: []any{s.clock()}}
	q.equal("provider", f.Provider)
	q.equal("account", f.Account)
	q.equal("operation", f.Operation)
	q.equal("class", f.Class)
	q.equal("external_ref", f.ExternalRef)
	q.equal("provider_request_id", f.RequestID)
	for _, bound := range []struct {
		sign string
		at   time.Time
	}{{">=", f.After}, {"<", f.Before}} {
		if !bound.at.IsZero() { // what was never claimed stands apart, so that the index on claims serves
			at := q.arg(bound.at, "timestamptz")
			q.where = append(q.where, fmt.Sprintf("(claimed_at %s %s OR claimed_at IS NULL AND created_at %[1]s %[2]s)", bound.sign, at))
		}
	}
	if f.CommandID != "" {
		day, id := q.arg(f.Day, "integer"), q.arg(f.CommandID, "text")
		q.where = append(q.where, "day = "+day, fmt.Sprintf("(command_id = %s OR starts_with(command_id, %[1]s || '/'))", id))
	}
	return q
}

// narrow adds the states of f.
func (q *question) narrow(f recordstore.Filter) {
	if len(f.States) > 0 {
		states := make([]string, len(f.States)) // of a type that needs no description by the server
		for i, state := range f.States {
			states[i] = string(state)
		}
		q.where = append(q.where, "state = ANY("+q.arg(states, "text[]")+")")
	}
	if f.Open {
		q.where = append(q.where, isOpen)
	}
}

// isOpen is recordstore.IsOpen.
const isOpen = `(state IN ('planned', 'uncertain', 'manual_review')
	OR state = 'not_executed' AND due_at IS NOT NULL
	OR state = 'sending' AND COALESCE(lease_expires_at <= (SELECT now FROM ledger), true))`

// conditions returns the question's conditions and more.
func (q *question) conditions(more ...string) string {
	return strings.Join(append(append([]string{"true"}, q.where...), more...), " AND ")
}

// List implements recordstore.Lister. What is open is read along the indexes on
// what waits and on what is due; a command in its day's part of the primary key;
// all else is a look at the whole table, or at the part of a span of time.
func (s *Store) List(ctx context.Context, lq recordstore.ListQuery) (list recordstore.Listing, err error) {
	if err := lq.Check(); err != nil {
		return list, fmt.Errorf("postgres: list: %w", err)
	}
	sql, args := s.listing(lq)
	err = s.reading(ctx, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, sql, args...) // its error is that of the rows
		found, err := pgx.CollectRows(rows, readListed)
		if err != nil {
			return err
		}
		list = recordstore.Listing{}
		for _, f := range found {
			list.Now = f.now
			if f.State != "" { // else it is the time alone
				list.Records = append(list.Records, f.Listed)
			}
		}
		return nil
	})
	if err != nil {
		return recordstore.Listing{}, fmt.Errorf("postgres: list: %w", err)
	}
	return list.Cut(lq.Limit), nil
}

// listing returns the statement for a page.
func (s *Store) listing(lq recordstore.ListQuery) (sql string, args []any) {
	q := s.question(lq.Filter)
	var chosen chosen
	if states, waiting := lq.Waiting(); waiting {
		chosen = q.branches(lq, states)
	} else {
		chosen = q.scan(lq)
	}
	return s.fill(`WITH RECURSIVE ledger AS MATERIALIZED ({clock}), ` + chosen.with + `
		page AS (SELECT day, key_hash FROM (` + chosen.sql + `) AS chosen ` + chosen.order + `)
		SELECT now, sealed_bytes, day, key_hash, ` + listed + ` FROM ledger LEFT JOIN (
			SELECT r.*, COALESCE(octet_length(request), 0) + COALESCE(octet_length(response_headers), 0)
				+ COALESCE(octet_length(response_body), 0) AS sealed_bytes
			FROM page JOIN {schema}.record AS r USING (day, key_hash)) AS r ON true ` + ordering(lq.Order, since)), q.args
}

// chosen is how the records of a page are found.
type chosen struct{ with, sql, order string }

// scan chooses among all records.
func (q *question) scan(lq recordstore.ListQuery) chosen {
	q.narrow(lq.Filter)
	behind, _ := q.behind(lq)
	q.where = append(q.where, behind)
	order := ordering(lq.Order, "since") + " LIMIT " + q.arg(lq.Limit+1, "integer")
	return chosen{"", "SELECT day, key_hash, " + since + " AS since FROM {schema}.record WHERE " + q.conditions(), order}
}

// behind is the condition that a record follows the page before. edge is a weaker
// one, on the time of the claim alone, that bounds what is read of an index.
func (q *question) behind(lq recordstore.ListQuery) (condition, edge string) {
	if lq.From == nil {
		return "true", "true"
	}
	sign := ">"
	if lq.Order == recordstore.NewestFirst {
		sign = "<"
	}
	day, key := q.arg(lq.From.ID.Day, "integer"), q.arg(lq.From.ID.KeyHash[:], "bytea")
	if lq.Order == recordstore.ByIdentity {
		return fmt.Sprintf("(day, key_hash) > (%s, %s)", day, key), "true"
	}
	at := q.arg(lq.From.Since, "timestamptz")
	return fmt.Sprintf("(%s, day, key_hash) %s (%s, %s, %s)", since, sign, at, day, key), fmt.Sprintf("claimed_at %s= %s", sign, at)
}

func ordering(o recordstore.Order, by string) string {
	switch o {
	case recordstore.NewestFirst:
		return "ORDER BY " + by + " DESC, day DESC, key_hash DESC"
	case recordstore.ByIdentity:
		return "ORDER BY day, key_hash"
	}
	return "ORDER BY " + by + ", day, key_hash"
}

// waiters walks from provider to provider along the index on what waits.
const waiters = `waiters (name) AS (
	(SELECT provider FROM {schema}.record WHERE waiting IS NOT NULL ORDER BY provider LIMIT 1)
	UNION ALL
	SELECT (SELECT provider FROM {schema}.record WHERE waiting IS NOT NULL AND provider > name ORDER BY provider LIMIT 1)
	FROM waiters WHERE name IS NOT NULL
),`

// branches chooses among what waits, each state along its own index: of each
// provider as many as a page holds. Only senders that may have died since
// FindCrashed last looked stand in no index but that on their claims.
func (q *question) branches(lq recordstore.ListQuery, states []recordstore.State) chosen {
	behind, edge := q.behind(lq)
	q.where = append(q.where, behind)
	limit := " LIMIT " + q.arg(lq.Limit+1, "integer")
	by := func(column string) string { return ordering(lq.Order, column) + limit }
	dead := "true"
	if lq.Open {
		dead = "COALESCE(lease_expires_at <= (SELECT now FROM ledger), true)"
	}
	var parts []string
	for _, state := range states {
		if state == recordstore.Planned {
			parts = append(parts, `SELECT day, key_hash, created_at AS since FROM {schema}.record
				WHERE due_at IS NOT NULL AND checks >= 0 AND state = 'planned' AND `+q.conditions()+" "+by("created_at"))
			continue
		}
		also := "true"
		if state == recordstore.Sending {
			also = dead
			parts = append(parts, `SELECT day, key_hash, claimed_at AS since FROM {schema}.record
				WHERE state = 'sending' AND due_at IS NULL AND claimed_at >= {mark} AND `+q.conditions(edge, dead)+" "+by("claimed_at"))
		}
		parts = append(parts, `SELECT day, key_hash, since FROM waiters CROSS JOIN LATERAL (
			SELECT day, key_hash, claimed_at AS since FROM {schema}.record
			WHERE provider = name AND waiting = '`+string(state)+`' AND `+q.conditions(edge, also)+" "+by("claimed_at")+`) AS of_provider`)
	}
	return chosen{waiters, "(" + strings.Join(parts, ") UNION ALL (") + ")", by("since")}
}

// listed are columns without the sealed ones.
var listed = func() string {
	names := strings.Split(columns, ",")
	for i, name := range names {
		switch strings.TrimSpace(name) {
		case "request", "response_headers", "response_body":
			names[i] = " NULL::bytea"
		}
	}
	return strings.Join(names, ",")
}()

type listedRow struct {
	now time.Time
	recordstore.Listed
}

func readListed(from pgx.CollectableRow) (l listedRow, err error) {
	var (
		r     row
		id    recordstore.ID
		key   []byte
		bytes zeronull.Int8
	)
	err = from.Scan(append([]any{&l.now, &bytes, (*zeronull.Int4)(&id.Day), &key}, r.fields()...)...)
	copy(id.KeyHash[:], key)
	l.Record, _ = r.read(id)
	l.now, l.Sealed = l.now.UTC(), int(bytes)
	return l, err
}

// Tally implements recordstore.Lister.
func (s *Store) Tally(ctx context.Context, f recordstore.Filter) (all []recordstore.Tally, err error) {
	q := s.question(f)
	q.narrow(f)
	sql := s.fill(`WITH ledger AS MATERIALIZED ({clock})
		SELECT provider, operation, class, state, count(*), count(*) FILTER (WHERE ` + isOpen + `), min(` + since + `), max(` + since + `),
			COALESCE(sum(COALESCE(octet_length(request), 0) + COALESCE(octet_length(response_headers), 0)
				+ COALESCE(octet_length(response_body), 0)), 0)::bigint
		FROM {schema}.record WHERE ` + q.conditions() + ` GROUP BY provider, operation, class, state`)
	err = s.reading(ctx, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, sql, q.args...) // its error is that of the rows
		all, err = pgx.CollectRows(rows, func(from pgx.CollectableRow) (t recordstore.Tally, err error) {
			err = from.Scan(&t.Provider, &t.Operation, &t.Class, &t.State, &t.Records, &t.Open, &t.Oldest, &t.Newest, &t.Sealed)
			t.Oldest, t.Newest = t.Oldest.UTC(), t.Newest.UTC()
			return t, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: tally: %w", err)
	}
	recordstore.SortTallies(all)
	return all, nil
}

// fill completes a statement as statementsFor does.
func (s *Store) fill(sql string) string {
	return within(s.schema, strings.NewReplacer("{clock}", clock, "{mark}", strings.ReplaceAll(mark, "{us}", us)).Replace(sql))
}

// readingMode limits statements to $1 ms. And what stands in the order of an index is
// not sorted as a whole: after an outage the statistics know of nothing that waits,
// and the server would rather sort all of it than complete the order of a page. To
// translate such a statement to machine code takes longer than to run it.
const readingMode = `SELECT set_config('statement_timeout', $1::text, true), set_config('enable_sort', 'off', true), set_config('jit', 'off', true)`

// reading runs do in a transaction that cannot write and whose statements end in
// time, and once more where its connection broke. The limit is LOCAL, so that a
// pooler's next client does not inherit it.
func (s *Store) reading(ctx context.Context, do func(pgx.Tx) error) error {
	if s.invalid != nil {
		return s.invalid
	}
	limit := maxReading
	if end, ends := ctx.Deadline(); ends {
		limit = max(time.Millisecond, min(limit, time.Until(end)/10*9)) // the server is to say it first
	}
	read := func() error {
		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, readingMode, fmt.Sprint(limit.Milliseconds()))
			if err == nil {
				err = do(tx)
			}
			return err
		})
	}
	err := read()
	if broken(err) && ctx.Err() == nil {
		err = read()
	}
	if e, said := errors.AsType[*pgconn.PgError](err); said && e.Code == "57014" {
		return fmt.Errorf("%w (the server gave up after %v)", recordstore.ErrTooLong, limit.Round(time.Millisecond))
	}
	return err
}

// About implements recordstore.Lister. Its user must be allowed to read the tables
// of the ledger.
func (s *Store) About(ctx context.Context) (about recordstore.About, err error) {
	err = s.reading(ctx, func(tx pgx.Tx) error {
		has, err := readVersion(ctx, tx, s.schema)
		if err == nil {
			err = has.check(s.schema)
		}
		if err != nil {
			return err
		}
		about = recordstore.About{Schema: has.number, Frontier: map[string]int32{}}
		return s.describe(ctx, tx, &about)
	})
	if err != nil {
		return recordstore.About{}, fmt.Errorf("postgres: about: %w", err)
	}
	return about, nil
}

func (s *Store) describe(ctx context.Context, tx pgx.Tx, about *recordstore.About) error {
	var derivation, secret *string
	var swept, restored *int64
	record, trail := pgx.Identifier{s.schema, "record"}.Sanitize(), pgx.Identifier{s.schema, "trail"}.Sanitize()
	err := tx.QueryRow(ctx, s.fill(`SELECT now, pg_total_relation_size($2::text::regclass) + pg_total_relation_size($3::text::regclass),
		(SELECT value FROM {schema}.meta WHERE name = 'derivation'), (SELECT value FROM {schema}.meta WHERE name = 'secret'),
		(SELECT value::bigint FROM {schema}.meta WHERE name = 'crashed_mark'),
		(SELECT value::bigint FROM {schema}.meta WHERE name = 'restored') FROM ({clock}) AS clock`), s.clock(), record, trail).
		Scan(&about.Now, &about.Bytes, &derivation, &secret, &swept, &restored)
	if err != nil {
		return err
	}
	about.Now = about.Now.UTC()
	if derivation != nil && secret != nil {
		about.Pins = &recordstore.Pins{Derivation: *derivation, Secret: *secret}
	}
	if swept != nil {
		about.SweptTo = time.UnixMicro(*swept).UTC()
	}
	if restored != nil {
		about.Restored = time.UnixMicro(*restored).UTC()
	}
	rows, _ := tx.Query(ctx, within(s.schema, "SELECT class, day FROM {schema}.frontier")) // its error is that of the rows
	days, err := pgx.CollectRows(rows, pgx.RowToStructByPos[classDay])
	for _, d := range days {
		about.Frontier[d.Class] = d.Day
	}
	return err
}
