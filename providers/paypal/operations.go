package paypal

import (
	"net/http"
	"slices"
	"time"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const day = 24 * time.Hour

// Operations returns the table: one row for each operation, with its sources.
// Names are never changed or reused, since they are part of every key.
func Operations() []rs.Operation {
	return slices.Concat(orderRows(), paymentRows(), payoutRows(), billingRows(), vaultRows(), invoiceRows())
}

func orderRows() []rs.Operation {
	return []rs.Operation{orderCreate, orderAuthorize, orderCapture, orderPatch, orderConfirmPaymentSource}
}

// The key of Orders v2 is kept for 6 hours; PayPal prolongs it to 72 by
// arrangement, which this table does not count on.
var (
	orderCreate = rs.Operation{
		Name: "order.create", Method: http.MethodPost, Path: "/v2/checkout/orders",
		Keys: requestID(), KeyMax: 108, Window: 6 * time.Hour, Resend: rs.Latest,
		Marks:     []rs.Place{rs.JSON("/purchase_units/*/custom_id")},
		Sensitive: cardFields("/payment_source"), Codes: cardCodes("/payment_source"),
		Horizon: searchHorizon,
		Lookup:  "by the order's id where an answer told it, else by Transaction Search: the payment that carries the mark in custom_field; an order that nobody paid is found by nothing, moves no money and is never proved absent",
		Facts: keyed(ordersSpec, "6 hours", append(searched(),
			spec(ordersSpec, "201 is new, 200 an earlier run, 202 accepted"),
			doc(ordersPage, "with payment_source the PayPal-Request-Id is required"),
			spec(ordersSpec, "custom_id: at most 127 characters"))...),
	}
	orderAuthorize = rs.Operation{
		Name: "order.authorize", Method: http.MethodPost, Path: "/v2/checkout/orders/{id}/authorize",
		Keys: requestID(), KeyMax: 108, Window: 6 * time.Hour, Resend: rs.Latest,
		Sensitive: cardFields("/payment_source"), Codes: cardCodes("/payment_source"),
		Lookup:  "GET the order: its state, and its authorizations",
		Absence: "the account's order is not completed and shows none",
		Facts:   keyed(ordersSpec, "6 hours", spec(ordersSpec, "201 is new, 200 an earlier run"), payeeTold()),
	}
	orderCapture = rs.Operation{
		Name: "order.capture", Method: http.MethodPost, Path: "/v2/checkout/orders/{id}/capture",
		Keys: requestID(), KeyMax: 108, Window: 6 * time.Hour, Resend: rs.Latest,
		Sensitive: cardFields("/payment_source"), Codes: cardCodes("/payment_source"),
		Lookup:  "GET the order: its state, and its captures",
		Absence: "the account's order is not completed and shows none",
		Facts:   keyed(ordersSpec, "6 hours", spec(ordersSpec, "201 is new, 200 an earlier run, 202 and 207 pending"), payeeTold()),
	}
	orderPatch = rs.Operation{
		Name: "order.patch", Class: rs.Object, Method: http.MethodPatch, Path: "/v2/checkout/orders/{id}",
		Facts: keyless(ordersSpec, "204; no PayPal-Request-Id"),
	}
	orderConfirmPaymentSource = rs.Operation{
		Name: "order.confirm_payment_source", Class: rs.Object, Method: http.MethodPost, Path: "/v2/checkout/orders/{id}/confirm-payment-source",
		Sensitive: cardFields("/payment_source"), Codes: cardCodes("/payment_source"),
		Facts: keyless(ordersSpec, "200; no PayPal-Request-Id"),
	}
)

func paymentRows() []rs.Operation {
	return []rs.Operation{authorizationCapture, authorizationReauthorize, authorizationVoid, captureRefund}
}

// paymentsWindow is what the specification of 2024 states; that of 2026 names
// no time for Payments v2.
const paymentsWindow = 45 * day

var (
	authorizationCapture = rs.Operation{
		Name: "authorization.capture", Method: http.MethodPost, Path: "/v2/payments/authorizations/{id}/capture",
		Keys: requestID(), KeyMax: 10000, Window: paymentsWindow, Resend: rs.Latest,
		Horizon: searchHorizon,
		Lookup:  "GET the authorization, and its order's captures: a full capture by its state, a partial one by the mark in invoice_id, where Config.MarkInvoices is set; where it names no order, that mark by Transaction Search",
		Absence: "the account's order shows no capture of it, or all of them under other invoice ids than the mark",
		Facts: keyed(paymentsSpec, "45 days", append(searched(), payeeTold(),
			spec(paymentsSpec, "201 is new, 200 an earlier run"),
			doc(idempotencyPage, "the guide's example answers a resend with 201: 201 on a resend proves no new execution"),
			spec(paymentsSpec, "the request takes invoice_id and no custom_id"))...),
	}
	authorizationReauthorize = rs.Operation{
		Name: "authorization.reauthorize", Method: http.MethodPost, Path: "/v2/payments/authorizations/{id}/reauthorize",
		Keys: requestID(), KeyMax: 10000, Window: paymentsWindow, Resend: rs.Latest,
		Lookup: "weak: by the new authorization's id where an answer told it, else none",
		Facts:  keyed(paymentsSpec, "45 days", spec(paymentsSpec, "201; 200 is documented beside it")),
	}
	authorizationVoid = rs.Operation{
		Name: "authorization.void", Method: http.MethodPost, Path: "/v2/payments/authorizations/{id}/void",
		Keys: requestID(), KeyMax: 10000, Window: paymentsWindow, Resend: rs.Latest,
		Lookup:  "GET the authorization: VOIDED",
		Absence: "it is still open, and its order the account's",
		Facts:   keyed(paymentsSpec, "45 days", payeeTold(), spec(paymentsSpec, "204, or 200 with Prefer: return=representation; no replay signal")),
	}
	captureRefund = rs.Operation{
		Name: "capture.refund", Method: http.MethodPost, Path: "/v2/payments/captures/{id}/refund",
		Keys: requestID(), KeyMax: 10000, Window: paymentsWindow, Resend: rs.Latest,
		Marks:                []rs.Place{rs.JSON("/custom_id")},
		Horizon:              searchHorizon,
		ConclusiveEventTypes: []string{eventRefunded},
		Lookup:               "GET the capture, and its order's refunds: a full refund by its state, a partial one by the mark in custom_id; where it names no order, by Transaction Search",
		Absence:              "none of the account's refunds of it is ours; by Transaction Search, with a clock no more than 2 h from the ledger's",
		Facts: keyed(paymentsSpec, "45 days", append(searched(), payeeTold(),
			doc(webhooksPage, "PAYMENT.CAPTURE.REFUNDED holds the refund, with its custom_id"),
			spec(paymentsSpec, "201 is new, 200 an earlier run"),
			doc(paymentsPage, "an empty body refunds what remains of the capture when it is processed"),
			spec(paymentsSpec, "custom_id: at most 127 characters"))...),
	}
)

func payoutRows() []rs.Operation { return []rs.Operation{payoutCreate} }

// payoutCreate carries its key twice. The one that counts is sender_batch_id.
var payoutCreate = rs.Operation{
	Name: "payout.create", Method: http.MethodPost, Path: "/v1/payments/payouts",
	Keys:   []rs.Place{rs.Header(headerRequestID), rs.JSON("/sender_batch_header/sender_batch_id")},
	KeyMax: 256, Window: 30 * day, Resend: rs.ConflictWithLink,
	ConclusiveEventTypes: []string{eventPayoutDone, eventPayoutDenied},
	Lookup:               "resend the same sender_batch_id: the error links to the original batch; GET it",
	Facts: []rs.Fact{
		doc(payoutsPage, "a sender_batch_id of the last 30 days is refused with a link to the original payout"),
		doc(webhooksPage, "PAYMENT.PAYOUTSBATCH.SUCCESS and .DENIED hold the batch's header, with its sender_batch_id"),
		doc(payoutsPage, "after a 5xx the same sender_batch_id may be sent again"),
		spec(payoutsSpec, "sender_batch_id: at most 256 characters; PayPal-Request-Id: at most 1000, kept for 30 days"),
		issue("https://github.com/paypal/PayPal-Java-SDK/issues/379", "the header alone did not deduplicate payouts"),
		issue("https://github.com/paypal/PayPal-Ruby-SDK/issues/120", "the duplicate is a 400 USER_BUSINESS_ERROR with the field SENDER_BATCH_ID"),
	},
}

func billingRows() []rs.Operation {
	return []rs.Operation{
		subscriptionCreate, subscriptionActivate, subscriptionSuspend, subscriptionCancel,
		planCreate, productCreate,
	}
}

// billingKeyMax is the limit that an incident of the v1 APIs enforced; nothing
// larger is relied on there.
const billingKeyMax = 38

var (
	subscriptionCreate = rs.Operation{
		Name: "subscription.create", Method: http.MethodPost, Path: "/v1/billing/subscriptions",
		Keys: requestID(), KeyMax: billingKeyMax, Window: 72 * time.Hour, Resend: rs.Latest,
		Marks:     []rs.Place{rs.JSON("/custom_id")},
		Sensitive: cardFields("/subscriber/payment_source"), Codes: cardCodes("/subscriber/payment_source"),
		Lookup:  "by the subscription's id where an answer told it, else list by plan and time and match the mark in custom_id",
		Absence: "every one listed carries another command's mark, by a clock no more than 2 h from the ledger's",
		Facts: keyed(subscriptionsSpec, "72 hours", v1Limit(), accountTold(),
			spec(subscriptionsSpec, "the list filters by plan_ids, statuses, created_after and created_before; custom_id can be patched"),
			spec(subscriptionsSpec, "201 or 200; no replay signal"),
			spec(subscriptionsSpec, "custom_id: at most 127 characters")),
	}
	subscriptionActivate = rs.Operation{
		Name: "subscription.activate", Method: http.MethodPost, Path: "/v1/billing/subscriptions/{id}/activate",
		Lookup:  "GET the subscription: ACTIVE",
		Absence: "its status is older than the first send, by a clock no more than 5 min from the ledger's",
		Facts:   keyless(subscriptionsSpec, "204; no PayPal-Request-Id; the state machine guards", accountTold()),
	}
	subscriptionSuspend = rs.Operation{
		Name: "subscription.suspend", Method: http.MethodPost, Path: "/v1/billing/subscriptions/{id}/suspend",
		Lookup:  "GET the subscription: SUSPENDED",
		Absence: "its status is older than the first send, by a clock no more than 5 min from the ledger's",
		Facts:   keyless(subscriptionsSpec, "204; no PayPal-Request-Id; the state machine guards", accountTold()),
	}
	subscriptionCancel = rs.Operation{
		Name: "subscription.cancel", Method: http.MethodPost, Path: "/v1/billing/subscriptions/{id}/cancel",
		Lookup:             "GET the subscription: CANCELLED, for ever",
		Absence:            "it is not CANCELLED",
		ResendAfterAbsence: true,
		Facts:              keyless(subscriptionsSpec, "204; no PayPal-Request-Id; the state machine guards", accountTold()),
	}
	planCreate = rs.Operation{
		Name: "plan.create", Class: rs.Object, Method: http.MethodPost, Path: "/v1/billing/plans",
		Keys: requestID(), KeyMax: billingKeyMax, Window: 72 * time.Hour, Resend: rs.Latest,
		Lookup: "by the plan's id where an answer told it, else none: resend within the window",
		Facts:  keyed(subscriptionsSpec, "72 hours", v1Limit(), spec(subscriptionsSpec, "201 or 200; no replay signal")),
	}
	productCreate = rs.Operation{
		Name: "product.create", Class: rs.Object, Method: http.MethodPost, Path: "/v1/catalogs/products",
		Keys: requestID(), KeyMax: billingKeyMax, Window: 72 * time.Hour, Resend: rs.Latest,
		Lookup: "by the product's id where an answer told it, else none: resend within the window",
		Facts:  keyed(productsSpec, "72 hours", v1Limit(), spec(productsSpec, "201 or 200; no replay signal")),
	}
)

func vaultRows() []rs.Operation { return []rs.Operation{setupTokenCreate, paymentTokenCreate} }

var (
	setupTokenCreate = rs.Operation{
		Name: "setup_token.create", Class: rs.Object, Method: http.MethodPost, Path: "/v3/vault/setup-tokens",
		Keys: requestID(), Window: 3 * time.Hour, Resend: rs.Latest,
		Sensitive: cardFields("/payment_source"), Codes: cardCodes("/payment_source"),
		Lookup: "by the token's id where an answer told it, else none: resend within the window",
		Facts:  keyed(vaultSpec, "3 hours", vaultFacts()...),
	}
	paymentTokenCreate = rs.Operation{
		Name: "payment_token.create", Class: rs.Object, Method: http.MethodPost, Path: "/v3/vault/payment-tokens",
		Keys: requestID(), Window: 3 * time.Hour, Resend: rs.Latest,
		Sensitive: cardFields("/payment_source"), Codes: cardCodes("/payment_source"),
		Lookup: "by the token's id where an answer told it; of a setup token by its state VAULTED, shown by the list of the customer who has one token only; of a card by nothing else",
		Facts:  keyed(vaultSpec, "3 hours", append(vaultFacts(), spec(vaultSpec, "a setup token that became a payment token is VAULTED"))...),
	}
)

func invoiceRows() []rs.Operation { return []rs.Operation{invoiceCreate, invoiceSend, invoiceCancel} }

var (
	invoiceCreate = rs.Operation{
		Name: "invoice.create", Class: rs.Object, Method: http.MethodPost, Path: "/v2/invoicing/invoices",
		Lookup: "by the invoice's id where an answer told it, else list and match the invoice number that the request gave and the time",
		Facts:  keyless(invoicingSpec, "201; no PayPal-Request-Id", spec(invoicingSpec, "an invoice number is given once: 422 DUPLICATE_INVOICE_NUMBER")),
	}
	invoiceSend = rs.Operation{
		Name: "invoice.send", Class: rs.Object, Method: http.MethodPost, Path: "/v2/invoicing/invoices/{id}/send",
		Lookup:  "GET the invoice: no longer a draft, and sent since the first send",
		Absence: "it is a draft",
		Facts:   keyless(invoicingSpec, "200, or 202 for a date to come; no PayPal-Request-Id; sent again it writes to the payer again", accountTold()),
	}
	invoiceCancel = rs.Operation{
		Name: "invoice.cancel", Class: rs.Object, Method: http.MethodPost, Path: "/v2/invoicing/invoices/{id}/cancel",
		Lookup:             "GET the invoice: CANCELLED, for ever",
		Absence:            "it is not CANCELLED",
		ResendAfterAbsence: true,
		Facts:              keyless(invoicingSpec, "204; no PayPal-Request-Id; the state machine guards", accountTold()),
	}
)
