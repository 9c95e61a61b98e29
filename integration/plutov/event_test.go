package plutov_test

import (
	"errors"
	"testing"

	plutov "github.com/plutov/paypal/v4"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
)

// R24, R25: under PayPal's SDK two consumers of one event are two refunds, an event
// seen twice is one, and a raised version that is not admitted sends nothing.
func TestEventsUnderTheSDK(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	id := b.fake.Seed(providertest.CompletedCapture{Value: "12.50", Currency: "EUR"})
	refund := func(e keyderive.Event) error {
		cmd, err := outbound.EventCommand(e, "")
		if err != nil {
			t.Fatal(err)
		}
		ctx, call := outbound.Track(t.Context(), cmd)
		_, err = b.pp.RefundCapture(ctx, id, plutov.RefundCaptureRequest{Amount: euros("1.00")})
		_, failed := call.Result()
		if (err == nil) != (failed == nil) {
			t.Errorf("the SDK got %v and samekey %v", err, failed)
		}
		return failed
	}
	refunds := keyderive.Event{Consumer: "refunds", ID: "WH-1"}
	for _, e := range []keyderive.Event{refunds, {Consumer: "goodwill", ID: "WH-1"}, refunds} {
		if err := refund(e); err != nil {
			t.Errorf("%s: %v", e.Consumer, err)
		}
	}
	refunds.Version = 2
	if err := refund(refunds); !errors.Is(err, outbound.ErrInvalid) {
		t.Errorf("a raised version: %v, want it refused", err)
	}
	if effects, sent := b.fake.Effects("capture.refund"), len(b.fake.Requests("capture.refund")); effects != 2 || sent != 2 || b.fake.Duplicates() != 0 {
		t.Errorf("%d refunds of %d requests, want one for each consumer", effects, sent)
	}
}
