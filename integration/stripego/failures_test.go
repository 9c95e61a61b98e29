package stripego_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// C07: another request under the same command is Stripe's own idempotency error.
// It is not sent, and stripe-go does not try again.
func TestConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	charge := b.charge()
	b.wantLabel(b.refund(b.named("cmd_1"), charge), "no_replay_header", outbound.FromProvider)
	b.wantTrips(1)
	e := b.wantError(b.refundOf(b.named("cmd_1"), charge, 501), 400, outbound.ErrFingerprintConflict, outbound.EffectApplied)
	if _, ok := errors.AsType[*stripe.IdempotencyError](e); !ok || e.Type != stripe.ErrorTypeIdempotency {
		t.Errorf("got type %q, want stripe-go's IdempotencyError", e.Type)
	}
	if !strings.Contains(e.Msg, "refund.create") && !strings.Contains(e.Msg, "fingerprint_conflict") || strings.Contains(e.Msg, "501") {
		t.Errorf("message %q: want what is wrong, and no values", e.Msg)
	}
	b.wantTrips(1)
	b.wantSent("cmd_1", "refund.create", 1, 1)
}

// C10, C27: while the command runs elsewhere, the second caller gets Stripe's 409
// in one round trip; afterwards it gets the answer.
func TestInFlight(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	charge := b.charge()
	b.fake.Inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "refund.create"})
	first := make(chan answer)
	go func() { first <- b.refund(b.named("cmd_1"), charge) }()
	b.fake.AwaitHeld(1)
	b.trips.n.Store(0)

	e := b.wantError(b.refund(b.named("cmd_1"), charge), http.StatusConflict, outbound.ErrInFlight, outbound.EffectUnknown)
	if e.Code != stripe.ErrorCodeIdempotencyKeyInUse {
		t.Errorf("code %q, want idempotency_key_in_use", e.Code)
	}
	b.wantTrips(1)
	b.fake.Release()
	a := <-first
	b.wantLabel(a, "no_replay_header", outbound.FromProvider)
	if again := b.refund(b.named("cmd_1"), charge); again.id != a.id {
		t.Errorf("got %q, want %q", again.id, a.id)
	}
	b.wantSent("cmd_1", "refund.create", 1, 1)
}

// C28: what nobody knows is Stripe's 500, not a failure; the same command later
// finds out. C18: that an answer came from no Stripe is no reason to send anew.
// A redirect, which stripe-go takes for success, is unknown too.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for _, kind := range []providertest.Kind{
		providertest.Status500, providertest.HTML502, providertest.Status503, providertest.Status424,
		providertest.Redirect, providertest.Truncate, providertest.Empty, providertest.DropAfterApply,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, setting{options: outbound.Options{Retry: outbound.Retry{Attempts: 1}}})
			charge := b.charge()
			b.fake.Inject(providertest.Fault{Kind: kind, Operation: "refund.create", Applied: true})
			a := b.refund(b.named("cmd_1"), charge)
			e := b.wantError(a, 500, outbound.ErrUncertain, outbound.EffectUnknown)
			if e.Type != stripe.ErrorTypeAPI || a.header.Get("Stripe-Should-Retry") != "false" || a.header.Get(dropin.HeaderLabel) != "" {
				t.Errorf("got %v with %v, want an api_error without a label", e, a.header)
			}
			b.wantTrips(1)
			if n := len(b.fake.Requests("")); n != 1 {
				t.Errorf("%d requests arrived, want 1", n)
			}
			b.wantLabel(b.refund(b.named("cmd_1"), charge), "replay_header", outbound.FromProvider)
			b.wantSent("cmd_1", "refund.create", 1, 2)
		})
	}
}

// stripe-go's errors of API v2 hold no header: what samekey knows is read from
// the context.
func TestUnknownV2(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{options: outbound.Options{Retry: outbound.Retry{Attempts: 1}}})
	create := func() (*outbound.Tracked, error) {
		ctx, call := outbound.Track(t.Context(), outbound.Command{ID: "cmd_1"})
		_, err := b.sc.V2CoreAccounts.Create(ctx, &stripe.V2CoreAccountCreateParams{DisplayName: text("Shop")})
		b.wantTrips(1)
		return call, err
	}
	b.fake.Inject(providertest.Fault{Kind: providertest.HTML502, Operation: "v2.account.create", Applied: true})
	call, err := create()
	_, failed := call.Result()
	if e, ok := errors.AsType[*stripe.V2RawError](err); !ok || e.HTTPStatusCode != 500 || !errors.Is(failed, outbound.ErrUncertain) {
		t.Fatalf("got a %T %v and %v, want stripe-go's V2RawError with 500, and uncertain", err, err, failed)
	}
	call, err = create()
	if reply, failed := call.Result(); err != nil || failed != nil || reply.Label != outbound.LatestStatus {
		t.Errorf("got %v and %v, want the latest status", err, failed)
	}
	b.wantSent("cmd_1", "v2.account.create", 1, 2)
}

