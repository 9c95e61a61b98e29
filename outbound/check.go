package outbound

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// due is one record that the reconciler holds.
type due struct {
	rec   recordstore.Record
	order *order
}

// workOff does what each record needs, look-ups of one operation together where
// the adapter can. The records were taken at now on the ledger's clock, and asked
// for at asked on this machine's.
func (w *worker) workOff(ctx context.Context, records []recordstore.Record, asked, now time.Time) Swept {
	var mu sync.Mutex
	var all Swept
	var wg sync.WaitGroup
	start := func(account string, f func() Swept) {
		slots := w.lanes.get(w.profile.Provider, account).slots
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			s := f()
			mu.Lock()
			defer mu.Unlock()
			all.add(s)
		})
	}
	groups := make(map[[2]string][]due) // look-ups by operation and account
	for _, rec := range records {
		d := due{rec: rec}
		var err error
		if d.order, err = w.revive(rec); err != nil {
			start(rec.Account, func() Swept { return w.postpone(ctx, d, now, "cannot be read: "+err.Error()) })
			continue
		}
		d.order.claimed, d.order.begun, d.order.ahead = asked, asked, now.Sub(asked)
		d.order.turns = w.turnsOf(rec.Account, asked)
		switch {
		case isPlan(rec):
			start(rec.Account, func() Swept { return w.sendPlanned(ctx, d, now) })
		case rec.Noted != "":
			d.order.check = w.checkOf(d, now, "report", "")
			start(rec.Account, func() Swept {
				return w.count(w.lookup(ctx, d.order, &recordstore.Claimed{Record: rec, Now: now}))
			})
		case w.mayResend(d, now) && now.Sub(rec.CreatedAt) < w.opts.ResendFor:
			start(rec.Account, func() Swept { return w.resend(ctx, d, now) })
		default:
			group := [2]string{rec.Operation, rec.Account}
			groups[group] = append(groups[group], d)
		}
	}
	for of, group := range groups {
		for _, part := range w.parts(group) {
			start(of[1], func() Swept { return w.askAll(ctx, part, now) })
		}
	}
	wg.Wait()
	return all
}

// isPlan reports whether rec is a plan that waits to be sent, for the first time or
// since the provider turned it away.
func isPlan(rec recordstore.Record) bool {
	return rec.State == recordstore.Planned || rec.State == recordstore.NotExecuted
}

// mayResend reports whether the same key and bytes may be sent again, and an
// answer can still teach something.
func (w *worker) mayResend(d due, now time.Time) bool {
	rec := d.rec
	end := now.Add(w.Client.opts.Retry.AttemptTimeout)
	return d.order.row.HasKey() && d.order.revived && !rec.LookOnly && rec.Derivation != recordstore.Foreign &&
		end.Before(rec.WindowEndsAt) && !expired(rec, now)
}

// expired reports whether the permission to send is over.
func expired(rec recordstore.Record, now time.Time) bool {
	return !rec.NotAfter.IsZero() && !now.Before(rec.NotAfter)
}

// resend sends the frozen bytes with the same key. The record's SentUntil moves
// first: a crash from here on is a possible delivery.
func (w *worker) resend(ctx context.Context, d due, now time.Time) Swept {
	return w.guarded(ctx, d, func() Swept {
		if err := w.beforeSend(ctx, d); err != nil {
			return w.putBack(ctx, d, w.opts.Ladder[0], "not resent: "+err.Error())
		}
		d.order.check = w.checkOf(d, now, "resend", "")
		s := w.count(w.send(ctx, d.order, &recordstore.Claimed{Decision: recordstore.Send, Record: d.rec, Now: now}))
		s.Resent++
		return s
	})
}

// beforeSend waits for its turn and renews the lease, which notes that a request
// may be written.
func (w *worker) beforeSend(ctx context.Context, d due) error {
	if err := d.order.turns.take(ctx); err != nil {
		return err
	}
	err := w.mark(ctx, d.order, d.rec)
	d.order.turns.until = w.turnsUntil(d.order.begun)
	return err
}

// mark renews a lease that was taken to look up only, before it sends.
func (c *Client) mark(ctx context.Context, o *order, rec recordstore.Record) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.ClaimTimeout)
	defer cancel()
	o.begun = time.Now()
	return c.ledger.Renew(ctx, rec.ID, rec.Holder, rec.Fence, c.opts.Lease)
}

