package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// migrations bring a ledger from version i to version i+1. They only expand: what
// an older build reads and writes stays. A released one never changes.
var migrations = []string{schema1}

// schema1 is version 1. SQLite keeps the comments: ".schema" shows them.
const schema1 = `
CREATE TABLE samekey_records (
	-- One row for each command and operation: samekey's ledger of calls to providers.
	-- Times are microseconds since 1970 (UTC): datetime(claimed_at / 1000000, 'unixepoch').
	-- NULL is a time that is not set. Sealed columns hold what the client sealed.
	day                 INTEGER NOT NULL, -- days since 1970 of the command's own time; 0: it carries none
	key_hash            BLOB    NOT NULL, -- 16 bytes of the hash of the provider key; the key itself is stored nowhere
	scope_hash          BLOB    NOT NULL, -- SHA-256 of the scope (tenant, merchant)
	provider            TEXT    NOT NULL,
	account             TEXT    NOT NULL, -- the provider's account id and mode, 'acct_1Nv0/live'
	operation           TEXT    NOT NULL, -- 'refund.create'
	command_id          TEXT    NOT NULL, -- with its step
	class               TEXT    NOT NULL, -- 'money', 'object', 'notification': decides retention
	derivation          TEXT    NOT NULL, -- how the key was made; 'foreign': not by us
	request_hash        BLOB    NOT NULL, -- fingerprint of the request, its version in the first byte
	state               TEXT    NOT NULL, -- planned, sending, succeeded, refused, not_executed, uncertain, manual_review, abandoned
	doubt               INTEGER NOT NULL, -- 1: an earlier claim may have delivered, its answer is not known
	taken_from          TEXT    NOT NULL, -- the state that the last claim found; '' for a new record
	noted               TEXT    NOT NULL, -- while sending: 'succeeded' or 'refused', learned elsewhere
	from_plan           INTEGER NOT NULL, -- 1: it began as a plan; while it is not_executed it is due and sent again
	look_only           INTEGER NOT NULL, -- 1: the answers so far teach nothing more by a resend
	blurred             INTEGER NOT NULL, -- 1: an answer so far was a stored failure, so that absence proves nothing
	evidence            TEXT    NOT NULL, -- what the answer's label rests on
	outcome             TEXT    NOT NULL, -- of an applied effect: done, pending, partial
	holder              TEXT    NOT NULL, -- claim id of the last claim
	fence               INTEGER NOT NULL, -- raised by every claim
	claimed_at          INTEGER,          -- of the last claim
	lease_expires_at    INTEGER,
	deliveries          INTEGER NOT NULL, -- of all claims, as far as they were settled
	window_ends_at      INTEGER,          -- until then the provider deduplicates
	sent_until          INTEGER,          -- end of the last lease under which a request may have been written, or the restore that may have lost later ones
	seal_version        INTEGER NOT NULL, -- format of the sealed columns
	response_status     INTEGER NOT NULL,
	external_ref        TEXT    NOT NULL, -- the provider's id of the object
	object_status       TEXT    NOT NULL, -- in the provider's words
	provider_request_id TEXT    NOT NULL, -- the provider's id of the exchange
	error_code          TEXT    NOT NULL, -- 'refused:card_declined'
	answered_at         INTEGER,
	due_at              INTEGER,          -- when the reconciler looks next; while sending the lease's end, or the check that was due before
	checks              INTEGER NOT NULL, -- of the reconciler, since the doubt or the plan began
	not_after           INTEGER,          -- never sent after it
	replay_until        INTEGER,
	evidence_until      INTEGER,          -- NULL in a tombstone
	body_purged_at      INTEGER,
	created_at          INTEGER,
	version             INTEGER NOT NULL, -- raised by every change
	request             BLOB,             -- sealed; cleared once the answer is final
	response_headers    BLOB,             -- sealed
	response_body       BLOB,             -- sealed
	PRIMARY KEY (day, key_hash)
) STRICT;

-- The newest claim is part of the ledger's clock, and crashed senders are found by it.
CREATE INDEX samekey_records_claimed ON samekey_records (claimed_at);

-- What the reconciler looks at next, by age and by owner. Rows of ordinary calls
-- are never in these.
CREATE INDEX samekey_records_due ON samekey_records (provider, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX samekey_records_turn ON samekey_records (provider, scope_hash, due_at) WHERE due_at IS NOT NULL;

-- What waits for somebody to find out.
CREATE INDEX samekey_records_open ON samekey_records (provider, state, claimed_at)
	WHERE state = 'uncertain' OR state = 'manual_review';

-- What retention removes next: of rows with bodies these, of all others the row.
CREATE INDEX samekey_records_retention ON samekey_records (` + bodiless + `, ` + removedNext + `);

CREATE TABLE samekey_trail (
	-- What happened to a record beyond an ordinary call.
	day        INTEGER NOT NULL, -- the record's, as its key_hash
	key_hash   BLOB    NOT NULL,
	version    INTEGER NOT NULL, -- of the record afterwards
	at         INTEGER NOT NULL,
	kind       TEXT    NOT NULL, -- takeover, plan, resend, lookup, report, webhook, verdict, abandon, erase, purge
	from_state TEXT    NOT NULL,
	to_state   TEXT    NOT NULL,
	actor      TEXT    NOT NULL, -- a person's name, or what part of the software
	text       TEXT    NOT NULL, -- the reason, or what was seen
	PRIMARY KEY (day, key_hash, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE samekey_sweep (
	-- How far the search for crashed senders has come. One row.
	one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
	claimed_at INTEGER NOT NULL -- every sender claimed before it has ended or is due
) STRICT;

CREATE TABLE samekey_frontier (
	-- The day up to which evidence of a class may be gone. Raised before a purge, never lowered.
	class TEXT    NOT NULL PRIMARY KEY,
	day   INTEGER NOT NULL
) STRICT;

CREATE TABLE samekey_pins (
	-- What every user of this ledger must have in common. One row, written at the first use.
	one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
	derivation TEXT    NOT NULL, -- how keys are made
	secret     TEXT    NOT NULL  -- fingerprint of the secret, 'none' without one
) STRICT;

CREATE TABLE samekey_restored (
	-- The ledger was restored from a backup. One row, or none.
	one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
	at  INTEGER NOT NULL -- records written before it may be lost
) STRICT;
`

