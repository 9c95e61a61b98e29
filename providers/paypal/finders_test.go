package paypal_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// asks is the look-up of a call that was sent now, for the last time.
func (w world) asks(call outbound.Call) *outbound.Lookup {
	w.Helper()
	if call.Err != nil {
		w.Fatal(call.Err)
	}
	profile, err := w.adapter.Profile()
	if err != nil {
		w.Fatal(err)
	}
	row, _ := rs.Find(profile.Operations, call.Operation)
	key, err := keyderive.Secret{}.Derive(keyderive.Input{
		Provider: profile.Provider, Account: profile.Account + "/" + profile.Mode,
		Operation: call.Operation, CommandID: call.Command.ID,
	})
	if err != nil {
		w.Fatal(err)
	}
	frozen, err := w.adapter.Freeze(row, call.Message, key.Mark())
	if err != nil {
		w.Fatal(err)
	}
	return &outbound.Lookup{
		Operation: row, Account: profile.Account, Message: frozen.Message, Key: key, Mark: key.Mark(),
		FirstSentAt: time.Now(), SentUntil: time.Now(),
	}
}

// lose sends a call whose answers are all lost, and returns its look-up.
func (w world) lose(call outbound.Call) *outbound.Lookup {
	w.Helper()
	l := w.asks(call)
	w.fake.Inject(lost(call.Operation))
	w.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
	l.SentUntil = time.Now()
	return l
}

func (w world) find(l *outbound.Lookup) outbound.Finding {
	w.Helper()
	f, err := w.adapter.Find(w.Context(), l)
	if err != nil {
		w.Fatalf("%s: %v", l.Operation.Name, err)
	}
	return f
}

// found holds that the look-up finds the effect, with an answer of its own
// operation's shape, and returns the object's id.
func (w world) found(l *outbound.Lookup, e outbound.Evidence) string {
	w.Helper()
	f := w.find(l)
	if f.Effect != outbound.EffectApplied || f.Evidence != e || f.Answer == nil || f.RequestID == "" {
		w.Fatalf("%s: finding %+v; want applied by %s", l.Operation.Name, f, e)
	}
	return f.ExternalRef
}

func (w world) absent(l *outbound.Lookup) {
	w.Helper()
	if f := w.find(l); f != (outbound.Finding{Effect: outbound.EffectNone}) {
		w.Errorf("%s: finding %+v; want absent", l.Operation.Name, f)
	}
}

func (w world) unknown(l *outbound.Lookup) {
	w.Helper()
	if f := w.find(l); f != (outbound.Finding{}) {
		w.Errorf("%s: finding %+v; want unknown", l.Operation.Name, f)
	}
}

func (w world) requests(operation string, want int) {
	w.Helper()
	if got := len(w.fake.Requests(operation)); got != want {
		w.Errorf("requests of %s = %d, want %d", operation, got, want)
	}
}

// A subscription is found by its mark among those of its plan, also when it has
// ended, over several pages; it is absent where all of them are others'.
func TestFindSubscription(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		plan := w.fake.Seed(providertest.ActivePlan{})
		create := func(id string) outbound.Call {
			return paypal.SubscriptionCreate(cmd(id), fields{"plan_id": plan, "subscriber": fields{"payment_source": fields{"token": fields{"id": "x", "type": "BILLING_AGREEMENT"}}}})
		}
		w.do(create("old"))
		time.Sleep(24 * time.Hour)
		l := w.lose(create("s1"))
		never := w.asks(create("never"))
		for i := range 45 {
			w.do(create("other-" + strconv.Itoa(i)))
		}
		time.Sleep(time.Minute)

		w.absent(never)
		w.requests("subscription.list", 3) // pages of 20
		id := w.found(l, rs.ByLookup)
		w.do(paypal.SubscriptionCancel(cmd("end"), id, "asked"))
		if again := w.found(l, rs.ByLookup); again != id {
			w.Errorf("found %q, then %q", id, again)
		}
		w.effects("subscription.create", 47)

		foreign := w.asks(create("never"))
		foreign.FirstSentAt, foreign.Account = never.FirstSentAt, "SOMEBODYELSE1"
		w.unknown(foreign)
		undated := w.asks(create("never"))
		undated.FirstSentAt = time.Time{}
		w.unknown(undated)

		w.fake.Seed(providertest.ActiveSubscription{PlanID: plan}) // it may have lost its mark
		time.Sleep(time.Second)
		later := w.asks(create("never"))
		w.unknown(later)
	})
}

