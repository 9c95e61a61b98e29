package outbound_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// R6, R11: an answer is recorded, and its replay says that it is one.
func TestAnswerIsReplayedFromTheLedger(t *testing.T) {
	a := &scripted{answer: always(paid)}
	c := client(t, a, memory.New(nil), nil)
	first, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, first, err, outbound.NewExecution, outbound.FromProvider)
	again, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, again, err, outbound.OriginalReplay, outbound.FromLedger)
	if string(again.Body) != string(first.Body) || again.StatusCode != 200 || again.ExternalRef != "re_1" || again.Header[0] != first.Header[0] {
		t.Errorf("replayed %+v, want the content of %+v", again, first)
	}
	if again.AsOf.IsZero() || again.Evidence != "own_record" {
		t.Errorf("as of %v by %q, want the time of the answer and own_record", again.AsOf, again.Evidence)
	}
	if n := len(a.deliveries()); n != 1 {
		t.Errorf("%d deliveries, want 1", n)
	}
}

// A ledger's copy of a state stays a state: it is never promoted to the original.
func TestCopyOfLatestStatusStaysOne(t *testing.T) {
	c := client(t, &scripted{answer: func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
		return []outbound.Verdict{lost, paid}
	}}, memory.New(nil), nil)
	first, err := c.Do(t.Context(), pay("c1", "pay.rerun"))
	wantReply(t, first, err, outbound.LatestStatus, outbound.FromProvider)
	again, err := c.Do(t.Context(), pay("c1", "pay.rerun"))
	wantReply(t, again, err, outbound.LatestStatus, outbound.FromLedger)
}

// R6: the record exists before the first byte, and R10: it blocks a second send.
func TestRecordStandsBeforeTheFirstByte(t *testing.T) {
	ledger := memory.New(nil)
	var c *outbound.Client
	a := &scripted{}
	a.answer = func(ctx context.Context, _ int, _ *outbound.Delivery) []outbound.Verdict {
		s, err := c.Status(ctx, outbound.Command{ID: "c1"}, "pay.stored")
		if err != nil || s.State != recordstore.Sending {
			t.Errorf("while sending the ledger says %+v, %v; want state sending", s, err)
		}
		_, err = c.Do(ctx, pay("c1", "pay.stored"))
		if e := wantError(t, err, outbound.ErrInFlight, outbound.EffectUnknown, false); e.RetryAfter <= 0 || e.RetryAfter > 120*time.Second {
			t.Errorf("retry after %v, want what is left of the lease", e.RetryAfter)
		}
		return []outbound.Verdict{paid}
	}
	c = client(t, a, ledger, nil)
	if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
}

// R8, R22: what is uncertain is sent again with the same key and the same bytes.
func TestUncertainIsResentWithTheSameKeyAndBytes(t *testing.T) {
	a := &scripted{answer: inTurn(lost, paid)}
	c := client(t, a, memory.New(nil), nil)
	_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	e := wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, true)
	if after, again := outbound.RetryAfter(e); !again || after <= 0 {
		t.Errorf("RetryAfter = %v, %v: the same command again can change the answer", after, again)
	}
	r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, r, err, outbound.LatestStatus, outbound.FromProvider)
	sent := a.deliveries()
	if len(sent) != 2 || sent[0].Key != sent[1].Key || string(sent[0].Message.Body) != string(sent[1].Message.Body) || !sent[1].Resend || sent[0].Resend {
		t.Errorf("deliveries %+v, want the same key and bytes twice, the second as a resend", sent)
	}
	if r.Deliveries != 2 {
		t.Errorf("the reply counts %d deliveries, want 2", r.Deliveries)
	}
}

// C14 and the rule that is easy to get wrong: a takeover whose own first delivery
// gets 429 while the old one may still be on its way is never None.
func TestRateLimitOnTakeoverIsNeverNone(t *testing.T) {
	ledger := newLedger()
	hung := make(chan struct{})
	old := client(t, &scripted{answer: func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
		<-hung
		return []outbound.Verdict{paid}
	}}, ledger, nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		r, err := old.Do(context.Background(), pay("c1", "pay.stored"))
		wantReply(t, r, err, outbound.LatestStatus, outbound.FromProvider) // the new holder may have executed first
	})
	for {
		if s, err := old.Status(t.Context(), outbound.Command{ID: "c1"}, "pay.stored"); err == nil && s.State == recordstore.Sending {
			break
		}
	}
	ledger.advance(121 * time.Second)
	taker := client(t, &scripted{answer: always(limited)}, ledger, nil)
	_, err := taker.Do(t.Context(), pay("c1", "pay.stored"))
	e := wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, true)
	if e.RetryAfter != limited.RetryAfter {
		t.Errorf("retry after %v, want the provider's %v", e.RetryAfter, limited.RetryAfter)
	}
	// The stale holder's 200 is a fact and is not lost (C25).
	close(hung)
	wg.Wait()
	r, err := taker.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, r, err, outbound.LatestStatus, outbound.FromLedger)
}

