package paypal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// What each webhook in testdata says, and which say nothing of a call of ours.
func TestEvent(t *testing.T) {
	t.Parallel()
	const applied, none, unknown = outbound.EffectApplied, outbound.EffectNone, outbound.EffectUnknown
	key, err := keyderive.Parse(testKey)
	if err != nil {
		t.Fatal(err)
	}
	about := func(op rs.Operation, o outbound.Observation) outbound.Observation {
		o.Operations = []string{op.Name}
		return o
	}
	const order, capture, merchantID = "5O190127TN364715T", "3C679366HH908993F", "7LNZBW6JPQ3TN"
	want := map[string]outbound.Observation{
		"capture_completed_of_order":     about(orderCreate, outbound.Observation{Mode: "sandbox", Account: merchantID, Mark: testMark, ExternalRef: order, Effect: applied, Outcome: outbound.Done}),
		"capture_declined_of_order":      about(orderCreate, outbound.Observation{Mode: "sandbox", Account: merchantID, Mark: testMark, ExternalRef: order, Effect: unknown}),
		"capture_pending_marked":         about(authorizationCapture, outbound.Observation{Mode: "sandbox", Account: merchantID, Mark: testMark, ExternalRef: capture, ObjectStatus: "PENDING", Effect: applied, Outcome: outbound.Pending}),
		"capture_denied_marked":          about(authorizationCapture, outbound.Observation{Mode: "sandbox", Account: merchantID, Mark: testMark, ExternalRef: capture, ObjectStatus: "DECLINED", Effect: none, ProviderCode: "DECLINED"}),
		"refund_completed":               about(captureRefund, outbound.Observation{Mode: "live", Mark: testMark, ExternalRef: "1JU08902781691411", ObjectStatus: "COMPLETED", Effect: applied, Outcome: outbound.Done}),
		"refund_pending":                 about(captureRefund, outbound.Observation{Mode: "live", Mark: testMark, ExternalRef: "1JU08902781691411", ObjectStatus: "PENDING", Effect: applied, Outcome: outbound.Pending}),
		"refund_failed":                  about(captureRefund, outbound.Observation{Mark: testMark, ExternalRef: "1JU08902781691411", ObjectStatus: "FAILED", Effect: unknown}),
		"authorization_created_of_order": about(orderCreate, outbound.Observation{Mode: "sandbox", Account: merchantID, Mark: testMark, ExternalRef: order, Effect: applied, Outcome: outbound.Done}),
		"order_approved":                 about(orderCreate, outbound.Observation{Mode: "sandbox", Account: merchantID, Mark: testMark, ExternalRef: order, ObjectStatus: "APPROVED", Effect: applied, Outcome: outbound.Done}),
		"order_declined":                 about(orderCreate, outbound.Observation{Mode: "sandbox", Account: merchantID, Mark: testMark, ExternalRef: order, ObjectStatus: "COMPLETED", Effect: unknown}),
		"payout_success":                 about(payoutCreate, outbound.Observation{Mode: "sandbox", Key: key, ExternalRef: "5UXD2E8A7EBQJ", ObjectStatus: "SUCCESS", Effect: applied, Outcome: outbound.Done}),
		"payout_processing":              about(payoutCreate, outbound.Observation{Mode: "sandbox", Key: key, ExternalRef: "5UXD2E8A7EBQJ", ObjectStatus: "PENDING", Effect: applied, Outcome: outbound.Pending}),
		"payout_denied":                  about(payoutCreate, outbound.Observation{Mode: "sandbox", Key: key, ExternalRef: "5UXD2E8A7EBQJ", ObjectStatus: "DENIED", Effect: none, ProviderCode: "DENIED"}),
		"payout_item":                    about(payoutCreate, outbound.Observation{Mode: "sandbox", Key: key, ExternalRef: "5UXD2E8A7EBQJ", Effect: applied, Outcome: outbound.Pending}),
		"subscription_activated":         about(subscriptionCreate, outbound.Observation{Mode: "sandbox", Mark: testMark, ExternalRef: "I-BW452GLLEP1G", ObjectStatus: "ACTIVE", Effect: applied, Outcome: outbound.Done}),
	}
	silent := []string{"capture_unmarked", "capture_reversed", "authorization_without_order", "payout_foreign", "dispute"}
	for name, body := range webhooks(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, ok, err := Event(body)
			if err != nil {
				t.Fatal(err)
			}
			w, speaks := want[name]
			if !speaks {
				if ok || !slices.Contains(silent, name) {
					t.Errorf("observation %+v, %t; want none", o, ok)
				}
				return
			}
			if !slices.Equal(o.Operations, w.Operations) || o.Key.Raw() != w.Key.Raw() {
				t.Errorf("it is about %v by the key %v, want %v by %v", o.Operations, o.Key, w.Operations, w.Key)
			}
			if o.Provider != "paypal" || o.EventID != "WH-7Y7254563A4550640-11V2185806837105M" || o.EventType == "" || !o.At.Equal(time.Date(2026, 11, 30, 12, 0, 5, 123e6, time.UTC)) {
				t.Errorf("envelope %q %q %q %v", o.Provider, o.EventID, o.EventType, o.At)
			}
			got := [...]any{ok, o.Mode, o.Account, o.Mark, o.ExternalRef, o.ObjectStatus, o.Effect, o.Outcome, o.ProviderCode}
			if wanted := [...]any{true, w.Mode, w.Account, w.Mark, w.ExternalRef, w.ObjectStatus, w.Effect, w.Outcome, w.ProviderCode}; got != wanted {
				t.Errorf("got %q, want %q", got, wanted)
			}
		})
	}
	if got := len(webhooks(t)); got != len(want)+len(silent) {
		t.Errorf("%d webhooks in testdata, want %d", got, len(want)+len(silent))
	}
}

