package paypal

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

func TestOperationsAreUsable(t *testing.T) {
	t.Parallel()
	if err := rs.Check(Operations()); err != nil {
		t.Fatal(err)
	}
}

// Names are part of every key: none is ever taken away, and no route gets
// another name. New ones are added at the end of the file.
func TestOperationNames(t *testing.T) {
	t.Parallel()
	golden, err := os.Open("testdata/operation_names.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	rows := Operations()
	var names []string
	for s := bufio.NewScanner(golden); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) != 3 {
			t.Fatalf("line %q: want a name, a method and a path", s.Text())
		}
		names = append(names, f[0])
		op, ok := rs.Find(rows, f[0])
		if !ok {
			t.Errorf("%s was taken away: keys made with it are out in the world", f[0])
		} else if op.Method != f[1] || op.Path != f[2] {
			t.Errorf("%s is now %s %s, was %s %s: another route needs another name", f[0], op.Method, op.Path, f[1], f[2])
		}
	}
	for _, op := range rows {
		if !slices.Contains(names, op.Name) {
			t.Errorf("%s is new: add %q at the end of testdata/operation_names.txt", op.Name, op.Name+" "+op.Method+" "+op.Path)
		}
	}
}

// Windows, keys and what a resend gives, as PayPal's sources state them (R2,
// R12, R13, C16).
func TestRowsStateTheFacts(t *testing.T) {
	t.Parallel()
	windows := map[string]time.Duration{
		"order.create": 6 * time.Hour, "order.authorize": 6 * time.Hour, "order.capture": 6 * time.Hour,
		"authorization.capture": 45 * day, "authorization.reauthorize": 45 * day, "authorization.void": 45 * day, "capture.refund": 45 * day,
		"payout.create":       30 * day,
		"subscription.create": 72 * time.Hour, "plan.create": 72 * time.Hour, "product.create": 72 * time.Hour,
		"setup_token.create": 3 * time.Hour, "payment_token.create": 3 * time.Hour,
	}
	for _, op := range Operations() {
		window, keyed := windows[op.Name]
		switch {
		case op.HasKey() != keyed || op.Window != window:
			t.Errorf("%s: window %v, key %t; want %v, %t", op.Name, op.Window, op.HasKey(), window, keyed)
		case op.Failures != rs.RunAgain:
			t.Errorf("%s: failures count as %q: nobody has shown that PayPal stores them", op.Name, op.Failures)
		case op.Name == "payout.create":
			want := []rs.Place{rs.Header("PayPal-Request-Id"), rs.JSON("/sender_batch_header/sender_batch_id")}
			if !slices.Equal(op.Keys, want) || op.Resend != rs.ConflictWithLink {
				t.Errorf("%s: keys %v, resend %q (C17)", op.Name, op.Keys, op.Resend)
			}
		case keyed && (op.Resend != rs.Latest || !slices.Equal(op.Keys, []rs.Place{rs.Header("PayPal-Request-Id")})):
			t.Errorf("%s: keys %v, resend %q", op.Name, op.Keys, op.Resend)
		}
	}
}

func TestRowsMarkAndHide(t *testing.T) {
	t.Parallel()
	marks := map[string]string{
		"order.create": "/purchase_units/*/custom_id", "capture.refund": "/custom_id", "subscription.create": "/custom_id",
	}
	sources := map[string]string{
		"order.create": "/payment_source", "order.authorize": "/payment_source", "order.capture": "/payment_source",
		"order.confirm_payment_source": "/payment_source", "setup_token.create": "/payment_source", "payment_token.create": "/payment_source",
		"subscription.create": "/subscriber/payment_source",
	}
	for _, op := range Operations() {
		var mark string
		for _, m := range op.Marks {
			mark += m.Name
		}
		if mark != marks[op.Name] {
			t.Errorf("%s: marks %q, want %q", op.Name, mark, marks[op.Name])
		}
		source := sources[op.Name]
		hides := slices.Contains(op.Sensitive, rs.JSON(source+"/card/number")) && slices.Contains(op.Codes, rs.JSON(source+"/card/security_code"))
		if hides != (source != "") {
			t.Errorf("%s: hides card data below %q: %t", op.Name, source, hides)
		}
	}
}

// The caller who asks for it gets a mark that payers see (MarkInvoices).
func TestMarkInvoices(t *testing.T) {
	t.Parallel()
	for _, marking := range []bool{false, true} {
		cfg := Config{MarkInvoices: marking}
		op, _ := rs.Find(cfg.operations(), "authorization.capture")
		if got := slices.Equal(op.Marks, []rs.Place{rs.JSON("/invoice_id")}); got != marking {
			t.Errorf("MarkInvoices %t: invoice_id is marked: %t", marking, got)
		}
	}
}
