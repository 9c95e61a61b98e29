package endtoend

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// A replayed error is told from a fresh one, in the reply and in the header that
// an SDK hands out.
func TestC13_ErrorsAreLabelledToo(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		fresh := b.fails(pay("c13-fresh", declinedCard), outbound.ErrRefused, outbound.EffectNone)
		b.labelled(fresh.Answer, rs.ByNoReplayHeader, outbound.FromProvider)

		b.inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "payment_intent.create"})
		replayed := b.fails(pay("c13-replayed", declinedCard), outbound.ErrRefused, outbound.EffectNone)
		b.labelled(replayed.Answer, rs.ByReplayHeader, outbound.FromProvider)

		recorded := b.fails(pay("c13-replayed", declinedCard), outbound.ErrRefused, outbound.EffectNone)
		b.labelled(recorded.Answer, rs.ByOwnRecord, outbound.FromLedger)
		b.count("payment_intent.create", 0, 3)
		if b.door == native {
			return
		}
		a, err := b.caller.send(b.Context(), pay("c13-fresh", declinedCard))
		label, _ := dropin.Read(a.header)
		if err != nil || a.status != http.StatusPaymentRequired || label != outbound.OriginalReplay {
			b.Errorf("a recorded decline is answered with %d, %q, %v", a.status, label, err)
		}
	})
}

// lock_timeout is tried again soon, rate_limit backs off; both prove None, but
// not of an earlier delivery.
func TestC14_TwoMeaningsOf429(t *testing.T) {
	slow := func(o *outbound.Options) { o.Retry.MinWait = 4 * time.Second }
	onStripe(t, slow, func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.RateLimit, Operation: "refund.create", Times: 4})
		e := b.fails(b.refund("c14"), outbound.ErrRateLimited, outbound.EffectNone)
		if _, again := outbound.RetryAfter(e); !again || e.Answer.Label != "" {
			b.Errorf("RetryAfter = %v, label %q; want again, and none", again, e.Answer.Label)
		}
		r := b.fake.Requests("refund.create")
		if d := r[1].At.Sub(r[0].At); d < 2*time.Second {
			b.Errorf("a limiter was asked again after %v", d)
		}
		b.inject(providertest.Fault{Kind: providertest.LockTimeout, Operation: "refund.create"})
		b.labelled(b.must(b.refund("c14")), rs.ByNoReplayHeader, outbound.FromProvider)
		b.count("refund.create", 1, 6)

		b.inject(
			providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"},
			providertest.Fault{Kind: providertest.LockTimeout, Operation: "refund.create", Times: 3},
		)
		b.fails(b.refund("c14-doubt"), outbound.ErrUncertain, outbound.EffectUnknown)
		b.labelled(b.must(b.refund("c14-doubt")), rs.ByReplayHeader, outbound.FromProvider)
		b.count("refund.create", 2, 11)
	})
	quick := func(o *outbound.Options) {
		o.Retry = outbound.Retry{MinWait: 50 * time.Millisecond, MaxWait: 100 * time.Millisecond}
	}
	onStripe(t, quick, func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.LockTimeout, Operation: "refund.create"})
		b.must(b.refund("c14-lock"))
		r := b.fake.Requests("refund.create")
		if d := r[1].At.Sub(r[0].At); d < 400*time.Millisecond || d > 2*time.Second {
			b.Errorf("a locked object was asked for again after %v; want about half a second", d)
		}
		b.count("refund.create", 1, 2)
	})
}

// Every operation with a key takes ours of 36 characters; a table with a
// smaller limit fails before the first call.
func TestC16_KeysFitEveryProvider(t *testing.T) {
	for provider, rows := range map[string][]rs.Operation{"stripe": stripe.Operations(), "paypal": paypal.Operations()} {
		client := newClient(t, adapterOf(provider, "http://provider.test", nil), memory.New(nil), nil)
		for _, op := range rows {
			if !op.HasKey() {
				continue
			}
			key, err := client.Key(cmd(strings.Repeat("x", 255)), op.Name, "")
			if err != nil || len(key.Raw()) != 36 || len(key.Mark()) != 36 || op.KeyMax != 0 && op.KeyMax < 36 {
				t.Errorf("%s %s: a key of %d characters where %d are allowed, %v", provider, op.Name, len(key.Raw()), op.KeyMax, err)
			}
		}
	}
	short := rs.Operation{
		Name: "old.create", Method: http.MethodPost, Path: "/v1/old", Keys: []rs.Place{rs.Header("Idempotency-Key")}, KeyMax: 30,
		Resend: rs.Original, Facts: []rs.Fact{{States: "30 characters", URL: "https://provider.example/docs", Read: "2026-11-30"}},
	}
	_, err := outbound.New(adapterOf("stripe", "http://provider.test", nil).With(short), memory.New(nil), nil)
	if e := wantError(t, err, outbound.ErrInvalid, outbound.EffectUnknown); !strings.Contains(e.Error(), "old.create") || !strings.Contains(e.Error(), "36") {
		t.Errorf("%q names neither the row nor what it must hold", e)
	}
}

