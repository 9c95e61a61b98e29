package endtoend

// Where each case is proved, counted by the provider's own ledger of effects.
// Here through both doors unless said otherwise; further proofs in brackets.
//
//	C01 TestC01_InUseIsWaitedFor            [providers/stripe TestInUse]
//	C02 TestC02_EveryDeliveryHasTheSameBytes
//	C03 TestC03_SlowerThanTheBudget         [providers/stripe TestSlowerThanTheBudget]
//	C04 TestC04_OneKeyOverAllDeliveries     [integration: the real SDKs]
//	C05 TestC05_TheOperationIsInTheKey      [keyderive]
//	C06 TestC06_AnotherCardIsAnotherCommand
//	C07 TestC07_DriftingParametersConflict
//	C08 TestC08_KeyAndFingerprintIgnoreTheVolatile [outbound/httpadapter]
//	C09 TestC09_RedeliveredToANewProcess    real processes, one killed; Do only
//	C10 TestC10_TwoHandlersAtOneInstant     [TestManyProcesses]
//	C11 in outbound TestPastTheWindowOnlyALookupSpeaks; providers/paypal TestWindowClosed, TestAbsentThenSent; providers/stripe TestPastTheWindow
//	C12 TestC12_MarksAreInTheFrozenBytes
//	C13 TestC13_ErrorsAreLabelledToo
//	C14 TestC14_TwoMeaningsOf429
//	C15 TestC15_InvoicingRunIsKilledAndStartedAgain
//	C16 TestC16_KeysFitEveryProvider
//	C17 TestC17_PayoutsDeduplicateByTheBatchID
//	C18 TestC18_AnEmptyAnswerIsUncertain
//	C19 TestC19_NoContentIsApplied
//	C20 TestC20_DuplicateInvoiceID
//	C21 TestC21_TokenGoneInTheMiddle
//	C22 in outbound TestReconcilerFindsDeadSenders; internal/chaos TestKilledAtEveryStep
//	C23 in outbound TestLadderEndsInReview
//	C24 in outbound TestLadderEndsInReview; providers/paypal TestFindFailures; providers/stripe TestFindFails
//	C25 in outbound TestStaleRefusalThatRunsAgainIsNoFact, TestStaleEffectIsHandedInLater; recordstore TestLifeOfARecord
//	C26 in outbound TestNoteThatGrowsWhileItIsMerged; providers/paypal TestWebhookSettlesRefund
//	C27 TestC27_InProgressElsewhere
//	C28 TestC28_ATimeoutIsNoFailure
//	C29 TestC29_AFreshKeyAtEachAttempt      drop-in; [TestC17]
//	C30 TestC30_HiddenResend
//
// Requirements: R1–R4, R6–R13 TestR01_… to TestR13_…, R5 with R3 and in
// oneKeyWithAnotherFingerprint, R14 TestR14_LogsHoldNoKey and TestSecretsStayInside,
// R15 TestR15_…, each line of R16 a subtest of TestR16_Forbidden, R19, R23, R27 and
// R28 in identity_test.go. Rules that are easy to get wrong: rules_test.go. What a
// call costs the ledger: writes_test.go. Bad input: input_test.go.

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// A 409 "in use" is waited out with the same key and ends in the original.
func TestC01_InUseIsWaitedFor(t *testing.T) {
	onStripe(t, attempts(8), func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "refund.create", Delay: 4 * time.Second})
		b.labelled(b.must(b.refund("c01")), rs.ByReplayHeader, outbound.FromProvider)
		requests := b.fake.Requests("refund.create")
		if !slices.ContainsFunc(requests, func(r providertest.Request) bool { return r.Status == http.StatusConflict }) {
			b.Error("no delivery met the running one")
		}
		b.same("refund.create")
		b.count("refund.create", 1, len(requests))
	})
}

// The body can be read once; every delivery carries it whole.
func TestC02_EveryDeliveryHasTheSameBytes(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		b.inject(
			providertest.Fault{Kind: providertest.DropBeforeApply, Operation: "refund.create", Times: 2},
			providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"},
		)
		b.must(b.refund("c02"))
		b.count("refund.create", 1, 4)
		b.same("refund.create")
		for i, s := range b.wire.to(http.MethodPost, "/v1/refunds") {
			if !strings.Contains(s.body, "amount=500") {
				b.Errorf("delivery %d carries %d bytes and no amount", i+1, len(s.body))
			}
		}
	})
}

