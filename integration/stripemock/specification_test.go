package stripemock_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

const account = "acct_1Nv0FG"

var cmd = outbound.Command{ID: "0193b0a8-7c3e-7a0b-8b7e-3f6d1c2a9e10"}

func v(pairs ...string) url.Values {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values
}

// calls are one call of each operation, as a caller would make it.
func calls() []outbound.Call {
	return append([]outbound.Call{
		stripe.PaymentIntentCreate(cmd, v("amount", "1250", "currency", "eur", "customer", "cus_1", "confirm", "true", "payment_method", "pm_card_visa", "return_url", "https://example.com")),
		stripe.PaymentIntentConfirm(cmd, "pi_1", v("payment_method", "pm_card_visa", "return_url", "https://example.com")),
		stripe.PaymentIntentCapture(cmd, "pi_1", v("amount_to_capture", "700")),
		stripe.PaymentIntentCancel(cmd, "pi_1", v("cancellation_reason", "duplicate")),
		stripe.RefundCreate(cmd, v("charge", "ch_1", "amount", "300", "reason", "requested_by_customer")),
		stripe.SetupIntentCreate(cmd, v("customer", "cus_1", "payment_method", "pm_card_visa")),
		stripe.SetupIntentConfirm(cmd, "seti_1", v("payment_method", "pm_card_visa")),
		stripe.SetupIntentCancel(cmd, "seti_1", nil),
		stripe.CustomerCreate(cmd, v("email", "a@example.com", "metadata[user]", "7")),
		stripe.CustomerBalanceTransactionCreate(cmd, "cus_1", v("amount", "-500", "currency", "eur")),
		stripe.CheckoutSessionCreate(cmd, v("mode", "payment", "success_url", "https://example.com", "customer", "cus_1", "line_items[0][price]", "price_1", "line_items[0][quantity]", "2")),
		stripe.CheckoutSessionExpire(cmd, "cs_test_1", nil),
	}, append(billing(), transfers()...)...)
}

func billing() []outbound.Call {
	return []outbound.Call{
		stripe.SubscriptionCreate(cmd, v("customer", "cus_1", "items[0][price]", "price_1")),
		stripe.SubscriptionUpdate(cmd, "sub_1", v("cancel_at_period_end", "true")),
		stripe.SubscriptionCancel(cmd, "sub_1", v("prorate", "true", "cancellation_details[comment]", "moved")),
		stripe.InvoiceCreate(cmd, v("customer", "cus_1", "auto_advance", "false")),
		stripe.InvoiceFinalize(cmd, "in_1", v("auto_advance", "false")),
		stripe.InvoicePay(cmd, "in_1", v("payment_method", "pm_card_visa")),
		stripe.InvoiceVoid(cmd, "in_1", nil),
		stripe.InvoiceSend(cmd, "in_1", nil),
		stripe.InvoiceItemCreate(cmd, v("customer", "cus_1", "amount", "400", "currency", "eur")),
		stripe.CreditNoteCreate(cmd, v("invoice", "in_1", "amount", "100")),
		stripe.MeterEventCreate(cmd, v("event_name", "calls", "payload[value]", "25", "payload[stripe_customer_id]", "cus_1")),
	}
}

func transfers() []outbound.Call {
	return []outbound.Call{
		stripe.TransferCreate(cmd, v("amount", "900", "currency", "eur", "destination", "acct_2", "transfer_group", "order-7")),
		stripe.TransferReversalCreate(cmd, "tr_1", v("amount", "100")),
		stripe.PayoutCreate(cmd, v("amount", "900", "currency", "eur")),
		stripe.PayoutCancel(cmd, "po_1", nil),
		stripe.PayoutReverse(cmd, "po_1", nil),
	}
}

// The operations that stripe-mock cannot judge, because its specification does
// not have API v2: it answers 404 to all of them.
var outside = map[string]bool{
	"v2.account.create": true, "v2.account.update": true, "v2.account.close": true,
	"v2.event_destination.create": true, "v2.event_destination.update": true, "v2.event_destination.delete": true,
}

func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	sent := map[string]bool{}
	for _, c := range calls() {
		sent[c.Operation] = true
	}
	for _, op := range stripe.Operations() {
		if sent[op.Name] == outside[op.Name] {
			t.Errorf("%s: sent %t, outside of the specification %t", op.Name, sent[op.Name], outside[op.Name])
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, baseURL+"/v2/core/accounts", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer sk_test_123")
	resp, err := newWire(t).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("stripe-mock answers API v2 with %d: take its operations into the table", resp.StatusCode)
	}
}

func newWire(t *testing.T) *wire {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &wire{base: transport}
}

func config(w *wire) stripe.Config {
	return stripe.Config{Account: account, SecretKey: "sk_test_123", Test: true, BaseURL: baseURL, Transport: w}
}

// Stripe's specification accepts every write that the adapter makes, marks and
// keys included. The objects that stripe-mock answers with are fixtures: what
// they say of success is nothing to go by.
func TestWrites(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	client, err := outbound.New(stripe.New(config(w)), memory.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range calls() {
		_, err := client.Do(t.Context(), call)
		if errors.Is(err, outbound.ErrInvalid) || errors.Is(err, outbound.ErrRejected) {
			t.Errorf("%s: %v", call.Operation, err)
		}
		key, err := client.Key(call.Command, call.Operation, "")
		if (err != nil) != (call.Operation == "subscription.cancel") { // a DELETE has no key
			t.Fatal(err)
		}
		want := key.Raw()
		seen := w.take()
		if len(seen) == 0 {
			t.Errorf("%s: nothing was sent: %v", call.Operation, err)
		}
		for _, x := range seen {
			if x.status != http.StatusOK {
				t.Errorf("%s: stripe-mock answered %d to %s", call.Operation, x.status, x.what)
			}
		}
		if len(seen) > 0 && seen[0].key != want {
			t.Errorf("%s: stripe-mock received another key", call.Operation)
		}
	}
}

// So it does with every look-up.
func TestLookups(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	adapter := stripe.New(config(w))
	client, err := outbound.New(adapter, memory.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range calls() {
		op, _ := replaysemantics.Find(stripe.Operations(), call.Operation)
		if op.Lookup == "" {
			continue // nothing finds its effect
		}
		key, err := client.Key(call.Command, call.Operation, "")
		if err != nil && op.HasKey() {
			t.Fatal(err)
		}
		frozen, err := adapter.Freeze(op, call.Message, key.Mark())
		if err != nil {
			t.Fatal(err)
		}
		_, err = adapter.Find(t.Context(), &outbound.Lookup{
			Operation: op, Account: account, Message: frozen.Message, Key: key, Mark: key.Mark(), FirstSentAt: time.Now(), MaxBody: 1 << 20,
		})
		seen := w.take()
		if len(seen) == 0 {
			t.Errorf("%s: nothing was asked: %v", call.Operation, err)
		}
		for _, x := range seen {
			if x.status != http.StatusOK {
				t.Errorf("%s: stripe-mock answered %d to %s", call.Operation, x.status, x.what)
			}
		}
	}
}
