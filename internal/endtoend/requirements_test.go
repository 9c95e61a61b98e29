package endtoend

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// R1: writes go this way; reads and naturally idempotent deletes get no key.
func TestR01_WhatGoesThisWay(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		b.must(b.refund("r1"))
		subscription := b.fake.Seed(providertest.StripeSubscription{})
		b.must(stripe.SubscriptionCancel(cmd("r1"), subscription, nil))
		if n := rowsOf(b.T, b.path); n != 2 {
			b.Errorf("%d records of two writes", n)
		}
		for _, s := range b.wire.to(http.MethodDelete, "/v1/subscriptions/"+subscription) {
			if keyOf(s) != "" {
				b.Error("a DELETE carries a key")
			}
		}
		if b.door == native {
			return
		}
		r, err := http.NewRequestWithContext(outbound.WithCommand(b.Context(), cmd("r1")), http.MethodGet, b.fake.URL+"/v1/charges/"+b.charge, nil)
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+stripeSecret)
		resp, err := b.caller.http.Do(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("a read under a command: %v, %v", resp, err)
		}
		resp.Body.Close()
		if sent := b.wire.to(http.MethodGet, "/v1/charges/"+b.charge); len(sent) != 1 || keyOf(sent[0]) != "" || rowsOf(b.T, b.path) != 2 {
			b.Error("a read got a key or a record")
		}
	})
}

// R2: each provider gets its own header or field, and none of our names.
func TestR02_TheProvidersOwnNames(t *testing.T) {
	check := func(b *bench, path, header string) {
		b.Helper()
		sent := b.wire.to(http.MethodPost, path)
		if len(sent) != 1 || sent[0].header.Get(header) == "" {
			b.Fatalf("%d requests to %s; want one with %s", len(sent), path, header)
		}
		for name := range sent[0].header {
			if strings.HasPrefix(name, "Samekey") || strings.HasPrefix(name, "X-") || keyOf(sent[0]) == "" {
				b.Errorf("the provider is sent our own %s", name)
			}
		}
	}
	onStripe(t, nil, func(b *bench) {
		b.must(b.refund("r2"))
		check(b, "/v1/refunds", "Idempotency-Key")
	})
	onPayPal(t, nil, func(b *bench) {
		call := b.capture("r2")
		b.must(call)
		check(b, call.Message.Target, "PayPal-Request-Id")
		b.must(payout("r2"))
		check(b, "/v1/payments/payouts", "PayPal-Request-Id")
		if body := b.wire.to(http.MethodPost, "/v1/payments/payouts")[0].body; !strings.Contains(body, `"sender_batch_id"`) {
			b.Error("the payout carries no sender_batch_id")
		}
	})
}

// R3, R5, R19: provider, account, mode, operation, scope and command each make
// another key; the same ones make the same key, in every process.
func TestR03_R05_WhatTheKeyIsMadeOf(t *testing.T) {
	b := newBench(t, "stripe", native, false, nil)
	keys := map[string]string{}
	add := func(why string, key keyderive.Key, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := keys[key.Raw()]; taken {
			t.Errorf("%s and %s make one key", why, other)
		}
		if strings.Contains(key.Raw(), "refund-7") {
			t.Errorf("%s: the key holds the command", why)
		}
		keys[key.Raw()] = why
	}
	name := func(why string, c outbound.Command, operation, account string) {
		key, err := b.client.Key(c, operation, account)
		add(why, key, err)
	}
	name("base", cmd("refund-7"), "refund.create", "")
	name("another command", cmd("refund-8"), "refund.create", "")
	name("a step", cmd("refund-7").Step("line-1"), "refund.create", "")
	name("another operation", cmd("refund-7"), "payout.create", "")
	name("another account", cmd("refund-7"), "refund.create", "acct_2")
	name("another scope", outbound.Command{ID: "refund-7", Scope: "tenant-1"}, "refund.create", "")
	for why, account := range map[string]string{"another mode": stripeAccount + "/live", "another provider": paypalAccount + "/sandbox"} {
		provider := map[string]string{"another mode": "stripe", "another provider": "paypal"}[why]
		key, err := keyderive.Derive(keyderive.Input{Provider: provider, Account: account, Operation: "refund.create", CommandID: "refund-7"})
		add(why, key, err)
	}
	again, err := b.restart(nil).client.Key(cmd("refund-7"), "refund.create", stripeAccount)
	if err != nil || keys[again.Raw()] != "base" {
		t.Errorf("another process makes another key: %v", err)
	}
	b.must(b.refund("refund-7"))
	if got := b.fake.Requests("refund.create")[0].KeyHash; got != hashOf(again.Raw()) {
		t.Error("the key on the wire is another one")
	}
}