func webhooks(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/webhooks/*.json")
	if err != nil {
		t.Fatal(err)
	}
	bodies := make(map[string][]byte)
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bodies[strings.TrimSuffix(filepath.Base(path), ".json")] = body
	}
	return bodies
}

// A body that is no event, or whose resource cannot be read, is an error that
// shows nothing of it.
func TestEventFailures(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"empty":          "",
		"no JSON":        "secret-name",
		"a list":         "[]",
		"no id":          `{"event_type":"PAYMENT.CAPTURE.REFUNDED","resource":{"id":"x"}}`,
		"no type":        `{"id":"WH-1","resource":{"id":"x"}}`,
		"no resource":    `{"id":"WH-1","event_type":"PAYMENT.CAPTURE.REFUNDED"}`,
		"no object":      `{"id":"WH-1","event_type":"PAYMENT.CAPTURE.REFUNDED","resource":"secret-name"}`,
		"resource no id": `{"id":"WH-1","event_type":"BILLING.SUBSCRIPTION.CREATED","resource":{"custom_id":"secret-name"}}`,
		"no batch":       `{"id":"WH-1","event_type":"PAYMENT.PAYOUTSBATCH.SUCCESS","resource":{}}`,
		"no batch id":    `{"id":"WH-1","event_type":"PAYMENT.PAYOUTS-ITEM.SUCCEEDED","resource":{}}`,
		"odd order":      `{"id":"WH-1","event_type":"CHECKOUT.ORDER.APPROVED","resource":{"id":"x","purchase_units":"secret-name"}}`,
		"too large":      `{"id":"WH-1","x":"` + strings.Repeat("x", maxEvent) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, ok, err := Event([]byte(body))
			if err == nil || ok || o.Provider != "" || strings.Contains(err.Error(), "secret-name") {
				t.Errorf("observation %+v, %t, %v", o, ok, err)
			}
		})
	}
}

// Conclusive is only what holds the object that the command made.
func TestConclusiveEvents(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"capture.refund": {"PAYMENT.CAPTURE.REFUNDED"},
		"payout.create":  {"PAYMENT.PAYOUTSBATCH.SUCCESS", "PAYMENT.PAYOUTSBATCH.DENIED"},
	}
	for _, op := range Operations() {
		if !slices.Equal(op.ConclusiveEventTypes, want[op.Name]) {
			t.Errorf("%s: conclusive %v, want %v", op.Name, op.ConclusiveEventTypes, want[op.Name])
		}
	}
}

func FuzzEvent(f *testing.F) {
	for _, body := range webhooks(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, ok, err := Event(body)
		if ok && (err != nil || o.Provider != "paypal" || len(o.Operations) != 1 || o.Mark == "" && o.Key.IsZero()) {
			t.Errorf("observation %+v, %v leads nowhere", o, err)
		}
		if !ok && o.Provider != "" {
			t.Errorf("half an observation: %+v", o)
		}
	})
}
