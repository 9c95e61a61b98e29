package paypal_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// One list answers all look-ups of a plan, whenever each was sent.
func TestFindAllSubscriptions(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		plan := w.fake.Seed(providertest.ActivePlan{})
		create := func(i int) outbound.Call {
			return paypal.SubscriptionCreate(cmd("s"+strconv.Itoa(i)), fields{"plan_id": plan})
		}
		var ls []*outbound.Lookup
		for i := range 6 {
			if i%2 == 0 {
				ls = append(ls, w.lose(create(i)))
			} else {
				ls = append(ls, w.asks(create(i)))
			}
			time.Sleep(2 * time.Hour)
		}
		findings, err := w.adapter.FindAll(w.Context(), ls)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range findings {
			want := outbound.EffectApplied
			if i%2 == 1 {
				want = outbound.EffectNone
			}
			if f.Effect != want || f.Code != "" {
				t.Errorf("%d: finding %+v, want %v", i, f, want)
			}
		}
		w.requests("subscription.list", 1)
		w.requests("user.get", 1)
		w.requests("subscription.get", 3)
	})
}

// Refunds of one capture read it and its order once; an error meets one look-up
// only.
func TestFindAllRefunds(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		capture := w.fake.Seed(providertest.CompletedCapture{Value: "10.00"})
		part := paypal.RefundRequest{Amount: paypal.Money{Currency: "USD", Value: "2.00"}}
		ls := []*outbound.Lookup{
			w.lose(paypal.CaptureRefund(cmd("r1"), capture, part)),
			w.asks(paypal.CaptureRefund(cmd("r2"), "4C679366HH908993F", part)), // there is no such capture
			w.asks(paypal.CaptureRefund(cmd("r3"), capture, part)),
			w.lose(paypal.CaptureRefund(cmd("r4"), capture, part)),
		}
		findings, err := w.adapter.FindAll(w.Context(), ls)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []outbound.Effect{outbound.EffectApplied, outbound.EffectUnknown, outbound.EffectNone, outbound.EffectApplied} {
			if findings[i].Effect != want {
				t.Errorf("%d: finding %+v, want %v", i, findings[i], want)
			}
		}
		if findings[0].ExternalRef == findings[3].ExternalRef {
			t.Error("two refunds were found as one")
		}
		w.requests("capture.get", 2)
		w.requests("order.get", 1)
	})
}

// Where PayPal wants to be asked less, the rest is not asked.
func TestFindAllStops(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		var ls []*outbound.Lookup
		for i := range 4 {
			ls = append(ls, w.lose(paypal.OrderCapture(cmd("c"+strconv.Itoa(i)), w.fake.Seed(providertest.ApprovedOrder{}), nil)))
		}
		w.fake.Inject(providertest.Fault{Kind: providertest.RateLimit, Operation: "order.get", Times: 1})
		if _, err := w.adapter.FindAll(w.Context(), ls); err == nil {
			t.Error("nothing was found out, and there is no error")
		}
		w.requests("order.get", 1)
		findings, err := w.adapter.FindAll(w.Context(), ls)
		if err != nil || findings[0].Effect != outbound.EffectApplied || findings[3].Effect != outbound.EffectApplied {
			t.Errorf("findings %+v, %v", findings, err)
		}
	})
}

// R19: where a look-up is told to come later, nobody asks PayPal before, and each
// request of the rest has a turn of the rate.
func TestReconcilerObeysRetryAfter(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		const captures = 12
		for i := range captures {
			w.lose(paypal.OrderCapture(cmd("c"+strconv.Itoa(i)), w.fake.Seed(providertest.ApprovedOrder{}), nil))
		}
		time.Sleep(7 * time.Hour) // PayPal knows the keys no longer: look-ups decide
		w.fake.Inject(providertest.Fault{Kind: providertest.RateLimit, Operation: "order.get", RetryAfter: 10 * time.Minute, Times: 1})
		r, err := outbound.NewReconciler(&outbound.ReconcilerOptions{Rate: 4}, w.client)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(w.Context(), time.Hour)
		defer stop()
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		asked := w.fake.Requests("order.get")
		if len(asked) < 1+captures {
			t.Fatalf("%d look-ups, want %d and the refused one", len(asked), captures)
		}
		if pause := asked[1].At.Sub(asked[0].At); pause < 10*time.Minute {
			t.Errorf("asked again after %v", pause)
		}
		for i := range asked[4:] {
			if took := asked[i+4].At.Sub(asked[i].At); i > 0 && took < time.Second {
				t.Errorf("five requests in %v", took)
			}
		}
		w.effects("order.capture", captures)
		for i := range captures {
			if s, err := w.client.Status(w.Context(), cmd("c"+strconv.Itoa(i)), "order.capture"); err != nil || s.State != recordstore.Succeeded {
				t.Errorf("capture %d: %+v, %v", i, s, err)
			}
		}
	})
}
