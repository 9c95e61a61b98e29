package recordstoretest

import (
	"errors"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func claimCases() []testCase {
	return []testCase{
		{"claim/new", "the first claim writes the record, with its window and retention counted from now, before anything is sent", claimNew},
		{"claim/repeat", "after an unknown commit the same claim is asked again and must find itself, not a stranger in flight", claimRepeat},
		{"claim/in_flight", "R10: one key is never sent twice at the same time", claimInFlight},
		{"claim/takeover", "R20: a dead lease is taken over under doubt and with the provider's window as it was, which began at the first claim", claimTakeover},
		{"claim/window_closed", "R13: after the window the provider executes the same key anew, so only a look-up may speak", claimWindowClosed},
		{"claim/look_only", "C11: where a resend teaches nothing more, only a look-up may speak, until the record is settled", claimLookOnly},
		{"claim/foreign", "a key that another maker chose is never resent by us", claimForeign},
		{"claim/not_executed", "what was proved not to have happened is sent again without doubt, with a new window, and kept as long as a new record", claimNotExecuted},
		{"claim/settled", "a settled command is answered from the ledger, never sent again", claimSettled},
		{"claim/ended", "what a person must decide, or has forbidden, is not sent", claimEnded},
		{"claim/conflict", "another request under the same key is refused and leaves no trace in the record", claimConflict},
		{"claim/newer", "R23: during a rolling deploy an older build must neither send nor report a conflict for what it cannot read", claimNewer},
		{"claim/older_fingerprint", "R23: a rolling deploy turns no honest retry into a conflict", claimOlderFingerprint},
		{"claim/not_after", "what was not sent in time is not sent late", claimNotAfter},
		{"claim/future", "a day ahead of the clock would hide the record from retention", claimFuture},
		{"claim/request", "a caller who brings the request again gives a record without one its bytes back, and never replaces frozen ones", claimRequest},
		{"claim/invalid", "a claim without holder, lease or fingerprint would write a row that nobody can take again", claimInvalid},
	}
}

func claimNew(l *ledger) {
	c := newClaim(1)
	c.NotAfter = start.Add(time.Hour)
	got := l.claim(c, recordstore.Send)
	want := recordstore.Record{
		ID: c.ID, Scope: c.Scope, Provider: c.Provider, Account: c.Account, Operation: c.Operation,
		CommandID: c.CommandID, Class: c.Class, Derivation: c.Derivation, Fingerprint: c.Fingerprints[0],
		State: recordstore.Sending, Holder: c.Holder, Fence: 1, Version: 1,
		ClaimedAt: start, CreatedAt: start, LeaseEndsAt: start.Add(lease), WindowEndsAt: start.Add(window),
		NotAfter: c.NotAfter, SealVersion: 3, Request: c.Request,
		SentUntil: start.Add(lease), ReplayUntil: start.Add(c.Replay), EvidenceUntil: start.Add(c.Evidence),
	}
	l.same("the returned record", got, want)
	l.same("the stored record", l.stored(c.ID), want)

	bare := newClaim(2)
	bare.Request, bare.Window = nil, 0
	got = l.claim(bare, recordstore.Send)
	if !got.WindowEndsAt.IsZero() || got.SealVersion != 0 {
		l.Errorf("without window and request: WindowEndsAt %v, SealVersion %d, want neither", got.WindowEndsAt, got.SealVersion)
	}
}

func claimRepeat(l *ledger) {
	c := newClaim(1)
	first := l.claim(c, recordstore.Send)
	l.clock.advance(time.Second)
	l.same("the record of the repeated claim", l.claim(c, recordstore.Send), first)
	l.same("the stored record", l.stored(c.ID), first)

	l.clock.advance(lease)
	other := l.claim(by(c, "other"), recordstore.Send)
	l.same("the record of the repeated takeover", l.claim(by(c, "other"), recordstore.Send), other)
	l.claim(c, recordstore.InFlight) // The first holder has lost it.
}

func claimInFlight(l *ledger) {
	c := newClaim(1)
	first := l.claim(c, recordstore.Send)
	l.same("the record in flight", l.claim(by(c, "other"), recordstore.InFlight), first)
	l.clock.advance(lease - time.Microsecond)
	l.same("the record in flight", l.claim(by(c, "other"), recordstore.InFlight), first)
	l.same("the stored record", l.stored(c.ID), first)
}

func claimTakeover(l *ledger) {
	c := newClaim(1)
	want := l.claim(c, recordstore.Send)
	l.clock.advance(lease) // A lease that ends now is dead.
	now := start.Add(lease)
	want.TakenFrom, want.Doubt, want.Holder = recordstore.Sending, true, "other"
	want.Fence, want.Version = 2, 2
	want.ClaimedAt, want.LeaseEndsAt, want.SentUntil = now, now.Add(lease), now.Add(lease)
	l.same("the record taken over", l.claim(by(c, "other"), recordstore.Send), want)

	got := l.settle(want, recordstore.Result{State: recordstore.Uncertain, DueIn: time.Minute})
	if !got.DueAt.Equal(now.Add(time.Minute)) {
		l.Errorf("DueAt is %v, want a minute from now", got.DueAt)
	}
	got = l.claim(by(c, "third"), recordstore.Send)
	if !got.Doubt || !got.DueAt.Equal(now.Add(time.Minute)) || !got.WindowEndsAt.Equal(start.Add(window)) || got.TakenFrom != recordstore.Uncertain {
		l.Errorf("taken from uncertain: Doubt %v, DueAt %v, WindowEndsAt %v, TakenFrom %q", got.Doubt, got.DueAt, got.WindowEndsAt, got.TakenFrom)
	}
}

func claimWindowClosed(l *ledger) {
	for n, closed := range []func(*recordstore.Claim){
		func(c *recordstore.Claim) { c.Window = lease }, // Ends when the lease does.
		func(c *recordstore.Claim) { c.Window = 0 },     // Never known.
		func(c *recordstore.Claim) { c.NotAfter = l.clock.Now().Add(lease) },
	} {
		c := newClaim(n)
		closed(&c)
		l.claim(c, recordstore.Send)
		l.clock.advance(lease)
		got := l.claim(by(c, "other"), recordstore.Lookup)
		if got.State != recordstore.Sending || got.Holder != "other" || !got.Doubt {
			l.Errorf("%d: a look-up must hold the claim under doubt, state is %q, holder %q, doubt %v", n, got.State, got.Holder, got.Doubt)
		}
		l.claim(by(c, "third"), recordstore.InFlight)
		l.claim(by(c, "other"), recordstore.Lookup)
	}
}

func claimLookOnly(l *ledger) {
	c := newClaim(1)
	first := l.claim(c, recordstore.Send)
	l.settle(first, recordstore.Result{State: recordstore.Uncertain, LookOnly: true, Blurred: true})
	l.clock.advance(time.Second)
	got := l.claim(by(c, "other"), recordstore.Lookup)
	if !got.SentUntil.Equal(first.SentUntil) {
		l.Errorf("SentUntil is %v after a claim that may only look up, want %v", got.SentUntil, first.SentUntil)
	}
	if got = l.settle(got, recordstore.Result{State: recordstore.Uncertain}); !got.LookOnly || !got.Blurred {
		l.Errorf("uncertain again: look only %v, blurred %v: a later answer does not take back what an earlier one said", got.LookOnly, got.Blurred)
	}
	got = l.settle(l.claim(by(c, "third"), recordstore.Lookup), recordstore.Result{State: recordstore.NotExecuted})
	if got.LookOnly || !got.Blurred {
		l.Errorf("not executed: look only %v, blurred %v", got.LookOnly, got.Blurred)
	}
	l.claim(by(c, "fourth"), recordstore.Send)
}

func claimForeign(l *ledger) {
	c := newClaim(1)
	c.Derivation = recordstore.Foreign
	l.claim(c, recordstore.Send)
	l.clock.advance(lease)
	ours := by(newClaim(1), "ours")
	got := l.claim(ours, recordstore.Lookup)
	if got.Derivation != recordstore.Foreign {
		l.Errorf("Derivation is %q: the claim must not change how the key was made", got.Derivation)
	}
	l.settle(got, recordstore.Result{State: recordstore.NotExecuted})
	l.claim(by(ours, "again"), recordstore.Lookup)
}

func claimNotExecuted(l *ledger) {
	c := newClaim(1)
	l.claim(c, recordstore.Send)
	l.clock.advance(lease)
	taken := l.claim(by(c, "other"), recordstore.Send)
	if proved := l.settle(taken, recordstore.Result{State: recordstore.NotExecuted}); proved.Doubt {
		l.Errorf("a proof that nothing was executed left doubt")
	}
	l.clock.advance(2 * window)
	got := l.claim(by(c, "third"), recordstore.Send)
	if got.Doubt || got.TakenFrom != recordstore.NotExecuted || got.Fence != 3 || !got.WindowEndsAt.Equal(l.clock.Now().Add(window)) {
		l.Errorf("Doubt %v, TakenFrom %q, Fence %d, WindowEndsAt %v", got.Doubt, got.TakenFrom, got.Fence, got.WindowEndsAt)
	}
	kept := func(what string, got recordstore.Record, since time.Time) {
		l.Helper()
		if !got.ReplayUntil.Equal(since.Add(c.Replay)) || !got.EvidenceUntil.Equal(since.Add(c.Evidence)) {
			l.Errorf("%s: answers are kept until %v, evidence until %v: want what the claim asks for from %v on", what, got.ReplayUntil, got.EvidenceUntil, since)
		}
	}
	sent := l.clock.Now()
	kept("sent anew", got, sent)
	l.settle(got, recordstore.Result{State: recordstore.NotExecuted})
	shorter := by(c, "fourth")
	shorter.Replay, shorter.Evidence = c.Replay/2, c.Evidence/2
	kept("sent anew by a client that keeps less", l.claim(shorter, recordstore.Send), sent)
}

func claimSettled(l *ledger) {
	for n, to := range []recordstore.State{recordstore.Succeeded, recordstore.Refused} {
		c := newClaim(n)
		want := l.settle(l.claim(c, recordstore.Send), result(to))
		l.clock.advance(lease)
		l.same("the replayed record", l.claim(by(c, "other"), recordstore.Replay), want)
		l.same("the replayed record, asked by its own holder", l.claim(c, recordstore.Replay), want)
		l.same("the stored record", l.stored(c.ID), want)
	}
}

func claimEnded(l *ledger) {
	for n, d := range map[int]recordstore.Decision{1: recordstore.Review, 2: recordstore.Ended} {
		c := newClaim(n)
		rec := found(c)
		rec.State = recordstore.ManualReview
		if d == recordstore.Ended {
			rec.State = recordstore.Abandoned
		}
		l.seed(rec)
		l.same("the record", l.claim(by(c, "other"), d), rec)
		l.same("the stored record", l.stored(c.ID), rec)
	}
}

func claimConflict(l *ledger) {
	c := newClaim(1)
	c.Fingerprints = c.Fingerprints[:1]
	first := l.claim(c, recordstore.Send)
	changed := by(c, "other")
	changed.Fingerprints = [][]byte{fingerprint(2, "amount=50"), fingerprint(1, "amount=50")}
	l.same("the record in conflict", l.claim(changed, recordstore.Conflict), first) // Before the lease is asked.
	l.clock.advance(lease)
	l.same("the record in conflict", l.claim(changed, recordstore.Conflict), first)
	settled := l.settle(first, result(recordstore.Succeeded))
	l.same("the settled record in conflict", l.claim(changed, recordstore.Conflict), settled)
	l.same("the stored record", l.stored(c.ID), settled)
}

func claimNewer(l *ledger) {
	for n, older := range []func(*recordstore.Claim){
		func(c *recordstore.Claim) { c.Fingerprints = c.Fingerprints[1:] },
		func(c *recordstore.Claim) { c.Derivation, c.Derivations = "k0", []string{"k0", recordstore.Foreign} },
		func(c *recordstore.Claim) { c.SealVersion = 2 },
	} {
		c := newClaim(n)
		first := l.claim(c, recordstore.Send)
		l.clock.advance(lease)
		old := by(c, "older build")
		older(&old)
		l.same("the newer record", l.claim(old, recordstore.Newer), first)
		settled := l.settle(first, result(recordstore.Succeeded))
		l.same("the newer settled record", l.claim(old, recordstore.Newer), settled)
	}
}

func claimOlderFingerprint(l *ledger) {
	c := newClaim(1)
	c.Fingerprints = c.Fingerprints[1:] // Written by the older build.
	first := l.claim(c, recordstore.Send)
	l.clock.advance(lease)
	taken := l.claim(by(newClaim(1), "newer build"), recordstore.Send)
	if difference(recordstore.Record{Fingerprint: taken.Fingerprint}, recordstore.Record{Fingerprint: first.Fingerprint}) != "" {
		l.Errorf("the takeover replaced the fingerprint: the older build could no longer read it")
	}
}

func claimNotAfter(l *ledger) {
	late := newClaim(1)
	late.NotAfter = start
	if got := l.claim(late, recordstore.Expired); difference(got, recordstore.Record{}) != "" {
		l.Errorf("an expired new command came with a record: %s", difference(got, recordstore.Record{}))
	}
	l.absent(late.ID)

	c := newClaim(2)
	c.NotAfter = start.Add(time.Hour)
	rec := l.settle(l.claim(c, recordstore.Send), recordstore.Result{State: recordstore.NotExecuted})
	later := by(c, "other")
	later.NotAfter = start.Add(2 * time.Hour)
	sooner := later
	sooner.NotAfter = start
	l.same("the record of a claim with a passed limit", l.claim(sooner, recordstore.Expired), rec)
	l.clock.advance(time.Hour)
	l.same("the record whose own limit has passed", l.claim(later, recordstore.Expired), rec)
	l.same("the stored record", l.stored(c.ID), rec)
}

func claimFuture(l *ledger) {
	for ahead, want := range map[int32]recordstore.Decision{1: recordstore.Send, 2: recordstore.Future} {
		c := newClaim(int(ahead))
		c.ID.Day += ahead
		l.claim(c, want)
		if want == recordstore.Future {
			l.absent(c.ID)
		}
	}
}

func claimRequest(l *ledger) {
	c := newClaim(1)
	bytesBrought := c.Request
	c.Request = nil
	l.claim(c, recordstore.Send)
	l.clock.advance(lease)
	c.Request = bytesBrought
	got := l.claim(by(c, "other"), recordstore.Send)
	if string(got.Request) != string(bytesBrought) || got.SealVersion != c.SealVersion {
		l.Errorf("the record has %d bytes of request and seal version %d, want what the claim brought", len(got.Request), got.SealVersion)
	}
	l.clock.advance(lease)
	c.Request = []byte("other bytes")
	got = l.claim(by(c, "third"), recordstore.Send)
	if string(got.Request) != string(bytesBrought) {
		l.Errorf("the takeover replaced the frozen request")
	}
}

func claimInvalid(l *ledger) {
	for n, spoil := range []func(*recordstore.Claim){
		func(c *recordstore.Claim) { c.Holder = "" },
		func(c *recordstore.Claim) { c.Lease = 0 },
		func(c *recordstore.Claim) { c.Fingerprints = nil },
		func(c *recordstore.Claim) { c.Fingerprints = [][]byte{{}} },
		func(c *recordstore.Claim) { c.Derivations = nil },
	} {
		c := newClaim(n)
		spoil(&c)
		if _, err := l.Claim(l.Context(), c); !errors.Is(err, recordstore.ErrInvalid) {
			l.Errorf("claim %d: error is %v, want ErrInvalid", n, err)
		}
		l.absent(c.ID)
	}
}
