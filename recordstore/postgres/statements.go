package postgres

import "strings"

// statements are the store's SQL for one schema. Each is complete in itself and
// touches one record, so that they may also be sent many at a time. Types are
// written out, since in PgBouncer's transaction mode a pool may be told to
// prepare nothing.
//
// In all of them $1 is the time, NULL for the server's, and $2 and $3 are the
// primary key. A record is changed only in the version in which it was seen, or
// under the holder and fence that a statement names.
type statements struct {
	claim, settle, report, renew, get string
}

func statementsFor(schema string) statements {
	parts := strings.NewReplacer("{result}", result, "{columns}", columns, "{clock}", clock, "{key}", key, "{us}", us)
	fill := func(sql string) string {
		return within(schema, parts.Replace(parts.Replace(sql))) // parts have parts
	}
	return statements{
		claim: fill(claim), settle: fill(settle), report: fill(report), renew: fill(renew), get: fill(get),
	}
}

const (
	clock = `SELECT COALESCE($1::timestamptz, clock_timestamp()) AS now`
	key   = `day = $2::integer AND key_hash = $3::bytea`
	us    = `interval '1 microsecond'` // durations come as a number of it
)

// claim always returns one row: the time, the frontier, whether the claim now
// holds the record, and the record as it then stands, NULLs for none. It takes
// what recordstore.Take would: the record as it would stand next is computed from
// the one that is seen, or from nothing, and written where nobody changed it
// since. A record that cannot be taken is only read. One that can is not settled,
// so that no purge removes it between the two.
const claim = `
WITH ledger AS MATERIALIZED (
	SELECT now, COALESCE((SELECT f.day FROM {schema}.frontier AS f WHERE f.class = $4::text), 0) AS frontier
	FROM ({clock}) AS clock
), seen AS MATERIALIZED (
	SELECT state, fence, version, created_at, window_ends_at, not_after, sent_until,
		noted IS NULL AND derivation <> 'foreign' AND (state IN ('planned', 'not_executed') OR NOT look_only
			AND COALESCE(now < window_ends_at, false) AND COALESCE(now < LEAST(not_after, $9::timestamptz), true)) AS sends,
		request_hash = ANY($5::bytea[]) AND derivation = ANY($6::text[]) AND COALESCE(seal_version, 0) <= $7::integer
		AND CASE
			WHEN state = 'uncertain' THEN true
			WHEN state = 'sending' THEN holder <> $8::text AND lease_expires_at <= now
			WHEN state IN ('planned', 'not_executed') THEN COALESCE(now < LEAST(not_after, $9::timestamptz), true)
			ELSE false
		END AS takeable
	FROM {schema}.record, ledger WHERE {key}
), held AS (
	INSERT INTO {schema}.record AS r (day, key_hash, class, request_hash, derivation, holder,
		scope_hash, provider, account, operation, command_id, request, seal_version,
		state, taken_from, doubt, fence, version, created_at, claimed_at, lease_expires_at,
		window_ends_at, not_after, sent_until, replay_until, evidence_until)
	SELECT $2::integer, $3::bytea, $4::text, ($5::bytea[])[1], $12::text, $8::text,
		$14::bytea, $15::text, $16::text, $17::text, $18::text,
		$13::bytea, CASE WHEN $13::bytea IS NOT NULL THEN NULLIF($7::integer, 0) END,
		'sending', state, COALESCE(state NOT IN ('planned', 'not_executed'), false),
		COALESCE(fence, 0) + 1, COALESCE(version, 0) + 1, COALESCE(created_at, now), now, now + {us} * $10::bigint,
		CASE WHEN state NOT IN ('planned', 'not_executed') THEN window_ends_at ELSE now + {us} * $11::bigint END,
		LEAST(not_after, $9::timestamptz), CASE WHEN COALESCE(sends, true) THEN now + {us} * $10::bigint ELSE sent_until END,
		now + {us} * $19::bigint, now + {us} * $20::bigint
	FROM ledger LEFT JOIN seen ON true
	WHERE CASE WHEN version IS NOT NULL THEN takeable
		ELSE $2::integer <= date_part('epoch', now) / 86400 + 1
			AND ($2::integer = 0 OR $2::integer > frontier)
			AND COALESCE(now < $9::timestamptz, true)
		END
	ON CONFLICT (day, key_hash) DO UPDATE SET
		state = excluded.state, taken_from = excluded.taken_from, doubt = excluded.doubt,
		holder = excluded.holder, fence = excluded.fence, version = excluded.version,
		claimed_at = excluded.claimed_at, lease_expires_at = excluded.lease_expires_at,
		window_ends_at = excluded.window_ends_at, not_after = excluded.not_after,
		sent_until = excluded.sent_until, due_at = NULL,
		request = COALESCE(r.request, excluded.request),
		seal_version = CASE WHEN r.request IS NULL AND excluded.request IS NOT NULL
			THEN excluded.seal_version ELSE r.seal_version END
	WHERE r.version = excluded.version - 1
	RETURNING {columns}
)
SELECT ledger.now, ledger.frontier, COALESCE(is_held, false), {columns} FROM ledger LEFT JOIN (
	SELECT true AS is_held, {columns} FROM held
	UNION ALL SELECT false, {columns} FROM {schema}.record WHERE {key} AND NOT EXISTS (SELECT FROM held)
) AS found ON true`