// A stale holder's 200 that arrives while the new holder is sending is noted, and
// the new holder's settle merges it, whatever the new holder learned.
func TestStaleHoldersFactIsMerged(t *testing.T) {
	for name, own := range map[string]outbound.Verdict{"ignorance": lost, "None under doubt": limited, "a decline": declined} {
		t.Run(name, func(t *testing.T) {
			ledger := newLedger()
			hung, answered := make(chan struct{}), make(chan struct{})
			old := client(t, &scripted{answer: func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
				<-hung
				return []outbound.Verdict{paid}
			}}, ledger, nil)
			go func() {
				defer close(answered)
				r, err := old.Do(context.Background(), pay("c1", "pay.rerun"))
				wantReply(t, r, err, outbound.LatestStatus, outbound.FromProvider)
				if !errors.Is(r.Unrecorded, recordstore.ErrNotHeld) {
					t.Errorf("Unrecorded = %v, want ErrNotHeld: another holder settles it", r.Unrecorded)
				}
			}()
			for {
				if s, err := old.Status(t.Context(), outbound.Command{ID: "c1"}, "pay.rerun"); err == nil && s.State == recordstore.Sending {
					break
				}
			}
			ledger.advance(121 * time.Second)
			taker := client(t, &scripted{answer: func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
				close(hung)
				<-answered
				return []outbound.Verdict{own}
			}}, ledger, nil)
			r, err := taker.Do(t.Context(), pay("c1", "pay.rerun"))
			if err != nil {
				t.Fatal(err)
			}
			if r.ExternalRef != "re_1" || r.Origin != outbound.FromLedger {
				t.Errorf("the new holder got %+v, want the noted fact", r)
			}
		})
	}
}

// A decline is final where failures are stored, and replayed from the ledger (C06).
func TestDeclineIsReplayed(t *testing.T) {
	a := &scripted{answer: always(declined)}
	c := client(t, a, memory.New(nil), nil)
	for i, origin := range []outbound.Origin{outbound.FromProvider, outbound.FromLedger} {
		_, err := c.Do(t.Context(), pay("c1", "pay.rerun"))
		e := wantError(t, err, outbound.ErrRefused, outbound.EffectNone, i == 0)
		if e.ProviderCode != "card_declined" || e.Answer == nil || e.Answer.Origin != origin || e.Answer.StatusCode != 402 || e.Answer.Label == "" {
			t.Errorf("refusal %d: %+v with answer %+v; labels stand on refusals too", i, e, e.Answer)
		}
	}
	if n := len(a.deliveries()); n != 1 {
		t.Errorf("%d deliveries, want 1", n)
	}
}

// R7, C07: same command, other request: found here, before the wire.
func TestOtherRequestUnderTheSameCommandConflicts(t *testing.T) {
	a := &scripted{answer: always(paid)}
	c := client(t, a, memory.New(nil), nil)
	if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	other := pay("c1", "pay.stored")
	other.Message.Body = []byte("amount=4711")
	_, err := c.Do(t.Context(), other)
	e := wantError(t, err, outbound.ErrFingerprintConflict, outbound.EffectApplied, false)
	if strings.Contains(e.Error(), "4711") || !strings.Contains(e.Error(), "pay.stored") || !strings.Contains(e.Error(), "new command") {
		t.Errorf("the message %q should name the operation and what to do, and show no values", e)
	}
	if n := len(a.deliveries()); n != 1 {
		t.Errorf("%d deliveries, want 1", n)
	}
}

// A None without doubt leaves the command to be sent again.
func TestNotExecutedIsSentAgain(t *testing.T) {
	a := &scripted{answer: inTurn(limited, paid)}
	c := client(t, a, memory.New(nil), nil)
	_, err := c.Do(t.Context(), pay("c1", "pay.rerun"))
	wantError(t, err, outbound.ErrRateLimited, outbound.EffectNone, true)
	r, err := c.Do(t.Context(), pay("c1", "pay.rerun"))
	wantReply(t, r, err, outbound.NewExecution, outbound.FromProvider)
}

