package stripe

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// amountField are the last names of parameters that hold an amount: amount,
// unit_amount, amount_to_capture. unit_amount_decimal and the like are decimals.
var amountField = regexp.MustCompile(`^([a-z][a-z_]{0,60}_)?amount$|^amount_to_capture$`)

// wholeAmount is an amount as Stripe takes it, in the currency's smallest unit.
var wholeAmount = regexp.MustCompile(`^-?[0-9]+$`)

// checkAmounts refuses amounts that are no whole numbers, and below zero where
// Stripe takes none: they come of amounts in major units or of floats. An empty
// one unsets its parameter. Source: https://docs.stripe.com/currencies.
func checkAmounts(op replaysemantics.Operation, m outbound.Message) error {
	if !isForm(m) {
		return nil
	}
	fields, err := url.ParseQuery(string(m.Body))
	if err != nil {
		return nil // httpadapter says what is wrong with it
	}
	for name, values := range fields {
		path := strings.FieldsFunc(name, func(c rune) bool { return c == '[' || c == ']' })
		if len(path) == 0 || !amountField.MatchString(path[len(path)-1]) || freeText(path) {
			continue
		}
		signed := mayBeNegative(op, path)
		for _, v := range values {
			switch {
			case v == "" || wholeAmount.MatchString(v) && (signed || v[0] != '-'):
			case signed:
				return fmt.Errorf("stripe: %s: amounts are whole numbers of the smallest unit", path[len(path)-1])
			default:
				return fmt.Errorf("stripe: %s: amounts are whole numbers of the smallest unit, without a sign", path[len(path)-1])
			}
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
