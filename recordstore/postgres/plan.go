package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// plan always returns one row, as claim does. It writes what recordstore.Plan
// would, and reads a record that is there.
const plan = `
WITH ledger AS MATERIALIZED ({ledger}), made AS (
	INSERT INTO {schema}.record (day, key_hash, class, request_hash, derivation,
		scope_hash, provider, account, operation, command_id, request, seal_version,
		state, from_plan, fence, version, created_at, due_at, not_after, replay_until, evidence_until)
	SELECT $2::integer, $3::bytea, $4::text, $5::bytea, $6::text,
		$10::bytea, $11::text, $12::text, $13::text, $14::text,
		$8::bytea, CASE WHEN $8::bytea IS NOT NULL THEN NULLIF($7::integer, 0) END,
		'planned', true, 0, 1, now, now, $9::timestamptz, now + {us} * $15::bigint, now + {us} * $16::bigint
	FROM ledger WHERE NOT EXISTS (SELECT FROM {schema}.record WHERE {key}) AND {writable}
	ON CONFLICT (day, key_hash) DO NOTHING
	RETURNING {columns}
)
SELECT ledger.now, ledger.frontier, COALESCE(is_made, false), {columns} FROM ledger LEFT JOIN (
	SELECT true AS is_made, {columns} FROM made
	UNION ALL SELECT false, {columns} FROM {schema}.record WHERE {key} AND NOT EXISTS (SELECT FROM made)
) AS found ON true`

// planner writes plans in one transaction.
type planner struct {
	store *Store
	one   func(ctx context.Context, sql string, args, into []any) error
}

// Tx returns a Planner that writes in tx, which must be in the ledger's database
// and stays the caller's to end. Until it is committed, claims of a planned
// command, and other plans of it, wait; a claim then ends in InFlight. After an
// error tx can only be rolled back. In a transaction of level repeatable read or
// above, another's plan of the same command at the same time is an error (40001).
func (s *Store) Tx(tx pgx.Tx) recordstore.Planner {
	return &planner{s, func(ctx context.Context, sql string, args, into []any) error {
		return tx.QueryRow(ctx, sql, args...).Scan(into...)
	}}
}

// SQLTx is Tx for a transaction of database/sql, opened with package stdlib of pgx.
func (s *Store) SQLTx(tx *sql.Tx) recordstore.Planner {
	return &planner{s, func(ctx context.Context, sql string, args, into []any) error {
		return tx.QueryRowContext(ctx, sql, args...).Scan(into...)
	}}
}

// Plan implements recordstore.Planner.
func (p *planner) Plan(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	err := p.store.invalid
	if err == nil {
		err = c.CheckPlan()
	}
	c.NotAfter = c.NotAfter.Truncate(time.Microsecond) // what the server compares with
	for range maxAsks {
		if err != nil {
			break
		}
		var (
			claimed recordstore.Claimed
			done    bool
		)
		if claimed, done, err = p.once(ctx, c); done {
			return claimed, nil
		}
	}
	if err == nil {
		err = errContended
	}
	return recordstore.Claimed{}, fmt.Errorf("postgres: plan: %w", noMonth(err))
}

// once is one statement. It is not done if it explains no decision, since another
// transaction wrote the record after this one looked.
func (p *planner) once(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, bool, error) {
	var (
		now      time.Time
		frontier int32
		made     bool
		r        row
	)
	if err := p.one(ctx, p.store.on(c.ID).plan, p.store.planArgs(c), append([]any{&now, &frontier, &made}, r.fields()...)); err != nil {
		return recordstore.Claimed{}, false, err
	}
	now = now.UTC()
	rec, found := r.read(c.ID)
	if made {
		return recordstore.Claimed{Decision: recordstore.Send, Record: rec, Now: now}, true, nil
	}
	var before *recordstore.Record
	if found {
		before = &rec
	}
	next, decision := recordstore.Plan(c, before, frontier, now)
	return recordstore.Claimed{Decision: decision, Record: next, Now: now}, next.Version == rec.Version, nil
}

func (s *Store) planArgs(c recordstore.Claim) []any {
	return []any{
		s.clock(), c.ID.Day, c.ID.KeyHash[:], c.Class, c.Fingerprints[0], c.Derivation, c.SealVersion,
		sealed(c.Request), timestamp(c.NotAfter), c.Scope[:], c.Provider, c.Account, c.Operation, c.CommandID,
		int64(c.Replay / time.Microsecond), int64(c.Evidence / time.Microsecond),
	}
}

// How long a claim that met its deadline looks for the reason.
const (
	pendingLimit = 500 * time.Millisecond
	lockLimit    = "100ms"
)

// pending reports whether another transaction has written the record of c and not
// ended: then a plan of it would have to wait, and since the table itself is free,
// nothing else makes it wait. It returns the ledger's time. The plan is rolled
// back.
func (s *Store) pending(ctx context.Context, c recordstore.Claim) (now time.Time, yes bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pendingLimit)
	defer cancel()
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return now, false
	}
	defer func() { _ = tx.Rollback(ctx) }() // on an error the pool drops the connection
	const limited = `SELECT now, set_config('lock_timeout', $2::text, true) FROM (` + clock + `) AS clock`
	var setting string
	if err := tx.QueryRow(ctx, limited, s.clock(), lockLimit).Scan(&now, &setting); err != nil {
		return now, false
	}
	if _, err := tx.Exec(ctx, within(s.schema, "LOCK TABLE {schema}.record IN ROW EXCLUSIVE MODE NOWAIT")); err != nil {
		return now, false
	}
	_, err = tx.Exec(ctx, s.on(c.ID).plan, s.planArgs(c)...)
	refused, said := errors.AsType[*pgconn.PgError](err)
	return now.UTC(), said && refused.Code == "55P03" // lock_not_available
}
