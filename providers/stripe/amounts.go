package stripe

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// isAmount reports whether a parameter of that last name holds an amount: amount,
// unit_amount, amount_to_capture. unit_amount_decimal and the like are decimals.
func isAmount(name string) bool {
	kind, ok := strings.CutSuffix(name, "amount")
	return name == "amount_to_capture" || ok && (kind == "" || strings.HasSuffix(kind, "_")) &&
		!strings.HasPrefix(kind, "_") && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// isWhole reports whether an amount is one as Stripe takes it, in the currency's
// smallest unit.
func isWhole(amount string) bool {
	digits := strings.TrimPrefix(amount, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

// checkAmounts refuses amounts that are no whole numbers, and below zero where
// Stripe takes none: they come of amounts in major units or of floats. An empty
// one unsets its parameter. Source: https://docs.stripe.com/currencies.
func checkAmounts(op replaysemantics.Operation, m outbound.Message) error {
	if !isForm(m) {
		return nil
	}
	for field := range strings.SplitSeq(string(m.Body), "&") {
		name, value, _ := strings.Cut(field, "=")
		if !strings.Contains(name, "amount") && !strings.Contains(name, "%") {
			continue // as most fields are
		}
		name, err1 := url.QueryUnescape(name)
		v, err2 := url.QueryUnescape(value)
		if err1 != nil || err2 != nil || !strings.Contains(name, "amount") {
			continue // httpadapter says what is wrong with a form
		}
		path := []string{name}
		if strings.ContainsAny(name, "[]") {
			path = strings.FieldsFunc(name, func(c rune) bool { return c == '[' || c == ']' })
		}
		if len(path) == 0 || !isAmount(path[len(path)-1]) || freeText(path) {
			continue
		}
		signed := mayBeNegative(op, path)
		switch {
		case v == "" || isWhole(v) && (signed || v[0] != '-'):
		case signed:
			return fmt.Errorf("stripe: %s: amounts are whole numbers of the smallest unit", path[len(path)-1])
		default:
			return fmt.Errorf("stripe: %s: amounts are whole numbers of the smallest unit, without a sign", path[len(path)-1])
		}
	}
	return nil
}

func isForm(m outbound.Message) bool {
	for _, f := range m.Header {
		if strings.EqualFold(f.Name, "Content-Type") {
			kind, _, _ := strings.Cut(f.Value, ";")
			return strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded")
		}
	}
	return false
}

// freeText reports whether the caller names what stands there: metadata of any
// object, and the payload of a meter event.
func freeText(path []string) bool {
	return path[0] == "payload" || slices.Contains(path[:len(path)-1], "metadata")
}

// mayBeNegative reports whether Stripe takes an amount below zero: a credit of a
// customer's balance or on an invoice. Of operations that the table leaves out
// nothing is known. Source: https://docs.stripe.com/api.
func mayBeNegative(op replaysemantics.Operation, path []string) bool {
	switch op.Name {
	case "customer_balance_transaction.create", "invoice_item.create", "credit_note.create":
		return true
	case "subscription.create", "subscription.update":
		return path[0] == "add_invoice_items"
	}
	_, known := operations[op.Name]
	return !known
}