// C11, R13: past the window nothing is resent blindly; a finding settles it.
func TestPastTheWindowOnlyALookupSpeaks(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(lost)}
	c := client(t, a, ledger, nil)
	_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, true)

	ledger.advance(24 * time.Hour)
	_, err = c.Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, false)
	if n := len(a.deliveries()); n != 1 {
		t.Fatalf("%d deliveries, want 1: the key may be forgotten", n)
	}
	a.find = func(l *outbound.Lookup) (outbound.Finding, error) {
		if l.Mark == "" || string(l.Message.Body) != "amount=100" {
			t.Errorf("the look-up got mark %q and body %q", l.Mark, l.Message.Body)
		}
		return outbound.Finding{Effect: outbound.EffectApplied, ExternalRef: "re_1", Answer: paid.Answer}, nil
	}
	r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, r, err, outbound.LatestStatus, outbound.FromProvider)
	if r.Evidence != "lookup" {
		t.Errorf("evidence %q, want lookup", r.Evidence)
	}
}

// R21: operations without a key are not resent after a possible delivery. Where
// nothing can be looked up either, a person decides.
func TestWithoutAKeyNothingIsResent(t *testing.T) {
	a := &scripted{answer: always(lost)}
	c := client(t, a, memory.New(nil), nil)
	for i, code := range []outbound.Code{outbound.ErrUncertain, outbound.ErrManualReview, outbound.ErrManualReview} {
		_, err := c.Do(t.Context(), pay("m1", "mail.send"))
		wantError(t, err, code, outbound.EffectUnknown, i == 0)
	}
	sent := a.deliveries()
	if len(sent) != 1 || !sent[0].Key.IsZero() {
		t.Errorf("%d deliveries with key %v, want one without a key", len(sent), sent[0].Key)
	}
}

// The caller's context ending after a write leaves the effect unknown and is
// still recognisable (C28).
func TestCancelledAfterTheWrite(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ledger := memory.New(nil)
	c := client(t, &scripted{answer: func(ctx context.Context, _ int, _ *outbound.Delivery) []outbound.Verdict {
		cancel()
		return []outbound.Verdict{{Deliveries: 1, Err: ctx.Err()}}
	}}, ledger, nil)
	_, err := c.Do(ctx, pay("c1", "pay.stored"))
	e := wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, true)
	if !errors.Is(e, context.Canceled) {
		t.Errorf("%v is not context.Canceled", e)
	}
	if s, err := c.Status(t.Context(), outbound.Command{ID: "c1"}, "pay.stored"); err != nil || s.State != recordstore.Uncertain {
		t.Errorf("status %+v, %v; want uncertain, settled although the context had ended", s, err)
	}
}

// R10, C10: one waiter for each key asks the ledger; all callers end with the
// same answer.
func TestWaitersShareOneWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &counting{Store: memory.New(nil)}
		a := &scripted{answer: func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
			time.Sleep(3 * time.Second)
			return []outbound.Verdict{paid}
		}}
		c := client(t, a, ledger, &outbound.Options{Wait: 10 * time.Second})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
				if err != nil || r.ExternalRef != "re_1" {
					t.Errorf("got %+v, %v", r, err)
				}
			})
		}
		wg.Wait()
		if n := len(a.deliveries()); n != 1 {
			t.Errorf("%d deliveries, want 1", n)
		}
		if n := ledger.count("Get"); n > 12 {
			t.Errorf("%d questions to the ledger for 49 waiters over 3 s, want those of one waiter", n)
		}
	})
}

func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &scripted{answer: func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
			time.Sleep(30 * time.Second)
			return []outbound.Verdict{paid}
		}}
		c := client(t, a, memory.New(nil), nil)
		var wg sync.WaitGroup
		wg.Go(func() { c.Do(t.Context(), pay("c1", "pay.stored")) })
		synctest.Wait()
		call := pay("c1", "pay.stored")
		call.Wait = 5 * time.Second
		began := time.Now()
		_, err := c.Do(t.Context(), call)
		wantError(t, err, outbound.ErrInFlight, outbound.EffectUnknown, false)
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("waited %v, want 5s", waited)
		}
		wg.Wait()
	})
}
