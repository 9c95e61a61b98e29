package paypal

import (
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// readOn is the day the sources were read.
const readOn = "2026-11-30"

// The sources.
const (
	idempotencyPage = "https://developer.paypal.com/api/rest/reference/idempotency/"
	responsesPage   = "https://developer.paypal.com/api/rest/responses/"
	ordersPage      = "https://developer.paypal.com/docs/api/orders/v2/"
	paymentsPage    = "https://developer.paypal.com/docs/api/payments/v2/"
	payoutsPage     = "https://developer.paypal.com/docs/api/payments.payouts-batch/v1/"
	identityPage    = "https://developer.paypal.com/docs/api/identity/v1/"
	webhooksPage    = "https://developer.paypal.com/api/rest/webhooks/event-names/"

	specs             = "https://github.com/paypal/paypal-rest-api-specifications/blob/main/openapi/"
	ordersSpec        = specs + "checkout_orders_v2.json"
	paymentsSpec      = specs + "payments_payment_v2.json"
	payoutsSpec       = specs + "payments_payouts_batch_v1.json"
	subscriptionsSpec = specs + "billing_subscriptions_v1.json"
	productsSpec      = specs + "catalogs_products_v1.json"
	vaultSpec         = specs + "vault_payment_tokens_v3.json"
	invoicingSpec     = specs + "invoicing_v2.json"
	reportingSpec     = specs + "reporting_transactions_v1.json"
)

// headerRequestID carries the key.
const headerRequestID = "PayPal-Request-Id"

func requestID() []rs.Place { return []rs.Place{rs.Header(headerRequestID)} }

// cardFields are where a request names a card, by its own number or by a
// network's token, below source.
func cardFields(source string) []rs.Place {
	return []rs.Place{
		rs.JSON(source + "/card/number"),
		rs.JSON(source + "/card/network_token/number"),
		rs.JSON(source + "/card/network_token/cryptogram"),
		rs.JSON(source + "/google_pay/card/number"),
		rs.JSON(source + "/google_pay/decrypted_token/card/number"),
		rs.JSON(source + "/google_pay/decrypted_token/cryptogram"),
		rs.JSON(source + "/apple_pay/decrypted_token/tokenized_card/number"),
		rs.JSON(source + "/apple_pay/decrypted_token/payment_data/cryptogram"),
	}
}

func cardCodes(source string) []rs.Place {
	return []rs.Place{rs.JSON(source + "/card/security_code")}
}

// keyed are the facts of every operation that takes a PayPal-Request-Id.
func keyed(specification, kept string, more ...rs.Fact) []rs.Fact {
	return append([]rs.Fact{
		doc(idempotencyPage, "a resend with the same PayPal-Request-Id is answered with the latest status of the earlier request"),
		doc(idempotencyPage, "of two requests at once the second may fail: 409 PREVIOUS_REQUEST_IN_PROGRESS"),
		spec(specification, "the id is kept for "+kept),
		issue("https://github.com/paypal/PayPal-Java-SDK/issues/369", "an id is unique for each type of call"),
		fact(rs.Unverified, idempotencyPage, "whether failures are stored is not published: they count as run again"),
	}, more...)
}

// keyless are the facts of an operation without a key.
func keyless(specification, states string, more ...rs.Fact) []rs.Fact {
	return append([]rs.Fact{spec(specification, states), doc(responsesPage, "a 5xx may have had an effect")}, more...)
}

// searched are the facts of every operation that Transaction Search may find.
func searched() []rs.Fact {
	return []rs.Fact{
		spec(reportingSpec, "a payment is shown after 3 hours at most; the dates are at most 31 days apart"),
		spec(reportingSpec, "the answer names the account and when it was refreshed; custom_field and invoice_id are the payment's, and no filter"),
	}
}

// accountTold is the fact by which a look-up whose answer names no account
// learns whose credential it used.
func accountTold() rs.Fact {
	return doc(identityPage, "payer_id is the account of the token, told to apps with the scope paypalattributes")
}

// payeeTold is the fact by which a look-up learns whose order it read.
func payeeTold() rs.Fact {
	return spec(ordersSpec, "each purchase unit of an order names its payee's merchant_id")
}

func v1Limit() rs.Fact {
	return issue("https://github.com/paypal/PayPal-PHP-SDK/issues/660", "ids of more than 38 characters failed with INVALID_RESOURCE_ID")
}

func vaultFacts() []rs.Fact {
	return []rs.Fact{
		spec(vaultSpec, "201 is new, 200 an earlier run"),
		spec(vaultSpec, "another body under the same id: 422 PAYPAL_REQUEST_ID_PREVIOUSLY_USED"),
	}
}

func doc(url, states string) rs.Fact   { return fact(rs.Documented, url, states) }
func spec(url, states string) rs.Fact  { return fact(rs.Specified, url, states) }
func issue(url, states string) rs.Fact { return fact(rs.Reported, url, states) }

func fact(grade rs.Grade, url, states string) rs.Fact {
	return rs.Fact{States: states, URL: url, Read: readOn, Grade: grade}
}
