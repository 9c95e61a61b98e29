package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// SchemaVersion is the version that Migrate makes.
const SchemaVersion = schemaVersion

// Seed writes records as they are, in place of those that are there, in one
// transaction.
func Seed(ctx context.Context, s *Store, recs ...recordstore.Record) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	for _, rec := range recs {
		args := []any{
			rec.Scope[:], rec.Provider, rec.Account, rec.Operation, rec.CommandID, rec.Class, rec.Derivation,
			append([]byte{}, rec.Fingerprint...), string(rec.State), rec.Doubt, text(rec.TakenFrom), text(rec.Noted),
			rec.LookOnly, rec.Blurred,
			text(rec.Evidence), text(rec.Outcome), text(rec.Holder), rec.Fence, timestamp(rec.ClaimedAt),
			timestamp(rec.LeaseEndsAt), rec.Deliveries, timestamp(rec.WindowEndsAt), timestamp(rec.SentUntil), number(rec.SealVersion),
			sealed(rec.Request), number(rec.ResponseStatus), sealed(rec.ResponseHeader), sealed(rec.ResponseBody),
			text(rec.ExternalRef), text(rec.ObjectStatus), text(rec.RequestID), text(rec.ErrorCode),
			timestamp(rec.AnsweredAt), timestamp(rec.DueAt), rec.Checks, timestamp(rec.NotAfter),
			timestamp(rec.ReplayUntil), timestamp(rec.EvidenceUntil), timestamp(rec.BodyPurgedAt),
			rec.CreatedAt, rec.Version, rec.ID.Day, rec.ID.KeyHash[:],
		}
		places := make([]string, len(args))
		for i := range places {
			places[i] = fmt.Sprintf("$%d", i+1)
		}
		if _, err := tx.Exec(ctx, within(s.schema, "DELETE FROM {schema}.record WHERE day = $1 AND key_hash = $2"), rec.ID.Day, rec.ID.KeyHash[:]); err != nil {
			return err
		}
		sql := "INSERT INTO {schema}.record (" + columns + ", day, key_hash) VALUES (" + strings.Join(places, ", ") + ")"
		if _, err := tx.Exec(ctx, within(s.schema, sql), args...); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}
