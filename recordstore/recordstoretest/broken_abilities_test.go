package recordstoretest

import (
	"context"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func (b *broken) TakeDue(ctx context.Context, q recordstore.DueQuery) ([]recordstore.Record, time.Time, error) {
	if b.takeDue == nil {
		return b.Store.TakeDue(ctx, q)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeDue(b, ctx, q)
}

func (b *broken) FindCrashed(ctx context.Context, full bool, limit int) (int, error) {
	if b.crashed == nil {
		return b.Store.FindCrashed(ctx, full, limit)
	}
	return b.crashed(b, ctx, full, limit)
}

func (b *broken) Wake(ctx context.Context, id recordstore.ID, externalRef string) (recordstore.Record, error) {
	if b.wake == nil {
		return b.Store.Wake(ctx, id, externalRef)
	}
	return b.wake(b, ctx, id, externalRef)
}

func (b *broken) Backlog(ctx context.Context, provider string) (recordstore.Backlog, error) {
	if b.backlog == nil {
		return b.Store.Backlog(ctx, provider)
	}
	return b.backlog(b, ctx, provider)
}

func (b *broken) Resolve(ctx context.Context, v recordstore.Verdict) (recordstore.Record, error) {
	if b.resolve == nil {
		return b.Store.Resolve(ctx, v)
	}
	return b.resolve(b, ctx, v)
}

func (b *broken) Abandon(ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
	if b.abandon == nil {
		return b.Store.Abandon(ctx, id, e)
	}
	return b.abandon(b, ctx, id, e)
}

func (b *broken) Erase(ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
	if b.erase == nil {
		return b.Store.Erase(ctx, id, e)
	}
	return b.erase(b, ctx, id, e)
}

func (b *broken) Trail(ctx context.Context, id recordstore.ID) ([]recordstore.Entry, error) {
	if b.entries == nil {
		return b.Store.Trail(ctx, id)
	}
	return b.entries(b, ctx, id)
}

func (b *broken) Purge(ctx context.Context, limit int) (recordstore.Purged, error) {
	if b.purge == nil {
		return b.Store.Purge(ctx, limit)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.purge(b, ctx, limit)
}

func (b *broken) Plan(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	if b.plan == nil {
		return b.Store.Plan(ctx, c)
	}
	return b.plan(b, ctx, c)
}

// all returns the records that were seeded, and those of the suite's first claims.
func (b *broken) all(ctx context.Context) (recs []recordstore.Record) {
	seen := map[recordstore.ID]bool{}
	ids := append([]recordstore.ID{}, b.harness.known...)
	for n := range 30 {
		ids = append(ids, identity(n), recordstore.ID{KeyHash: identity(n).KeyHash})
	}
	for _, id := range ids {
		if rec, _, err := b.Store.Get(ctx, id); err == nil && !seen[id] {
			recs, seen[id] = append(recs, rec), true
		}
	}
	return recs
}

// beforeTaking breaks the records before TakenDue sees them.
func beforeTaking(spoil func(b *broken, q *recordstore.DueQuery, rec *recordstore.Record)) steps {
	return steps{takeDue: func(b *broken, ctx context.Context, q recordstore.DueQuery) ([]recordstore.Record, time.Time, error) {
		for _, rec := range b.all(ctx) {
			spoil(b, &q, &rec)
			b.Seed(rec)
		}
		return b.Store.TakeDue(ctx, q)
	}}
}

// afterTaking breaks the records that were taken.
func afterTaking(spoil func(before, rec *recordstore.Record)) steps {
	return steps{takeDue: func(b *broken, ctx context.Context, q recordstore.DueQuery) ([]recordstore.Record, time.Time, error) {
		before := map[recordstore.ID]recordstore.Record{}
		for _, rec := range b.all(ctx) {
			before[rec.ID] = rec
		}
		taken, now, err := b.Store.TakeDue(ctx, q)
		for i := range taken {
			was := before[taken[i].ID]
			spoil(&was, &taken[i])
			b.Seed(taken[i])
		}
		return taken, now, err
	}}
}

// choosing takes what choose leaves of the records that are due.
func choosing(choose func(due []recordstore.Record, limit int) []recordstore.Record) steps {
	return steps{takeDue: func(b *broken, ctx context.Context, q recordstore.DueQuery) (taken []recordstore.Record, _ time.Time, _ error) {
		if err := q.Check(); err != nil {
			return nil, b.now(), err
		}
		var due []recordstore.Record
		for _, rec := range b.all(ctx) {
			if _, ok := recordstore.TakenDue(rec, q, b.now()); ok {
				due = append(due, rec)
			}
		}
		b.letOthersRun()
		for _, rec := range choose(due, q.Limit) {
			next, _ := recordstore.TakenDue(rec, q, b.now())
			b.Seed(next)
			taken = append(taken, next)
		}
		return taken, b.now(), nil
	}}
}

// sweeping makes due what finds says, up to limit.
func sweeping(finds func(b *broken, rec recordstore.Record, full bool) bool) steps {
	return steps{crashed: func(b *broken, ctx context.Context, full bool, limit int) (int, error) {
		found := 0
		for _, rec := range b.all(ctx) {
			if found < limit && finds(b, rec, full) {
				rec.DueAt = b.now()
				rec.Version++
				b.Seed(rec)
				found++
			}
		}
		return found, nil
	}}
}

// counting counts the backlog of other records, or of records that it broke.
func counting(count func(b *broken, rec *recordstore.Record, provider string) bool) steps {
	return steps{backlog: func(b *broken, ctx context.Context, provider string) (recordstore.Backlog, error) {
		var recs []recordstore.Record
		for _, rec := range b.all(ctx) {
			if count(b, &rec, provider) {
				recs = append(recs, rec)
			}
		}
		return recordstore.BacklogOf(recs, b.now()), nil
	}}
}

// beforePurge breaks the records before they are purged.
func beforePurge(spoil func(b *broken, rec *recordstore.Record)) steps {
	return steps{purge: func(b *broken, ctx context.Context, limit int) (recordstore.Purged, error) {
		for _, rec := range b.all(ctx) {
			spoil(b, &rec)
			b.Seed(rec)
		}
		return b.Store.Purge(ctx, limit)
	}}
}

// afterPurge breaks what a purge left behind.
func afterPurge(spoil func(b *broken, before, rec *recordstore.Record)) steps {
	return steps{purge: func(b *broken, ctx context.Context, limit int) (recordstore.Purged, error) {
		before := map[recordstore.ID]recordstore.Record{}
		for _, rec := range b.all(ctx) {
			before[rec.ID] = rec
		}
		done, err := b.Store.Purge(ctx, limit)
		for _, rec := range b.all(ctx) {
			if was := before[rec.ID]; was.Version != rec.Version {
				spoil(b, &was, &rec)
				b.Seed(rec)
			}
		}
		return done, err
	}}
}

// afterPlan breaks the record that a plan wrote.
func afterPlan(spoil func(c recordstore.Claim, rec *recordstore.Record)) steps {
	return steps{plan: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
		_, _, err := b.Store.Get(ctx, c.ID)
		got, planErr := b.Store.Plan(ctx, c)
		if err != nil && planErr == nil && got.Decision == recordstore.Send {
			got.Record, _ = b.edit(ctx, c.ID, func(rec *recordstore.Record) { spoil(c, rec) })
		}
		return got, planErr
	}}
}