// R4: a key is opaque and UUID-like, whatever the command was named.
func TestR04_KeysAreOpaque(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	onStripe(t, nil, func(b *bench) {
		for _, id := range []string{"alice@example.com", "+49 170 1234567", "alice", "order-4711"} {
			b.must(b.refund(id))
		}
		for _, key := range b.wire.rawKeys() {
			if !form.MatchString(key) {
				b.Errorf("the key %q is no UUID of version 8", key)
			}
		}
		b.count("refund.create", 4, 4)
	})
}

// R6: the record is there before the first byte, and holds what R6 lists.
func TestR06_TheRecord(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "refund.create", Delay: 3 * time.Second})
		call, done := b.refund("r6"), make(chan *outbound.Reply, 1)
		go func() {
			reply, err := b.call(b.Context(), call)
			if err != nil {
				b.Error(err)
			}
			done <- reply
		}()
		b.fake.AwaitHeld(1)
		key, err := b.client.Key(call.Command, call.Operation, "")
		if err != nil {
			b.Fatal(err)
		}
		rec := b.record(call)
		if rec.State != recordstore.Sending || rec.Provider != "stripe" || rec.Account != stripeAccount+"/test" || rec.Operation != "refund.create" ||
			rec.CommandID != "r6" || rec.ID.KeyHash != key.Hash() || len(rec.Fingerprint) != 17 || rec.Request == nil {
			b.Errorf("while it is sent: %+v", rec)
		}
		reply := <-done
		if rec = b.record(call); rec.State != recordstore.Succeeded || reply == nil || rec.ExternalRef != reply.ExternalRef || rec.RequestID != reply.RequestID || rec.RequestID == "" {
			b.Errorf("when it is done: %+v", rec)
		}
		b.fails(pay("r6", declinedCard), outbound.ErrRefused, outbound.EffectNone)
		if rec = b.record(pay("r6", declinedCard)); rec.State != recordstore.Refused || rec.ErrorCode != "refused:card_declined" {
			b.Errorf("when it was declined: %s %q", rec.State, rec.ErrorCode)
		}
	})
}

// R7: the same key with another request is found before the wire, and reported.
func TestR07_ConflictsAreReported(t *testing.T) {
	onPayPal(t, nil, func(b *bench) {
		call := b.capture("r7")
		b.must(call)
		other := b.capture("r7")
		b.fails(other, outbound.ErrFingerprintConflict, outbound.EffectApplied)
		b.count("order.capture", 1, 1)
		if n := b.seen.sum(b.T, "samekey.calls", result("fingerprint_conflict")); n != 1 {
			b.Errorf("%d conflicts are counted, want 1", n)
		}
		if !strings.Contains(b.seen.logs.String(), `"level":"ERROR","msg":"samekey: call"`) {
			b.Error("the conflict is not in the log")
		}
	})
}

// R8: after a timeout or a lost answer the same key goes out, in this process
// and in the next.
func TestR08_TheSameKeyAfterATimeout(t *testing.T) {
	test := func(b *bench, call outbound.Call) {
		b.inject(
			providertest.Fault{Kind: providertest.Hang, Operation: call.Operation, Applied: true},
			providertest.Fault{Kind: providertest.DropAfterApply, Operation: call.Operation},
		)
		b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		b.restart(nil).must(call)
		b.same(call.Operation)
		b.count(call.Operation, 1, 3)
	}
	onStripe(t, attempts(2), func(b *bench) { test(b, b.refund("r8")) })
	onPayPal(t, attempts(2), func(b *bench) { test(b, b.capture("r8")) })
}