// A subscription to which the caller gave its own custom_id carries no mark.
func TestFindSubscriptionUnmarked(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		plan := w.fake.Seed(providertest.ActivePlan{})
		w.unknown(w.lose(paypal.SubscriptionCreate(cmd("s1"), fields{"plan_id": plan, "custom_id": "mine"})))
		w.unknown(w.asks(paypal.SubscriptionCreate(cmd("s2"), fields{"plan_id": plan, "custom_id": "mine"})))
	})
}

// An order that was paid when it was created is found by Transaction Search, once
// that has caught up; one that is not found is unknown for ever.
func TestFindOrderByTransaction(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		create := func(id string) outbound.Call {
			return paypal.OrderCreate(cmd(id), fields{
				"intent":         "CAPTURE",
				"purchase_units": []any{fields{"amount": fields{"currency_code": "USD", "value": "10.00"}}},
				"payment_source": fields{"paypal": fields{"vault_id": "v"}},
			})
		}
		w.do(create("same amount"))
		l, never := w.lose(create("o1")), w.asks(create("o2"))
		w.unknown(l) // it is not shown yet
		time.Sleep(4 * time.Hour)
		w.effects("order.create", 2)
		id := w.found(l, rs.ByLookup)
		w.unknown(never)
		time.Sleep(60 * 24 * time.Hour)
		if again := w.found(l, rs.ByLookup); again != id || id == "" {
			w.Errorf("found %q, then %q", id, again)
		}
	})
}

// A payment token of a setup token is found by that one's state, and shown where
// the customer has no other.
func TestFindPaymentToken(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		create := func(id, setup string) outbound.Call {
			return paypal.PaymentTokenCreate(cmd(id), fields{"payment_source": fields{"token": fields{"id": setup, "type": "SETUP_TOKEN"}}})
		}
		setup := w.fake.Seed(providertest.ApprovedSetupToken{CustomerID: "customer_1"})
		w.unknown(w.asks(create("t1", setup)))
		l := w.lose(create("t1", setup))
		if id := w.found(l, rs.ByStateGuard); id == "" {
			w.Error("the customer's only token is not shown")
		}
		w.do(create("t2", w.fake.Seed(providertest.ApprovedSetupToken{CustomerID: "customer_1"})))
		f := w.find(l)
		if f.Effect != outbound.EffectApplied || f.ExternalRef != "" || f.Answer != nil {
			w.Errorf("of two tokens one was taken: %+v", f)
		}
	})
}

// An invoice is found by the number that the request gave it, if it was made
// since; nothing proves that there was none, since drafts can be deleted.
func TestFindInvoice(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		create := func(id, number string) outbound.Call {
			detail := fields{"currency_code": "USD"}
			if number != "" {
				detail["invoice_number"] = number
			}
			return paypal.InvoiceCreate(cmd(id), fields{"detail": detail, "items": []any{
				fields{"name": "Hat", "quantity": "1", "unit_amount": fields{"currency_code": "USD", "value": "10.00"}}}})
		}
		w.do(create("other", "INV-7"))
		time.Sleep(time.Hour)
		w.fake.Inject(lost("invoice.create"))
		call := create("i1", "INV-8")
		l := w.asks(call)
		_, err := w.client.Do(w.Context(), call)
		if outbound.EffectOf(err) != outbound.EffectUnknown {
			w.Fatalf("the answer was lost: %v", err)
		}
		w.effects("invoice.create", 2)
		if id := w.found(l, rs.ByStateGuard); id == "" {
			w.Error("no id")
		}
		w.unknown(w.asks(create("i2", "INV-9")))
		w.unknown(w.asks(create("i3", "INV-7"))) // somebody's, from before
		w.unknown(w.asks(create("i4", "")))
	})
}

