package recordstoretest

import (
	"context"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func brokenPurges() []brokenStore {
	return []brokenStore{
		{"nothing purged", "purge/bodies purge/forgotten purge/limit purge/grid",
			steps{purge: func(*broken, context.Context, int) (recordstore.Purged, error) { return recordstore.Purged{}, nil }}},
		{"bodies purged without a date", "purge/bodies purge/grid",
			afterPurge(func(_ *broken, before, rec *recordstore.Record) { rec.BodyPurgedAt = before.BodyPurgedAt })},
		{"reference purged with the body", "purge/bodies purge/grid",
			afterPurge(func(_ *broken, _, rec *recordstore.Record) { rec.ExternalRef = "" })},
		{"deleted without a frontier", "purge/forgotten purge/race",
			steps{claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				class := c.Class
				c.Class = "another"
				got, err := b.Store.Claim(ctx, c)
				got.Record, _ = b.edit(ctx, c.ID, func(rec *recordstore.Record) { rec.Class = class })
				return got, err
			}}},
		{"frontier raised to today", "purge/frontier purge/today purge/grid", frontierAfterPurge(0, "money")},
		{"frontier raised by one day too many", "purge/grid", frontierAfterPurge(1, "money")},
		{"frontier raised for all classes", "purge/class", frontierAfterPurge(10, "money", "notification")},
		{"unresolved records purged", "purge/unresolved purge/grid",
			beforePurge(func(_ *broken, rec *recordstore.Record) {
				switch rec.State {
				case recordstore.Planned, recordstore.Sending, recordstore.Uncertain, recordstore.ManualReview:
					rec.State = recordstore.Succeeded
				}
			})},
		{"not executed and abandoned never purged", "purge/forgotten purge/grid",
			beforePurge(func(_ *broken, rec *recordstore.Record) {
				if rec.State == recordstore.NotExecuted || rec.State == recordstore.Abandoned {
					rec.State = recordstore.ManualReview
				}
			})},
		{"a tombstone with the provider's words", "purge/tombstone purge/grid",
			afterPurge(func(_ *broken, before, rec *recordstore.Record) { rec.RequestID = before.RequestID })},
		{"a tombstone without the fingerprint", "purge/tombstone purge/grid",
			afterPurge(func(_ *broken, _, rec *recordstore.Record) {
				if rec.EvidenceUntil.IsZero() {
					rec.Fingerprint = nil
				}
			})},
		{"more purged than asked for", "purge/limit",
			steps{purge: func(b *broken, ctx context.Context, limit int) (recordstore.Purged, error) {
				return b.Store.Purge(ctx, 2*limit)
			}}},
		{"a trail that outlives its record", "purge/trail", steps{
			erase: func(b *broken, ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
				before, _, _ := b.Store.Get(ctx, id) // The zero record where there is none.
				rec, err := b.Store.Erase(ctx, id, e)
				b.trail[id] = append(b.trail[id], e.Stamped(before, rec, b.now()))
				return rec, err
			},
			entries: func(b *broken, ctx context.Context, id recordstore.ID) ([]recordstore.Entry, error) {
				_, err := b.Store.Trail(ctx, id)
				return b.trail[id], err
			},
		}},
	}
}

// frontierAfterPurge raises the frontier after a purge further than records went:
// to so many days before today.
func frontierAfterPurge(days int32, classes ...string) steps {
	return steps{purge: func(b *broken, ctx context.Context, limit int) (recordstore.Purged, error) {
		done, err := b.Store.Purge(ctx, limit)
		for _, class := range classes {
			if err := b.RaiseFrontier(ctx, class, today(b.now())-days); err != nil {
				return done, err
			}
		}
		return done, err
	}}
}

func brokenPlans() []brokenStore {
	return []brokenStore{
		{"a plan that is not due", "plan/new plan/due plan/grid_new",
			afterPlan(func(_ recordstore.Claim, rec *recordstore.Record) { rec.DueAt = rec.BodyPurgedAt })},
		{"a plan with a holder", "plan/new plan/grid_new",
			afterPlan(func(c recordstore.Claim, rec *recordstore.Record) { rec.Holder, rec.Fence = c.Holder, 1 })},
		{"a plan without its limit", "plan/new plan/not_after plan/grid_new",
			afterPlan(func(_ recordstore.Claim, rec *recordstore.Record) { rec.NotAfter = rec.BodyPurgedAt })},
		{"a plan taken for a claim", "plan/alike plan/grid",
			steps{plan: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				if _, _, err := b.Store.Get(ctx, c.ID); err == nil {
					return b.Store.Claim(ctx, c)
				}
				return b.Store.Plan(ctx, c)
			}}},
		{"a plan sent under doubt", "plan/claimed grid/claim",
			afterClaim(func(_ *broken, _ recordstore.Claim, before, rec *recordstore.Record) {
				rec.Doubt = rec.Doubt || before.State == recordstore.Planned
			})},
		{"a plan replaced", "plan/alike plan/grid",
			steps{plan: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				if err := c.CheckPlan(); err != nil {
					return recordstore.Claimed{}, err
				}
				rec, d := recordstore.Plan(c, nil, 0, b.now())
				if d == recordstore.Send {
					b.Seed(rec)
				}
				return recordstore.Claimed{Decision: d, Record: rec, Now: b.now()}, nil
			}}},
		{"plans not checked", "plan/invalid",
			steps{plan: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				if c.CheckPlan() != nil {
					return recordstore.Claimed{Decision: recordstore.Send}, nil
				}
				return b.Store.Plan(ctx, c)
			}}},
		{"a plan outside its transaction", "plan/rollback plan/commit plan/with_others",
			steps{begin: func(b *broken) (p recordstore.Planner, commit, rollback func() error) {
				return b, func() error { return nil }, func() error { return nil }
			}}},
	}
}
