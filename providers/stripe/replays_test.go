package stripe_test

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

func TestFirstExecution(t *testing.T) {
	run(t, nil, func(b *bench) {
		reply := b.reply(b.refund("cmd_1"))
		b.wantLabel(reply, "no_replay_header", outbound.FromProvider)
		refund, err := stripe.RefundOf(reply)
		if err != nil || refund.Status != "succeeded" || refund.Amount != 500 || string(refund.Charge) != b.charge {
			b.Errorf("got %+v, %v", refund, err)
		}
		if reply.ExternalRef != refund.ID || reply.Outcome != outbound.Done || reply.ObjectStatus != "succeeded" || reply.RequestID == "" {
			b.Errorf("got %+v", reply)
		}
		b.wantOnce("refund.create", 1)

		again := b.reply(b.refund("cmd_1"))
		b.wantLabel(again, "own_record", outbound.FromLedger)
		if again.ExternalRef != reply.ExternalRef || !bytes.Equal(again.Body, reply.Body) {
			b.Error("the ledger's answer is not the first one")
		}
		b.wantOnce("refund.create", 1)
	})
}

// TestMarkAndKey holds C12 and C16: the mark is in the bytes of the first send,
// where the caller left its place free, and the key has 36 characters.
func TestMarkAndKey(t *testing.T) {
	run(t, nil, func(b *bench) {
		b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"})
		reply := b.reply(b.refund("cmd_1"))
		key, err := keyderive.Derive(keyderive.Input{Provider: "stripe", Account: account + "/test", Operation: "refund.create", CommandID: "cmd_1"})
		if err != nil {
			b.Fatal(err)
		}
		refund, err := stripe.RefundOf(reply)
		if err != nil || refund.Metadata["samekey_command"] != key.Mark() {
			b.Errorf("the refund's metadata is %v, want the mark %s (%v)", refund.Metadata, key.Mark(), err)
		}
		for i, s := range b.wire.writes() {
			if got := s.header.Get("Idempotency-Key"); got != key.Raw() || len(got) != 36 {
				b.Errorf("delivery %d has another key", i)
			}
			if s.form(b.T).Get("metadata[samekey_command]") != key.Mark() {
				b.Errorf("delivery %d has no mark", i)
			}
		}

		call := stripe.RefundCreate(outbound.Command{ID: "cmd_2"}, url.Values{"charge": {b.charge}, "amount": {"100"}, "metadata[samekey_command]": {"mine"}})
		if refund, err := stripe.RefundOf(b.reply(call)); err != nil || refund.Metadata["samekey_command"] != "mine" {
			b.Errorf("the caller's own metadata was overwritten: %v, %v", refund.Metadata, err)
		}
	})
}

// TestLostAnswer holds that a lost answer comes back as the original (R1).
func TestLostAnswer(t *testing.T) {
	for _, kind := range []providertest.Kind{providertest.DropAfterApply, providertest.Truncate, providertest.Empty} {
		t.Run(string(kind), func(t *testing.T) {
			run(t, nil, func(b *bench) {
				b.fake.Inject(providertest.Fault{Kind: kind, Operation: "refund.create"})
				b.wantLabel(b.reply(b.refund("cmd_1")), "replay_header", outbound.FromProvider)
				b.wantOnce("refund.create", 2)
			})
		})
	}
	t.Run("never arrived", func(t *testing.T) {
		run(t, nil, func(b *bench) {
			b.fake.Inject(providertest.Fault{Kind: providertest.DropBeforeApply, Operation: "refund.create"})
			b.wantLabel(b.reply(b.refund("cmd_1")), "no_replay_header", outbound.FromProvider)
			b.wantOnce("refund.create", 2)
		})
	})
}

// declined pays with a card that is declined.
func declined(id string) outbound.Call {
	return stripe.PaymentIntentCreate(outbound.Command{ID: id}, url.Values{
		"amount": {"2000"}, "currency": {"eur"}, "confirm": {"true"},
		"payment_method": {"pm_card_chargeDeclinedInsufficientFunds"}, "return_url": {"https://example.com"},
	})
}

// TestDecline holds C06 and C13: a decline is the command's outcome, labelled,
// and replayed from the ledger; a new command is a new try.
func TestDecline(t *testing.T) {
	run(t, nil, func(b *bench) {
		e := b.failure(declined("cmd_1"), outbound.ErrRefused, outbound.EffectNone)
		b.wantLabel(e.Answer, "no_replay_header", outbound.FromProvider)
		if e.ProviderCode != "card_declined" || e.Answer.StatusCode != http.StatusPaymentRequired {
			b.Errorf("got %+v", e)
		}
		e = b.failure(declined("cmd_1"), outbound.ErrRefused, outbound.EffectNone)
		b.wantLabel(e.Answer, "own_record", outbound.FromLedger)
		if e.ProviderCode != "card_declined" || e.Sent {
			b.Errorf("got %+v", e)
		}
		b.wantDeliveries("payment_intent.create", 0, 1)
	})
}

