package stripe_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// TestSubscriptionCancel holds that a DELETE of API v1 carries no key, is never
// sent twice, and is found by the state it leads to.
func TestSubscriptionCancel(t *testing.T) {
	cancel := func(id string) outbound.Call {
		return stripe.SubscriptionCancel(outbound.Command{ID: "cmd_1"}, id, url.Values{"cancellation_details[comment]": {"moved"}})
	}
	run(t, nil, func(b *bench) {
		reply := b.reply(cancel(b.fake.Seed(providertest.StripeSubscription{})))
		b.wantLabel(reply, "first_delivery", outbound.FromProvider)
		s := b.wire.writes()[0]
		if s.header.Get("Idempotency-Key") != "" || s.body != "" || s.query != "cancellation_details%5Bcomment%5D=moved" {
			b.Errorf("sent %+v", s)
		}
		if sub, err := stripe.SubscriptionOf(reply); err != nil || sub.Status != "canceled" || reply.Outcome != outbound.Done {
			b.Errorf("got %+v, %v", sub, err)
		}
	})
}

func TestSubscriptionCancelLost(t *testing.T) {
	run(t, nil, func(b *bench) {
		id := b.fake.Seed(providertest.StripeSubscription{})
		call := stripe.SubscriptionCancel(outbound.Command{ID: "cmd_1"}, id, nil)
		b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "subscription.cancel"})
		b.failure(call, outbound.ErrUncertain, outbound.EffectUnknown)
		b.wantLabel(b.reply(call), "state_guard", outbound.FromProvider)
		b.wantOnce("subscription.cancel", 1)
	})
}

// TestCaptureMarks holds that a capture is found by its own mark, which leaves
// the one of the payment intent's creation in place.
func TestCaptureMarks(t *testing.T) {
	run(t, nil, func(b *bench) {
		created, err := stripe.PaymentIntentOf(b.reply(stripe.PaymentIntentCreate(outbound.Command{ID: "cmd_1"}, url.Values{
			"amount": {"2000"}, "currency": {"eur"}, "confirm": {"true"}, "capture_method": {"manual"},
			"payment_method": {"pm_card_visa"}, "return_url": {"https://example.com"},
		})))
		if err != nil || created.Status != "requires_capture" {
			b.Fatalf("got %+v, %v", created, err)
		}
		b.fake.Inject(providertest.Fault{Kind: providertest.Status500, Operation: "payment_intent.capture", Stored: true, Applied: true})
		capture := stripe.PaymentIntentCapture(outbound.Command{ID: "cmd_1"}, created.ID, url.Values{"amount_to_capture": {"1500"}})
		b.failure(capture, outbound.ErrUncertain, outbound.EffectUnknown)
		reply := b.reply(capture)
		b.wantLabel(reply, "lookup", outbound.FromProvider)
		captured, err := stripe.PaymentIntentOf(reply)
		if err != nil || captured.Status != "succeeded" || captured.AmountReceived != 1500 {
			b.Errorf("got %+v, %v", captured, err)
		}
		first, second := captured.Metadata["samekey_command"], captured.Metadata["samekey_capture"]
		if first == "" || first != created.Metadata["samekey_command"] || len(second) != 36 || second == first {
			b.Errorf("the marks are %q and %q", first, second)
		}
		b.wantOnce("payment_intent.create", 1)
		b.wantOnce("payment_intent.capture", 2)
	})
}

// TestOperationsHaveTheirOwnKeys holds C05: one command on two operations is two
// keys, and cannot meet Stripe's mismatch.
func TestOperationsHaveTheirOwnKeys(t *testing.T) {
	run(t, nil, func(b *bench) {
		cmd := outbound.Command{ID: "cmd_1"}
		pi := b.reply(stripe.PaymentIntentCreate(cmd, url.Values{"amount": {"2000"}, "currency": {"eur"}, "payment_method": {"pm_card_visa"}}))
		b.reply(stripe.PaymentIntentConfirm(cmd, pi.ExternalRef, url.Values{"return_url": {"https://example.com"}}))
		w := b.wire.writes()
		if len(w) != 2 || w[0].header.Get("Idempotency-Key") == w[1].header.Get("Idempotency-Key") {
			b.Error("two operations share a key")
		}
	})
}

