package paypal

import (
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// object is a JSON object.
type object = map[string]any

// state is all that the merchant has. The lists are in order of creation.
type state struct {
	tokens         map[string]token
	orders         map[string]*order
	authorizations map[string]*authorization
	captures       map[string]*capture
	refunds        map[string]*refund
	invoiceIDs     map[string]string // whose payment carries an invoice_id
	batches        map[string]*batch
	batchItems     map[string]*batchItem
	products       map[string]*record
	plans          map[string]*record
	subscriptions  map[string]*record
	setupTokens    map[string]*record
	paymentTokens  map[string]*record
	invoices       map[string]*record

	productList, planList, subscriptionList, paymentTokenList, invoiceList []*record

	numbers      map[string]bool // invoice numbers in use
	transactions []*transaction
}

func newState() *state {
	return &state{
		tokens:         map[string]token{},
		orders:         map[string]*order{},
		authorizations: map[string]*authorization{},
		captures:       map[string]*capture{},
		refunds:        map[string]*refund{},
		invoiceIDs:     map[string]string{},
		batches:        map[string]*batch{},
		batchItems:     map[string]*batchItem{},
		products:       map[string]*record{},
		plans:          map[string]*record{},
		subscriptions:  map[string]*record{},
		setupTokens:    map[string]*record{},
		paymentTokens:  map[string]*record{},
		invoices:       map[string]*record{},
		numbers:        map[string]bool{},
	}
}

// size is how many objects are held.
func (s *state) size() int {
	return len(s.tokens) + len(s.orders) + len(s.authorizations) + len(s.captures) + len(s.refunds) +
		len(s.batchItems) + len(s.products) + len(s.plans) + len(s.subscriptions) +
		len(s.setupTokens) + len(s.paymentTokens) + len(s.invoices)
}

// record is an object whose fields PayPal gives back as they came.
type record struct {
	id, status       string
	fields           object
	created, updated time.Time
}

const (
	upperDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lowerDigits = "0123456789abcdefghijklmnopqrstuvwxyz"
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// paymentID has the form of the ids of orders, authorizations, captures and
// refunds.
func paymentID(tx *fakeprovider.Tx) string { return tx.Token(17, upperDigits) }

// stamp is how most of PayPal's APIs write a time.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// text returns a string member, "" for null and for anything else.
func text(o object, name string) string {
	s, _ := o[name].(string)
	return s
}

// put sets a member unless its value is empty.
func put(o object, name, value string) {
	if value != "" {
		o[name] = value
	}
}

// link is one entry of a links array.
func (x *exec) link(path, rel, method string) object {
	return object{"href": x.base + path, "rel": rel, "method": method}
}