// TestDeclineReplayed holds C13: a replayed error is told from a fresh one.
func TestDeclineReplayed(t *testing.T) {
	run(t, nil, func(b *bench) {
		b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "payment_intent.create"})
		e := b.failure(declined("cmd_1"), outbound.ErrRefused, outbound.EffectNone)
		b.wantLabel(e.Answer, "replay_header", outbound.FromProvider)
		b.wantDeliveries("payment_intent.create", 0, 2)
	})
}

// TestInUse holds C01 and C27: while the first delivery runs, the same key is
// refused with 409; waiting and resending ends in the original.
func TestInUse(t *testing.T) {
	impatient := func(_ *stripe.Config, o *outbound.Options) {
		o.Retry = outbound.Retry{Attempts: 8, AttemptTimeout: time.Second, MaxWait: 2 * time.Second}
	}
	run(t, impatient, func(b *bench) {
		b.fake.Inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "refund.create", Delay: 4 * time.Second})
		b.wantLabel(b.reply(b.refund("cmd_1")), "replay_header", outbound.FromProvider)
		conflicts := 0
		for _, r := range b.fake.Requests("refund.create") {
			if r.Status == http.StatusConflict {
				conflicts++
			}
		}
		if conflicts == 0 {
			b.Error("no delivery met the running one")
		}
		if got := b.fake.Effects("refund.create"); got != 1 {
			b.Errorf("effects = %d, want 1", got)
		}
	})
}

// TestSlowerThanTheBudget holds C03: work that outlives all attempts is
// uncertain, never failed, and a later call gets the original.
func TestSlowerThanTheBudget(t *testing.T) {
	impatient := func(_ *stripe.Config, o *outbound.Options) {
		o.Retry = outbound.Retry{Attempts: 3, AttemptTimeout: time.Second, MaxWait: time.Second}
	}
	run(t, impatient, func(b *bench) {
		b.fake.Inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "refund.create", Delay: 20 * time.Second})
		e := b.failure(b.refund("cmd_1"), outbound.ErrUncertain, outbound.EffectUnknown)
		if e.ProviderCode != "idempotency_key_in_use" || !e.Sent {
			b.Errorf("got %+v", e)
		}
		b.fake.AwaitEffects("refund.create", 1)
		b.wantLabel(b.reply(b.refund("cmd_1")), "replay_header", outbound.FromProvider)
		if got := b.fake.Effects("refund.create"); got != 1 {
			b.Errorf("effects = %d, want 1", got)
		}
	})
}

// TestKeyUsedWithOtherParameters holds that a mismatch at the provider is
// unknown: somebody sent something with this key, and nobody here knows what.
func TestKeyUsedWithOtherParameters(t *testing.T) {
	run(t, nil, func(b *bench) {
		key, err := keyderive.Derive(keyderive.Input{Provider: "stripe", Account: account + "/test", Operation: "refund.create", CommandID: "cmd_1"})
		if err != nil {
			b.Fatal(err)
		}
		form := url.Values{"charge": {b.charge}, "amount": {"1"}}.Encode()
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.fake.URL+"/v1/refunds", strings.NewReader(form))
		if err != nil {
			b.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer sk_test_bench"}, "Idempotency-Key": {key.Raw()}, "Content-Type": {"application/x-www-form-urlencoded"}}
		resp, err := b.fake.Client().Do(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("%v, %v", resp, err)
		}
		resp.Body.Close()

		e := b.failure(b.refund("cmd_1"), outbound.ErrUncertain, outbound.EffectUnknown)
		if e.ProviderCode != "idempotency_error" {
			b.Errorf("got %+v", e)
		}
	})
}

// TestStored500 holds that a stored 500 is no outcome, whether or not the work
// was done: replayed, it is looked up, and only our mark finds it.
func TestStored500(t *testing.T) {
	for name, applied := range map[string]bool{"applied": true, "not applied": false} {
		t.Run(name, func(t *testing.T) {
			run(t, nil, func(b *bench) {
				b.fake.Inject(providertest.Fault{Kind: providertest.Status500, Operation: "refund.create", Stored: true, Applied: applied})
				b.failure(b.refund("cmd_1"), outbound.ErrUncertain, outbound.EffectUnknown)
				b.wantDeliveries("refund.create", b.fake.Effects(""), 1)
				if !applied {
					b.failure(b.refund("cmd_1"), outbound.ErrUncertain, outbound.EffectUnknown)
					return
				}
				reply := b.reply(b.refund("cmd_1"))
				b.wantLabel(reply, "lookup", outbound.FromProvider)
				if refund, err := stripe.RefundOf(reply); err != nil || refund.ID != reply.ExternalRef || refund.Amount != 500 {
					b.Errorf("got %+v, %v", refund, err)
				}
				b.wantOnce("refund.create", 2)
			})
		})
	}
}