// TestMeterEvent holds that the key is the identifier too, in place of the
// caller's own.
func TestMeterEvent(t *testing.T) {
	run(t, nil, func(b *bench) {
		customer := b.fake.Seed(providertest.Customer{})
		b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "meter_event.create"})
		reply := b.reply(stripe.MeterEventCreate(outbound.Command{ID: "cmd_1"}, url.Values{
			"event_name": {"calls"}, "payload[value]": {"25"}, "payload[stripe_customer_id]": {customer}, "identifier": {"mine"},
		}))
		b.wantLabel(reply, "replay_header", outbound.FromProvider)
		for _, s := range b.wire.writes() {
			if key := s.header.Get("Idempotency-Key"); len(key) != 36 || s.form(b.T).Get("identifier") != key {
				b.Error("the identifier is not the key")
			}
		}
		if reply.ExternalRef != "" {
			b.Error("the key went out as an external reference")
		}
		b.wantOnce("meter_event.create", 2)
	})
}

// TestV2 holds the rules of API v2: a version on every request, a resend after
// success gives the present state, and a DELETE has a key.
func TestV2(t *testing.T) {
	const version = "2025-09-30.clover"
	versioned := func(cfg *stripe.Config, _ *outbound.Options) { cfg.Version = version }
	destination := map[string]any{
		"name": "hooks", "type": "webhook_endpoint", "event_payload": "thin", "enabled_events": []string{"v1.billing.meter.no_meter_found"},
		"webhook_endpoint": map[string]string{"url": "https://example.com/hook"},
	}
	run(t, versioned, func(b *bench) {
		cmd := outbound.Command{ID: "cmd_1"}
		b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "v2.event_destination.create"})
		created := b.reply(stripe.V2EventDestinationCreate(cmd, destination))
		b.wantLabel(created, "status_code", outbound.FromProvider)
		b.wantOnce("v2.event_destination.create", 2)

		deleted := b.reply(stripe.V2EventDestinationDelete(cmd, created.ExternalRef))
		b.wantLabel(deleted, "first_delivery", outbound.FromProvider)
		b.wantOnce("v2.event_destination.delete", 1)
		for _, s := range b.wire.writes() {
			if s.header.Get("Stripe-Version") != version || len(s.header.Get("Idempotency-Key")) != 36 {
				b.Errorf("%s %s: headers %v", s.method, s.path, s.header)
			}
		}
		if first := b.wire.writes()[0]; !strings.Contains(first.body, `"samekey_command"`) {
			b.Error("the creation carries no mark")
		}
	})
}

// TestV2WithoutVersion holds that Stripe's own refusal is not waited for.
func TestV2WithoutVersion(t *testing.T) {
	run(t, nil, func(b *bench) {
		e := b.failure(stripe.V2AccountCreate(outbound.Command{ID: "cmd_1"}, nil), outbound.ErrInvalid, outbound.EffectUnknown)
		if !strings.Contains(e.Error(), "Config.Version") {
			b.Errorf("the error does not say what to do: %v", e)
		}
		if w := b.wire.writes(); len(w) != 0 {
			b.Errorf("sent %+v", w)
		}
	})
}

// TestAccounts holds that another account is named on the wire and is another key.
func TestAccounts(t *testing.T) {
	run(t, nil, func(b *bench) {
		params := url.Values{"email": {"a@example.com"}}
		ours := stripe.CustomerCreate(outbound.Command{ID: "cmd_1"}, params)
		theirs := stripe.CustomerCreate(outbound.Command{ID: "cmd_1"}, params)
		theirs.Account = "acct_2"
		if b.reply(ours).ExternalRef == b.reply(theirs).ExternalRef {
			b.Error("two accounts share a customer")
		}
		w := b.wire.writes()
		if w[0].header.Get("Stripe-Account") != "" || w[1].header.Get("Stripe-Account") != "acct_2" {
			b.Errorf("accounts %q and %q", w[0].header.Get("Stripe-Account"), w[1].header.Get("Stripe-Account"))
		}
		if w[0].header.Get("Idempotency-Key") == w[1].header.Get("Idempotency-Key") {
			b.Error("two accounts share a key")
		}
	})
}

