CREATE TABLE IF NOT EXISTS {schema}.meta (
	name text PRIMARY KEY,
	value text NOT NULL
);
COMMENT ON TABLE {schema}.meta IS 'What all users of this ledger have in common.';
COMMENT ON COLUMN {schema}.meta.name IS 'schema_version; schema_fits_from: the oldest build, by the version it was made for, that still works here; derivation and secret: pinned by the first client; restored: the ledger was restored from a backup, and records written before it, in microseconds since 1970, may be lost; crashed_mark: claims before it, in microseconds since 1970, were looked at by the sweep for dead senders.';

CREATE TABLE IF NOT EXISTS {schema}.frontier (
	class text PRIMARY KEY,
	day integer NOT NULL
);
COMMENT ON TABLE {schema}.frontier IS 'Up to which day the records of a class may be gone. Raised before a purge, never lowered: a command of such a day that has no record is refused.';
COMMENT ON COLUMN {schema}.frontier.day IS 'Days since 1970.';

-- Columns stand by alignment, widest first, so that a row has no padding.
CREATE TABLE IF NOT EXISTS {schema}.record (
	created_at timestamptz NOT NULL,
	claimed_at timestamptz,
	lease_expires_at timestamptz,
	window_ends_at timestamptz,
	sent_until timestamptz,
	answered_at timestamptz,
	due_at timestamptz,
	not_after timestamptz,
	replay_until timestamptz,
	evidence_until timestamptz,
	body_purged_at timestamptz,
	day integer NOT NULL,
	fence integer NOT NULL,
	version integer NOT NULL,
	deliveries integer NOT NULL DEFAULT 0,
	checks integer NOT NULL DEFAULT 0,
	response_status smallint,
	seal_version smallint,
	doubt boolean NOT NULL DEFAULT false,
	look_only boolean NOT NULL DEFAULT false,
	blurred boolean NOT NULL DEFAULT false,
	from_plan boolean NOT NULL DEFAULT false,
	key_hash bytea NOT NULL,
	scope_hash bytea NOT NULL,
	provider text NOT NULL,
	account text NOT NULL,
	operation text NOT NULL,
	command_id text NOT NULL,
	class text NOT NULL,
	derivation text NOT NULL,
	request_hash bytea NOT NULL,
	state text NOT NULL,
	taken_from text,
	noted text,
	evidence text,
	outcome text,
	holder text,
	external_ref text,
	object_status text,
	provider_request_id text,
	error_code text,
	request bytea,
	response_headers bytea,
	response_body bytea,
	-- Both are the same before and after an ordinary call, so that they may be
	-- indexed: NULL, and whether anything sealed is there.
	waiting text GENERATED ALWAYS AS (CASE WHEN state IN ('uncertain', 'manual_review')
		OR (state IN ('sending', 'not_executed') AND due_at IS NOT NULL) THEN state END) STORED,
	bodies boolean GENERATED ALWAYS AS (request IS NOT NULL OR response_headers IS NOT NULL OR response_body IS NOT NULL) STORED,
	PRIMARY KEY (day, key_hash)
) {records};
-- Sealed bytes do not compress: no time is spent on trying.
ALTER TABLE {schema}.record
	ALTER COLUMN request SET STORAGE EXTERNAL,
	ALTER COLUMN response_headers SET STORAGE EXTERNAL,
	ALTER COLUMN response_body SET STORAGE EXTERNAL;