// Every fault, met by samekey's own attempts, ends in one round trip and one
// effect: stripe-go's retries are on and have nothing to do.
func TestFaultsUnderRetries(t *testing.T) {
	t.Parallel()
	for _, kind := range []providertest.Kind{
		providertest.DropBeforeApply, providertest.DropAfterApply, providertest.Truncate, providertest.Empty, providertest.HTML502,
		providertest.Status503, providertest.RateLimit, providertest.LockTimeout, providertest.InFlight,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, setting{})
			charge := b.charge()
			b.fake.Inject(providertest.Fault{Kind: kind, Operation: "refund.create", Times: 2})
			a := b.refund(b.named("cmd_1"), charge)
			if a.err != nil || a.id == "" {
				t.Fatalf("got %v", a.err)
			}
			b.wantTrips(1)
			b.wantSent("cmd_1", "refund.create", 1, 3)
		})
	}
}

// C14: a lock timeout that outlasts samekey's attempts is the one answer that
// stripe-go tries again. Its retries are the same command: same key, one effect.
func TestLockTimeoutIsRetriedByTheSDK(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{options: outbound.Options{Retry: outbound.Retry{Attempts: 1}}})
	charge := b.charge()
	b.fake.Inject(providertest.Fault{Kind: providertest.LockTimeout, Operation: "refund.create", Times: 2})
	b.wantLabel(b.refund(b.named("cmd_1"), charge), "no_replay_header", outbound.FromProvider)
	b.wantTrips(3)
	b.wantSent("cmd_1", "refund.create", 1, 3)
}

// C06, C13: a decline is stripe-go's card error with a label, final for the
// command and replayed from the ledger; another card under it is a conflict, and
// a new command is a new try.
func TestDecline(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	pay := func(cmd, card string) answer {
		r, err := b.sc.V1PaymentIntents.Create(b.named(cmd), &stripe.PaymentIntentCreateParams{
			Amount: count(1250), Currency: text("eur"), Confirm: stripe.Bool(true), PaymentMethod: &card, ReturnURL: text("https://example.com"),
		})
		return of(r.APIResource, r.ID, err)
	}
	const declined = "pm_card_chargeDeclinedInsufficientFunds"
	for _, want := range []struct{ label, origin string }{{"new_execution", "provider"}, {"original_replay", "ledger"}} {
		a := pay("cmd_1", declined)
		e := b.wantError(a, http.StatusPaymentRequired, outbound.ErrRefused, outbound.EffectNone)
		card, ok := errors.AsType[*stripe.CardError](e)
		if !ok || e.Code != stripe.ErrorCodeCardDeclined || card.DeclineCode != stripe.DeclineCodeInsufficientFunds {
			t.Errorf("got %v, want stripe-go's CardError", e)
		}
		if l, o := a.header.Get(dropin.HeaderLabel), a.header.Get(dropin.HeaderOrigin); l != want.label || o != want.origin {
			t.Errorf("label %q from %q, want %q from %q", l, o, want.label, want.origin)
		}
		b.wantTrips(1)
	}
	b.wantError(pay("cmd_1", "pm_card_visa"), 400, outbound.ErrFingerprintConflict, outbound.EffectNone)
	b.wantSent("cmd_1", "payment_intent.create", 0, 1)
	b.wantLabel(pay("cmd_2", "pm_card_visa"), "no_replay_header", outbound.FromProvider)
}

// Where nothing was sent, stripe-go's caller gets a 503 in one round trip.
func TestNothingSent(t *testing.T) {
	t.Parallel()
	t.Run("no connection", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, setting{baseURL: "http://127.0.0.1:1"})
		b.wantError(b.refund(b.named("cmd_1"), "ch_1"), http.StatusServiceUnavailable, outbound.ErrUnavailable, outbound.EffectNone)
		b.wantTrips(1)
	})
	t.Run("no ledger", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, setting{ledger: down{memory.New(nil)}})
		b.wantError(b.refund(b.named("cmd_1"), b.charge()), http.StatusServiceUnavailable, outbound.ErrStore, outbound.EffectUnknown)
		b.wantTrips(1)
		if n := len(b.fake.Requests("")); n != 0 {
			t.Errorf("%d requests arrived, want none", n)
		}
	})
}

// down is a ledger that cannot be asked.
type down struct{ recordstore.Store }

func (down) Claim(context.Context, recordstore.Claim) (recordstore.Claimed, error) {
	return recordstore.Claimed{}, errors.New("connection refused")
}

// The caller's context ending is the Go error, and stripe-go stops with it. The
// effect is unknown, and the same command finds it.
func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]struct {
		up     func(context.Context) (context.Context, context.CancelFunc)
		cancel bool
		want   error
	}{
		"canceled": {up: context.WithCancel, cancel: true, want: context.Canceled},
		"deadline": {up: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 2*time.Second)
		}, want: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, setting{})
			charge := b.charge()
			b.fake.Inject(providertest.Fault{Kind: providertest.Hang, Operation: "refund.create", Applied: true})
			ctx, cancel := give.up(b.named("cmd_1"))
			defer cancel()
			first := make(chan answer)
			go func() { first <- b.refund(ctx, charge) }()
			b.fake.AwaitHeld(1)
			if give.cancel {
				cancel()
			}
			if a := <-first; !errors.Is(a.err, give.want) {
				t.Errorf("got %v, want %v", a.err, give.want)
			}
			b.wantTrips(1)
			status, err := b.client.Status(t.Context(), outbound.Command{ID: "cmd_1"}, "refund.create")
			if err != nil || status.State != recordstore.Uncertain {
				t.Errorf("got %+v, %v, want uncertain", status, err)
			}
			b.wantLabel(b.refund(b.named("cmd_1"), charge), "replay_header", outbound.FromProvider)
			b.wantSent("cmd_1", "refund.create", 1, 2)
		})
	}
}
