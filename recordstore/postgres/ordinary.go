package postgres

// The two statements of an ordinary call. Each returns no row where it finds what
// it did not expect; a larger statement then does what is right.
const (
	// begin writes the record of a command that the ledger does not know, and returns
	// when. What is said of claim holds here too: a record that is seen is never
	// written anew.
	begin = `
{begun}
FROM ({ledger}) AS ledger WHERE NOT EXISTS (SELECT FROM {schema}.record WHERE {key}) AND {writable}
ON CONFLICT (day, key_hash) DO NOTHING
RETURNING created_at`

	// end is settle without an entry for the trail.
	end = `
{settling} FROM ({settling_by}) AS move WHERE {holds}
RETURNING {columns}`
)

// begun makes the record of a new command, which a claim then holds.
const begun = `INSERT INTO {schema}.record (day, key_hash, class, request_hash, derivation, holder,
		scope_hash, provider, account, operation, command_id, request, seal_version,
		state, doubt, look_only, fence, version, created_at, claimed_at, lease_expires_at,
		window_ends_at, not_after, sent_until,
		replay_until, evidence_until)
	SELECT $2::integer, $3::bytea, $4::text, ($5::bytea[])[1], $12::text, $8::text,
		$14::bytea, $15::text, $16::text, $17::text, $18::text,
		$13::bytea, CASE WHEN $13::bytea IS NOT NULL THEN NULLIF($7::integer, 0) END,
		'sending', $6::timestamptz IS NOT NULL, $6::timestamptz IS NOT NULL, 1, 1, now, now, now + {us} * $10::bigint,
		CASE WHEN $6::timestamptz IS NULL THEN now + {us} * $11::bigint END, $9::timestamptz, COALESCE($6::timestamptz, now + {us} * $10::bigint),
		now + {us} * $19::bigint, now + {us} * $20::bigint`

// settling changes a record as its holder's settlement says; settlingBy is its row move.
const (
	settlingBy = `SELECT now, $4::text AS next FROM ({clock}) AS clock`
	holds      = `{key} AND r.state = 'sending' AND r.holder = $19::text AND r.fence = $20::bigint AND r.noted IS NOT DISTINCT FROM $21::text`
	settling   = `UPDATE {schema}.record AS r SET {result},
		checks = CASE WHEN $22::boolean THEN GREATEST(r.checks - 1, 0) ELSE r.checks END`
)