// TestOtherModesKey holds that a key of the other mode stops before the wire, and
// that no error shows it.
func TestOtherModesKey(t *testing.T) {
	live := func(cfg *stripe.Config, _ *outbound.Options) {
		cfg.Credentials = func(context.Context, string) (string, error) { return "sk_live_secret", nil }
	}
	run(t, live, func(b *bench) {
		e := b.failure(b.refund("cmd_1"), outbound.ErrInvalid, outbound.EffectNone)
		if strings.Contains(e.Error(), "sk_live_secret") {
			b.Errorf("the error shows the key: %v", e)
		}
		if e.Sent || len(b.wire.writes()) != 0 {
			b.Errorf("something was sent: %+v", e)
		}
	})
}

// TestNewReportsSettings holds that wrong settings stop at outbound.New.
func TestNewReportsSettings(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]stripe.Config{
		"Config.Account":         {SecretKey: "sk_live_x"},
		"Config.Test is not set": {Account: account, SecretKey: "sk_test_x"},
		"Config.BaseURL":         {Account: account, SecretKey: "sk_live_x", BaseURL: "api.stripe.com"},
	} {
		_, err := outbound.New(stripe.New(cfg), memory.New(nil), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestRefusedCredentials holds that a 401 is repaired under the same command.
func TestRefusedCredentials(t *testing.T) {
	run(t, nil, func(b *bench) {
		b.fake.Inject(providertest.Fault{Kind: providertest.Unauthorized, Operation: "refund.create"})
		b.failure(b.refund("cmd_1"), outbound.ErrAuth, outbound.EffectNone)
		b.wantLabel(b.reply(b.refund("cmd_1")), "no_replay_header", outbound.FromProvider)
		b.wantOnce("refund.create", 2)
	})
}

// TestValidation holds that what Stripe's validation refuses was not executed,
// and that a changed request needs a new command (C07).
func TestValidation(t *testing.T) {
	run(t, nil, func(b *bench) {
		wrong := stripe.RefundCreate(outbound.Command{ID: "cmd_1"}, url.Values{"charge": {b.charge}, "amount": {"0"}})
		e := b.failure(wrong, outbound.ErrRejected, outbound.EffectNone)
		if e.Answer == nil || e.Answer.Label != "" || e.Answer.StatusCode != http.StatusBadRequest {
			b.Errorf("got %+v", e.Answer)
		}
		b.failure(b.refund("cmd_1"), outbound.ErrFingerprintConflict, outbound.EffectNone)
		b.wantDeliveries("refund.create", 0, 1)
		b.reply(b.refund("cmd_2"))
	})
}

// TestHTMLAndRedirects holds that what does not come from Stripe is unknown (C18).
func TestHTMLAndRedirects(t *testing.T) {
	for _, kind := range []providertest.Kind{providertest.HTML502, providertest.Status503, providertest.Status424, providertest.Redirect} {
		t.Run(string(kind), func(t *testing.T) {
			run(t, nil, func(b *bench) {
				b.fake.Inject(providertest.Fault{Kind: kind, Operation: "refund.create", Applied: true, Times: 4})
				b.failure(b.refund("cmd_1"), outbound.ErrUncertain, outbound.EffectUnknown)
				b.fake.ClearFaults()
				b.wantLabel(b.reply(b.refund("cmd_1")), "replay_header", outbound.FromProvider)
				if got := b.fake.Effects("refund.create"); got != 1 {
					b.Errorf("effects = %d, want 1", got)
				}
			})
		})
	}
}
