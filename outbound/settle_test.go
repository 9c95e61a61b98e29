package outbound_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// between runs a step of a test before a settlement reaches the ledger, with the
// number of the settlement. Where lose is set the answer gets lost afterwards.
type between struct {
	recordstore.Store
	before func(n int, s recordstore.Settlement)
	lose   func(step string, n int) bool
	n      map[string]int
}

func (b *between) count(step string) int {
	if b.n == nil {
		b.n = make(map[string]int)
	}
	b.n[step]++
	return b.n[step]
}

func (b *between) Claim(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	n := b.count("claim")
	got, err := b.Store.Claim(ctx, c)
	if err == nil && b.lose != nil && b.lose("claim", n) {
		return recordstore.Claimed{}, errCut
	}
	return got, err
}

func (b *between) Settle(ctx context.Context, s recordstore.Settlement) (recordstore.Record, error) {
	n := b.count("settle")
	if b.before != nil {
		b.before(n, s)
	}
	got, err := b.Store.Settle(ctx, s)
	if err == nil && b.lose != nil && b.lose("settle", n) {
		return recordstore.Record{}, errCut
	}
	return got, err
}

// recordOf reads a call's record.
func recordOf(t *testing.T, c *outbound.Client, s recordstore.Store, call outbound.Call) recordstore.Record {
	t.Helper()
	key, err := c.Key(call.Command, call.Operation, "")
	if err != nil {
		t.Fatal(err)
	}
	rec, _, err := s.Get(context.Background(), recordstore.ID{Day: key.Day(), KeyHash: key.Hash()})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// A claim or a settlement that was committed while its answer got lost is the
// same one when it is asked again: one delivery, counted once.
func TestLostAnswersOfTheLedger(t *testing.T) {
	for _, step := range []string{"claim", "settle"} {
		t.Run(step, func(t *testing.T) {
			a := &scripted{answer: always(paid)}
			ledger := &between{Store: memory.New(nil), lose: func(s string, n int) bool { return s == step && n == 1 }}
			c := client(t, a, ledger, nil)
			r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
			wantReply(t, r, err, outbound.NewExecution, outbound.FromProvider)
			rec := recordOf(t, c, ledger, pay("c1", "pay.stored"))
			if r.Unrecorded != nil || rec.State != recordstore.Succeeded || rec.Deliveries != 1 || len(a.deliveries()) != 1 {
				t.Errorf("unrecorded %v, state %s, %d deliveries recorded, %d made; want one, settled", r.Unrecorded, rec.State, rec.Deliveries, len(a.deliveries()))
			}
		})
	}
}

// C26: a note may grow from a refusal to an effect while it is being merged; the
// effect is what is answered and settled.
func TestNoteThatGrowsWhileItIsMerged(t *testing.T) {
	ledger := &between{Store: memory.New(nil)}
	ledger.before = func(n int, s recordstore.Settlement) {
		fact := recordstore.Refused
		switch n {
		case 1:
		case 2:
			fact = recordstore.Succeeded
		default:
			return
		}
		if _, err := ledger.Report(context.Background(), s.ID, recordstore.Result{State: fact, Evidence: "webhook", ExternalRef: "re_1"}); err != nil {
			t.Error(err)
		}
	}
	c := client(t, &scripted{answer: always(lost)}, ledger, nil)
	r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	if err != nil {
		t.Fatalf("%v: money has moved, and the ledger knew it", err)
	}
	if r.ExternalRef != "re_1" || recordOf(t, c, ledger, pay("c1", "pay.stored")).State != recordstore.Succeeded {
		t.Errorf("got %+v", r)
	}
}

// An effect that the ledger could not be told at once is merged in the
// background too: a note that came first does not push it out.
func TestLateSettlementMeetsANote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &counting{Store: memory.New(nil)}
		ledger.cut("Settle")
		c := client(t, &scripted{answer: always(paid)}, ledger, nil)
		if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
			t.Fatal(err)
		}
		id := recordOf(t, c, ledger, pay("c1", "pay.stored")).ID
		if _, err := ledger.Report(t.Context(), id, recordstore.Result{State: recordstore.Refused, Evidence: "webhook"}); err != nil {
			t.Fatal(err)
		}
		ledger.cut()
		time.Sleep(time.Minute)
		if rec := recordOf(t, c, ledger, pay("c1", "pay.stored")); rec.State != recordstore.Succeeded || rec.ExternalRef != "re_1" {
			t.Errorf("state %s, reference %q; want the effect", rec.State, rec.ExternalRef)
		}
	})
}

// overtaken is a call that is taken over while it is on its way: during its
// delivery the lease ends and by runs under the new holder's claim.
func overtaken(t *testing.T, operation string, late outbound.Verdict, by outbound.Verdict) (rec recordstore.Record, stale, taker error) {
	t.Helper()
	ledger := newLedger()
	entered, hung, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
	old := client(t, &scripted{answer: func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
		close(entered)
		<-hung
		return []outbound.Verdict{late}
	}}, ledger, nil)
	go func() {
		defer close(answered)
		_, stale = old.Do(context.Background(), pay("c1", operation))
	}()
	<-entered
	ledger.advance(121 * time.Second)
	c := client(t, &scripted{answer: func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
		close(hung)
		<-answered
		return []outbound.Verdict{by}
	}}, ledger, nil)
	_, taker = c.Do(t.Context(), pay("c1", operation))
	return recordOf(t, c, ledger, pay("c1", operation)), stale, taker
}

