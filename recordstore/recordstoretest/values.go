package recordstoretest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

func valueCases() []testCase {
	return []testCase{
		{"get/clock", "callers measure the time that a lease has left on the ledger's clock, not on their own", getClock},
		{"open/second_handle", "what one process wrote is what another finds", secondHandle},
		{"values/big", "bodies of some megabytes come back whole", valuesBig},
		{"values/odd", "names and texts from providers and tenants come back as they were given", valuesOdd},
		{"values/times", "a time that is rounded differently on the way in and out moves the end of a lease", valuesTimes},
		{"values/own_bytes", "callers reuse their buffers: a ledger that keeps them would change behind its own back", valuesOwnBytes},
		{"attach/pins", "another secret or derivation makes other keys for the same commands: each would be executed again", attachPins},
		{"attach/none", "a ledger without a secret stays one", attachNone},
		{"context/ended", "a call that was given up returns at once and can be asked again", contextEnded},
	}
}

func getClock(l *ledger) {
	c := newClaim(1)
	l.absent(c.ID)
	want := l.claim(c, recordstore.Send)
	l.clock.advance(time.Second)
	got, now, err := l.Get(l.Context(), c.ID)
	if err != nil {
		l.Fatalf("Get: %v", err)
	}
	if !now.Equal(start.Add(time.Second)) {
		l.Errorf("Get says that it is %v, the ledger's clock says %v", now, start.Add(time.Second))
	}
	l.same("the record", got, want)
}

func secondHandle(l *ledger) {
	c := newClaim(1)
	first := l.claim(c, recordstore.Send)
	other := *l
	other.Store = l.harness.Reopen(l.TB)
	l.same("the record in the second handle", other.stored(c.ID), first)
	other.claim(by(c, "other"), recordstore.InFlight)
	want := other.settle(first, result(recordstore.Succeeded))
	l.same("the record in the first handle", l.claim(c, recordstore.Replay), want)
	if l.can("Forgetter") {
		l.raise("money", today(start)-5)
		other.claim(old(2, 5), recordstore.Forgotten)
	}
}

func valuesBig(l *ledger) {
	const size = 4 << 20
	random := rand.NewChaCha8([32]byte{1})
	fill := func() []byte {
		b := make([]byte, size)
		_, _ = random.Read(b) // Never fails.
		return b
	}
	c := newClaim(1)
	c.Request = fill()
	rec := l.claim(c, recordstore.Send)
	if !bytes.Equal(rec.Request, c.Request) {
		l.Fatalf("the request came back with %d bytes, or others, of %d", len(rec.Request), size)
	}
	r := result(recordstore.Uncertain) // Keeps the request too.
	r.ResponseBody = fill()
	l.settle(rec, r)
	got := l.stored(c.ID)
	if !bytes.Equal(got.ResponseBody, r.ResponseBody) || !bytes.Equal(got.Request, c.Request) {
		l.Errorf("request or answer came back changed: %d and %d bytes of %d", len(got.Request), len(got.ResponseBody), size)
	}
}

func valuesOdd(l *ledger) {
	const odd = `'; DROP TABLE "records"; -- $1 ? :a \ %s ` + "\t\r\n\u00a0\u202e\U0001f4b6 Ünï\u0301"
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	c := newClaim(1)
	c.Provider, c.Account, c.Operation, c.Class = odd, odd, odd, odd
	c.CommandID = strings.Repeat("ö", 127) + "x" // 255 bytes.
	c.Derivation, c.Derivations = odd, []string{"k1", odd}
	c.Holder, c.Request = odd, every
	c.Fingerprints = [][]byte{every[1:], every[2:]}
	rec := l.claim(c, recordstore.Send)
	want, _ := recordstore.Take(c, nil, 0, start)
	l.same("the claimed record", rec, want)

	r := result(recordstore.Uncertain)
	r.Evidence, r.Outcome, r.ExternalRef, r.ObjectStatus, r.RequestID, r.ErrorCode = odd, odd, odd, odd, odd, odd
	r.ResponseHeader, r.ResponseBody = every, bytes.Repeat([]byte{0}, 3)
	want, _ = recordstore.Settled(want, settlement(rec, r), start)
	l.settle(rec, r)
	l.same("the settled record", l.stored(c.ID), want)
	l.claim(by(c, "other"), recordstore.Send)
}

func valuesTimes(l *ledger) {
	l.clock.advance(999) // Cut off, not rounded.
	c := newClaim(1)
	c.NotAfter = start.Add(time.Hour + 999).In(time.FixedZone("elsewhere", 3*60*60))
	c.Lease = time.Second + time.Microsecond
	got, err := l.Claim(l.Context(), c)
	if err != nil {
		l.Fatalf("Claim: %v", err)
	}
	if !got.Now.Equal(start) {
		l.Errorf("Now is %v, want whole microseconds: %v", got.Now, start)
	}
	rec := got.Record
	if !rec.ClaimedAt.Equal(start) || !rec.NotAfter.Equal(start.Add(time.Hour)) || !rec.LeaseEndsAt.Equal(start.Add(c.Lease)) {
		l.Errorf("ClaimedAt %v, NotAfter %v, LeaseEndsAt %v: want whole microseconds, the rest cut off", rec.ClaimedAt, rec.NotAfter, rec.LeaseEndsAt)
	}
	l.same("the stored record", l.stored(c.ID), rec)
}