func payout(id string) outbound.Call {
	return paypal.PayoutCreate(cmd(id), map[string]any{
		"sender_batch_header": map[string]any{"email_subject": "Your share"},
		"items": []any{map[string]any{
			"recipient_type": "PAYPAL_ID", "receiver": "R1", "amount": map[string]any{"currency": "EUR", "value": "5.00"},
		}},
	})
}

// Payouts deduplicate by the batch id in the body: it is the command's key, and
// the error about it leads to the batch (C29: a conflict leads to what exists).
func TestC17_PayoutsDeduplicateByTheBatchID(t *testing.T) {
	onPayPal(t, nil, func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "payout.create"})
		reply := b.must(payout("c17"))
		b.labelled(reply, rs.ByLookup, outbound.FromProvider)
		batch, err := paypal.PayoutOf(reply)
		if err != nil || batch.ID == "" || batch.ID != reply.ExternalRef {
			b.Errorf("batch %+v, %v", batch, err)
		}
		b.count("payout.create", 1, 2)
		b.same("payout.create")
		key, err := b.client.Key(cmd("c17"), "payout.create", "")
		if err != nil {
			b.Fatal(err)
		}
		for i, s := range b.wire.to(http.MethodPost, "/v1/payments/payouts") {
			var sent struct {
				Header struct {
					ID string `json:"sender_batch_id"`
				} `json:"sender_batch_header"`
			}
			if err := json.Unmarshal([]byte(s.body), &sent); err != nil || sent.Header.ID != key.Raw() {
				b.Errorf("delivery %d: the batch id is not the key, %v", i+1, err)
			}
		}
		if again := b.must(payout("c17")); again.ExternalRef != batch.ID {
			b.Errorf("the second call ends with %q, the first with %q", again.ExternalRef, batch.ID)
		}
		b.count("payout.create", 1, 2)
	})
}

// A success without its body is not "not paid".
func TestC18_AnEmptyAnswerIsUncertain(t *testing.T) {
	onPayPal(t, nil, func(b *bench) {
		call := authorized(b, "c18")
		b.inject(providertest.Fault{Kind: providertest.Empty, Operation: call.Operation, Times: 4})
		b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		b.count(call.Operation, 1, 4)
		b.must(call)
		b.count(call.Operation, 1, 5)
	})
	onStripe(t, nil, func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.Truncate, Operation: "refund.create", Times: 4})
		b.fails(b.refund("c18"), outbound.ErrUncertain, outbound.EffectUnknown)
		b.labelled(b.must(b.refund("c18")), rs.ByReplayHeader, outbound.FromProvider)
		b.count("refund.create", 1, 5)
	})
}

// A 204 is settled before any client code sees it, and the next call replays it.
func TestC19_NoContentIsApplied(t *testing.T) {
	onPayPal(t, nil, func(b *bench) {
		subscription := b.fake.Seed(providertest.ActiveSubscription{})
		call := paypal.SubscriptionCancel(cmd("c19"), subscription, "asked for")
		b.labelled(b.must(call), rs.ByFirstDelivery, outbound.FromProvider)
		b.labelled(b.must(call), rs.ByOwnRecord, outbound.FromLedger)
		b.count(call.Operation, 1, 1)
		if b.door == native {
			return
		}
		ctx, tracked := outbound.Track(b.Context(), cmd("c19-void"))
		authorization := b.fake.Seed(providertest.CreatedAuthorization{})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.fake.URL+"/v2/payments/authorizations/"+authorization+"/void", http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := b.caller.http.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		var void map[string]any
		if err := json.NewDecoder(io.LimitReader(resp.Body, 0)).Decode(&void); err == nil {
			b.Error("the SDK of this test should fail to decode")
		}
		resp.Body.Close()
		if reply, err := tracked.Result(); err != nil || reply == nil || b.record(paypal.AuthorizationVoid(cmd("c19-void"), authorization)).State != recordstore.Succeeded {
			b.Errorf("Track says %+v, %v after the client failed to decode", reply, err)
		}
		b.labelled(b.must(paypal.AuthorizationVoid(cmd("c19-void"), authorization)), rs.ByOwnRecord, outbound.FromLedger)
		b.count("authorization.void", 1, 1)
	})
}

