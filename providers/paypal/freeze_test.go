package paypal

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

func freeze(t *testing.T, cfg Config, call outbound.Call) outbound.Frozen {
	t.Helper()
	cfg.Account, cfg.ClientID, cfg.Secret = "M", "a", "s"
	adapter := New(cfg)
	profile, err := adapter.Profile()
	if err != nil {
		t.Fatal(err)
	}
	row, _ := rs.Find(profile.Operations, call.Operation)
	frozen, err := adapter.Freeze(row, call.Message, testMark)
	if err != nil {
		t.Fatal(err)
	}
	return frozen
}

// Marks go where the caller left custom_id free, and nowhere else (C12).
func TestMarks(t *testing.T) {
	t.Parallel()
	unit := map[string]any{"amount": Money{"EUR", "1.00"}}
	own := map[string]any{"amount": Money{"EUR", "2.00"}, "custom_id": "mine"}
	var order struct {
		Units []struct {
			CustomID string `json:"custom_id"`
		} `json:"purchase_units"`
	}
	frozen := freeze(t, Config{}, OrderCreate(testCommand, map[string]any{"intent": "CAPTURE", "purchase_units": []any{unit, own}}))
	if err := json.Unmarshal(frozen.Message.Body, &order); err != nil {
		t.Fatal(err)
	}
	if len(order.Units) != 2 || order.Units[0].CustomID != testMark || order.Units[1].CustomID != "mine" {
		t.Errorf("marks: %s", frozen.Message.Body)
	}
	for name, c := range map[string]struct {
		cfg                Config
		call               outbound.Call
		customID, expected string // custom_id and invoice_id
	}{
		"refund":            {Config{}, CaptureRefund(testCommand, "C1", RefundRequest{Amount: Money{"EUR", "1.00"}}), testMark, ""},
		"refund, taken":     {Config{}, CaptureRefund(testCommand, "C1", RefundRequest{Amount: Money{"EUR", "1.00"}, CustomID: "mine"}), "mine", ""},
		"subscription":      {Config{}, SubscriptionCreate(testCommand, map[string]any{"plan_id": "P-1"}), testMark, ""},
		"capture":           {Config{}, AuthorizationCapture(testCommand, "A1", nil), "", ""},
		"capture, by wish":  {Config{MarkInvoices: true}, AuthorizationCapture(testCommand, "A1", nil), "", testMark},
		"capture, taken":    {Config{MarkInvoices: true}, AuthorizationCapture(testCommand, "A1", map[string]any{"invoice_id": "INV-1"}), "", "INV-1"},
		"order, no body ID": {Config{MarkInvoices: true}, OrderCapture(testCommand, "O1", nil), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got struct {
				CustomID  string `json:"custom_id"`
				InvoiceID string `json:"invoice_id"`
			}
			body := freeze(t, c.cfg, c.call).Message.Body
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			if got.CustomID != c.customID || got.InvoiceID != c.expected {
				t.Errorf("%s", body)
			}
		})
	}
}

// A request with card data is never stored.
func TestSensitive(t *testing.T) {
	t.Parallel()
	card := func(field string) map[string]any {
		return map[string]any{"intent": "CAPTURE", "payment_source": map[string]any{"card": map[string]any{field: "4111111111111111"}}}
	}
	for name, c := range map[string]struct {
		call      outbound.Call
		sensitive bool
	}{
		"number":     {OrderCreate(testCommand, card("number")), true},
		"code":       {OrderCapture(testCommand, "O1", card("security_code")), true},
		"vault":      {PaymentTokenCreate(testCommand, card("number")), true},
		"subscriber": {SubscriptionCreate(testCommand, map[string]any{"subscriber": card("number")}), true},
		"expiry":     {OrderCreate(testCommand, card("expiry")), false},
		"token":      {OrderCreate(testCommand, map[string]any{"payment_source": map[string]any{"token": map[string]any{"id": "t"}}}), false},
	} {
		if got := freeze(t, Config{}, c.call).Sensitive; got != c.sensitive {
			t.Errorf("%s: sensitive %t, want %t", name, got, c.sensitive)
		}
	}
}

// Of a caller's headers only those that mean something to PayPal are kept.
func TestFrozenHeaders(t *testing.T) {
	t.Parallel()
	call := OrderCapture(testCommand, "O1", nil)
	for _, name := range []string{"Authorization", "PayPal-Auth-Assertion", "PayPal-Request-Id", "Prefer", "Traceparent", "User-Agent", "PayPal-Mock-Response", "PayPal-Partner-Attribution-Id"} {
		call.Message.Header = append(call.Message.Header, outbound.Field{Name: name, Value: "x"})
	}
	for _, sandbox := range []bool{false, true} {
		var names []string
		for _, f := range freeze(t, Config{Sandbox: sandbox}, call).Message.Header {
			names = append(names, f.Name)
		}
		want := []string{"Content-Type", "Paypal-Partner-Attribution-Id"}
		if sandbox {
			want = []string{"Content-Type", "Paypal-Mock-Response", "Paypal-Partner-Attribution-Id"}
		}
		if !slices.Equal(names, want) {
			t.Errorf("sandbox %t: kept %v, want %v", sandbox, names, want)
		}
	}
}