// Work slower than all attempts is uncertain; a later call gets its replay.
func TestC03_SlowerThanTheBudget(t *testing.T) {
	onStripe(t, attempts(3), func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "refund.create", Delay: 20 * time.Second})
		e := b.fails(b.refund("c03"), outbound.ErrUncertain, outbound.EffectUnknown)
		if _, again := outbound.RetryAfter(e); !again || !e.Sent {
			b.Errorf("RetryAfter = %v, Sent = %v; want both", again, e.Sent)
		}
		b.fake.AwaitEffects("refund.create", 1)
		b.labelled(b.must(b.refund("c03")), rs.ByReplayHeader, outbound.FromProvider)
		b.count("refund.create", 1, 4)
	})
}

// Whatever keys an SDK makes, one goes out; one that its caller chose is refused.
func TestC04_OneKeyOverAllDeliveries(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create", Times: 5})
		call := b.refund("c04")
		b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		b.must(call)
		b.count("refund.create", 1, 6)
		b.same("refund.create")
		key, err := b.client.Key(call.Command, call.Operation, "")
		if err != nil {
			b.Fatal(err)
		}
		if got := b.fake.Requests("refund.create")[0].KeyHash; got != hashOf(key.Raw()) {
			b.Error("the key on the wire is not the command's")
		}
		if b.door == native {
			return
		}
		a, err := b.caller.send(b.Context(), b.refund("c04-own"), outbound.Field{Name: "Idempotency-Key", Value: "order-17"})
		if err != nil || a.status != http.StatusBadRequest || a.header.Get("Stripe-Should-Retry") != "false" {
			b.Errorf("a caller's own key was answered with %d, %v; want a loud refusal", a.status, err)
		}
		wantError(b.T, a.err, outbound.ErrInvalid, outbound.EffectUnknown)
		b.count("refund.create", 1, 6)
	})
}

// The operation is in the key: one command makes one effect of each operation.
func TestC05_TheOperationIsInTheKey(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		refund := b.must(b.refund("c05"))
		intent := b.must(stripe.PaymentIntentCreate(cmd("c05"), url.Values{"amount": {"700"}, "currency": {"eur"}}))
		b.labelled(refund, rs.ByNoReplayHeader, outbound.FromProvider)
		b.labelled(intent, rs.ByNoReplayHeader, outbound.FromProvider)
		b.count("refund.create", 1, 1)
		b.count("payment_intent.create", 1, 1)
		if b.fake.Requests("refund.create")[0].KeyHash == b.fake.Requests("payment_intent.create")[0].KeyHash {
			b.Error("two operations have one key")
		}
	})
	onPayPal(t, nil, func(b *bench) {
		captured := b.must(b.capture("c05"))
		b.must(paypal.CaptureRefund(cmd("c05"), captured.ExternalRef, paypal.RefundRequest{Amount: paypal.Money{Currency: "EUR", Value: "2.00"}}))
		b.count("order.capture", 1, 1)
		b.count("capture.refund", 1, 1)
		if b.fake.Requests("order.capture")[0].KeyHash == b.fake.Requests("capture.refund")[0].KeyHash {
			b.Error("two operations have one key")
		}
	})
}

func pay(id, method string) outbound.Call {
	return stripe.PaymentIntentCreate(cmd(id), url.Values{
		"amount": {"2000"}, "currency": {"eur"}, "confirm": {"true"},
		"payment_method": {method}, "return_url": {"https://shop.example"},
	})
}

const declinedCard, goodCard = "pm_card_chargeDeclined", "pm_card_visa"

// A decline is the command's outcome; another card is another command.
func TestC06_AnotherCardIsAnotherCommand(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		e := b.fails(pay("c06", declinedCard), outbound.ErrRefused, outbound.EffectNone)
		if e.ProviderCode != "card_declined" {
			b.Errorf("code %q", e.ProviderCode)
		}
		e = b.fails(pay("c06", declinedCard), outbound.ErrRefused, outbound.EffectNone)
		b.labelled(e.Answer, rs.ByOwnRecord, outbound.FromLedger)
		e = b.fails(pay("c06", goodCard), outbound.ErrFingerprintConflict, outbound.EffectNone)
		if e.Sent {
			b.Error("the conflict says that something was sent")
		}
		b.count("payment_intent.create", 0, 1)
		b.must(pay("c06-second-try", goodCard))
		b.count("payment_intent.create", 1, 2)
	})
}

// A stable command with drifting parameters conflicts before the wire, in words
// that help and show no value.
func TestC07_DriftingParametersConflict(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		drifting := func(customer string) outbound.Call {
			call := b.refund("c07")
			call.Message.Body = append(call.Message.Body, "&metadata[customer]="+customer...)
			return call
		}
		b.must(drifting("cus_first"))
		e := b.fails(drifting("cus_second"), outbound.ErrFingerprintConflict, outbound.EffectApplied)
		b.count("refund.create", 1, 1)
		for _, want := range []string{"refund.create", "nothing was sent", "new command"} {
			if !strings.Contains(e.Error(), want) {
				b.Errorf("%q does not say %q", e, want)
			}
		}
		for _, value := range []string{"cus_first", "cus_second", b.charge, "500"} {
			if strings.Contains(e.Error(), value) {
				b.Errorf("%q shows the value %q", e, value)
			}
		}
	})
}