// DUPLICATE_INVOICE_ID leads to a look-up and never to a second capture.
func TestC20_DuplicateInvoiceID(t *testing.T) {
	onPayPal(t, nil, func(b *bench) {
		first := paypal.OrderCapture(cmd("c20-a"), b.fake.Seed(providertest.ApprovedOrder{InvoiceID: "INV-1"}), nil)
		second := paypal.OrderCapture(cmd("c20-b"), b.fake.Seed(providertest.ApprovedOrder{InvoiceID: "INV-1"}), nil)
		b.must(first)
		e := b.fails(second, outbound.ErrUncertain, outbound.EffectUnknown)
		if e.ProviderCode != "DUPLICATE_INVOICE_ID" {
			b.Errorf("code %q", e.ProviderCode)
		}
		b.count("order.capture", 1, 2)
		if looked := len(b.wire.to(http.MethodGet, strings.TrimSuffix(second.Message.Target, "/capture"))); looked == 0 {
			b.Error("the order was not looked up")
		}
		for _, s := range b.wire.to(http.MethodPost, second.Message.Target) {
			if strings.Contains(s.body, "invoice_id") {
				b.Error("the capture was sent with another invoice id")
			}
		}
	})
}

// A token that PayPal took away is fetched once for all waiting callers, and
// each sends its id again.
func TestC21_TokenGoneInTheMiddle(t *testing.T) {
	onPayPal(t, nil, func(b *bench) {
		b.must(b.capture("c21-warm"))
		fetched := len(b.fake.Requests("token"))
		b.fake.Seed(providertest.RevokedTokens{})
		var group sync.WaitGroup
		const callers = 12
		for i := range callers {
			call := b.capture("c21-" + string(rune('a'+i)))
			group.Go(func() {
				if _, err := b.call(b.Context(), call); err != nil {
					b.Errorf("caller %d: %v", i, err)
				}
			})
		}
		group.Wait()
		if got := b.fake.Effects("order.capture"); got != callers+1 || b.fake.Duplicates() != 0 {
			b.Errorf("%d effects and %d duplicates; want %d and none", got, b.fake.Duplicates(), callers+1)
		}
		if got := len(b.fake.Requests("token")) - fetched; got != 1 {
			b.Errorf("%d tokens were fetched for %d waiting callers, want 1", got, callers)
		}
		keys := map[[32]byte]int{}
		for _, r := range b.fake.Requests("order.capture") {
			keys[r.KeyHash]++
		}
		if len(keys) != callers+1 {
			b.Errorf("%d ids for %d captures", len(keys), callers+1)
		}
	})
}

// "In progress" and "already done" are no failures: wait, resend, or look up.
func TestC27_InProgressElsewhere(t *testing.T) {
	onPayPal(t, nil, func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.InFlight, Operation: "order.capture", Times: 2})
		b.labelled(b.must(b.capture("c27")), rs.ByStatusCode, outbound.FromProvider)
		b.count("order.capture", 1, 3)

		b.inject(providertest.Fault{Kind: providertest.InFlight, Operation: "order.capture", Times: 4})
		call := b.capture("c27-long")
		e := b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		if _, again := outbound.RetryAfter(e); !again {
			b.Error("calling again would help")
		}
		b.must(call)
		b.count("order.capture", 2, 8)

		again := call // the same order under another command: its state is the goal
		again.Command = cmd("c27-other")
		b.labelled(b.must(again), rs.ByStateGuard, outbound.FromProvider)
		b.count("order.capture", 2, 9)
	})
	onStripe(t, nil, func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.InFlight, Operation: "refund.create"})
		b.must(b.refund("c27"))
		b.count("refund.create", 1, 2)
	})
}