// The operations that lead an object into a state, before and after.
func TestFindByState(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		invoice := w.do(paypal.InvoiceCreate(cmd("i0"), fields{"detail": fields{"currency_code": "USD"}, "items": []any{
			fields{"name": "Hat", "quantity": "1", "unit_amount": fields{"currency_code": "USD", "value": "10.00"}}}})).ExternalRef
		capture := w.fake.Seed(providertest.CompletedCapture{Value: "10.00"})
		ten := paypal.RefundRequest{Amount: paypal.Money{Currency: "USD", Value: "10.00"}}
		subscription, suspended := w.fake.Seed(providertest.ActiveSubscription{}), w.fake.Seed(providertest.ActiveSubscription{Status: "SUSPENDED"})
		time.Sleep(time.Hour)
		for _, call := range []outbound.Call{
			paypal.OrderCapture(cmd("1"), w.fake.Seed(providertest.ApprovedOrder{}), nil),
			paypal.OrderAuthorize(cmd("2"), w.fake.Seed(providertest.ApprovedOrder{Intent: "AUTHORIZE"}), nil),
			paypal.AuthorizationCapture(cmd("3"), w.fake.Seed(providertest.CreatedAuthorization{}), nil),
			paypal.AuthorizationVoid(cmd("4"), w.fake.Seed(providertest.CreatedAuthorization{})),
			paypal.CaptureRefund(cmd("5"), capture, ten),
			paypal.SubscriptionActivate(cmd("6"), suspended, ""),
			paypal.SubscriptionSuspend(cmd("7"), subscription, "asked"),
			paypal.SubscriptionCancel(cmd("8"), subscription, "asked"),
			paypal.InvoiceSend(cmd("9"), invoice, nil),
			paypal.InvoiceCancel(cmd("10"), invoice, nil),
		} {
			l := w.asks(call)
			w.absent(l)
			w.do(call)
			f := w.find(l)
			marked := call.Operation == "capture.refund"
			if f.Effect != outbound.EffectApplied || (f.Evidence == rs.ByLookup) != marked {
				w.Errorf("%s: finding %+v", call.Operation, f)
			}
			w.effects(call.Operation, 1)
		}
	})
}

// Two equal partial refunds are two: none is found by its amount, and the second
// is absent while only the first is there.
func TestNoMatchByAmount(t *testing.T) {
	inWorld(t, paypal.Config{MarkInvoices: true}, func(w world) {
		capture := w.fake.Seed(providertest.CompletedCapture{Value: "10.00"})
		part := paypal.RefundRequest{Amount: paypal.Money{Currency: "USD", Value: "5.00"}}
		w.do(paypal.CaptureRefund(cmd("r1"), capture, part))
		w.absent(w.asks(paypal.CaptureRefund(cmd("r2"), capture, part)))

		authorization := w.fake.Seed(providertest.CreatedAuthorization{Value: "10.00"})
		w.do(paypal.AuthorizationCapture(cmd("a1"), authorization, part))
		w.absent(w.asks(paypal.AuthorizationCapture(cmd("a2"), authorization, part)))
	})
}

// A proof of absence lets a command be sent whose key PayPal has forgotten; the
// look-up comes first (C11, R22).
func TestAbsentThenSent(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		call := paypal.OrderCapture(cmd("c1"), w.fake.Seed(providertest.ApprovedOrder{}), nil)
		w.fake.Inject(providertest.Fault{Kind: providertest.DropBeforeApply, Operation: "order.capture", Times: 4})
		w.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		time.Sleep(7 * time.Hour)
		w.do(call)
		w.effects("order.capture", 1)
		w.requests("order.get", 1)
		w.requests("order.capture", 5)
	})
}