// A token or a timestamp in the payload changes no key, and one that the row
// declares volatile changes no fingerprint.
func TestC08_KeyAndFingerprintIgnoreTheVolatile(t *testing.T) {
	b := newBench(t, "stripe", native, false, nil)
	rows := stripe.Operations()
	for i := range rows {
		if rows[i].Name == "refund.create" {
			rows[i].Volatile = []rs.Place{rs.Form("metadata[asked_at]")}
		}
	}
	a := httpadapter.New(b.adapter().Codec(), httpadapter.Config{
		Provider: "stripe", Account: stripeAccount, Mode: "test", BaseURL: b.fake.URL, Operations: rows, Transport: b.wire,
	})
	client := newClient(t, a, b.store, &outbound.Options{Bodies: sealed()})
	at := func(when string) outbound.Call {
		call := stripe.RefundCreate(cmd("c08"), url.Values{"charge": {b.charge}, "amount": {"500"}, "metadata[asked_at]": {when}})
		call.Credentials = []outbound.Field{{Name: "Authorization", Value: "Bearer " + stripeSecret}}
		return call
	}
	first, err := client.Do(t.Context(), at("10:00:00"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := client.Do(t.Context(), at("10:00:07"))
	if err != nil {
		t.Fatal(err)
	}
	b.labelled(second, rs.ByOwnRecord, outbound.FromLedger)
	if first.ExternalRef != second.ExternalRef {
		t.Errorf("two refunds: %s and %s", first.ExternalRef, second.ExternalRef)
	}
	b.count("refund.create", 1, 1)
}

// The webhook handler and the request handler send at one instant: one delivery,
// the other is told or waits, and both end with the same object.
func TestC10_TwoHandlersAtOneInstant(t *testing.T) {
	inProgress := providertest.Fault{Kind: providertest.SlowApply, Delay: 5 * time.Second}
	test := func(b *bench, call outbound.Call) {
		b.inject(inProgress)
		first := make(chan *outbound.Reply, 1)
		go func() {
			reply, err := b.call(b.Context(), call)
			if err != nil {
				b.Error(err)
			}
			first <- reply
		}()
		b.fake.AwaitHeld(1)
		e := b.fails(call, outbound.ErrInFlight, outbound.EffectUnknown)
		if d, again := outbound.RetryAfter(e); !again || d <= 0 || e.Sent {
			b.Errorf("RetryAfter = %v, %v; Sent = %v", d, again, e.Sent)
		}
		patient := b.restart(func(o *outbound.Options) { o.Wait = time.Minute })
		waited := patient.must(call)
		b.labelled(waited, rs.ByOwnRecord, outbound.FromLedger)
		if reply := <-first; reply == nil || reply.ExternalRef == "" || reply.ExternalRef != waited.ExternalRef {
			b.Errorf("the first ends with %+v, the second with %q", reply, waited.ExternalRef)
		}
		b.count(call.Operation, 1, 1)
	}
	onStripe(t, nil, func(b *bench) { test(b, b.refund("c10")) })
	onPayPal(t, nil, func(b *bench) { test(b, authorized(b, "c10")) })
}

// authorized captures a new authorization, whose answers PayPal replays for long.
func authorized(b *bench, id string) outbound.Call {
	return paypal.AuthorizationCapture(cmd(id), b.fake.Seed(providertest.CreatedAuthorization{Value: "9.00"}), nil)
}

// The mark is stamped before the first send and is in the bytes that another
// process sends again.
func TestC12_MarksAreInTheFrozenBytes(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.DropBeforeApply, Operation: "refund.create", Times: 4})
		call := b.refund("c12")
		b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		other := b.restart(nil)
		refund, err := stripe.RefundOf(other.must(call))
		key, keyErr := b.client.Key(call.Command, call.Operation, "")
		if err != nil || keyErr != nil {
			b.Fatal(err, keyErr)
		}
		if refund.Metadata["samekey_command"] != key.Mark() {
			b.Errorf("metadata %v, want the mark %s", refund.Metadata, key.Mark())
		}
		b.same("refund.create")
		b.count("refund.create", 1, 5)
		if rec := b.record(call); rec.State != recordstore.Succeeded || rec.Request != nil {
			b.Errorf("the record is %s and holds %d bytes of request; want succeeded and none", rec.State, len(rec.Request))
		}
	})
}