// R9: "never started", "answer lost" and "not valid" are three things.
func TestR09_NeverStartedOrAnswerLost(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		alive := b.wire.base
		b.wire.base = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("connection refused")
		}}
		e := b.fails(b.refund("r9"), outbound.ErrUnavailable, outbound.EffectNone)
		if _, again := outbound.RetryAfter(e); !again || e.Sent || b.record(b.refund("r9")).State != recordstore.NotExecuted {
			b.Errorf("never started: RetryAfter %v, Sent %v", again, e.Sent)
		}
		b.wire.base = alive
		b.labelled(b.must(b.refund("r9")), rs.ByNoReplayHeader, outbound.FromProvider)

		b.inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create", Times: 4})
		e = b.fails(b.refund("r9-lost"), outbound.ErrUncertain, outbound.EffectUnknown)
		if _, again := outbound.RetryAfter(e); !again || !e.Sent {
			b.Errorf("answer lost: RetryAfter %v, Sent %v", again, e.Sent)
		}

		wrong := stripe.RefundCreate(cmd("r9-wrong"), url.Values{"charge": {b.charge}, "amount": {"0"}})
		e = b.fails(wrong, outbound.ErrRejected, outbound.EffectNone)
		if _, again := outbound.RetryAfter(e); again || !strings.Contains(e.Error(), "correct it") {
			b.Errorf("not valid: RetryAfter %v, %q", again, e)
		}
		b.count("refund.create", 2, 6)
	})
}

// R10: many callers of several processes at one instant are one delivery, and
// all end with the same object.
func TestR10_NeverTwiceAtTheSameTime(t *testing.T) {
	waiting := func(o *outbound.Options) { o.Wait = time.Minute }
	onStripe(t, waiting, func(b *bench) {
		processes := []*bench{b, b.restart(waiting), b.restart(waiting)}
		b.inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "refund.create", Delay: 3 * time.Second})
		const callers = 24
		refs := make(chan string, callers)
		for i := range callers {
			go func() {
				reply, err := processes[i%len(processes)].call(b.Context(), b.refund("r10"))
				if err != nil {
					refs <- err.Error()
					return
				}
				refs <- reply.ExternalRef
			}()
		}
		first := <-refs
		for range callers - 1 {
			if ref := <-refs; ref != first || !strings.HasPrefix(ref, "re_") {
				b.Errorf("one caller ends with %q, another with %q", first, ref)
			}
		}
		b.count("refund.create", 1, 1)
	})
}

// R11: a replay counts as a result and says what it is; R12: the same loss gives
// each provider's own answer, as its table documents.
func TestR11_R12_EachProvidersReplay(t *testing.T) {
	test := func(b *bench, call outbound.Call, want outbound.Evidence) {
		b.Helper()
		b.inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: call.Operation})
		reply := b.must(call)
		b.labelled(reply, want, outbound.FromProvider)
		if reply.ExternalRef == "" || len(reply.Body) == 0 {
			b.Errorf("a replay is no result: %+v", reply)
		}
	}
	onStripe(t, nil, func(b *bench) { test(b, b.refund("r11"), rs.ByReplayHeader) })
	onPayPal(t, nil, func(b *bench) {
		test(b, b.capture("r11"), rs.ByStatusCode)
		test(b, payout("r11"), rs.ByLookup)
	})
	for provider, rows := range map[string][]rs.Operation{"stripe": stripe.Operations(), "paypal": paypal.Operations()} {
		for _, op := range rows {
			if len(op.Facts) == 0 {
				t.Errorf("%s %s: no source says how it replays", provider, op.Name)
			}
		}
	}
}

// R13: inside the window the same key; after it no blind resend; and the record
// lives at least as long as the provider's key.
func TestR13_TheProvidersWindow(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		call := b.refund("r13")
		b.inject(providertest.Fault{Kind: providertest.DropBeforeApply, Operation: "refund.create", Times: 8})
		b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		time.Sleep(23 * time.Hour) // the bubble's clock
		b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		b.same("refund.create")
		b.count("refund.create", 0, 8)
		time.Sleep(time.Hour)
		e := b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		if e.Sent || !strings.Contains(e.Error(), "not sent again before it is known") {
			b.Errorf("past the window: %v", e)
		}
		b.count("refund.create", 0, 8)
		if rec := b.record(call); rec.ReplayUntil.Before(rec.WindowEndsAt) || rec.EvidenceUntil.Before(rec.ReplayUntil) {
			b.Errorf("replays until %v, evidence until %v, the provider's window until %v", rec.ReplayUntil, rec.EvidenceUntil, rec.WindowEndsAt)
		}
	})
	b := newBench(t, "stripe", native, false, nil)
	_, err := outbound.New(b.adapter(), b.store, &outbound.Options{
		Bodies: sealed(), Retention: map[rs.Class]outbound.Retention{rs.Money: {Replay: time.Hour, Evidence: time.Hour}},
	})
	wantError(t, err, outbound.ErrInvalid, outbound.EffectUnknown)
}
