package recordstoretest

import (
	"context"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func brokenSettles() []brokenStore {
	return []brokenStore{
		{"settled without fence", "settle/stale_holder grid/settle",
			beforeSettle(func(s *recordstore.Settlement, rec recordstore.Record) { s.Fence = rec.Fence })},
		{"settled without holder", "settle/stale_holder grid/settle",
			beforeSettle(func(s *recordstore.Settlement, rec recordstore.Record) { s.Holder = rec.Holder })},
		{"settled over a note", "settle/noted grid/settle",
			beforeSettle(func(s *recordstore.Settlement, rec recordstore.Record) { s.Noted = rec.Noted })},
		{"settled twice", "settle/no_undo settle/repeat grid/settle", steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
			b.edit(ctx, s.ID, func(rec *recordstore.Record) {
				if rec.Holder == s.Holder && rec.Fence == s.Fence {
					rec.State = recordstore.Sending
				}
			})
			return b.Store.Settle(ctx, s)
		}}},
		{"settle not repeatable", "settle/repeat grid/settle", steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
			if rec, _, err := b.Store.Get(ctx, s.ID); err == nil && rec.State != recordstore.Sending {
				return rec, recordstore.ErrNotHeld
			}
			return b.Store.Settle(ctx, s)
		}}},
		{"settle needs a live lease", "settle/late grid/settle", steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
			if rec, now, err := b.Store.Get(ctx, s.ID); err == nil && !now.Before(rec.LeaseEndsAt) {
				return rec, recordstore.ErrNotHeld
			}
			return b.Store.Settle(ctx, s)
		}}},
		{"lost without saying what is held", "settle/stale_holder settle/noted grid/settle", steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
			rec, err := b.Store.Settle(ctx, s)
			if err != nil {
				rec = recordstore.Record{}
			}
			return rec, err
		}}},
		{"a missing record called lost", "settle/missing", steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
			if _, _, err := b.Store.Get(ctx, s.ID); err != nil {
				return recordstore.Record{}, recordstore.ErrNotHeld
			}
			return b.Store.Settle(ctx, s)
		}}},
		{"settlements not checked", "settle/invalid", steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
			if s.Check() != nil {
				rec, _ := b.edit(ctx, s.ID, func(rec *recordstore.Record) { rec.State = s.State })
				return rec, nil
			}
			return b.Store.Settle(ctx, s)
		}}},
		{"settled only in the answer", "settle/writes grid/settle", steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
			before, _, _ := b.Store.Get(ctx, s.ID) // The zero record where there is none.
			rec, err := b.Store.Settle(ctx, s)
			if err == nil {
				b.Seed(before)
			}
			return rec, err
		}}},
		{"final record keeps its request", "settle/writes grid/settle",
			afterSettle(func(before, rec *recordstore.Record) { rec.Request = before.Request })},
		{"open record loses its request", "settle/writes grid/settle",
			afterSettle(func(_, rec *recordstore.Record) { rec.Request = nil })},
		{"doubt kept after a proof", "claim/not_executed grid/settle",
			afterSettle(func(before, rec *recordstore.Record) { rec.Doubt = before.Doubt })},
		{"look only taken back", "claim/look_only grid/settle",
			beforeSettleEdit(func(rec *recordstore.Record) { rec.LookOnly = false })},
		{"blurred taken back", "claim/look_only grid/settle",
			beforeSettleEdit(func(rec *recordstore.Record) { rec.Blurred = false })},
		{"deliveries not added", "settle/adds grid/settle",
			afterSettle(func(before, rec *recordstore.Record) { rec.Deliveries -= before.Deliveries })},
		{"reference erased", "settle/adds grid/settle", beforeErasing()},
		{"seal version lowered", "settle/adds grid/settle",
			steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
				rec, err := b.Store.Settle(ctx, s)
				if err == nil {
					rec, _ = b.edit(ctx, s.ID, func(rec *recordstore.Record) { rec.SealVersion = s.SealVersion })
				}
				return rec, err
			}}},
		{"dead lease renewed", "renew/lost grid/renew", steps{renew: func(b *broken, ctx context.Context, id recordstore.ID, holder string, fence int64, lease time.Duration) error {
			b.edit(ctx, id, func(rec *recordstore.Record) {
				if rec.State == recordstore.Sending && !b.now().Before(rec.LeaseEndsAt) {
					rec.LeaseEndsAt = b.now().Add(time.Second)
				}
			})
			return b.Store.Renew(ctx, id, holder, fence, lease)
		}}},
		{"renewed and not sent longer", "renew/prolongs grid/renew", steps{renew: func(b *broken, ctx context.Context, id recordstore.ID, holder string, fence int64, lease time.Duration) error {
			before, _, _ := b.Store.Get(ctx, id) // The zero record where there is none.
			err := b.Store.Renew(ctx, id, holder, fence, lease)
			if err == nil {
				b.edit(ctx, id, func(rec *recordstore.Record) { rec.SentUntil = before.SentUntil })
			}
			return err
		}}},
		{"renewed only in word", "renew/prolongs grid/renew", steps{renew: func(b *broken, ctx context.Context, id recordstore.ID, holder string, fence int64, lease time.Duration) error {
			before, _, _ := b.Store.Get(ctx, id) // The zero record where there is none.
			err := b.Store.Renew(ctx, id, holder, fence, lease)
			if err == nil {
				b.Seed(before)
			}
			return err
		}}},
	}
}

