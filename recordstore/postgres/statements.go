package postgres

import "strings"

// statements are the store's SQL for one schema. Each is complete in itself, so
// that they may also be sent many at a time. Types are written out, since in
// PgBouncer's transaction mode a pool may be told to prepare nothing.
//
// In all of them $1 is the time, NULL for the server's; in those on one record $2
// and $3 are its primary key. A record is changed only in the version in which it
// was seen, or under the holder and fence that a statement names.
type statements struct {
	claim, plan, settle, report, renew, get string // This file, and plan.go.
	begin, end                              string // ordinary.go.
	beginMany, endMany                      many   // Likewise, for many records.
	takeDue, findCrashed, sweep, wake       string // queue.go
	backlog                                 string
	resolve, abandon, erase, trail          string // desk.go
	empty, purgeable, remove, shrink, raise string // purge.go
	kept                                    string // month_purge.go; it names a month.
}

func statementsFor(schema string) statements { return statementsWith(schema, key, frontier) }

func statementsWith(schema, key, frontier string) statements {
	parts := strings.NewReplacer(
		"{result}", result, "{columns}", columns, "{clock}", clock, "{key}", key, "{frontier}", frontier, "{us}", us, "{today}", today,
		"{ledger}", ledgerOf, "{writable}", writable, "{trail}", trailColumns, "{dead}", dead, "{crashed}", crashed, "{unsent}", unsent, "{behind}", behind, "{waits}", waits,
		"{begun}", begun, "{settling}", settling, "{settling_by}", settlingBy, "{holds}", holds,
		"{understood}", understood, "{mark}", mark, "{settled}", settled, "{ends}", ends, "{over}", over, "{past}", past, "{ended}", ended,
	)
	fill := func(sql string) string {
		for last := ""; sql != last; { // parts have parts
			last, sql = sql, parts.Replace(sql)
		}
		return within(schema, sql)
	}
	return statements{
		begin: fill(begin), end: fill(end), beginMany: manyOf(fill(begin)), endMany: manyOf(fill(end)),
		claim: fill(claim), plan: fill(plan), settle: fill(settle), report: fill(report), renew: fill(renew), get: fill(get),
		takeDue: fill(takeDue), findCrashed: fill(findCrashed), sweep: fill(sweep), wake: fill(wake), backlog: fill(backlog),
		resolve: fill(resolve), abandon: fill(abandon), erase: fill(erase), trail: fill(trail),
		empty: fill(empty), purgeable: fill(purgeable), remove: fill(remove), shrink: fill(shrink), raise: fill(raise),
		kept: fill(kept),
	}
}

// Where a record is, and how far its class may be forgotten.
const (
	key      = `day = $2::integer AND key_hash = $3::bytea`
	frontier = `f.day FROM {schema}.frontier AS f WHERE f.class = $4::text`
)

const (
	clock = `SELECT COALESCE($1::timestamptz, clock_timestamp()) AS now`
	us    = `interval '1 microsecond'` // durations come as a number of it
	today = `floor(date_part('epoch', now) / 86400)`
	dead  = `COALESCE(lease_expires_at <= now, true)`

	// unsent is said of a record whose claim begins without doubt.
	unsent = `r.state IN ('planned', 'not_executed')`

	// behind tells what recordstore.MayBeBehind does. LostBefore is $6 of a claim.
	behind = `COALESCE(GREATEST(r.created_at, r.claimed_at, r.answered_at) < $6::timestamptz, false)`

	// waits tells whether a check was due when the holder took the record: else the
	// due time, where there is one, is the end of the lease.
	waits = `r.due_at IS NOT NULL AND r.due_at IS DISTINCT FROM r.lease_expires_at`

	// ledgerOf is what a new record of class $4 is measured by.
	ledgerOf = `SELECT now, COALESCE((SELECT {frontier}), 0) AS frontier
	FROM ({clock}) AS clock`

	// writable tells whether a new record may be written that is not sent after $9.
	writable = `$2::integer <= {today} + 1 AND ($2::integer = 0 OR $2::integer > frontier) AND COALESCE(now < $9::timestamptz, true)`
)