// TestTwoKindsOf429 holds C14: a locked object is tried again soon, a limiter
// after a back-off or as long as it asks for.
func TestTwoKindsOf429(t *testing.T) {
	wait := func(t *testing.T, f providertest.Fault) (d time.Duration) {
		run(t, func(_ *stripe.Config, o *outbound.Options) { o.Retry.MinWait = 4 * time.Second }, func(b *bench) {
			f.Operation = "refund.create"
			b.fake.Inject(f)
			b.wantLabel(b.reply(b.refund("cmd_1")), "no_replay_header", outbound.FromProvider)
			b.wantOnce("refund.create", 2)
			r := b.fake.Requests("refund.create")
			d = r[1].At.Sub(r[0].At)
		})
		return d
	}
	t.Run("rate limit", func(t *testing.T) {
		if d := wait(t, providertest.Fault{Kind: providertest.RateLimit}); d < 2*time.Second {
			t.Errorf("tried again after %v, want a back-off", d)
		}
	})
	t.Run("rate limit with Retry-After", func(t *testing.T) {
		if d := wait(t, providertest.Fault{Kind: providertest.RateLimit, RetryAfter: 9 * time.Second}); d < 9*time.Second {
			t.Errorf("tried again after %v, want 9 s", d)
		}
	})
	t.Run("lock timeout", func(t *testing.T) {
		if d := wait(t, providertest.Fault{Kind: providertest.LockTimeout}); d < 500*time.Millisecond {
			t.Errorf("tried again after %v, want at least 500 ms", d)
		}
	})
	t.Run("limiter only", func(t *testing.T) {
		run(t, nil, func(b *bench) {
			b.fake.Inject(providertest.Fault{Kind: providertest.RateLimit, Operation: "refund.create", Times: 4})
			e := b.failure(b.refund("cmd_1"), outbound.ErrRateLimited, outbound.EffectNone)
			if e.ProviderCode != "rate_limit" {
				b.Errorf("got %+v", e)
			}
			b.wantLabel(b.reply(b.refund("cmd_1")), "no_replay_header", outbound.FromProvider)
			b.wantOnce("refund.create", 5)
		})
	})
}

// TestLimiterOnAResend holds that a 429 says nothing of an earlier delivery.
func TestLimiterOnAResend(t *testing.T) {
	run(t, nil, func(b *bench) {
		b.fake.Inject(
			providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"},
			providertest.Fault{Kind: providertest.RateLimit, Operation: "refund.create", Times: 3},
		)
		b.failure(b.refund("cmd_1"), outbound.ErrUncertain, outbound.EffectUnknown)
		b.wantLabel(b.reply(b.refund("cmd_1")), "replay_header", outbound.FromProvider)
		b.wantOnce("refund.create", 5)
	})
}

// TestPastTheWindow holds C11: past 24 h the key is not sent again blindly. What
// the mark finds is the answer, and what a complete list misses is sent once more.
func TestPastTheWindow(t *testing.T) {
	for _, c := range []struct {
		kind providertest.Kind
		made bool
	}{{providertest.DropAfterApply, true}, {providertest.DropBeforeApply, false}} {
		t.Run(string(c.kind), func(t *testing.T) {
			run(t, nil, func(b *bench) {
				b.fake.Inject(providertest.Fault{Kind: c.kind, Operation: "refund.create", Times: 4})
				b.failure(b.refund("cmd_1"), outbound.ErrUncertain, outbound.EffectUnknown)
				time.Sleep(25 * time.Hour) // the bubble's clock
				if !c.made {
					b.reply(b.refund("cmd_1"))
					b.wantOnce("refund.create", 5)
					return
				}
				b.wantLabel(b.reply(b.refund("cmd_1")), "lookup", outbound.FromProvider)
				b.wantOnce("refund.create", 4)
			})
		})
	}
}

// TestPastTheWindowWithoutProof holds that a list which another account answered
// proves nothing: the refund stays unknown, and nothing is sent.
func TestPastTheWindowWithoutProof(t *testing.T) {
	other := func(cfg *stripe.Config, _ *outbound.Options) { cfg.Account = "acct_other" }
	run(t, other, func(b *bench) {
		b.fake.Inject(providertest.Fault{Kind: providertest.DropBeforeApply, Operation: "refund.create", Times: 4})
		b.failure(b.refund("cmd_1"), outbound.ErrUncertain, outbound.EffectUnknown)
		time.Sleep(25 * time.Hour)
		e := b.failure(b.refund("cmd_1"), outbound.ErrUncertain, outbound.EffectUnknown)
		if !strings.Contains(e.Error(), "another account") {
			b.Errorf("the error does not say why: %v", e)
		}
		b.wantDeliveries("refund.create", 0, 4)
	})
}
