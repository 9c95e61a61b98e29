package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// columns of samekey_records, in the order of row.
const columns = `day, key_hash, scope_hash, provider, account, operation, command_id, class, derivation, request_hash,
	state, doubt, taken_from, noted, from_plan, look_only, blurred, evidence, outcome, holder, fence, claimed_at, lease_expires_at,
	deliveries, window_ends_at, sent_until, seal_version, response_status, external_ref, object_status, provider_request_id,
	error_code, answered_at, due_at, checks, not_after, replay_until, evidence_until, body_purged_at, created_at,
	version, request, response_headers, response_body`

// row returns where the columns are read to.
func row(r *recordstore.Record) []any {
	return []any{
		&r.ID.Day, fixed(r.ID.KeyHash[:]), fixed(r.Scope[:]), &r.Provider, &r.Account, &r.Operation, &r.CommandID, &r.Class, &r.Derivation, &r.Fingerprint,
		&r.State, &r.Doubt, &r.TakenFrom, &r.Noted, &r.FromPlan, &r.LookOnly, &r.Blurred, &r.Evidence, &r.Outcome, &r.Holder, &r.Fence, timestamp{&r.ClaimedAt}, timestamp{&r.LeaseEndsAt},
		&r.Deliveries, timestamp{&r.WindowEndsAt}, timestamp{&r.SentUntil}, &r.SealVersion, &r.ResponseStatus, &r.ExternalRef, &r.ObjectStatus, &r.RequestID,
		&r.ErrorCode, timestamp{&r.AnsweredAt}, timestamp{&r.DueAt}, &r.Checks, timestamp{&r.NotAfter}, timestamp{&r.ReplayUntil}, timestamp{&r.EvidenceUntil}, timestamp{&r.BodyPurgedAt}, timestamp{&r.CreatedAt},
		&r.Version, &r.Request, &r.ResponseHeader, &r.ResponseBody,
	}
}

// values returns what is written to the columns.
func values(r *recordstore.Record) []any {
	return []any{
		r.ID.Day, r.ID.KeyHash[:], r.Scope[:], r.Provider, r.Account, r.Operation, r.CommandID, r.Class, r.Derivation, r.Fingerprint,
		string(r.State), r.Doubt, string(r.TakenFrom), string(r.Noted), r.FromPlan, r.LookOnly, r.Blurred, r.Evidence, r.Outcome, r.Holder, r.Fence, micros(r.ClaimedAt), micros(r.LeaseEndsAt),
		r.Deliveries, micros(r.WindowEndsAt), micros(r.SentUntil), r.SealVersion, r.ResponseStatus, r.ExternalRef, r.ObjectStatus, r.RequestID,
		r.ErrorCode, micros(r.AnsweredAt), micros(r.DueAt), r.Checks, micros(r.NotAfter), micros(r.ReplayUntil), micros(r.EvidenceUntil), micros(r.BodyPurgedAt), micros(r.CreatedAt),
		r.Version, blob(r.Request), blob(r.ResponseHeader), blob(r.ResponseBody),
	}
}

// putSQL writes a whole row, whatever was there.
var putSQL = `INSERT OR REPLACE INTO samekey_records (` + columns + `) VALUES (?` +
	strings.Repeat(", ?", strings.Count(columns, ",")) + `)`

// getSQL reads a row and the ledger's time.
const getSQL = `SELECT ` + columns + `, ` + nowSQL + ` FROM samekey_records WHERE day = :day AND key_hash = :key_hash`

// key returns the arguments that find a row.
func key(id recordstore.ID) []any {
	return []any{sql.Named("day", id.Day), sql.Named("key_hash", id.KeyHash[:])}
}

// scan reads a record and what follows its columns. Its errors hold no values.
func scan(r *sql.Row, rec *recordstore.Record, more ...any) error {
	return r.Scan(append(row(rec), more...)...)
}

// read reads a record and the ledger's time with getSQL. sql.ErrNoRows where there
// is no record.
func read(ctx context.Context, get *sql.Stmt, id recordstore.ID, now sql.NamedArg) (rec recordstore.Record, at time.Time, err error) {
	err = scan(get.QueryRowContext(ctx, append(key(id), now)...), &rec, timestamp{&at})
	return rec, at, err
}

// micros returns a time as the file keeps it: NULL for the zero time.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// blob returns bytes as the file keeps them: NULL for none.
func blob(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// timestamp reads a time.
type timestamp struct{ t *time.Time }

// Scan implements sql.Scanner.
func (a timestamp) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*a.t = time.Time{}
	case int64:
		*a.t = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time is kept as %T", v)
	}
	return nil
}

// fixed reads a hash of known length.
type fixed []byte

// Scan implements sql.Scanner.
func (f fixed) Scan(v any) error {
	b, ok := v.([]byte)
	if !ok || len(b) != len(f) {
		return fmt.Errorf("a hash of %d bytes is kept as %T of another length", len(f), v)
	}
	copy(f, b)
	return nil
}