// beforeSettleEdit breaks the record before Settled sees it.
func beforeSettleEdit(spoil func(rec *recordstore.Record)) steps {
	return steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
		b.edit(ctx, s.ID, func(rec *recordstore.Record) {
			if rec.State == recordstore.Sending {
				spoil(rec)
			}
		})
		return b.Store.Settle(ctx, s)
	}}
}

// beforeErasing lets an empty reference erase what is known.
func beforeErasing() steps {
	return steps{settle: func(b *broken, ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
		rec, err := b.Store.Settle(ctx, s)
		if err == nil {
			rec, _ = b.edit(ctx, s.ID, func(rec *recordstore.Record) {
				rec.ExternalRef, rec.ObjectStatus, rec.RequestID = s.ExternalRef, s.ObjectStatus, s.RequestID
			})
		}
		return rec, err
	}}
}

func brokenRest() []brokenStore {
	return []brokenStore{
		{"report overwrites a live lease", "report/live_lease report/takeover settle/noted grid/report",
			beforeReport(func(b *broken, rec *recordstore.Record, _ recordstore.Result) { rec.LeaseEndsAt = b.now() })},
		{"report only ever noted", "report/dead_lease grid/report",
			beforeReport(func(b *broken, rec *recordstore.Record, _ recordstore.Result) {
				rec.LeaseEndsAt = b.now().Add(time.Hour)
			})},
		{"a refusal overwrites a noted success", "report/live_lease report/applied_outranks grid/report",
			beforeReport(func(_ *broken, rec *recordstore.Record, _ recordstore.Result) { rec.Noted = "" })},
		{"applied settles a refusal", "report/refused_applied grid/report",
			beforeReport(func(_ *broken, rec *recordstore.Record, _ recordstore.Result) {
				if rec.State == recordstore.Refused {
					rec.State = recordstore.Uncertain
				}
			})},
		{"applied ignored in review", "report/applied_outranks grid/report",
			steps{report: func(b *broken, ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
				if rec, _, err := b.Store.Get(ctx, id); err == nil && rec.State == recordstore.ManualReview {
					return rec, nil
				}
				return b.Store.Report(ctx, id, r)
			}}},
		{"a refusal undoes a success", "report/no_undo grid/report",
			beforeReport(func(_ *broken, rec *recordstore.Record, _ recordstore.Result) {
				if rec.State == recordstore.Succeeded {
					rec.State = recordstore.Uncertain
				}
			})},
		{"guesses taken for facts", "report/no_fact grid/report",
			steps{report: func(b *broken, ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
				if !r.State.Final() {
					rec, _ := b.edit(ctx, id, func(rec *recordstore.Record) { rec.State = r.State })
					return rec, nil
				}
				return b.Store.Report(ctx, id, r)
			}}},
		{"report in two steps", "concurrent/settle_or_report", steps{report: reportInTwoSteps}},
		{"forgotten ignored", "frontier/forgotten frontier/raised_only frontier/class open/second_handle grid/new",
			steps{raise: func(*broken, context.Context, string, int32) error { return nil }}},
		{"day zero forgotten", "frontier/day_zero grid/new",
			steps{claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				if _, _, err := b.Store.Get(ctx, c.ID); err != nil && c.ID.Day == 0 {
					return recordstore.Claimed{Decision: recordstore.Forgotten, Now: b.now()}, nil
				}
				return b.Store.Claim(ctx, c)
			}}},
		{"one frontier for all classes", "frontier/class",
			steps{raise: func(b *broken, ctx context.Context, class string, day int32) error {
				for _, c := range []string{"money", "object", "notification"} {
					if err := b.Store.RaiseFrontier(ctx, c, day); err != nil {
						return err
					}
				}
				return nil
			}}},
		{"frontier lowered", "frontier/raised_only",
			steps{claim: claimAtOwnFrontier, raise: setFrontier}},
		{"old records hidden by the frontier", "frontier/found",
			steps{raise: setFrontier, claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				if c.ID.Day != 0 && c.ID.Day <= b.frontier[c.Class] {
					return recordstore.Claimed{Decision: recordstore.Forgotten, Now: b.now()}, nil
				}
				return b.Store.Claim(ctx, c)
			}}},
		{"pins ignored", "attach/pins attach/none concurrent/pins",
			steps{attach: func(*broken, context.Context, recordstore.Pins) error { return nil }}},
		{"secret not compared", "attach/pins attach/none concurrent/pins",
			steps{attach: func(b *broken, ctx context.Context, p recordstore.Pins) error {
				p.Secret = "none"
				return b.Store.Attach(ctx, p)
			}}},
		{"ended context ignored", "context/ended",
			steps{claim: func(b *broken, _ context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				return b.Store.Claim(context.Background(), c)
			}}},
		{"another clock", "get/clock",
			steps{get: func(b *broken, ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error) {
				rec, now, err := b.Store.Get(ctx, id)
				return rec, now.Add(time.Second), err
			}}},
		{"times rounded to milliseconds", "values/times grid/new",
			afterClaim(func(_ *broken, _ recordstore.Claim, _, rec *recordstore.Record) {
				rec.LeaseEndsAt = rec.LeaseEndsAt.Truncate(time.Millisecond)
			})},
		{"times in local time", "claim/new values/times",
			steps{get: func(b *broken, ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error) {
				rec, now, err := b.Store.Get(ctx, id)
				rec.ClaimedAt = rec.ClaimedAt.In(time.FixedZone("elsewhere", 60*60))
				return rec, now, err
			}}},
		{"bodies cut off", "values/big",
			afterSettle(func(_, rec *recordstore.Record) {
				rec.ResponseBody = rec.ResponseBody[:min(len(rec.ResponseBody), 1<<20)]
			})},
		{"the caller's bytes kept", "values/own_bytes",
			steps{
				claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
					b.kept = c.Request
					return b.Store.Claim(ctx, c)
				},
				get: func(b *broken, ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error) {
					rec, now, err := b.Store.Get(ctx, id)
					rec.Request = b.kept
					return rec, now, err
				},
			}},
		{"texts normalised", "values/odd",
			afterClaim(func(_ *broken, _ recordstore.Claim, _, rec *recordstore.Record) {
				if len(rec.CommandID) > 200 {
					rec.CommandID = rec.CommandID[:200]
				}
			})},
		{"not found called an error", "get/clock",
			steps{get: func(b *broken, ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error) {
				rec, now, err := b.Store.Get(ctx, id)
				if err != nil {
					err = errBroken
				}
				return rec, now, err
			}}},
	}
}

// claimAtOwnFrontier compares with the frontier that was set last, not with the
// highest.
func claimAtOwnFrontier(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	_, _, err := b.Store.Get(ctx, c.ID)
	if err != nil && c.ID.Day != 0 && c.ID.Day <= b.frontier[c.Class] {
		return recordstore.Claimed{Decision: recordstore.Forgotten, Now: b.now()}, nil
	}
	return b.Store.Claim(ctx, c)
}

func setFrontier(b *broken, _ context.Context, class string, day int32) error {
	b.frontier[class] = day
	return nil
}