// follow does what a finding says.
func (w *worker) follow(ctx context.Context, d due, now time.Time, f Finding, err error) Swept {
	s := Swept{LookedUp: 1}
	j := judged{state: recordstore.Uncertain}
	if err == nil {
		j = j.found(f)
	}
	o := d.order
	switch {
	case errors.As(err, new(panicked)):
		s.add(w.toReview(ctx, d, err.Error()))
	case j.state.Final():
		o.check = w.checkOf(d, now, "lookup", "found")
		s.add(w.count(w.conclude(ctx, o, d.rec, j)))
	case err == nil && w.absent(o, d.rec, f, now):
		s.add(w.afterAbsence(ctx, d, now))
	case w.mayResend(d, now):
		s.add(w.resend(ctx, d, now))
	default:
		why := "the look-up could not tell"
		if err != nil {
			why += ": " + cleanText(err.Error())
		}
		s.add(w.postpone(ctx, d, now, why))
	}
	return s
}

// absent applies the core's share of the proof: the last possible delivery is
// older than the operation's horizon, and no answer was a stored 500. What another
// maker sent carries neither our key nor our mark, and is never proved absent.
func (c *Client) absent(o *order, rec recordstore.Record, f Finding, now time.Time) bool {
	return f.Effect == EffectNone && f.Code == "" && !rec.Blurred && rec.Derivation != recordstore.Foreign && c.pastHorizon(o, rec, now)
}

func (c *Client) pastHorizon(o *order, rec recordstore.Record, now time.Time) bool {
	return !now.Before(rec.SentUntil.Add(c.horizon(o)))
}

func (c *Client) horizon(o *order) time.Duration { return cmp.Or(o.row.Horizon, c.opts.Horizon) }

// afterAbsence sends what is proved absent, while the claim is held. Without a
// key nothing would keep a late delivery from counting twice: a person decides.
func (w *worker) afterAbsence(ctx context.Context, d due, now time.Time) Swept {
	o := d.order
	switch {
	case !o.row.HasKey():
		return w.toReview(ctx, d, "absent, and the operation has no key that would protect a resend")
	case expired(d.rec, now) || !o.revived:
		j := judged{state: recordstore.NotExecuted, Verdict: Verdict{Effect: EffectNone, Code: ErrExpired}}
		o.check = w.checkOf(d, now, "lookup", "absent, and not to be sent from here")
		return w.count(w.conclude(ctx, o, d.rec, j))
	}
	if err := w.beforeSend(ctx, d); err != nil {
		return w.putBack(ctx, d, w.opts.Ladder[0], "absent, not sent: "+err.Error())
	}
	o.check = w.checkOf(d, now, "lookup", "absent, sent")
	o.absent = true
	s := w.count(w.send(ctx, o, &recordstore.Claimed{Decision: recordstore.Send, Record: d.rec, Now: now}))
	s.Sent++
	return s
}

// sendPlanned claims and sends a command that was planned, as Do would.
func (w *worker) sendPlanned(ctx context.Context, d due, now time.Time) Swept {
	o, rec := d.order, d.rec
	if err := o.turns.take(ctx); err != nil {
		return Swept{Postponed: 1}
	}
	if !o.revived && !expired(rec, now) {
		return Swept{Postponed: 1} // a seal key is missing here; Do with the same input can send it
	}
	o.claim = recordstore.Claim{
		ID: rec.ID, Scope: rec.Scope, Provider: rec.Provider, Account: rec.Account, Operation: rec.Operation,
		CommandID: rec.CommandID, Class: rec.Class, Derivation: rec.Derivation,
		Derivations: []string{keyderive.Version, recordstore.Foreign}, Fingerprints: [][]byte{rec.Fingerprint},
		SealVersion: sealVersion, Request: rec.Request, Holder: uuid.NewString(),
		Lease: w.Client.opts.Lease, Window: o.row.window, NotAfter: rec.NotAfter, Replay: o.row.replay, Evidence: o.row.evidence,
		LostBefore: w.lostBefore(rec.ID),
	}
	o.again = jittered(w.opts.Ladder[min(max(rec.Checks-1, 0), len(w.opts.Ladder)-1)])
	claimed, err := w.claim(ctx, o)
	o.turns.until = w.turnsUntil(o.begun)
	if desk, able := w.ledger.(recordstore.Desk); able && err == nil && claimed.Decision == recordstore.Expired {
		_, err = desk.Abandon(ctx, rec.ID, recordstore.Entry{Kind: "abandon", Actor: "reconciler", Text: "NotAfter has passed, and nothing was executed"})
		if err == nil {
			return Swept{Settled: 1}
		}
	}
	switch {
	case err == nil && claimed.Decision == recordstore.Lookup: // a restore brought it back
		return w.askAll(ctx, []due{{claimed.Record, o}}, claimed.Now)
	case err != nil || claimed.Decision != recordstore.Send:
		return Swept{Postponed: 1}
	}
	reply, failed := w.send(ctx, o, claimed)
	s := w.count(reply, failed)
	if failed != nil && failed.Effect == EffectNone && failed.Code != ErrRefused {
		s = Swept{Postponed: 1} // turned away
	}
	s.Sent++
	return s
}

