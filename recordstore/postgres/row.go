package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// columns are what every statement returns of a record, in the order of
// row.fields. The primary key is not among them: who asks knows it.
const columns = `scope_hash, provider, account, operation, command_id, class, derivation, request_hash,
	state, doubt, taken_from, from_plan, noted, look_only, blurred, evidence, outcome,
	holder, fence, claimed_at, lease_expires_at, deliveries, window_ends_at, sent_until,
	seal_version, request, response_status, response_headers, response_body,
	external_ref, object_status, provider_request_id, error_code, answered_at,
	due_at, checks, not_after, replay_until, evidence_until, body_purged_at, created_at, version`

// row receives the columns of one record. All may be NULL: that is the zero
// value, and a row whose state is NULL is no record.
type row struct {
	record         recordstore.Record
	scope          []byte
	doubt          *bool
	fromPlan       *bool
	lookOnly       *bool
	blurred        *bool
	deliveries     zeronull.Int8
	sealVersion    zeronull.Int8
	responseStatus zeronull.Int8
	checks         zeronull.Int8
}

// fields are the places to scan columns into.
func (r *row) fields() []any {
	rec := &r.record
	return []any{
		&r.scope, (*zeronull.Text)(&rec.Provider), (*zeronull.Text)(&rec.Account), (*zeronull.Text)(&rec.Operation),
		(*zeronull.Text)(&rec.CommandID), (*zeronull.Text)(&rec.Class), (*zeronull.Text)(&rec.Derivation), &rec.Fingerprint,
		(*zeronull.Text)(&rec.State), &r.doubt, (*zeronull.Text)(&rec.TakenFrom), &r.fromPlan, (*zeronull.Text)(&rec.Noted),
		&r.lookOnly, &r.blurred,
		(*zeronull.Text)(&rec.Evidence), (*zeronull.Text)(&rec.Outcome),
		(*zeronull.Text)(&rec.Holder), (*zeronull.Int8)(&rec.Fence), moment(&rec.ClaimedAt), moment(&rec.LeaseEndsAt),
		&r.deliveries, moment(&rec.WindowEndsAt), moment(&rec.SentUntil),
		&r.sealVersion, &rec.Request, &r.responseStatus, &rec.ResponseHeader, &rec.ResponseBody,
		(*zeronull.Text)(&rec.ExternalRef), (*zeronull.Text)(&rec.ObjectStatus), (*zeronull.Text)(&rec.RequestID),
		(*zeronull.Text)(&rec.ErrorCode), moment(&rec.AnsweredAt),
		moment(&rec.DueAt), &r.checks, moment(&rec.NotAfter), moment(&rec.ReplayUntil), moment(&rec.EvidenceUntil),
		moment(&rec.BodyPurgedAt), moment(&rec.CreatedAt), (*zeronull.Int8)(&rec.Version),
	}
}

// read returns the record that was scanned, and false if there was none.
func (r *row) read(id recordstore.ID) (recordstore.Record, bool) {
	rec := r.record
	if rec.State == "" {
		return recordstore.Record{}, false
	}
	rec.ID = id
	copy(rec.Scope[:], r.scope)
	rec.Doubt, rec.FromPlan, rec.LookOnly, rec.Blurred = is(r.doubt), is(r.fromPlan), is(r.lookOnly), is(r.blurred)
	rec.Deliveries, rec.SealVersion = int(r.deliveries), int(r.sealVersion)
	rec.ResponseStatus, rec.Checks = int(r.responseStatus), int(r.checks)
	for _, t := range []*time.Time{
		&rec.ClaimedAt, &rec.LeaseEndsAt, &rec.WindowEndsAt, &rec.SentUntil, &rec.AnsweredAt, &rec.DueAt, &rec.NotAfter,
		&rec.ReplayUntil, &rec.EvidenceUntil, &rec.BodyPurgedAt, &rec.CreatedAt,
	} {
		*t = t.UTC()
	}
	return rec, true
}

func is(b *bool) bool { return b != nil && *b }

func moment(t *time.Time) *zeronull.Timestamptz { return (*zeronull.Timestamptz)(t) }

// The parameters of statements: zero values become NULL, durations whole
// microseconds, which is what the server's clock has.

func text[T ~string](s T) zeronull.Text { return zeronull.Text(s) }

func timestamp(t time.Time) zeronull.Timestamptz { return zeronull.Timestamptz(t) }

func micros(d time.Duration) zeronull.Int8 { return zeronull.Int8(d / time.Microsecond) }

func number(n int) zeronull.Int8 { return zeronull.Int8(n) }

func sealed(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