// C25: where failures run again, a stale holder's refusal says nothing of the new
// holder's delivery: it is no fact, and is dropped.
func TestStaleRefusalThatRunsAgainIsNoFact(t *testing.T) {
	rec, stale, taker := overtaken(t, "pay.rerun", declined, lost)
	wantError(t, stale, outbound.ErrUncertain, outbound.EffectUnknown, true)
	wantError(t, taker, outbound.ErrUncertain, outbound.EffectUnknown, true)
	if rec.State != recordstore.Uncertain {
		t.Errorf("state %s, want uncertain: the second delivery may have been executed", rec.State)
	}
}

// A stored refusal that comes late is none either: the provider may have forgotten
// it by the time that the new holder's delivery arrives.
func TestStaleStoredRefusalIsNoFact(t *testing.T) {
	rec, stale, taker := overtaken(t, "pay.stored", declined, lost)
	wantError(t, stale, outbound.ErrUncertain, outbound.EffectUnknown, true)
	wantError(t, taker, outbound.ErrUncertain, outbound.EffectUnknown, true)
	if rec.State != recordstore.Uncertain {
		t.Errorf("state %s, want uncertain", rec.State)
	}
}

// during is a call whose record is changed by others while it is on its way.
func during(t *testing.T, v outbound.Verdict, opts *outbound.Options, change func(*recordstore.Record)) (*outbound.Client, *outbound.Reply, error) {
	t.Helper()
	ledger := memory.New(nil)
	a := &scripted{}
	c := client(t, a, ledger, opts)
	a.answer = func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
		rec := recordOf(t, c, ledger, pay("c1", "pay.stored"))
		rec.Holder, rec.Fence, rec.Version = "another", rec.Fence+1, rec.Version+1
		change(&rec)
		ledger.Seed(rec)
		return []outbound.Verdict{v}
	}
	r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	return c, r, err
}

// A record in review holds facts that contradict each other: a late refusal is
// no proof beside it.
func TestLateRefusalOfARecordInReview(t *testing.T) {
	_, _, err := during(t, declined, nil, func(rec *recordstore.Record) { rec.State = recordstore.ManualReview })
	wantError(t, err, outbound.ErrManualReview, outbound.EffectUnknown, true)
}

// What another holder settled is the answer, and Sent still says that this call
// wrote to the wire.
func TestOvertakenCallSaysThatItSent(t *testing.T) {
	_, _, err := during(t, lost, nil, func(rec *recordstore.Record) {
		rec.State, rec.ErrorCode = recordstore.Refused, "refused:card_declined"
	})
	e := wantError(t, err, outbound.ErrRefused, outbound.EffectNone, true)
	if e.ProviderCode != "card_declined" {
		t.Errorf("provider's code %q", e.ProviderCode)
	}
}

// R19: the right to a recorded answer is asked wherever one is given.
func TestRightToAnAnswerThatAnotherSettled(t *testing.T) {
	refuse := errors.New("not yours")
	opts := &outbound.Options{AllowReplay: func(context.Context, *outbound.Reply) error { return refuse }}
	c, _, err := during(t, lost, opts, func(rec *recordstore.Record) { rec.State = recordstore.Succeeded })
	wantError(t, err, outbound.ErrForbidden, outbound.EffectApplied, true)
	_, err = c.Status(t.Context(), outbound.Command{ID: "c1"}, "pay.stored")
	wantError(t, err, outbound.ErrForbidden, outbound.EffectApplied, false)
}

// C25: a stale holder's effect that the ledger could not be told is handed in
// again in the background.
func TestStaleEffectIsHandedInLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		ledger := &counting{Store: store}
		a := &scripted{}
		c := client(t, a, ledger, nil)
		call := pay("c1", "pay.stored")
		a.answer = func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
			rec := recordOf(t, c, ledger, call)
			rec.Holder, rec.Fence, rec.State = "another", 2, recordstore.Uncertain
			store.Seed(rec)
			ledger.cut("Report")
			return []outbound.Verdict{paid}
		}
		r, err := c.Do(t.Context(), call)
		wantReply(t, r, err, outbound.LatestStatus, outbound.FromProvider) // the new holder may have executed first
		if !errors.Is(r.Unrecorded, outbound.ErrStore) {
			t.Errorf("Unrecorded = %v, want ErrStore", r.Unrecorded)
		}
		ledger.cut()
		time.Sleep(time.Minute)
		if rec := recordOf(t, c, ledger, call); rec.State != recordstore.Succeeded {
			t.Errorf("state %s, want succeeded", rec.State)
		}
	})
}

// What the ledger showed while a late refusal could not be handed in still counts.
func TestLateRefusalBesideAReviewWithoutALedger(t *testing.T) {
	store := memory.New(nil)
	ledger := &counting{Store: store}
	a := &scripted{}
	c := client(t, a, ledger, nil)
	call := pay("c1", "pay.stored")
	a.answer = func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
		rec := recordOf(t, c, ledger, call)
		rec.Holder, rec.Fence, rec.State = "another", 2, recordstore.ManualReview
		store.Seed(rec)
		ledger.cut("Report")
		return []outbound.Verdict{declined}
	}
	_, err := c.Do(t.Context(), call)
	ledger.cut()
	wantError(t, err, outbound.ErrManualReview, outbound.EffectUnknown, true)
}