-- No index holds a column that an ordinary call changes after its claim. What is
-- due is found by its age and, where one owner has much of it, in turn by scope.
-- The condition on checks always holds. Only statements that name it use the first
-- index: the server would else, by statistics from before an outage, look through
-- all that is due for that of one scope.
CREATE INDEX IF NOT EXISTS record_due ON {schema}.record (provider, due_at) WHERE due_at IS NOT NULL AND checks >= 0;
CREATE INDEX IF NOT EXISTS record_due_of_scope ON {schema}.record (provider, scope_hash, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS record_waiting ON {schema}.record (provider, waiting, claimed_at) INCLUDE (lease_expires_at) WHERE waiting IS NOT NULL;
-- What retention removes next: the bodies, then the record. A record that waits
-- for a decision, or to be sent again, is not among it.
CREATE INDEX IF NOT EXISTS record_ends ON {schema}.record (bodies, (CASE WHEN bodies THEN replay_until ELSE evidence_until END)) WHERE waiting IS NULL;
CREATE INDEX IF NOT EXISTS record_claimed ON {schema}.record USING brin (claimed_at) WITH (pages_per_range = 32, autosummarize = on);

-- A step appends at most one entry, and raises the version.
CREATE TABLE IF NOT EXISTS {schema}.trail (
	version bigint NOT NULL,
	at timestamptz NOT NULL,
	day integer NOT NULL,
	key_hash bytea NOT NULL,
	from_state text NOT NULL,
	to_state text NOT NULL,
	kind text NOT NULL,
	actor text,
	reason text,
	PRIMARY KEY (day, key_hash, version)
) {trails};
COMMENT ON TABLE {schema}.trail IS 'What happened to records beyond ordinary calls. It goes with its record.';
COMMENT ON COLUMN {schema}.trail.version IS 'Of the record afterwards.';
COMMENT ON COLUMN {schema}.trail.at IS 'When it happened.';
COMMENT ON COLUMN {schema}.trail.day IS 'Of the record.';
COMMENT ON COLUMN {schema}.trail.key_hash IS 'Of the record.';
COMMENT ON COLUMN {schema}.trail.from_state IS 'The record''s state before.';
COMMENT ON COLUMN {schema}.trail.to_state IS 'The record''s state afterwards.';
COMMENT ON COLUMN {schema}.trail.kind IS 'takeover, plan, resend, lookup, report, webhook, verdict, abandon, erase or purge.';
COMMENT ON COLUMN {schema}.trail.actor IS 'A person''s name, or what part of the software.';
COMMENT ON COLUMN {schema}.trail.reason IS 'The reason, or what was seen.';

COMMENT ON TABLE {schema}.record IS 'One row for each provider key: what was sent, and what is known of its effect. NULL stands for none.';
COMMENT ON COLUMN {schema}.record.day IS 'UTC day of the command''s own time, in days since 1970; 0 if it carries none.';
COMMENT ON COLUMN {schema}.record.key_hash IS 'First 16 bytes of the provider key''s hash. The key itself is stored nowhere.';
COMMENT ON COLUMN {schema}.record.scope_hash IS 'SHA-256 of the owner of the resource.';
COMMENT ON COLUMN {schema}.record.provider IS 'As stripe.';
COMMENT ON COLUMN {schema}.record.account IS 'The provider''s account id and mode, as acct_1Nv0/live.';
COMMENT ON COLUMN {schema}.record.operation IS 'As refund.create.';
COMMENT ON COLUMN {schema}.record.command_id IS 'The caller''s name of the business intent, with its step.';
COMMENT ON COLUMN {schema}.record.class IS 'money, object or notification: decides how long records are kept.';
COMMENT ON COLUMN {schema}.record.derivation IS 'How the key was made; foreign: by somebody else, never resent.';
COMMENT ON COLUMN {schema}.record.request_hash IS 'Keyed hash of what the request means. The first byte is its version.';
COMMENT ON COLUMN {schema}.record.state IS 'planned, sending, succeeded, refused, not_executed, uncertain, manual_review or abandoned.';
COMMENT ON COLUMN {schema}.record.doubt IS 'An earlier claim may have delivered, and its answer is not known.';
COMMENT ON COLUMN {schema}.record.taken_from IS 'The state that the last claim found; NULL for a new record.';
COMMENT ON COLUMN {schema}.record.from_plan IS 'It began as a plan: while it is not_executed it is due and sent again.';
COMMENT ON COLUMN {schema}.record.noted IS 'While sending: a fact handed in by somebody who does not hold the claim.';
COMMENT ON COLUMN {schema}.record.look_only IS 'The answers so far teach nothing more by a resend.';
COMMENT ON COLUMN {schema}.record.blurred IS 'An answer so far was a stored failure that says nothing: absence proves nothing.';
COMMENT ON COLUMN {schema}.record.evidence IS 'What the label of the answer rests on.';
COMMENT ON COLUMN {schema}.record.outcome IS 'What the provider made of an applied effect: done, pending or partial.';
COMMENT ON COLUMN {schema}.record.holder IS 'Random id of the last claim.';
COMMENT ON COLUMN {schema}.record.fence IS 'Raised by every claim.';
COMMENT ON COLUMN {schema}.record.version IS 'Raised by every change.';
COMMENT ON COLUMN {schema}.record.claimed_at IS 'Of the last claim.';
COMMENT ON COLUMN {schema}.record.lease_expires_at IS 'Until then nobody else may send.';
COMMENT ON COLUMN {schema}.record.deliveries IS 'Requests that may have reached the wire, of all claims that were settled.';
COMMENT ON COLUMN {schema}.record.window_ends_at IS 'Until then the provider deduplicates by the key; NULL: not known.';
COMMENT ON COLUMN {schema}.record.sent_until IS 'End of the last lease under which a request may have been written, or the restore that may have lost later ones.';
COMMENT ON COLUMN {schema}.record.seal_version IS 'Format of the sealed columns: request, response_headers, response_body.';
COMMENT ON COLUMN {schema}.record.request IS 'Sealed request, to be resent as it is; cleared when the record is succeeded or refused.';
COMMENT ON COLUMN {schema}.record.response_status IS 'Status of the recorded answer.';
COMMENT ON COLUMN {schema}.record.response_headers IS 'Sealed.';
COMMENT ON COLUMN {schema}.record.response_body IS 'Sealed.';
COMMENT ON COLUMN {schema}.record.external_ref IS 'The provider''s id of the object.';
COMMENT ON COLUMN {schema}.record.object_status IS 'The object''s status in the provider''s words.';
COMMENT ON COLUMN {schema}.record.provider_request_id IS 'The provider''s id of the exchange.';
COMMENT ON COLUMN {schema}.record.error_code IS 'Our code of a refusal and the provider''s, as refused:card_declined.';
COMMENT ON COLUMN {schema}.record.answered_at IS 'When the answer was recorded.';
COMMENT ON COLUMN {schema}.record.due_at IS 'When the reconciler looks next; NULL through an ordinary call. While sending: the lease''s end, or the check that was due when a call took the record over.';
COMMENT ON COLUMN {schema}.record.checks IS 'How often the reconciler looked, since the doubt or the plan began.';
COMMENT ON COLUMN {schema}.record.not_after IS 'Never sent after it.';
COMMENT ON COLUMN {schema}.record.waiting IS 'The state, where the record waits for a check or a person: uncertain, manual_review, or sending or not_executed and due.';
COMMENT ON COLUMN {schema}.record.bodies IS 'Whether a sealed column holds anything.';
COMMENT ON COLUMN {schema}.record.replay_until IS 'Until then the answer''s body is kept.';
COMMENT ON COLUMN {schema}.record.evidence_until IS 'Until then the record is kept; NULL in the tombstone of a command without a day.';
COMMENT ON COLUMN {schema}.record.body_purged_at IS 'When the body went.';
COMMENT ON COLUMN {schema}.record.created_at IS 'Of the first claim, or of the plan.';
