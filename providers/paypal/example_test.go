package paypal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
)

// capture is what a service does about one capture. Applied is not paid, and
// unknown is not failed.
func capture(ctx context.Context, pp *outbound.Client, cmdID, orderID string, later func(time.Duration)) (string, error) {
	reply, err := pp.Do(ctx, paypal.OrderCapture(outbound.Command{ID: cmdID}, orderID, nil))
	switch {
	case err == nil:
		c, err := paypal.CaptureOf(reply)
		return fmt.Sprintf("%s %s", c.Status, c.Amount.Value), err
	case errors.Is(err, outbound.ErrRefused):
		return "refused", nil // an outcome: the payer's next try is a new command
	}
	if after, again := outbound.RetryAfter(err); again {
		later(after) // ask again, with the same command
		return "unknown", nil
	}
	return "", err
}

func TestExampleCapture(t *testing.T) {
	inWorld(t, paypal.Config{}, func(w world) {
		paid := w.fake.Seed(providertest.ApprovedOrder{Value: "12.50", Currency: "EUR"})
		refused := w.fake.Seed(providertest.ApprovedOrder{Outcome: "INSTRUMENT_DECLINED"})
		silent := w.fake.Seed(providertest.ApprovedOrder{})
		snoozed := time.Duration(0)
		later := func(d time.Duration) { snoozed = d }
		for _, c := range []struct{ id, order, want string }{
			{"c1", paid, "COMPLETED 12.50"}, {"c2", refused, "refused"}, {"c3", silent, "unknown"},
		} {
			if c.order == silent {
				w.fake.Inject(lost("order.capture"))
			}
			got, err := capture(w.Context(), w.client, c.id, c.order, later)
			if err != nil || got != c.want {
				w.Errorf("%s: %q, %v; want %q", c.id, got, err, c.want)
			}
		}
		if snoozed == 0 {
			w.Error("an unknown outcome was not put off")
		}
		w.effects("order.capture", 2)
	})
}