// postpone settles the record uncertain again, due at the next rung of the
// ladder, or gives it to people after the last. One that got no turn to be asked
// about is not theirs to decide: the provider was not heard.
func (w *worker) postpone(ctx context.Context, d due, now time.Time, why string) Swept {
	if isPlan(d.rec) {
		return Swept{Postponed: 1}
	}
	unheard := ctx.Err() != nil || d.order != nil && d.order.turns.over()
	never := d.order != nil && !w.canEverTell(d, now)
	if never || !unheard && d.rec.Checks >= len(w.opts.Ladder) {
		return w.toReview(ctx, d, why)
	}
	if unheard {
		return w.putBack(ctx, d, jittered(w.opts.Ladder[0]), why)
	}
	w.settleAs(ctx, d, judged{state: recordstore.Uncertain}, check{text: why, dueIn: w.nextCheck(d, now)})
	return Swept{Postponed: 1}
}

// putBack settles the record uncertain again without a check: it did not come to
// one, so that the ladder stays where it is.
func (w *worker) putBack(ctx context.Context, d due, dueIn time.Duration, why string) Swept {
	w.settleAs(ctx, d, judged{state: recordstore.Uncertain}, check{text: why, dueIn: dueIn, uncounted: true})
	return Swept{Postponed: 1}
}

// canEverTell reports whether a later check could teach more than this one.
func (w *worker) canEverTell(d due, now time.Time) bool {
	return w.finder != nil && d.order.row.Lookup != "" || w.mayResend(d, now)
}

func (w *worker) toReview(ctx context.Context, d due, why string) Swept {
	w.settleAs(ctx, d, judged{state: recordstore.ManualReview}, check{text: why})
	return Swept{ToReview: 1}
}

// settleAs ends the reconciler's claim without an answer. A fact that was noted
// meanwhile is merged.
func (w *worker) settleAs(ctx context.Context, d due, j judged, ch check) {
	o := d.order
	if o == nil { // this build cannot read the record
		o = &order{Call: callOf(d.rec), claimed: time.Now(), begun: time.Now()}
	}
	j.ProviderCode = providerCode(d.rec.ErrorCode)
	ch.kind, ch.text = "lookup", cleanText(ch.text)
	o.check = &ch
	w.settle(ctx, o, d.rec, j)
}

// nextCheck is the pause before the next check: the ladder's, or shorter so that
// one last resend falls inside the provider's window.
func (w *worker) nextCheck(d due, now time.Time) time.Duration {
	rung := min(d.rec.Checks, len(w.opts.Ladder)-1) // the first pause was before the first check
	pause := jittered(w.opts.Ladder[rung])
	if d.order != nil && w.mayResend(d, now) {
		last := d.rec.WindowEndsAt.Sub(now) - 3*w.Client.opts.Retry.AttemptTimeout
		if last > time.Second && last < pause {
			pause = last
		}
	}
	return pause
}

// guarded turns a panic into a review: a record that kills its reconciler must
// not do so for ever.
func (w *worker) guarded(ctx context.Context, d due, f func() Swept) (s Swept) {
	var failed error
	defer func() {
		if failed != nil {
			s = w.toReview(ctx, d, failed.Error())
		}
	}()
	defer spare("the adapter", &failed)
	return f()
}

// count makes of an answer what became of one record.
func (w *worker) count(_ *Reply, err *Error) Swept {
	code := Code("")
	if err != nil {
		code = err.Code
	}
	switch code {
	case ErrUncertain, ErrStore, ErrInFlight:
		return Swept{Postponed: 1}
	case ErrManualReview:
		return Swept{ToReview: 1}
	}
	return Swept{Settled: 1}
}

// check is what a settlement of the reconciler notes beside the answer.
type check struct {
	kind, text string
	dueIn      time.Duration // where the answer is still unknown, or a plan is turned away
	last       bool          // the ladder ends here
	uncounted  bool          // it did not come to the check
}

func (w *worker) checkOf(d due, now time.Time, kind, text string) *check {
	return &check{kind: kind, text: text, dueIn: w.nextCheck(d, now), last: d.rec.Checks >= len(w.opts.Ladder)}
}

func accountOf(account string) string { return account[:max(0, strings.LastIndexByte(account, '/'))] }

func commandOf(rec recordstore.Record) Command {
	return Command{ID: rec.CommandID, NotAfter: rec.NotAfter, stepped: strings.ContainsRune(rec.CommandID, '/')}
}

func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}
