package main

import rs "github.com/seed-6b5e302b/samekey/replaysemantics"

const (
	rowLatest = "a resend with the same PayPal-Request-Id is answered with the latest status of the earlier request"
	rowNew    = "201 is new, 200 an earlier run"
)

var paypalOrderFacts = []fact{
	{id: "order", grade: rs.Specified, states: "an order's first answer", want: []string{"201 CREATED"},
		rows: []string{"201 is new, 200 an earlier run, 202 accepted"}},
	{id: "order.replay", grade: rs.Specified, states: "the same order request again", want: []string{"200, same order true"},
		rows: []string{"201 is new, 200 an earlier run, 202 accepted", rowLatest}},
	{id: "order.body", grade: rs.Unverified, states: "the same request id with another body", want: []string{"200, same order true"}, setting: "CompareBodies"},
	{id: "order.without", grade: rs.Documented, states: "the same request without an id executes again", want: []string{"201 201, same order false"}},
	{id: "order.type", grade: rs.Reported, states: "the same id in another type of call; a capture that no payer approved",
		want: []string{"422 UNPROCESSABLE_ENTITY ORDER_NOT_APPROVED"}, rows: []string{"an id is unique for each type of call"}},
	{id: "order.payee", grade: rs.Specified, states: "an order names its payee's merchant id", want: []string{"named true"},
		rows: []string{"each purchase unit of an order names its payee's merchant_id"}},
	{id: "order.missing", grade: rs.Documented, states: "an order that is not there", want: []string{"404 RESOURCE_NOT_FOUND INVALID_RESOURCE_ID"}},
}

var paypalLimitFacts = []fact{
	{id: "id.length", grade: rs.Specified, states: "an order's request id has at most 108 characters", want: []string{"108: 201, 109: 400"}},
	{id: "custom.length", grade: rs.Specified, states: "custom_id has at most 127 characters", want: []string{"127: 201, 128: 400", "127: 201, 128: 422"},
		rows: []string{"custom_id: at most 127 characters"}},
	{id: "id.required", grade: rs.Documented, states: "an order with a payment_source needs a request id",
		want: []string{"400 INVALID_REQUEST PAYPAL_REQUEST_ID_REQUIRED"}, rows: []string{"with payment_source the PayPal-Request-Id is required"}},
}

var paypalRefusalFacts = []fact{
	{id: "zero", grade: rs.Unverified, states: "an amount of zero", want: []string{"422 UNPROCESSABLE_ENTITY CANNOT_BE_ZERO_OR_NEGATIVE"}},
	{id: "zero.kept", grade: rs.Unverified, states: "whether a refusal is kept", want: []string{"it runs again"}, setting: "KeepRefusals",
		rows: []string{"whether failures are stored is not published: they count as run again"}},
	{id: "token", grade: rs.Documented, states: "a token that PayPal does not know", want: []string{"401 invalid_token", "401 AUTHENTICATION_FAILURE"}},
	{id: "client", grade: rs.Documented, states: "a client's wrong secret", want: []string{"401 invalid_client"}},
}

var paypalFlightFacts = []fact{
	{id: "one", grade: rs.Documented, states: "equal requests at once under one id have one effect", want: []string{"1"}, rows: []string{rowLatest}},
	{id: "conflict", grade: rs.Documented, states: "a request whose id is in use", want: []string{"409 RESOURCE_CONFLICT PREVIOUS_REQUEST_IN_PROGRESS"},
		rows: []string{"of two requests at once the second may fail: 409 PREVIOUS_REQUEST_IN_PROGRESS"}},
}

var paypalAppFacts = []fact{
	{id: "apps", grade: rs.Unverified, states: "the same id in another app of the merchant", want: []string{"same order false"}, setting: "MerchantKeys"},
}

