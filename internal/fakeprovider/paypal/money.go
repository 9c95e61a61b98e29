package paypal

import (
	"strconv"
	"strings"
)

// money is an amount in the smallest unit of its currency.
type money struct {
	currency string
	minor    int64
}

// decimals returns how many digits an amount has after its point, and whether
// PayPal takes the currency at all (its currency codes reference).
func decimals(currency string) (int, bool) {
	switch currency {
	case "HUF", "JPY", "TWD":
		return 0, true
	case "AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "ILS", "MXN", "MYR",
		"NOK", "NZD", "PHP", "PLN", "SEK", "SGD", "THB", "USD":
		return 2, true
	}
	return 0, false
}

// maxDigits keeps the sums of amounts far from overflow.
const maxDigits = 12

// parseMoney reads an amount. It returns the issue that PayPal would name, or
// "" if there is none.
func parseMoney(value, currency string) (m money, issue string) {
	places, known := decimals(currency)
	if !known {
		return money{}, "CURRENCY_NOT_SUPPORTED"
	}
	negative := strings.HasPrefix(value, "-")
	whole, fraction, pointed := strings.Cut(strings.TrimPrefix(value, "-"), ".")
	notDigit := func(r rune) bool { return r < '0' || r > '9' }
	if strings.ContainsFunc(whole+fraction, notDigit) || whole+fraction == "" || (pointed && fraction == "") {
		return money{}, "INVALID_PARAMETER_SYNTAX"
	}
	whole = strings.TrimLeft(whole, "0")
	switch {
	case len(whole) > maxDigits:
		return money{}, "INVALID_STRING_MAX_LENGTH"
	case len(fraction) > places && places == 0:
		return money{}, "DECIMALS_NOT_SUPPORTED"
	case len(fraction) > places:
		return money{}, "DECIMAL_PRECISION"
	}
	fraction += strings.Repeat("0", places-len(fraction))
	n, err := strconv.ParseInt("0"+whole+fraction, 10, 64)
	switch {
	case err != nil:
		return money{}, "INVALID_PARAMETER_SYNTAX"
	case negative || n == 0:
		return money{}, "CANNOT_BE_ZERO_OR_NEGATIVE"
	}
	return money{currency: currency, minor: n}, ""
}

// value writes the amount as PayPal does: "10.00", "1000" for yen.
func (m money) value() string {
	places, _ := decimals(m.currency)
	if places == 0 {
		return strconv.FormatInt(m.minor, 10)
	}
	sign, n := "", m.minor
	if n < 0 {
		sign, n = "-", -n
	}
	return sign + strconv.FormatInt(n/100, 10) + "." + strconv.FormatInt(100+n%100, 10)[1:]
}

// view is the amount as the v2 APIs write it.
func (m money) view() object { return object{"currency_code": m.currency, "value": m.value()} }

// viewV1 is the amount as Payouts writes it.
func (m money) viewV1() object { return object{"currency": m.currency, "value": m.value()} }

func (m money) minus(minor int64) money { return money{m.currency, m.minor - minor} }
