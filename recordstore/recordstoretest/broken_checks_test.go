package recordstoretest

import (
	"context"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func brokenChecks() []brokenStore {
	return []brokenStore{
		{"a check put off by asking again", "claim/keeps_check claim/takeover grid/claim",
			afterClaim(func(_ *broken, _ recordstore.Claim, _, rec *recordstore.Record) { rec.DueAt = time.Time{} })},
		{"a check put off by settling again", "claim/keeps_check grid/settle", settlingDue(func(b *broken, s recordstore.Settlement, before recordstore.Record) time.Time {
			return b.now().Add(s.DueIn)
		})},
		{"the earlier of two checks kept", "claim/keeps_check due/counts_anew grid/settle", settlingDue(func(b *broken, s recordstore.Settlement, before recordstore.Record) time.Time {
			if at := b.now().Add(s.DueIn); before.DueAt.IsZero() || at.Before(before.DueAt) {
				return at
			}
			return before.DueAt
		})},
		{"every due time kept", "due/counts_anew grid/settle", settlingDue(func(b *broken, s recordstore.Settlement, before recordstore.Record) time.Time {
			if before.DueAt.IsZero() {
				return b.now().Add(s.DueIn)
			}
			return before.DueAt
		})},
		{"a check put off by a renewal", "claim/keeps_check grid/renew", steps{renew: func(b *broken, ctx context.Context, id recordstore.ID, holder string, fence int64, lease time.Duration) error {
			err := b.Store.Renew(ctx, id, holder, fence, lease)
			if err == nil {
				b.edit(ctx, id, func(rec *recordstore.Record) { rec.DueAt = rec.LeaseEndsAt })
			}
			return err
		}}},
		{"a check that was none counted", "due/uncounted grid/settle",
			beforeSettle(func(s *recordstore.Settlement, _ recordstore.Record) { s.Uncounted = false })},
		{"a ladder that goes on in a new doubt", "due/ladder grid/claim",
			afterClaim(func(_ *broken, _ recordstore.Claim, before, rec *recordstore.Record) { rec.Checks = before.Checks })},
		{"a ladder that goes on in a new doubt of the reconciler", "due/ladder due/grid",
			afterTaking(func(before, rec *recordstore.Record) { rec.Checks = before.Checks + 1 })},
		{"a plan that was turned away forgotten", "due/turned_away due/ladder due/grid",
			beforeTaking(func(_ *broken, _ *recordstore.DueQuery, rec *recordstore.Record) {
				if rec.State == recordstore.NotExecuted {
					rec.DueAt = time.Time{}
				}
			})},
		{"a plan that was turned away not due", "due/turned_away grid/settle",
			afterSettle(func(_, rec *recordstore.Record) {
				if rec.State == recordstore.NotExecuted {
					rec.DueAt = time.Time{}
				}
			})},
		{"a call that was turned away due", "due/turned_away settle/writes grid/settle",
			beforeSettleEdit(func(rec *recordstore.Record) { rec.FromPlan = true })},
		{"a plan not known as one", "plan/new",
			steps{plan: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				got, err := b.Store.Plan(ctx, c)
				if err == nil {
					got.Record, _ = b.edit(ctx, c.ID, func(rec *recordstore.Record) { rec.FromPlan = false })
				}
				return got, err
			}}},
		{"retention counted from the plan", "plan/claimed claim/not_executed grid/claim",
			afterClaim(func(_ *broken, _ recordstore.Claim, before, rec *recordstore.Record) {
				if before.Version > 0 {
					rec.ReplayUntil, rec.EvidenceUntil = before.ReplayUntil, before.EvidenceUntil
				}
			})},
		{"retention shortened by a later claim", "claim/not_executed grid/claim",
			afterClaim(func(b *broken, c recordstore.Claim, before, rec *recordstore.Record) {
				rec.ReplayUntil, rec.EvidenceUntil = b.now().Add(c.Replay), b.now().Add(c.Evidence)
			})},
		{"a plan that is to be sent again purged", "purge/unresolved purge/grid",
			beforePurge(func(_ *broken, rec *recordstore.Record) {
				if rec.State == recordstore.NotExecuted {
					rec.DueAt = time.Time{}
				}
			})},
	}
}

// settlingDue lets a settlement to Uncertain be due at another time; before is the
// record that it found.
func settlingDue(at func(b *broken, s recordstore.Settlement, before recordstore.Record) time.Time) steps {
	return steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
		before, _, _ := b.Store.Get(ctx, s.ID) // The zero record where there is none.
		rec, err := b.Store.Settle(ctx, s)
		if err == nil && s.State == recordstore.Uncertain && s.DueIn > 0 && before.State == recordstore.Sending {
			rec, _ = b.edit(ctx, s.ID, func(rec *recordstore.Record) { rec.DueAt = at(b, s, before) })
		}
		return rec, err
	}}
}