// bodiless is whether a row holds no bodies, removedNext when retention removes
// something of it. One index on both serves the two steps of a purge.
const (
	bodiless    = `(request IS NULL AND response_headers IS NULL AND response_body IS NULL)`
	removedNext = `(CASE WHEN ` + bodiless + ` THEN evidence_until ELSE replay_until END)`
)

// The version stands in a table of its own and not in user_version, so that a
// service may keep the ledger beside its own tables.
const createVersion = `
CREATE TABLE IF NOT EXISTS samekey_schema (
	one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
	version INTEGER NOT NULL
) STRICT`

// migrate brings the ledger to the last of steps. Of many that call it at once
// one does the work.
func migrate(ctx context.Context, db *sql.DB, steps []string) error {
	if err := checkVersion(ctx, db, len(steps)); err == nil || !errors.Is(err, errOlder) {
		return err
	}
	tx, err := db.BeginTx(ctx, nil) // IMMEDIATE: what is read next is still so when it is changed.
	if err != nil {
		return err
	}
	if err := migrateTx(ctx, tx, steps); err != nil {
		_ = tx.Rollback() // The first error counts.
		return err
	}
	return tx.Commit()
}

func migrateTx(ctx context.Context, tx *sql.Tx, steps []string) error {
	if _, err := tx.ExecContext(ctx, createVersion); err != nil {
		return err
	}
	version, err := readVersion(ctx, tx)
	if err != nil {
		return err
	}
	for i := version; i < len(steps); i++ {
		if _, err := tx.ExecContext(ctx, steps[i]); err != nil {
			return fmt.Errorf("migration to schema version %d: %w", i+1, err)
		}
	}
	const store = `INSERT INTO samekey_schema VALUES (1, :version) ON CONFLICT DO UPDATE SET version = excluded.version`
	_, err = tx.ExecContext(ctx, store, sql.Named("version", max(version, len(steps))))
	return err
}

// errOlder is the part of ErrSchema that a migration mends.
var errOlder = fmt.Errorf("%w: it is older", recordstore.ErrSchema)

// checkVersion returns ErrSchema, naming both versions, where the ledger's schema
// is not the one that this build understands.
func checkVersion(ctx context.Context, db querier, understood int) error {
	version, err := readVersion(ctx, db)
	switch {
	case err != nil:
		return err
	case version > understood:
		return fmt.Errorf("%w: the ledger has version %d, this build understands %d; use a newer build",
			recordstore.ErrSchema, version, understood)
	case version < understood:
		return fmt.Errorf("%w: the ledger has version %d, this build needs %d; open it again to migrate it",
			errOlder, version, understood)
	}
	return nil
}

// checkExisting is checkVersion for a file that Open may neither fill nor migrate.
func checkExisting(ctx context.Context, db querier) error {
	version, err := readVersion(ctx, db)
	if err == nil && version == 0 {
		return fmt.Errorf("%w: the file holds no ledger", recordstore.ErrSchema)
	}
	if err == nil {
		err = checkVersion(ctx, db, len(migrations))
	}
	return err
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readVersion returns the ledger's schema version, 0 for an empty file.
func readVersion(ctx context.Context, db querier) (version int, err error) {
	const table = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'samekey_schema'`
	var tables int
	if err := db.QueryRowContext(ctx, table).Scan(&tables); err != nil || tables == 0 {
		return 0, err
	}
	err = db.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM samekey_schema`).Scan(&version)
	return version, err
}
