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
			append([]byte{}, rec.Fingerprint...), string(rec.State), rec.Doubt, text(rec.TakenFrom), rec.FromPlan, text(rec.Noted),
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

// ByMonth tells s what Attach would: that there are partitions.
func ByMonth(s *Store) { s.byMonth.Store(true) }

// AddMonths makes the months up to the next one.
func AddMonths(ctx context.Context, s *Store) error { return addMonths(ctx, s.pool, s.schema, s.now()) }

// DropMonths lets the months go that are over, and returns how many those were.
func DropMonths(ctx context.Context, s *Store) (gone int, err error) {
	before, err := readMonths(ctx, s.pool, s.schema)
	if err != nil {
		return 0, err
	}
	if _, err := s.dropMonths(ctx); err != nil {
		return 0, err
	}
	after, err := readMonths(ctx, s.pool, s.schema)
	return len(before) - len(after), err
}

// ExplainOnRecord shows the plans of the statements on the record of c.
func ExplainOnRecord(ctx context.Context, s *Store, c recordstore.Claim, st recordstore.Settlement) (map[string][]byte, error) {
	sql, args, settle := s.on(c.ID), s.claimArgs(&c), append(s.resultArgs(c.ID, st.Result), st.Holder, st.Fence, text(st.Noted), st.Uncounted)
	entry := entryArgs(&recordstore.Entry{Kind: "check"})
	key := []any{s.clock(), c.ID.Day, c.ID.KeyHash[:]}
	plans := map[string][]byte{}
	for name, q := range map[string]struct {
		sql  string
		args []any
	}{
		"begin": {sql.begin, args[:len(args)-1]}, "claim": {sql.claim, args}, "plan": {sql.plan, s.planArgs(c)},
		"end": {sql.end, settle}, "settle": {sql.settle, append(settle[:len(settle):len(settle)], entry...)},
		"report": {sql.report, append(s.resultArgs(c.ID, st.Result), entry...)},
		"renew":  {sql.renew, append(key[:3:3], st.Holder, st.Fence, 1)},
		"wake":   {sql.wake, append(key[:3:3], "re_1")}, "abandon": {sql.abandon, append(key[:3:3], entry...)},
		"erase": {sql.erase, append(key[:3:3], entry...)}, "get": {sql.get, key},
	} {
		plan, err := Explain(ctx, s, q.sql, q.args...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		plans[name] = plan
	}
	return plans, nil
}

// ExplainMany shows the plans of the statements that take the steps of a batch: one
// that begins with claims, and one that ends with settlements.
func ExplainMany(ctx context.Context, s *Store, claims []recordstore.Claim, settlements []recordstore.Settlement) (begin, end []byte, err error) {
	on := s.on(claims[0].ID)
	var begins, ends []*asked
	for _, c := range claims {
		begins = append(begins, &asked{args: s.claimArgs(&c)})
	}
	for _, st := range settlements {
		ends = append(ends, &asked{args: append(s.resultArgs(st.ID, st.Result), st.Holder, st.Fence, text(st.Noted), st.Uncounted)})
	}
	show := func(m many, steps []*asked) (plan []byte, err error) {
		tx, err := s.pool.Begin(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		if _, err := tx.Exec(ctx, manySettings); err != nil {
			return nil, err
		}
		err = tx.QueryRow(ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+m.sql, m.args(steps)...).Scan(&plan)
		return plan, err
	}
	if begin, err = show(on.beginMany, begins); err == nil {
		end, err = show(on.endMany, ends)
	}
	return begin, end, err
}

// Explain runs a step as it is asked, with its plan shown, and undoes it.
func Explain(ctx context.Context, s *Store, sql string, args ...any) (plan []byte, err error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	err = tx.QueryRow(ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, args...).Scan(&plan)
	return plan, err
}

// ExplainTakeDue shows the plan of TakeDue.
func ExplainTakeDue(ctx context.Context, s *Store, q recordstore.DueQuery) ([]byte, error) {
	return Explain(ctx, s, s.sql.takeDue, s.dueArgs(q)...)
}

// ExplainFindCrashed shows the plan of FindCrashed from the watermark.
func ExplainFindCrashed(ctx context.Context, s *Store, limit int) ([]byte, error) {
	return Explain(ctx, s, s.sql.findCrashed, s.clock(), limit)
}

// ExplainBacklog shows the plan of Backlog.
func ExplainBacklog(ctx context.Context, s *Store, provider string) ([]byte, error) {
	return Explain(ctx, s, s.sql.backlog, s.clock(), provider, maxCounted)
}

// ExplainPurge shows the plans of the steps of Purge.
func ExplainPurge(ctx context.Context, s *Store, limit int) ([][]byte, error) {
	var plans [][]byte
	for _, sql := range []string{s.sql.empty, s.sql.purgeable, s.sql.remove, s.sql.shrink} {
		plan, err := Explain(ctx, s, sql, s.clock(), limit, 0)
		if err != nil {
			return nil, err
		}
		plans = append(plans, plan)
	}
	return plans, nil
}
