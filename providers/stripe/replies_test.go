package stripe

import (
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
)

func TestReaders(t *testing.T) {
	t.Parallel()
	reply := func(body string) *outbound.Reply {
		return &outbound.Reply{Operation: "x.create", ExternalRef: "x_1", Body: []byte(body)}
	}
	pi, err := PaymentIntentOf(reply(`{"id":"pi_1","object":"payment_intent","status":"succeeded","amount":2000,"amount_received":2000,"currency":"eur","customer":{"id":"cus_1","object":"customer"},"latest_charge":"ch_1","metadata":{"order":"7"}}`))
	if err != nil || pi.ID != "pi_1" || pi.Amount != 2000 || pi.AmountReceived != 2000 || pi.Customer != "cus_1" || pi.LatestCharge != "ch_1" || pi.Metadata["order"] != "7" {
		t.Errorf("got %+v, %v", pi, err)
	}
	re, err := RefundOf(reply(`{"id":"re_1","object":"refund","status":"pending","amount":500,"currency":"eur","charge":"ch_1","payment_intent":null}`))
	if err != nil || re.Status != "pending" || re.Charge != "ch_1" || re.PaymentIntent != "" {
		t.Errorf("got %+v, %v", re, err)
	}
	for object, read := range map[string]func(*outbound.Reply) (string, error){
		"setup_intent":     func(r *outbound.Reply) (string, error) { v, err := SetupIntentOf(r); return v.ID, err },
		"customer":         func(r *outbound.Reply) (string, error) { v, err := CustomerOf(r); return v.ID, err },
		"checkout.session": func(r *outbound.Reply) (string, error) { v, err := CheckoutSessionOf(r); return v.ID, err },
		"subscription":     func(r *outbound.Reply) (string, error) { v, err := SubscriptionOf(r); return v.ID, err },
		"invoice":          func(r *outbound.Reply) (string, error) { v, err := InvoiceOf(r); return v.ID, err },
		"transfer":         func(r *outbound.Reply) (string, error) { v, err := TransferOf(r); return v.ID, err },
		"payout":           func(r *outbound.Reply) (string, error) { v, err := PayoutOf(r); return v.ID, err },
		"refund":           func(r *outbound.Reply) (string, error) { v, err := RefundOf(r); return v.ID, err },
		"payment_intent":   func(r *outbound.Reply) (string, error) { v, err := PaymentIntentOf(r); return v.ID, err },
	} {
		if id, err := read(reply(`{"id":"x_1","object":"` + object + `"}`)); id != "x_1" || err != nil {
			t.Errorf("%s: got %q, %v", object, id, err)
		}
		for _, bad := range []*outbound.Reply{nil, reply(""), reply("<html>"), reply(`{"id":"x_1","object":"other"}`), reply(`{"object":"` + object + `","id":7}`)} {
			if id, err := read(bad); err == nil || id != "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: a bad reply gave %q, %v", object, id, err)
			}
		}
	}
}
