package stripe

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

// TestOperationNames holds that no name is ever taken away or reused: a name is
// part of every key. New names are added at the end of the file.
func TestOperationNames(t *testing.T) {
	t.Parallel()
	golden, err := os.Open("testdata/operation_names.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	var names []string
	for s := bufio.NewScanner(golden); s.Scan(); {
		route := strings.Fields(s.Text())
		if len(route) != 3 {
			t.Fatalf("line %q: want a name, a method and a path", s.Text())
		}
		names = append(names, route[0])
		op, ok := operations[route[0]]
		if !ok {
			t.Errorf("%s was taken away: keys made with it are out in the world", route[0])
		}
		if op.Method != route[1] || op.Path != route[2] {
			t.Errorf("%s is now %s %s, was %s %s: another route needs another name", route[0], op.Method, op.Path, route[1], route[2])
		}
	}
	for _, op := range Operations() {
		if !slices.Contains(names, op.Name) {
			t.Errorf("%s is new: add %q at the end of testdata/operation_names.txt", op.Name, op.Name+" "+op.Method+" "+op.Path)
		}
	}
}

// TestRowsStateTheFacts holds what differs between v1, v1 DELETE and v2, and
// where the mark goes (C12, C16).
func TestRowsStateTheFacts(t *testing.T) {
	t.Parallel()
	header := rs.Header("Idempotency-Key")
	for _, op := range Operations() {
		switch {
		case strings.HasPrefix(op.Path, "/v2/"):
			if op.Window != 30*24*time.Hour || op.Resend != rs.LatestOrRunAgain || op.Failures != rs.RunAgain || !slices.Equal(op.Keys, []rs.Place{header}) {
				t.Errorf("%s: not the rules of API v2: %+v", op.Name, op)
			}
		case op.Method == "DELETE":
			if op.HasKey() || op.Resend != rs.Never || !op.ResendAfterAbsence {
				t.Errorf("%s: a v1 DELETE has no key: %+v", op.Name, op)
			}
		default:
			if op.Window != 24*time.Hour || op.Resend != rs.Original || op.Failures != rs.Stored || op.Keys[0] != header {
				t.Errorf("%s: not the rules of API v1: %+v", op.Name, op)
			}
			if !slices.Contains(op.Sensitive, rs.Form("payment_method_data[card][number]")) || !slices.Contains(op.Codes, rs.Form("card[cvc]")) {
				t.Errorf("%s: card data would be stored", op.Name)
			}
		}
	}

	marks := map[string][]string{
		"metadata[samekey_command]": {
			"payment_intent.create", "refund.create", "setup_intent.create", "customer.create", "customer_balance_transaction.create",
			"checkout_session.create", "subscription.create", "invoice.create", "invoice_item.create", "credit_note.create",
			"transfer.create", "transfer_reversal.create", "payout.create", "payout.reverse",
		},
		"metadata[samekey_capture]": {"payment_intent.capture"},
		"metadata[samekey_update]":  {"subscription.update"},
		"/metadata/samekey_command": {"v2.account.create", "v2.event_destination.create"},
		"/metadata/samekey_update":  {"v2.account.update", "v2.event_destination.update"},
	}
	for _, op := range Operations() {
		var want []rs.Place
		for field, names := range marks {
			if !slices.Contains(names, op.Name) {
				continue
			}
			want = []rs.Place{rs.Form(field)}
			if strings.HasPrefix(field, "/") {
				want = []rs.Place{rs.JSON(field)}
			}
		}
		if !slices.Equal(op.Marks, want) {
			t.Errorf("%s: marks %v, want %v", op.Name, op.Marks, want)
		}
	}

	meter := operations["meter_event.create"]
	if !slices.Equal(meter.Keys, []rs.Place{header, rs.Form("identifier")}) || meter.KeyMax != 100 || len(meter.Marks) != 0 {
		t.Errorf("meter_event.create: %+v", meter)
	}
	if op := operations["invoice.send"]; op.Class != rs.Notification {
		t.Errorf("invoice.send: class %v", op.Class)
	}
	for _, name := range []string{"payment_intent.create", "payment_intent.confirm", "payment_intent.capture", "refund.create", "transfer.create", "payout.create"} {
		if operations[name].Class != rs.Money {
			t.Errorf("%s: class %v", name, operations[name].Class)
		}
	}
}

// TestOperationsAreCopies holds that a caller cannot change the table.
func TestOperationsAreCopies(t *testing.T) {
	t.Parallel()
	mine := Operations()
	mine[0].Keys[0] = rs.Header("X")
	mine[0].Facts[0] = rs.Fact{}
	if again := Operations(); again[0].Keys[0] != rs.Header("Idempotency-Key") || again[0].Facts[0].States == "" {
		t.Error("Operations returned the table itself")
	}
}