// result is what a settlement and a report change. Both bring a row move with
// the time and the next state; a report that moves to sending is a note, which
// leaves the frozen request and the due time to the holder.
const result = `
		state = move.next,
		noted = CASE WHEN move.next = 'sending' THEN $4::text END,
		doubt = r.doubt AND move.next <> 'not_executed',
		look_only = CASE move.next WHEN 'sending' THEN r.look_only WHEN 'uncertain' THEN r.look_only OR $17::boolean ELSE false END,
		blurred = r.blurred OR $18::boolean,
		evidence = $5::text, outcome = $6::text, error_code = $7::text,
		deliveries = r.deliveries + COALESCE($8::integer, 0),
		response_status = $9::smallint, response_headers = $10::bytea, response_body = $11::bytea,
		seal_version = GREATEST(r.seal_version, $12::smallint),
		external_ref = COALESCE($13::text, r.external_ref),
		object_status = COALESCE($14::text, r.object_status),
		provider_request_id = COALESCE($15::text, r.provider_request_id),
		answered_at = move.now,
		due_at = CASE WHEN move.next = 'sending' THEN r.due_at ELSE move.now + {us} * $16::bigint END,
		request = CASE WHEN move.next IN ('succeeded', 'refused') THEN NULL ELSE r.request END,
		version = r.version + 1`

// settle returns no row where it changes nothing.
const settle = `
UPDATE {schema}.record AS r SET {result}
FROM (SELECT now, $4::text AS next FROM ({clock}) AS clock) AS move
WHERE {key} AND r.state = 'sending' AND r.holder = $19::text AND r.fence = $20::bigint
	AND r.noted IS NOT DISTINCT FROM $21::text
RETURNING {columns}`

// report moves a record as recordstore.ReportMove says.
const report = `
WITH move AS MATERIALIZED (
	SELECT now, version AS seen_version, CASE
		WHEN $4::text NOT IN ('succeeded', 'refused') THEN NULL
		WHEN state = 'sending' THEN CASE
			WHEN noted = 'succeeded' AND $4::text <> 'succeeded' THEN NULL
			WHEN now >= lease_expires_at THEN $4::text
			WHEN noted = $4::text THEN NULL
			ELSE 'sending'
		END
		WHEN state IN ('uncertain', 'not_executed') THEN $4::text
		WHEN state IN ('manual_review', 'abandoned') AND $4::text = 'succeeded' THEN 'succeeded'
		WHEN state = 'refused' AND $4::text = 'succeeded' THEN 'manual_review'
	END AS next
	FROM {schema}.record, ({clock}) AS clock WHERE {key}
), reported AS (
	UPDATE {schema}.record AS r SET {result}
	FROM move WHERE {key} AND r.version = move.seen_version AND move.next IS NOT NULL
	RETURNING {columns}
)
SELECT now, true, {columns} FROM move, reported
UNION ALL SELECT now, false, {columns} FROM move, {schema}.record WHERE {key} AND NOT EXISTS (SELECT FROM reported)`

// renew tells whether the lease was prolonged, and whether there is a record.
const renew = `
WITH renewed AS (
	UPDATE {schema}.record AS r SET
		lease_expires_at = GREATEST(r.lease_expires_at, clock.now + {us} * $6::bigint),
		due_at = GREATEST(r.lease_expires_at, clock.now + {us} * $6::bigint),
		sent_until = GREATEST(r.lease_expires_at, clock.now + {us} * $6::bigint),
		version = r.version + 1
	FROM ({clock}) AS clock
	WHERE {key} AND r.state = 'sending' AND r.holder = $4::text AND r.fence = $5::bigint AND clock.now < r.lease_expires_at
	RETURNING r.version
)
SELECT EXISTS (SELECT FROM renewed), EXISTS (SELECT FROM {schema}.record WHERE {key})`

const get = `SELECT now, {columns} FROM {schema}.record, ({clock}) AS clock WHERE {key}`