// A timeout says that nobody knows, and what to do; an SDK neither takes it for
// a refusal nor repeats it.
func TestC28_ATimeoutIsNoFailure(t *testing.T) {
	onStripe(t, attempts(2), func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.Hang, Operation: "refund.create", Applied: true, Times: 2})
		call := b.refund("c28")
		e := b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		for _, want := range []string{"may or may not have been executed", "do not treat it as failed", "call again with the same command"} {
			if !strings.Contains(e.Error(), want) {
				b.Errorf("%q does not say %q", e, want)
			}
		}
		if b.door == sdk {
			b.inject(providertest.Fault{Kind: providertest.Hang, Operation: "refund.create", Times: 2})
			a, err := b.caller.send(b.Context(), call)
			if err != nil || a.status != http.StatusInternalServerError || a.header.Get("Stripe-Should-Retry") != "false" {
				b.Errorf("an unknown effect is answered with %d, %v, %v", a.status, a.header, err)
			}
		}
		b.labelled(b.must(call), rs.ByReplayHeader, outbound.FromProvider)
		if got := b.fake.Effects("refund.create"); got != 1 {
			b.Errorf("effects = %d", got)
		}
	})
	onStripe(t, nil, func(b *bench) { // the caller's own patience
		b.inject(providertest.Fault{Kind: providertest.Hang, Operation: "refund.create", Applied: true})
		ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
		defer cancel()
		_, err := b.call(ctx, b.refund("c28"))
		if err == nil || ctx.Err() == nil {
			b.Fatalf("got %v", err)
		}
		if rec := b.record(b.refund("c28")); rec.State != recordstore.Uncertain {
			b.Errorf("the record is %s, want uncertain", rec.State)
		}
		b.must(b.refund("c28"))
		b.count("refund.create", 1, 2)
	})
}

// An SDK that makes a fresh key at each of its own attempts has one effect, and
// gets the object that its first attempt made.
func TestC29_AFreshKeyAtEachAttempt(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create", Times: 10})
		var reply *outbound.Reply
		for range 5 { // the SDK's own retries; b.call makes a key for each
			var err error
			if reply, err = b.call(b.Context(), b.refund("c29")); err == nil {
				break
			}
		}
		if reply == nil || reply.ExternalRef == "" {
			b.Fatalf("the SDK gave up: %+v", reply)
		}
		b.count("refund.create", 1, 11)
		b.same("refund.create")
	})
}

// net/http sends a body-less POST again by itself when a kept connection dies.
// It is counted as a delivery, reported as a hidden one, and has one effect.
func TestC30_HiddenResend(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		b.must(b.refund("c30-warm")) // leaves a connection behind
		intent := b.fake.Seed(providertest.PaymentIntent{Status: "requires_confirmation"})
		b.inject(providertest.Fault{Kind: providertest.ResetReused, Operation: "payment_intent.confirm"})
		reply := b.must(stripe.PaymentIntentConfirm(cmd("c30"), intent, nil))
		b.count("payment_intent.confirm", 1, 2)
		b.same("payment_intent.confirm")
		if written := len(b.wire.to(http.MethodPost, "/v1/payment_intents/"+intent+"/confirm")); written != 1 || reply.Deliveries != 2 {
			b.Errorf("we sent %d and counted %d deliveries; want 1 and 2", written, reply.Deliveries)
		}
		hidden := b.seen.sum(b.T, "samekey.deliveries", attribute.String("samekey.delivery", "hidden"), attribute.String("samekey.operation", "payment_intent.confirm"))
		if hidden != 1 || !strings.Contains(b.seen.logs.String(), "sent a request again by itself") {
			b.Errorf("%d hidden deliveries are counted, want 1, and one log line", hidden)
		}
		if rec := b.record(stripe.PaymentIntentConfirm(cmd("c30"), intent, nil)); rec.Deliveries != 2 {
			b.Errorf("the ledger holds %d deliveries", rec.Deliveries)
		}
	})
	onPayPal(t, nil, func(b *bench) { // no Idempotency-Key: net/http leaves it alone, and we resend
		b.must(b.capture("c30-warm"))
		b.inject(providertest.Fault{Kind: providertest.ResetReused, Operation: "order.capture"})
		reply := b.must(b.capture("c30"))
		if reply.Deliveries != 2 {
			b.Errorf("%d deliveries, want 2", reply.Deliveries)
		}
		b.count("order.capture", 2, 3)
	})
}
