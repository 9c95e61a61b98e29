package recordstoretest

import (
	"context"
	"runtime"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func brokenClaims() []brokenStore {
	return []brokenStore{
		{"two holders at once", "claim/in_flight grid/claim concurrent/one_sender concurrent/one_takeover",
			beforeClaim(func(b *broken, _ *recordstore.Claim, rec *recordstore.Record) { rec.LeaseEndsAt = b.now() })},
		{"a dead lease is never taken", "claim/takeover grid/claim concurrent/one_takeover",
			beforeClaim(func(b *broken, _ *recordstore.Claim, rec *recordstore.Record) {
				rec.LeaseEndsAt = b.now().Add(time.Hour)
			})},
		{"the end of the lease still counts as alive", "claim/takeover grid/claim",
			beforeClaim(func(b *broken, _ *recordstore.Claim, rec *recordstore.Record) {
				rec.LeaseEndsAt = rec.LeaseEndsAt.Add(time.Microsecond)
			})},
		{"conflict ignored", "claim/conflict grid/claim",
			beforeClaim(func(_ *broken, c *recordstore.Claim, rec *recordstore.Record) {
				c.Fingerprints = append(c.Fingerprints, rec.Fingerprint)
			})},
		{"only the newest fingerprint compared", "claim/older_fingerprint grid/claim",
			beforeClaim(func(_ *broken, c *recordstore.Claim, _ *recordstore.Record) { c.Fingerprints = c.Fingerprints[:1] })},
		{"an unknown fingerprint version called a conflict", "claim/newer grid/claim",
			beforeClaim(func(_ *broken, c *recordstore.Claim, rec *recordstore.Record) {
				c.Fingerprints = append(c.Fingerprints, fingerprint(rec.Fingerprint[0], "made up"))
			})},
		{"an unknown derivation sent", "claim/newer grid/claim",
			beforeClaim(func(_ *broken, c *recordstore.Claim, rec *recordstore.Record) {
				c.Derivations = append(c.Derivations, rec.Derivation)
			})},
		{"a newer seal ignored", "claim/newer grid/claim",
			beforeClaim(func(_ *broken, c *recordstore.Claim, rec *recordstore.Record) {
				c.SealVersion = max(c.SealVersion, rec.SealVersion)
			})},
		{"a settled record sent again", "claim/settled settle/no_undo grid/claim concurrent/settle_or_takeover",
			beforeClaim(func(b *broken, _ *recordstore.Claim, rec *recordstore.Record) {
				if rec.State.Final() {
					rec.State = recordstore.Uncertain
				}
			})},
		{"review and abandoned sent", "claim/ended grid/claim",
			beforeClaim(func(_ *broken, _ *recordstore.Claim, rec *recordstore.Record) {
				if rec.State == recordstore.ManualReview || rec.State == recordstore.Abandoned {
					rec.State = recordstore.NotExecuted
				}
			})},
		{"limit ignored", "claim/not_after grid/new grid/claim",
			steps{claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				c.NotAfter = time.Time{}
				b.edit(ctx, c.ID, func(rec *recordstore.Record) { rec.NotAfter = time.Time{} })
				return b.Store.Claim(ctx, c)
			}}},
		{"window counted from the takeover", "claim/takeover claim/window_closed grid/claim",
			afterClaim(func(b *broken, c recordstore.Claim, _, rec *recordstore.Record) {
				if c.Window > 0 {
					rec.WindowEndsAt = b.now().Add(c.Window)
				}
			})},
		{"window not set anew after a proof", "claim/not_executed grid/claim",
			afterClaim(func(_ *broken, _ recordstore.Claim, before, rec *recordstore.Record) {
				if before.Version > 0 {
					rec.WindowEndsAt = before.WindowEndsAt
				}
			})},
		{"closed window sent", "claim/window_closed grid/claim",
			steps{claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				got, err := b.Store.Claim(ctx, c)
				if got.Decision == recordstore.Lookup {
					got.Decision = recordstore.Send
				}
				return got, err
			}}},
		{"a look-up taken for a permission to send", "claim/look_only grid/claim",
			afterClaim(func(_ *broken, _ recordstore.Claim, _, rec *recordstore.Record) { rec.SentUntil = rec.LeaseEndsAt })},
		{"look only ignored", "claim/look_only grid/claim",
			beforeClaim(func(_ *broken, _ *recordstore.Claim, rec *recordstore.Record) { rec.LookOnly = false })},
		{"foreign key resent", "claim/foreign grid/claim",
			beforeClaim(func(_ *broken, _ *recordstore.Claim, rec *recordstore.Record) {
				if rec.Derivation == recordstore.Foreign {
					rec.Derivation = "k1"
				}
			})},
		{"doubt not set", "claim/takeover grid/claim",
			afterClaim(func(_ *broken, _ recordstore.Claim, before, rec *recordstore.Record) { rec.Doubt = before.Doubt })},
		{"doubt kept by a claim after a proof", "grid/claim",
			afterClaim(func(_ *broken, _ recordstore.Claim, before, rec *recordstore.Record) {
				rec.Doubt = rec.Doubt || before.Doubt
			})},
		{"fence not raised", "claim/takeover settle/stale_holder grid/claim",
			afterClaim(func(_ *broken, _ recordstore.Claim, before, rec *recordstore.Record) {
				rec.Fence = max(before.Fence, 1)
			})},
		{"repeated claim raises the fence", "claim/repeat grid/claim",
			afterClaim(func(_ *broken, c recordstore.Claim, before, rec *recordstore.Record) {
				if before.Holder == c.Holder {
					rec.Fence++
				}
			})},
		{"repeated claim is in flight", "claim/repeat grid/claim",
			steps{claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
				rec, now, err := b.Store.Get(ctx, c.ID)
				if err == nil && rec.State == recordstore.Sending && now.Before(rec.LeaseEndsAt) {
					return recordstore.Claimed{Decision: recordstore.InFlight, Record: rec, Now: now}, nil
				}
				return b.Store.Claim(ctx, c)
			}}},
		{"a plan still due while it is sent", "due/planned grid/claim",
			afterClaim(func(_ *broken, _ recordstore.Claim, before, rec *recordstore.Record) { rec.DueAt = before.DueAt })},
		{"frozen request replaced", "claim/request grid/claim",
			afterClaim(func(_ *broken, c recordstore.Claim, _, rec *recordstore.Record) { rec.Request = c.Request })},
		{"brought request dropped", "claim/request grid/claim",
			afterClaim(func(_ *broken, _ recordstore.Claim, before, rec *recordstore.Record) {
				if before.Version > 0 {
					rec.Request = before.Request
				}
			})},
		{"seal version without sealed fields", "claim/new grid/new",
			afterClaim(func(_ *broken, c recordstore.Claim, _, rec *recordstore.Record) { rec.SealVersion = c.SealVersion })},
		{"future days accepted", "claim/future grid/new", steps{claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
			id := c.ID
			c.ID.Day = min(c.ID.Day, today(b.now()))
			got, err := b.Store.Claim(ctx, c)
			got.Record.ID = id
			return got, err
		}}},
		{"claims not checked", "claim/invalid", steps{claim: func(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
			if c.Check() != nil {
				return recordstore.Claimed{Decision: recordstore.Send}, nil
			}
			return b.Store.Claim(ctx, c)
		}}},
		{"claim in two steps", "concurrent/one_sender concurrent/one_takeover", steps{claim: claimInTwoSteps}},
	}
}

// claimInTwoSteps reads, lets others run, and then writes what it decided.
func claimInTwoSteps(b *broken, ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	if err := c.Check(); err != nil {
		return recordstore.Claimed{}, err
	}
	var found *recordstore.Record
	if rec, _, err := b.Store.Get(ctx, c.ID); err == nil {
		found = &rec
	}
	next, d := recordstore.Take(c, found, 0, b.now())
	b.letOthersRun()
	if d == recordstore.Send || d == recordstore.Lookup {
		b.Seed(next)
	}
	return recordstore.Claimed{Decision: d, Record: next, Now: b.now()}, nil
}

// reportInTwoSteps reads, lets others run, and then writes what it decided.
func reportInTwoSteps(b *broken, ctx context.Context, id recordstore.ID, r recordstore.Result) (recordstore.Record, error) {
	rec, now, err := b.Store.Get(ctx, id)
	if err != nil {
		return rec, err
	}
	next := recordstore.Reported(rec, r, now)
	b.letOthersRun()
	b.Seed(next)
	return next, nil
}

func (b *broken) letOthersRun() {
	b.mu.Unlock()
	for range 100 {
		runtime.Gosched()
	}
	b.mu.Lock()
}
