package toss

import (
	"net/http"
	"time"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Operations returns the table: one row for each operation, with its sources. Names
// are never changed or reused, since they are part of every key.
func Operations() []rs.Operation {
	return []rs.Operation{paymentConfirm, paymentCancel, billingCharge}
}

var (
	paymentConfirm = row("payment.confirm", "/v1/payments/confirm",
		"the payment's state, read by its paymentKey: done is the goal", "")
	paymentCancel = row("payment.cancel", "/v1/payments/{id}/cancel",
		"the payment's state, read by its paymentKey: cancelled is the goal of a cancellation without an amount; a partial one is found by nothing", "")
	billingCharge = row("billing.charge", "/v1/billing/{id}",
		"the payment of the order whose orderId is the mark; with an orderId of the caller's, nothing", "/orderId")
)

const (
	idempotency = "https://docs.tosspayments.com/guides/using-api/idempotency-key"
	reading     = "https://docs.tosspayments.com/guides/apis/get-payment"
	reference   = "https://docs.tosspayments.com/reference"
	errorCodes  = "https://docs.tosspayments.com/reference/error-codes"
)

func row(name, path, lookup, mark string) rs.Operation {
	o := rs.Operation{
		Name: name, Method: http.MethodPost, Path: path,
		Keys: []rs.Place{rs.Header("Idempotency-Key")}, KeyMax: 300,
		Window: 15 * 24 * time.Hour, Resend: rs.Original, Lookup: lookup,
		Facts: []rs.Fact{
			fact(rs.Documented, "header Idempotency-Key, at most 300 characters, valid for 15 days from the first use", idempotency),
			fact(rs.Documented, "the same key gives the first answer again", idempotency),
			fact(rs.Documented, "a key counts together with the API key, the address and the method", idempotency),
			fact(rs.Reported, "bodies are not compared: another payment under the same key got the first one's answer", "https://techchat.tosspayments.com/m/1186570706016809030"),
			fact(rs.Documented, "409 while the first request of the key is being processed", idempotency),
			fact(rs.Documented, "a payment is read by its paymentKey or its orderId", reading),
			fact(rs.Documented, "ALREADY_PROCESSED_PAYMENT and DUPLICATED_ORDER_ID: it was done before; PROVIDER_ERROR, a 400, is a passing one; REJECT_CARD_COMPANY and the like are declines", errorCodes),
			fact(rs.Unverified, "whether failures are stored", idempotency),
		},
	}
	if mark != "" {
		o.Marks = []rs.Place{rs.JSON(mark)}
		o.Facts = append(o.Facts, fact(rs.Unverified, "orderId: 6 to 64 letters, digits, - and _", reference))
	}
	return o
}

func fact(grade rs.Grade, states, url string) rs.Fact {
	return rs.Fact{States: states, URL: url, Read: "2026-11-30", Grade: grade}
}
