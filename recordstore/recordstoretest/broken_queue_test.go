package recordstoretest

import (
	"context"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func brokenQueues() []brokenStore {
	return []brokenStore{
		{"taken without doubt", "due/takes due/grid",
			afterTaking(func(before, rec *recordstore.Record) { rec.Doubt = before.Doubt })},
		{"check not counted", "due/takes due/comes_back due/planned due/grid",
			afterTaking(func(before, rec *recordstore.Record) { rec.Checks = before.Checks })},
		{"taken and not due again", "due/takes due/comes_back due/planned due/grid",
			afterTaking(func(_, rec *recordstore.Record) { rec.DueAt = time.Time{} })},
		{"fence not raised by taking", "due/takes due/comes_back due/grid",
			afterTaking(func(before, rec *recordstore.Record) { rec.Fence = before.Fence })},
		{"taking counted as sending", "due/no_permission due/takes due/grid",
			afterTaking(func(_, rec *recordstore.Record) { rec.SentUntil = rec.LeaseEndsAt })},
		{"a plan claimed by taking", "due/planned due/grid",
			beforeTaking(func(b *broken, _ *recordstore.DueQuery, rec *recordstore.Record) {
				if rec.State == recordstore.Planned && !b.now().Before(rec.DueAt) {
					rec.State = recordstore.Uncertain
				}
			})},
		{"a live lease taken", "due/not_held due/grid",
			beforeTaking(func(b *broken, _ *recordstore.DueQuery, rec *recordstore.Record) {
				if rec.State == recordstore.Sending && rec.LeaseEndsAt.After(b.now()) {
					rec.LeaseEndsAt = b.now()
				}
			})},
		{"taken before it is due", "due/takes due/grid",
			beforeTaking(func(b *broken, _ *recordstore.DueQuery, rec *recordstore.Record) {
				if rec.DueAt.After(b.now()) {
					rec.DueAt = b.now()
				}
			})},
		{"versions ignored", "due/grid",
			beforeTaking(func(_ *broken, q *recordstore.DueQuery, rec *recordstore.Record) {
				q.Derivations = append(q.Derivations, rec.Derivation)
				q.Fingerprints = append(q.Fingerprints, rec.Fingerprint[0])
				q.SealVersion = max(q.SealVersion, rec.SealVersion)
			})},
		{"accounts ignored", "due/grid",
			beforeTaking(func(_ *broken, q *recordstore.DueQuery, rec *recordstore.Record) {
				q.Accounts = append(q.Accounts, rec.Account)
			})},
		{"oldest first, whoever owns it", "due/in_turn", choosing(func(due []recordstore.Record, limit int) []recordstore.Record {
			slices.SortFunc(due, func(a, b recordstore.Record) int { return a.DueAt.Compare(b.DueAt) })
			return due[:min(limit, len(due))]
		})},
		{"newest first", "due/oldest", choosing(func(due []recordstore.Record, limit int) []recordstore.Record {
			slices.SortFunc(due, func(a, b recordstore.Record) int { return b.DueAt.Compare(a.DueAt) })
			return due[:min(limit, len(due))]
		})},
		{"one of each owner", "due/all due/in_turn", choosing(func(due []recordstore.Record, limit int) []recordstore.Record {
			seen := map[[32]byte]bool{}
			due = slices.DeleteFunc(due, func(rec recordstore.Record) bool {
				again := seen[rec.Scope]
				seen[rec.Scope] = true
				return again
			})
			return due[:min(limit, len(due))]
		})},
		{"taken in two steps", "due/one_taker", choosing(recordstore.Turns)},
		{"queries not checked", "due/invalid", steps{takeDue: func(b *broken, ctx context.Context, q recordstore.DueQuery) ([]recordstore.Record, time.Time, error) {
			if q.Check() != nil {
				return nil, b.now(), nil
			}
			return b.Store.TakeDue(ctx, q)
		}}},
		{"an event settles", "wake/due wake/grid", steps{wake: func(b *broken, ctx context.Context, id recordstore.ID, ref string) (recordstore.Record, error) {
			rec, err := b.Store.Wake(ctx, id, ref)
			if err == nil {
				rec, _ = b.edit(ctx, id, func(rec *recordstore.Record) { rec.State = recordstore.Succeeded })
			}
			return rec, err
		}}},
		{"an event puts its record last", "wake/keeps_turn wake/grid", steps{wake: func(b *broken, ctx context.Context, id recordstore.ID, ref string) (recordstore.Record, error) {
			b.edit(ctx, id, func(rec *recordstore.Record) {
				if !rec.DueAt.IsZero() {
					rec.DueAt = b.now().Add(time.Hour)
				}
			})
			return b.Store.Wake(ctx, id, ref)
		}}},
		{"an event about nothing accepted", "wake/missing", steps{wake: func(b *broken, ctx context.Context, id recordstore.ID, ref string) (recordstore.Record, error) {
			if _, _, err := b.Store.Get(ctx, id); err != nil {
				return recordstore.Record{}, nil
			}
			return b.Store.Wake(ctx, id, ref)
		}}},
	}
}

// died reports whether the sender of rec died, told of or not.
func died(b *broken, rec recordstore.Record) bool {
	return rec.State == recordstore.Sending && !b.now().Before(rec.LeaseEndsAt)
}

func brokenSweeps() []brokenStore {
	return []brokenStore{
		{"crashed senders never found", "crashed/found crashed/limit crashed/full crashed/watermark crashed/grid backlog/swept",
			sweeping(func(*broken, recordstore.Record, bool) bool { return false })},
		{"live calls found", "crashed/found crashed/watermark crashed/grid",
			sweeping(func(_ *broken, rec recordstore.Record, _ bool) bool {
				return rec.State == recordstore.Sending && rec.DueAt.IsZero()
			})},
		{"what is due found again", "crashed/renewed crashed/grid",
			sweeping(func(b *broken, rec recordstore.Record, _ bool) bool { return died(b, rec) })},
		{"watermark moved past live calls", "crashed/watermark", sweepBehind(func(b *broken, rec recordstore.Record) bool { return true })},
		{"full sweep behind the watermark", "crashed/full", sweepBehind(func(b *broken, rec recordstore.Record) bool {
			return rec.State != recordstore.Sending || !rec.LeaseEndsAt.After(b.now())
		})},
		{"a limit of a sweep ignored", "crashed/limit", steps{crashed: func(b *broken, ctx context.Context, full bool, _ int) (int, error) {
			return b.Store.FindCrashed(ctx, full, recordstore.MaxTake)
		}}},
		{"providers counted together", "backlog/grid backlog/percentile",
			counting(func(*broken, *recordstore.Record, string) bool { return true })},
		{"dead senders not counted", "backlog/swept backlog/grid",
			counting(func(_ *broken, rec *recordstore.Record, provider string) bool {
				return rec.Provider == provider && rec.State != recordstore.Sending
			})},
		{"the oldest taken for the percentile", "backlog/percentile backlog/grid", steps{backlog: func(b *broken, ctx context.Context, provider string) (recordstore.Backlog, error) {
			got, err := b.Store.Backlog(ctx, provider)
			for _, rec := range b.all(ctx) {
				if rec.Provider == provider && (rec.State == recordstore.Uncertain || died(b, rec)) {
					got.UncertainP95 = max(got.UncertainP95, b.now().Sub(rec.ClaimedAt))
				}
			}
			return got, err
		}}},
	}
}

// sweepBehind looks only at what was claimed after a watermark, full or not, and
// moves it behind the newest claim that passes.
func sweepBehind(passes func(*broken, recordstore.Record) bool) steps {
	return steps{crashed: func(b *broken, ctx context.Context, _ bool, _ int) (int, error) {
		found := 0
		mark := b.mark
		for _, rec := range b.all(ctx) {
			if rec.ClaimedAt.Before(b.mark) {
				continue
			}
			if passes(b, rec) && rec.ClaimedAt.After(mark) {
				mark = rec.ClaimedAt
			}
			if recordstore.Crashed(rec, b.now()) {
				rec.DueAt = b.now()
				rec.Version++
				b.Seed(rec)
				found++
			}
		}
		b.mark = mark
		return found, nil
	}}
}
