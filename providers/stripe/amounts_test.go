package stripe

import (
	"net/url"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// An amount that Stripe would refuse, or that was meant in major units, is not
// sent. Metadata and decimals may hold anything.
func TestAmountsAreWholeNumbers(t *testing.T) {
	t.Parallel()
	a := New(Config{Account: "acct_1", SecretKey: "sk_live_x"})
	for _, c := range []struct {
		operation, field string
		good, bad        []string
	}{
		{"payment_intent.create", "amount", []string{"0", "1250", ""}, []string{"12.5", "10.0", "1e3", "-5", "+5", " 5", "5 ", "1,000", "0x10", "NaN", "٣"}},
		{"payment_intent.create", "application_fee_amount", []string{"12"}, []string{"1.2", "-1"}},
		{"payment_intent.create", "transfer_data[amount]", []string{"12"}, []string{"1.2"}},
		{"payment_intent.capture", "amount_to_capture", []string{"12"}, []string{"1.2", "-1"}},
		{"checkout_session.create", "line_items[0][price_data][unit_amount]", []string{"12"}, []string{"1.2", "-1"}},
		{"checkout_session.create", "line_items[0][price_data][unit_amount_decimal]", []string{"1.2"}, nil},
		{"payment_intent.create", "metadata[amount]", []string{"12.50 EUR"}, nil},
		{"checkout_session.create", "payment_intent_data[metadata][net_amount]", []string{"12.50"}, nil},
		{"meter_event.create", "payload[amount]", []string{"0.5"}, nil},
		{"customer_balance_transaction.create", "amount", []string{"-500", "500"}, []string{"-5.0", "--5", "-"}},
		{"invoice_item.create", "amount", []string{"-500"}, []string{"-5.0"}},
		{"credit_note.create", "lines[0][amount]", []string{"-500"}, []string{"5.0"}},
		{"subscription.create", "add_invoice_items[0][price_data][unit_amount]", []string{"-500"}, []string{"5.0"}},
		{"subscription.create", "items[0][price_data][unit_amount]", []string{"500"}, []string{"-500"}},
	} {
		op := operations[c.operation]
		message := func(value string) outbound.Message {
			ids := map[bool][]string{true: {"x_1"}}[strings.Contains(op.Path, "{id}")]
			return form(outbound.Command{ID: "c"}, op.Name, url.Values{c.field: {value}}, ids...).Message
		}
		for _, v := range c.good {
			if _, err := a.Freeze(op, message(v), ""); err != nil {
				t.Errorf("%s %s=%q: %v", op.Name, c.field, v, err)
			}
		}
		for _, v := range c.bad {
			_, err := a.Freeze(op, message(v), "")
			if err == nil || !strings.Contains(err.Error(), "whole numbers of the smallest unit") {
				t.Errorf("%s %s=%q: %v", op.Name, c.field, v, err)
			}
		}
	}
	reversal := replaysemantics.Operation{Name: "tax.reversal.create"}
	negative := outbound.Message{Header: []outbound.Field{{Name: "Content-Type", Value: "application/x-www-form-urlencoded; charset=utf-8"}}, Body: []byte("flat_amount=-5")}
	if err := (codec{}).Check(reversal, negative); err != nil {
		t.Errorf("an operation of the author's own: %v", err)
	}
}