// claim always returns one row: the time, the frontier, whether the claim now
// holds the record, and the record as it then stands, NULLs for none. It takes
// what recordstore.Take would: a record that is seen is changed if nobody changed
// it since, and one that is not seen is written if nobody wrote it since. A record
// that cannot be taken is only read.
//
// A record that is seen is never written anew: had a purge removed it meanwhile,
// the frontier that was seen beside it would no longer be true. The claim then
// explains nothing, asks again, and sees the frontier that was raised before the
// record went.
const claim = `
WITH ledger AS MATERIALIZED ({ledger}), seen AS MATERIALIZED (
	SELECT version AS seen_version,
		noted IS NULL AND NOT look_only AND derivation <> 'foreign' AND CASE WHEN {unsent} THEN NOT {behind}
			ELSE COALESCE(now < window_ends_at, false) AND COALESCE(now < LEAST(not_after, $9::timestamptz), true) END AS sends,
		{behind} AS is_behind,
		request_hash = ANY($5::bytea[]) AND derivation = ANY($21::text[]) AND COALESCE(seal_version, 0) <= $7::integer
		AND CASE
			WHEN state = 'uncertain' THEN true
			WHEN state = 'sending' THEN holder <> $8::text AND {dead}
			WHEN {unsent} THEN {behind} OR COALESCE(now < LEAST(not_after, $9::timestamptz), true)
			ELSE false
		END AS takeable
	FROM {schema}.record AS r, ledger WHERE {key}
), made AS (
	{begun}
	FROM ledger WHERE NOT EXISTS (SELECT FROM seen) AND {writable}
	ON CONFLICT (day, key_hash) DO NOTHING
	RETURNING {columns}
), taken AS (
	UPDATE {schema}.record AS r SET
		state = 'sending', taken_from = r.state, doubt = is_behind OR NOT {unsent}, look_only = r.look_only OR is_behind AND {unsent},
		checks = CASE WHEN {unsent} AND NOT is_behind OR NOT {unsent} AND r.doubt THEN r.checks ELSE 0 END,
		holder = $8::text, fence = r.fence + 1, version = r.version + 1,
		claimed_at = now, lease_expires_at = now + {us} * $10::bigint,
		window_ends_at = CASE WHEN NOT {unsent} THEN r.window_ends_at WHEN NOT is_behind THEN now + {us} * $11::bigint END,
		not_after = LEAST(r.not_after, $9::timestamptz),
		sent_until = CASE WHEN sends THEN now + {us} * $10::bigint WHEN is_behind THEN GREATEST(r.sent_until, $6::timestamptz) ELSE r.sent_until END,
		due_at = CASE WHEN r.state = 'uncertain' THEN r.due_at END,
		replay_until = CASE WHEN {unsent} THEN GREATEST(r.replay_until, now + {us} * $19::bigint) ELSE r.replay_until END,
		evidence_until = CASE WHEN {unsent} THEN GREATEST(r.evidence_until, now + {us} * $20::bigint) ELSE r.evidence_until END,
		request = CASE WHEN r.body_purged_at IS NULL THEN COALESCE(r.request, $13::bytea) ELSE r.request END,
		seal_version = CASE WHEN r.request IS NULL AND r.body_purged_at IS NULL AND $13::bytea IS NOT NULL THEN NULLIF($7::integer, 0) ELSE r.seal_version END
	FROM seen, ledger WHERE {key} AND r.version = seen_version AND takeable
	RETURNING {columns}
)
SELECT ledger.now, ledger.frontier, COALESCE(is_held, false), {columns} FROM ledger LEFT JOIN (
	SELECT true AS is_held, {columns} FROM made
	UNION ALL SELECT true, {columns} FROM taken
	UNION ALL SELECT false, {columns} FROM {schema}.record
		WHERE {key} AND NOT EXISTS (SELECT FROM made) AND NOT EXISTS (SELECT FROM taken)
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
		response_status = $9::smallint, response_headers = CASE WHEN r.body_purged_at IS NULL THEN $10::bytea END,
		response_body = CASE WHEN r.body_purged_at IS NULL THEN $11::bytea END,
		seal_version = GREATEST(r.seal_version, $12::smallint),
		external_ref = COALESCE($13::text, r.external_ref),
		object_status = COALESCE($14::text, r.object_status),
		provider_request_id = COALESCE($15::text, r.provider_request_id),
		answered_at = move.now,
		due_at = CASE WHEN move.next = 'sending' THEN r.due_at
			WHEN $16::bigint IS NULL OR move.next = 'not_executed' AND NOT r.from_plan THEN NULL
			WHEN move.next = 'uncertain' AND {waits} THEN r.due_at
			ELSE move.now + {us} * $16::bigint END,
		request = CASE WHEN move.next IN ('succeeded', 'refused') THEN NULL ELSE r.request END,
		version = r.version + 1`

// trailColumns are what an entry fills.
const trailColumns = `{schema}.trail (day, key_hash, at, version, from_state, to_state, kind, actor, reason)`

// settle is end with an entry for the trail.
const settle = `
WITH move AS MATERIALIZED ({settling_by}), settled AS (
	{settling} FROM move WHERE {holds}
	RETURNING {columns}
), entered AS (
	INSERT INTO {trail} SELECT $2::integer, $3::bytea, now, version, 'sending', state, $23::text, $24::text, $25::text
	FROM move, settled
)
SELECT {columns} FROM settled`

// report moves a record as recordstore.ReportMove says.
const report = `
WITH move AS MATERIALIZED (
	SELECT now, state AS seen_state, version AS seen_version, CASE
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
		WHEN state = 'succeeded' AND evidence = 'operator' AND $4::text = 'refused' THEN 'manual_review'
	END AS next
	FROM {schema}.record, ({clock}) AS clock WHERE {key}
), reported AS (
	UPDATE {schema}.record AS r SET {result}
	FROM move WHERE {key} AND r.version = move.seen_version AND move.next IS NOT NULL
	RETURNING {columns}
), entered AS (
	INSERT INTO {trail} SELECT $2::integer, $3::bytea, now, version, seen_state, state, $19::text, $20::text, $21::text
	FROM move, reported WHERE $19::text IS NOT NULL
)
SELECT now, true, {columns} FROM move, reported
UNION ALL SELECT now, false, {columns} FROM move, {schema}.record WHERE {key} AND NOT EXISTS (SELECT FROM reported)`

// renew tells whether the lease was prolonged, and whether there is a record.
const renew = `
WITH renewed AS (
	UPDATE {schema}.record AS r SET
		lease_expires_at = GREATEST(r.lease_expires_at, clock.now + {us} * $6::bigint),
		due_at = CASE WHEN {waits} THEN r.due_at ELSE GREATEST(r.lease_expires_at, clock.now + {us} * $6::bigint) END,
		sent_until = GREATEST(r.lease_expires_at, clock.now + {us} * $6::bigint),
		version = r.version + 1
	FROM ({clock}) AS clock
	WHERE {key} AND r.state = 'sending' AND r.holder = $4::text AND r.fence = $5::bigint AND clock.now < r.lease_expires_at
	RETURNING r.version
)
SELECT EXISTS (SELECT FROM renewed), EXISTS (SELECT FROM {schema}.record WHERE {key})`

const get = `SELECT now, {columns} FROM {schema}.record, ({clock}) AS clock WHERE {key}`
