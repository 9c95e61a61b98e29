package stripe

import (
	"net/http"
	"slices"
	"strings"
	"time"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// How long Stripe keeps a key at least.
const (
	windowV1 = 24 * time.Hour
	windowV2 = 30 * 24 * time.Hour
)

// meterIdentifierMax is the longest identifier of a meter event.
const meterIdentifierMax = 100

// The metadata entries that hold the mark. An operation on an existing object
// has an entry of its own: overwriting the one of the object's creation would
// make a search for the creation find nothing.
const (
	onCreated = "samekey_command"
	onCapture = "samekey_capture"
	onUpdate  = "samekey_update"
	noMark    = ""
)

// row is one line of the tables below.
type row struct {
	name  string
	class rs.Class
	path  string
	mark  string // The metadata entry for the mark.
	page  string // The operation's page below https://docs.stripe.com/api.
	again string // What a resend does that the key does not stop, as once it is pruned.
}

// guarded is what a resend does where the object's state refuses it.
const guarded = "refused by the object's state"

// formRows are the operations of API v1 that take a key.
var formRows = []row{
	{"payment_intent.create", rs.Money, "/v1/payment_intents", onCreated, "/payment_intents/create", "second charge"},
	{"payment_intent.confirm", rs.Money, "/v1/payment_intents/{id}/confirm", noMark, "/payment_intents/confirm", guarded},
	{"payment_intent.capture", rs.Money, "/v1/payment_intents/{id}/capture", onCapture, "/payment_intents/capture", guarded + "; a multi-capture is not guarded"},
	{"payment_intent.cancel", rs.Object, "/v1/payment_intents/{id}/cancel", noMark, "/payment_intents/cancel", guarded},

	{"refund.create", rs.Money, "/v1/refunds", onCreated, "/refunds/create", "a full refund is refused, a partial one refunds again"},

	{"setup_intent.create", rs.Object, "/v1/setup_intents", onCreated, "/setup_intents/create", "second setup intent"},
	{"setup_intent.confirm", rs.Object, "/v1/setup_intents/{id}/confirm", noMark, "/setup_intents/confirm", guarded},
	{"setup_intent.cancel", rs.Object, "/v1/setup_intents/{id}/cancel", noMark, "/setup_intents/cancel", guarded},

	{"customer.create", rs.Object, "/v1/customers", onCreated, "/customers/create", "duplicate customer"},
	{"customer_balance_transaction.create", rs.Money, "/v1/customers/{id}/balance_transactions", onCreated, "/customer_balance_transactions/create", "double credit"},

	{"checkout_session.create", rs.Object, "/v1/checkout/sessions", onCreated, "/checkout/sessions/create", "second session"},
	{"checkout_session.expire", rs.Object, "/v1/checkout/sessions/{id}/expire", noMark, "/checkout/sessions/expire", guarded},

	{"subscription.create", rs.Money, "/v1/subscriptions", onCreated, "/subscriptions/create", "second subscription"},
	{"subscription.update", rs.Money, "/v1/subscriptions/{id}", onUpdate, "/subscriptions/update", "the same update again, with its prorations"},

	{"invoice.create", rs.Object, "/v1/invoices", onCreated, "/invoices/create", "second draft"},
	{"invoice.finalize", rs.Money, "/v1/invoices/{id}/finalize", noMark, "/invoices/finalize", guarded},
	{"invoice.pay", rs.Money, "/v1/invoices/{id}/pay", noMark, "/invoices/pay", guarded},
	{"invoice.void", rs.Object, "/v1/invoices/{id}/void", noMark, "/invoices/void", guarded},
	{"invoice.send", rs.Notification, "/v1/invoices/{id}/send", noMark, "/invoices/send", "second e-mail"},
	{"invoice_item.create", rs.Money, "/v1/invoiceitems", onCreated, "/invoiceitems/create", "duplicate line"},
	{"credit_note.create", rs.Money, "/v1/credit_notes", onCreated, "/credit_notes/create", "second note"},

	{"transfer.create", rs.Money, "/v1/transfers", onCreated, "/transfers/create", "second transfer"},
	{"transfer_reversal.create", rs.Money, "/v1/transfers/{id}/reversals", onCreated, "/transfer_reversals/create", "second reversal"},

	{"payout.create", rs.Money, "/v1/payouts", onCreated, "/payouts/create", "second payout"},
	{"payout.cancel", rs.Object, "/v1/payouts/{id}/cancel", noMark, "/payouts/cancel", guarded},
	{"payout.reverse", rs.Money, "/v1/payouts/{id}/reverse", onCreated, "/payouts/reverse", guarded},

	// Usage is reported by the million, and its identifier is the key once more.
	{"meter_event.create", rs.Object, "/v1/billing/meter_events", noMark, "/billing/meter-event/create", "refused while Stripe knows the identifier, at least 24 h"},
}

// deleteRows are the operations of API v1 that delete: Stripe takes no key for
// them, and their state guards them.
var deleteRows = []row{
	{"subscription.cancel", rs.Object, "/v1/subscriptions/{id}", noMark, "/subscriptions/cancel", guarded},
}

// jsonRows are the operations of API v2.
var jsonRows = []row{
	{"v2.account.create", rs.Object, "/v2/core/accounts", onCreated, "/v2/core/accounts/create", "second account"},
	{"v2.account.update", rs.Object, "/v2/core/accounts/{id}", onUpdate, "/v2/core/accounts/update", "the same update again"},
	{"v2.account.close", rs.Object, "/v2/core/accounts/{id}/close", noMark, "/v2/core/accounts/close", guarded},
	{"v2.event_destination.create", rs.Object, "/v2/core/event_destinations", onCreated, "/v2/core/event_destinations/create", "second event destination"},
	{"v2.event_destination.update", rs.Object, "/v2/core/event_destinations/{id}", onUpdate, "/v2/core/event_destinations/update", "the same update again"},
}

var jsonDeleteRows = []row{
	{"v2.event_destination.delete", rs.Object, "/v2/core/event_destinations/{id}", noMark, "/v2/core/event_destinations/delete", guarded},
}

// Operations returns the table of everything that this package can call, with
// the sources of what it states. The caller owns the slice.
func Operations() []rs.Operation {
	var all []rs.Operation
	for _, r := range formRows {
		all = append(all, r.form())
	}
	for _, r := range deleteRows {
		all = append(all, r.formDelete())
	}
	for _, r := range jsonRows {
		all = append(all, r.json(http.MethodPost))
	}
	for _, r := range jsonDeleteRows {
		all = append(all, r.json(http.MethodDelete))
	}
	return all
}

// table is what Operations returns, for this package alone.
var table = Operations()

// operations finds a row by name, for the functions that make calls.
var operations = func() map[string]rs.Operation {
	m := make(map[string]rs.Operation)
	for _, op := range table {
		m[op.Name] = op
	}
	return m
}()

func (r row) form() rs.Operation {
	op := rs.Operation{
		Name: r.name, Class: r.class, Method: http.MethodPost, Path: r.path,
		Lookup: r.lookup(), Absence: r.absence(), ConclusiveEventTypes: conclusive[r.name],
		Keys:     []rs.Place{rs.Header("Idempotency-Key")},
		Window:   windowV1,
		Resend:   rs.Original,
		Failures: rs.Stored,
		// A card number in any request is kept out of the ledger, since Stripe
		// refuses unknown parameters only after the request was stored.
		Sensitive: cardNumbers(), Codes: cardCodes(),
		Facts: append(factsV1(), r.facts()...),
	}
	if r.mark != noMark {
		op.Marks = []rs.Place{rs.Form("metadata[" + r.mark + "]")}
	}
	if r.name == "meter_event.create" {
		op.Keys = append(op.Keys, rs.Form("identifier"))
		op.KeyMax = meterIdentifierMax
	}
	return op
}

func (r row) formDelete() rs.Operation {
	return rs.Operation{
		Name: r.name, Class: r.class, Method: http.MethodDelete, Path: r.path,
		Lookup: r.lookup(), Absence: r.absence(),
		ResendAfterAbsence: true,
		Facts:              append(factsDelete(), r.facts()...),
	}
}

func (r row) json(method string) rs.Operation {
	op := rs.Operation{
		Name: r.name, Class: r.class, Method: method, Path: r.path,
		Lookup: r.lookup(), Absence: r.absence(),
		Keys:     []rs.Place{rs.Header("Idempotency-Key")},
		Window:   windowV2,
		Resend:   rs.LatestOrRunAgain,
		Failures: rs.RunAgain,
		Facts:    append(factsV2(), r.facts()...),
	}
	if r.mark != noMark {
		op.Marks = []rs.Place{rs.JSON("/metadata/" + r.mark)}
	}
	return op
}

// cardHolders are the parameters that may hold raw card data.
var cardHolders = []string{"card", "source", "payment_method_data[card]"}

func cardNumbers() []rs.Place { return fieldsOf(cardHolders, "[number]") }
func cardCodes() []rs.Place   { return fieldsOf(cardHolders, "[cvc]") }

func fieldsOf(holders []string, field string) []rs.Place {
	places := make([]rs.Place, len(holders))
	for i, h := range holders {
		places[i] = rs.Form(h + field)
	}
	return slices.Clip(places)
}

// isV2 reports whether an operation belongs to API v2.
func isV2(op rs.Operation) bool { return strings.HasPrefix(op.Path, "/v2/") }
