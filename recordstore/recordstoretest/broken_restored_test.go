package recordstoretest

import (
	"context"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func (b *broken) MarkRestored(ctx context.Context, t time.Time) error {
	if b.markLost == nil {
		return b.Store.MarkRestored(ctx, t)
	}
	return b.markLost(b, ctx, t)
}

func (b *broken) Restored(ctx context.Context) (time.Time, error) {
	if b.restored == nil {
		return b.Store.Restored(ctx)
	}
	return b.restored(b, ctx)
}

// marking makes another mark of a restore.
func marking(spoil func(before, t time.Time) time.Time) steps {
	return steps{markLost: func(b *broken, ctx context.Context, t time.Time) error {
		before, err := b.Store.Restored(ctx)
		if err != nil {
			return err
		}
		return b.Store.MarkRestored(ctx, spoil(before, t))
	}}
}

// afterLoss breaks a new record that may replace a lost one.
func afterLoss(spoil func(b *broken, c recordstore.Claim, rec *recordstore.Record)) steps {
	return afterClaim(func(b *broken, c recordstore.Claim, before, rec *recordstore.Record) {
		if before.Version == 0 && !c.LostBefore.IsZero() {
			spoil(b, c, rec)
		}
	})
}

func brokenRestores() []brokenStore {
	return []brokenStore{
		{"lost records ignored", "claim/lost grid/new",
			steps{claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				c.LostBefore = time.Time{}
				return b.Store.Claim(ctx, c)
			}}},
		{"a lost record without doubt", "claim/lost grid/new",
			afterLoss(func(_ *broken, _ recordstore.Claim, rec *recordstore.Record) { rec.Doubt = false })},
		{"a lost record that may be sent", "claim/lost grid/new",
			afterLoss(func(_ *broken, _ recordstore.Claim, rec *recordstore.Record) { rec.LookOnly = false })},
		{"a lost record with a window", "claim/lost grid/new",
			afterLoss(func(b *broken, c recordstore.Claim, rec *recordstore.Record) { rec.WindowEndsAt = b.now().Add(window) })},
		{"a lost record sent until its own lease ends", "claim/lost grid/new",
			afterLoss(func(_ *broken, _ recordstore.Claim, rec *recordstore.Record) { rec.SentUntil = rec.LeaseEndsAt })},
		{"every record taken for lost", "claim/lost_since claim/lost_unsent grid/claim",
			afterClaim(func(_ *broken, c recordstore.Claim, before, rec *recordstore.Record) {
				if before.Version > 0 && !c.LostBefore.IsZero() {
					rec.SentUntil, rec.WindowEndsAt = c.LostBefore, time.Time{}
				}
			})},
		{"records believed that a restore brought back", "claim/lost_since claim/lost_unsent grid/claim",
			steps{claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				if _, _, err := b.Store.Get(ctx, c.ID); err == nil {
					c.LostBefore = time.Time{}
				}
				return b.Store.Claim(ctx, c)
			}}},
		{"brought back and expired", "claim/lost_unsent grid/claim",
			steps{claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				rec, now, err := b.Store.Get(ctx, c.ID)
				if err == nil && !rec.NotAfter.IsZero() && !now.Before(rec.NotAfter) && rec.State != recordstore.Sending {
					return recordstore.Claimed{Decision: recordstore.Expired, Record: rec, Now: now}, nil
				}
				return b.Store.Claim(ctx, c)
			}}},
		{"a reconciler that knows of no restore", "due/lost due/grid",
			steps{takeDue: func(b *broken, ctx context.Context, q recordstore.DueQuery) ([]recordstore.Record, time.Time, error) {
				q.LostBefore = time.Time{}
				return b.Store.TakeDue(ctx, q)
			}}},
		{"a restore not remembered", "restored/mark", marking(func(before, _ time.Time) time.Time { return before })},
		{"a restore never lifted", "restored/mark", marking(func(before, t time.Time) time.Time {
			if t.IsZero() {
				return before
			}
			return t
		})},
		{"only the latest restore remembered", "restored/mark", marking(func(before, t time.Time) time.Time {
			if t.Before(before) && !t.IsZero() {
				return before
			}
			return t
		})},
		{"a restore remembered to the second", "restored/mark",
			marking(func(_, t time.Time) time.Time { return t.Truncate(time.Second) })},
		{"every ledger was restored", "restored/fresh restored/mark",
			steps{restored: func(b *broken, ctx context.Context) (time.Time, error) {
				t, err := b.Store.Restored(ctx)
				if t.IsZero() {
					return b.now(), err
				}
				return t, err
			}}},
	}
}
