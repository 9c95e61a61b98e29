package readme_test

import (
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

func TestCaptureSurvivesLostAnswer(t *testing.T) {
	fake := providertest.PayPal(t, nil)
	order := fake.Seed(providertest.ApprovedOrder{Value: "12.50", Currency: "EUR"})
	api := paypal.New(paypal.Config{Account: "M1", ClientID: "id", Secret: "s", Sandbox: true, BaseURL: fake.URL})
	pp, err := outbound.New(api, memory.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "order.capture"})

	reply, err := pp.Do(t.Context(), paypal.OrderCapture(outbound.Command{ID: "cap_1"}, order, nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := fake.Effects("order.capture"); got != 1 {
		t.Errorf("effects = %d, want 1", got)
	}
	if reply.Label != outbound.LatestStatus { // PayPal never gives the original back
		t.Errorf("label = %q, want %q", reply.Label, outbound.LatestStatus)
	}
}