// A token that PayPal took away is renewed once in a look-up, and no more (C21).
func TestLookupRenewsToken(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		l := w.lose(paypal.OrderCapture(cmd("c1"), w.fake.Seed(providertest.ApprovedOrder{}), nil))
		w.fake.Seed(providertest.RevokedTokens{})
		w.found(l, rs.ByStateGuard)
		w.requests("token", 2)
		w.requests("order.get", 2)

		w.fake.Inject(providertest.Fault{Kind: providertest.Unauthorized, Operation: "order.get", Times: 10})
		if f, err := w.adapter.Find(w.Context(), l); err == nil || f != (outbound.Finding{}) {
			w.Errorf("finding %+v, %v; want an error", f, err)
		}
		w.requests("order.get", 4)
	})
}

// C24: whatever a look-up is answered but the object, nothing is known.
func TestLookupFails(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		l := w.lose(paypal.OrderCapture(cmd("c1"), w.fake.Seed(providertest.ApprovedOrder{}), nil))
		for _, kind := range []providertest.Kind{providertest.Status500, providertest.Status503, providertest.HTML502, providertest.RateLimit, providertest.Truncate, providertest.Empty} {
			w.fake.Inject(providertest.Fault{Kind: kind, Operation: "order.get", Times: 1})
			if f, err := w.adapter.Find(w.Context(), l); err == nil || f != (outbound.Finding{}) {
				w.Errorf("%s: finding %+v, %v; want an error", kind, f, err)
			}
		}
		missing := w.asks(paypal.OrderCapture(cmd("c2"), "5O190127TN364715T", nil))
		if f, err := w.adapter.Find(w.Context(), missing); err == nil || f != (outbound.Finding{}) {
			w.Errorf("an order that is not there: finding %+v, %v; want an error", f, err)
		}
		w.found(l, rs.ByStateGuard)
	})
}

// A webhook that holds the refund settles a record whose answers were lost, and
// the next call shows the refund by its id (C26). Early, twice, or of another
// account it changes nothing that it should not.
func TestWebhookSettlesRefund(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		capture := w.fake.Seed(providertest.CompletedCapture{Value: "10.00"})
		call := paypal.CaptureRefund(cmd("r1"), capture, paypal.RefundRequest{Amount: paypal.Money{Currency: "USD", Value: "2.00"}})
		l := w.lose(call)
		refund := w.find(l).ExternalRef
		observe := func(payee string) {
			w.Helper()
			o, ok, err := paypal.Event([]byte(`{"id":"WH-1","event_type":"PAYMENT.CAPTURE.REFUNDED","resource":{"id":"` + refund +
				`","status":"COMPLETED","custom_id":"` + l.Mark + `","payee":{"merchant_id":"` + payee + `"}}}`))
			if !ok || err != nil {
				w.Fatalf("event: %t, %v", ok, err)
			}
			if err := w.client.Observe(w.Context(), o); err != nil {
				w.Fatal(err)
			}
		}
		state := func(want recordstore.State) {
			w.Helper()
			s, err := w.client.Status(w.Context(), cmd("r1"), "capture.refund")
			if err != nil || s.State != want {
				w.Fatalf("state %v, %v; want %s", s, err, want)
			}
		}
		observe("SOMEBODYELSE1")
		state(recordstore.Uncertain)
		observe(merchant)
		observe(merchant)
		state(recordstore.Succeeded)
		sent := len(w.fake.Requests("capture.refund"))
		reply := w.do(call)
		w.labelled(reply, rs.ByLookup)
		if reply.ExternalRef != refund {
			w.Errorf("the reply is of %q, want %q", reply.ExternalRef, refund)
		}
		w.requests("capture.refund", sent)
		w.effects("capture.refund", 1)
	})
}