var paypalCaptureFacts = []fact{
	{id: "captured", grade: rs.Unverified, states: "a capture of what is captured", want: []string{"422 UNPROCESSABLE_ENTITY ORDER_ALREADY_CAPTURED"}},
	{id: "refund", grade: rs.Specified, states: "a refund's first answer", want: []string{"201"}, rows: []string{rowNew}},
	{id: "refund.replay", grade: rs.Specified, states: "the same refund again", want: []string{"200, same refund true"}, rows: []string{rowNew}},
	{id: "latest", grade: rs.Documented, states: "an order asked for again after a refund gives the latest status", want: []string{"200 PARTIALLY_REFUNDED"},
		rows: []string{rowLatest, "201 is new, 200 an earlier run, 202 and 207 pending"}},
	{id: "refund.much", grade: rs.Unverified, states: "a refund of more than there is", want: []string{"422 UNPROCESSABLE_ENTITY REFUND_AMOUNT_EXCEEDED"}},
	{id: "refund.rest", grade: rs.Documented, states: "a refund without an amount refunds what remains", want: []string{"201 2.00"},
		rows: []string{"an empty body refunds what remains of the capture when it is processed"}},
	{id: "refund.over", grade: rs.Unverified, states: "a refund of what is refunded", want: []string{"422 UNPROCESSABLE_ENTITY CAPTURE_FULLY_REFUNDED"}},
}

var paypalAuthorizationFacts = []fact{
	{id: "authorization.capture", grade: rs.Specified, states: "a capture of an authorization has one effect for its id", want: []string{"201, same capture true"},
		rows: []string{rowNew, rowLatest}},
	{id: "authorization.replay", grade: rs.Unverified, states: "the status of such a capture asked for again", want: []string{"201"}, setting: "Replay200",
		rows: []string{"the guide's example answers a resend with 201: 201 on a resend proves no new execution"}},
	{id: "void", grade: rs.Specified, states: "a void, and the same again: no replay signal", want: []string{"200, then 200"},
		rows: []string{"204, or 200 with Prefer: return=representation; no replay signal"}},
	{id: "void.over", grade: rs.Unverified, states: "a void of what is void", want: []string{"422 UNPROCESSABLE_ENTITY PREVIOUSLY_VOIDED"}},
}

var paypalPayoutFacts = []fact{
	{id: "batch", grade: rs.Reported, states: "a sender_batch_id used again", want: []string{"400 USER_BUSINESS_ERROR, field SENDER_BATCH_ID"},
		rows: []string{"the duplicate is a 400 USER_BUSINESS_ERROR with the field SENDER_BATCH_ID"}},
	{id: "batch.link", grade: rs.Documented, states: "its refusal links to the first batch", want: []string{"to the first batch true"},
		rows: []string{"a sender_batch_id of the last 30 days is refused with a link to the original payout"}},
	{id: "batch.header", grade: rs.Reported, states: "the request id alone does not deduplicate payouts", want: []string{"201, same batch false"},
		rows: []string{"the header alone did not deduplicate payouts"}},
}

var paypalVaultFacts = []fact{
	{id: "vault", grade: rs.Specified, states: "a setup token, and the same again", want: []string{"201, then 200, same token true"}, rows: []string{rowNew}},
	{id: "vault.body", grade: rs.Specified, states: "its id with another body", want: []string{"422 UNPROCESSABLE_ENTITY PAYPAL_REQUEST_ID_PREVIOUSLY_USED"},
		rows: []string{"another body under the same id: 422 PAYPAL_REQUEST_ID_PREVIOUSLY_USED"}},
}

var paypalInvoiceFacts = []fact{
	{id: "invoice.number", grade: rs.Specified, states: "an invoice number given twice, under one request id",
		want: []string{"422 UNPROCESSABLE_ENTITY DUPLICATE_INVOICE_NUMBER"},
		rows: []string{"an invoice number is given once: 422 DUPLICATE_INVOICE_NUMBER", "201; no PayPal-Request-Id"}},
}

var paypalAccountFacts = []fact{
	{id: "payer_id", grade: rs.Documented, states: "the account of a token is told", want: []string{"named true"},
		rows: []string{"payer_id is the account of the token, told to apps with the scope paypalattributes"}},
	{id: "debug_id", grade: rs.Documented, states: "every answer has a Paypal-Debug-Id", want: []string{"0 answers without"}},
}