func valuesOwnBytes(l *ledger) {
	c := newClaim(1)
	want := append([]byte(nil), c.Request...)
	rec := l.claim(c, recordstore.Send)
	clear(c.Request)
	clear(rec.Request)
	clear(c.Fingerprints[0])
	got := l.stored(c.ID)
	if !bytes.Equal(got.Request, want) || got.Fingerprint[0] == 0 {
		l.Errorf("the stored record changed with the caller's bytes")
	}
	r := result(recordstore.Uncertain)
	want = append([]byte(nil), r.ResponseBody...)
	settled := l.settle(rec, r)
	clear(r.ResponseBody)
	clear(settled.ResponseBody)
	if !bytes.Equal(l.stored(c.ID).ResponseBody, want) {
		l.Errorf("the stored record changed with the caller's bytes")
	}
}

func attachPins(l *ledger) {
	pins := recordstore.Pins{Derivation: "k1", Secret: "fingerprint of a secret"}
	l.attach(l.Store, pins, nil)
	l.attach(l.Store, pins, nil)
	other := l.harness.Reopen(l.TB)
	l.attach(other, pins, nil)
	l.attach(other, recordstore.Pins{Derivation: "k2", Secret: pins.Secret}, recordstore.ErrPinned)
	l.attach(other, recordstore.Pins{Derivation: "k1", Secret: "another"}, recordstore.ErrPinned)
	l.attach(other, recordstore.Pins{Derivation: "k1", Secret: "none"}, recordstore.ErrPinned)
	l.attach(l.Store, pins, nil)
}

func attachNone(l *ledger) {
	pins := recordstore.Pins{Derivation: "k1", Secret: "none"}
	l.attach(l.Store, pins, nil)
	l.attach(l.Store, recordstore.Pins{Derivation: "k1", Secret: "fingerprint of a secret"}, recordstore.ErrPinned)
	l.attach(l.Store, pins, nil)
}

func (l *ledger) attach(s recordstore.Store, p recordstore.Pins, want error) {
	l.Helper()
	if err := s.Attach(l.Context(), p); !isErr(err, want) {
		l.Errorf("Attach with derivation %q: error is %v, want %v", p.Derivation, err, want)
	}
}

// isErr reports whether err is want; nil is only nil.
func isErr(err, want error) bool {
	if want == nil {
		return err == nil
	}
	return errors.Is(err, want)
}

func contextEnded(l *ledger) {
	c := newClaim(1)
	ended, cancel := context.WithCancel(l.Context())
	cancel()
	gaveUp := func(what string, err error) {
		l.Helper()
		if !errors.Is(err, context.Canceled) {
			l.Errorf("%s with an ended context: error is %v, want context.Canceled", what, err)
		}
	}
	_, err := l.Claim(ended, c)
	gaveUp("Claim", err)
	rec := l.claim(c, recordstore.Send)

	s := settlement(rec, result(recordstore.Uncertain))
	_, err = l.Settle(ended, s)
	gaveUp("Settle", err)
	gaveUp("Renew", l.Renew(ended, c.ID, rec.Holder, rec.Fence, lease))
	_, _, err = l.Get(ended, c.ID)
	gaveUp("Get", err)
	_, err = l.Report(ended, c.ID, result(recordstore.Refused))
	gaveUp("Report", err)
	gaveUp("Attach", l.Attach(ended, recordstore.Pins{Derivation: "k1", Secret: "none"}))
	for call, err := range l.optional(ended, c.ID) {
		gaveUp(call, err)
	}
	l.same("the stored record", l.stored(c.ID), rec)
	l.settle(rec, result(recordstore.Uncertain))
}

// optional makes a call of each optional ability that the store has.
func (l *ledger) optional(ctx context.Context, id recordstore.ID) map[string]error {
	errs := map[string]error{}
	if l.can("Forgetter") {
		errs["RaiseFrontier"] = l.Store.(recordstore.Forgetter).RaiseFrontier(ctx, "money", 1)
	}
	if l.can("Queue") {
		q := l.Store.(recordstore.Queue)
		_, _, errs["TakeDue"] = q.TakeDue(ctx, query("reconciler", 10))
		_, errs["FindCrashed"] = q.FindCrashed(ctx, true, 10)
		_, errs["Wake"] = q.Wake(ctx, id, "re_event")
		_, errs["Backlog"] = q.Backlog(ctx, "stripe")
	}
	if l.can("Desk") {
		rec := recordstore.Record{ID: id, Version: 1}
		for step, err := range l.deskSteps(ctx, verdict(rec, recordstore.Succeeded), *entry("erase", "no longer wanted")) {
			errs[step] = err
		}
		_, errs["Trail"] = l.desk().Trail(ctx, id)
	}
	if l.can("Purger") {
		_, errs["Purge"] = l.Store.(recordstore.Purger).Purge(ctx, 10)
	}
	if l.can("Restorer") {
		r := l.Store.(recordstore.Restorer)
		errs["MarkRestored"] = r.MarkRestored(ctx, start)
		_, errs["Restored"] = r.Restored(ctx)
	}
	return errs
}
