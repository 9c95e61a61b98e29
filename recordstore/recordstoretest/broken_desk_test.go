package recordstoretest

import (
	"context"
	"slices"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func brokenDesks() []brokenStore {
	return []brokenStore{
		{"verdict only in word", "desk/verdict desk/resolve_grid", steps{resolve: func(b *broken, ctx context.Context, v recordstore.Verdict) (recordstore.Record, error) {
			before, _, _ := b.Store.Get(ctx, v.ID) // The zero record where there is none.
			rec, err := b.Store.Resolve(ctx, v)
			if err == nil {
				b.Seed(before)
			}
			return rec, err
		}}},
		{"the version that was seen ignored", "desk/version_seen desk/resolve_grid", steps{resolve: func(b *broken, ctx context.Context, v recordstore.Verdict) (recordstore.Record, error) {
			if rec, _, err := b.Store.Get(ctx, v.ID); err == nil {
				v.Version = rec.Version
			}
			return b.Store.Resolve(ctx, v)
		}}},
		{"a live call resolved", "desk/resolve_grid", beforeResolve(func(b *broken, rec *recordstore.Record) {
			if rec.LeaseEndsAt.After(b.now()) {
				rec.LeaseEndsAt = b.now()
			}
		})},
		{"a noted effect overruled", "desk/resolve_grid", beforeResolve(func(_ *broken, rec *recordstore.Record) { rec.Noted = "" })},
		{"the provider's word overruled", "desk/resolve_grid", beforeResolve(func(_ *broken, rec *recordstore.Record) {
			if rec.State.Final() {
				rec.State = recordstore.ManualReview
			}
		})},
		{"abandoned only in word", "desk/abandon desk/abandon_grid trail/steps", steps{abandon: func(b *broken, ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
			before, _, _ := b.Store.Get(ctx, id) // The zero record where there is none.
			rec, err := b.Store.Abandon(ctx, id, e)
			if err == nil {
				b.Seed(before)
			}
			return rec, err
		}}},
		{"abandoned what may have been applied", "desk/abandon desk/abandon_grid", steps{abandon: func(b *broken, ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
			rec, err := b.Store.Abandon(ctx, id, e)
			if err == nil {
				rec, _ = b.edit(ctx, id, func(rec *recordstore.Record) { rec.State = recordstore.Abandoned })
			}
			return rec, err
		}}},
		{"headers not erased", "desk/erase desk/erase_grid", afterErase(func(before, rec *recordstore.Record) { rec.ResponseHeader = before.ResponseHeader })},
		{"erased without a date", "desk/erase desk/erase_grid", afterErase(func(before, rec *recordstore.Record) { rec.BodyPurgedAt = before.BodyPurgedAt })},
		{"evidence erased too", "desk/erase desk/erase_grid", afterErase(func(_, rec *recordstore.Record) { rec.ExternalRef = "" })},
		{"the trail of what is not there is empty", "desk/missing purge/trail", steps{entries: func(b *broken, ctx context.Context, id recordstore.ID) ([]recordstore.Entry, error) {
			got, _ := b.Store.Trail(ctx, id)
			return got, nil
		}}},
		{"verdicts not checked", "desk/invalid", steps{resolve: func(b *broken, ctx context.Context, v recordstore.Verdict) (recordstore.Record, error) {
			if v.Check() != nil {
				return recordstore.Record{}, nil
			}
			return b.Store.Resolve(ctx, v)
		}}},
		{"entries not checked", "desk/invalid", steps{erase: func(b *broken, ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
			if e.Check() != nil {
				return recordstore.Record{}, nil
			}
			return b.Store.Erase(ctx, id, e)
		}}},
		{"what it was before not kept", "trail/steps trail/contradiction trail/once desk/erase", readTrail(func(_ *broken, got []recordstore.Entry) []recordstore.Entry {
			for i := range got {
				got[i].From = ""
			}
			return got
		})},
		{"newest entry first", "trail/steps trail/contradiction trail/last", readTrail(func(_ *broken, got []recordstore.Entry) []recordstore.Entry {
			slices.Reverse(got)
			return got
		})},
		{"entries of settlements and facts dropped", "trail/steps trail/once trail/contradiction", readTrail(func(_ *broken, got []recordstore.Entry) []recordstore.Entry {
			return slices.DeleteFunc(got, func(e recordstore.Entry) bool { return e.From == recordstore.Sending || e.Kind == "report" })
		})},
		{"one trail for all records", "trail/second_handle desk/version_seen", steps{entries: func(b *broken, ctx context.Context, id recordstore.ID) ([]recordstore.Entry, error) {
			all := []recordstore.Entry{{Kind: "of another"}}
			got, err := b.Store.Trail(ctx, id)
			return append(all, got...), err
		}}},
		{"noted although nothing changed", "trail/once", steps{
			abandon: func(b *broken, ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
				before, _, _ := b.Store.Get(ctx, id) // The zero record where there is none.
				rec, err := b.Store.Abandon(ctx, id, e)
				if err == nil && rec.Version == before.Version {
					b.trail[id] = append(b.trail[id], e.Stamped(before, rec, b.now()))
				}
				return rec, err
			},
			entries: func(b *broken, ctx context.Context, id recordstore.ID) ([]recordstore.Entry, error) {
				got, err := b.Store.Trail(ctx, id)
				return append(got, b.trail[id]...), err
			},
		}},
	}
}

// beforeResolve breaks the record before Resolved sees it.
func beforeResolve(spoil func(b *broken, rec *recordstore.Record)) steps {
	return steps{resolve: func(b *broken, ctx context.Context, v recordstore.Verdict) (recordstore.Record, error) {
		b.edit(ctx, v.ID, func(rec *recordstore.Record) { spoil(b, rec) })
		return b.Store.Resolve(ctx, v)
	}}
}

// afterErase breaks the record that was erased.
func afterErase(spoil func(before, rec *recordstore.Record)) steps {
	return steps{erase: func(b *broken, ctx context.Context, id recordstore.ID, e recordstore.Entry) (recordstore.Record, error) {
		before, _, _ := b.Store.Get(ctx, id) // The zero record where there is none.
		rec, err := b.Store.Erase(ctx, id, e)
		if err == nil {
			rec, _ = b.edit(ctx, id, func(rec *recordstore.Record) { spoil(&before, rec) })
		}
		return rec, err
	}}
}

// readTrail breaks what a trail shows.
func readTrail(spoil func(b *broken, got []recordstore.Entry) []recordstore.Entry) steps {
	return steps{entries: func(b *broken, ctx context.Context, id recordstore.ID) ([]recordstore.Entry, error) {
		got, err := b.Store.Trail(ctx, id)
		return spoil(b, got), err
	}}
}
