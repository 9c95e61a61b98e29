package paypal

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
)

// Money is an amount in PayPal's own notation: a decimal string in the
// currency's major unit, "12.50". Never a float.
type Money struct {
	Currency string `json:"currency_code"` // ISO 4217, "EUR".
	Value    string `json:"value"`
}

// RefundRequest is a refund's body. Amount is required: without one PayPal
// refunds what remains when it processes the request.
type RefundRequest struct {
	Amount      Money  `json:"amount"`
	InvoiceID   string `json:"invoice_id,omitempty"`
	CustomID    string `json:"custom_id,omitempty"` // Left free, it takes the mark by which a lost refund is found.
	NoteToPayer string `json:"note_to_payer,omitempty"`
}

var (
	valueForm    = regexp.MustCompile(`^[0-9]{1,20}(\.[0-9]{1,9})?$`)
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
)

var (
	errNoAmount = errors.New("state the refund's amount: an empty body means what remains of the capture when it is processed")
	errValue    = errors.New(`the amount's value needs the form "12.50": a decimal string above zero, no sign, no exponent`)
	errCurrency = errors.New(`the amount's currency_code needs three capital letters, as "EUR"`)
)

// check says what is wrong with m as an amount to move.
func (m Money) check() error {
	switch {
	case m == Money{}:
		return errNoAmount
	case !valueForm.MatchString(m.Value) || strings.Trim(m.Value, "0.") == "":
		return errValue
	case !currencyForm.MatchString(m.Currency):
		return errCurrency
	}
	return nil
}

// equal reports whether both are the same amount: "12.5" is "12.50".
func (m Money) equal(o Money) bool {
	if m.Currency != o.Currency || !valueForm.MatchString(m.Value) || !valueForm.MatchString(o.Value) {
		return false
	}
	a, ok1 := new(big.Rat).SetString(m.Value)
	b, ok2 := new(big.Rat).SetString(o.Value)
	return ok1 && ok2 && a.Cmp(b) == 0
}
