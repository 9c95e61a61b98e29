package adyen

import (
	"net/http"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Operations returns the table: one row for each operation, with its sources. Names
// are never changed or reused, since they are part of every key.
func Operations() []rs.Operation {
	return []rs.Operation{paymentCreate, paymentCapture, paymentRefund, paymentCancel}
}

var (
	paymentCreate = func() rs.Operation {
		o := row("payment.create", "/payments", "/metadata/samekey_command",
			fact(rs.Unverified, "metadata: keys of 20 characters, values of 80", checkout+"/payments"))
		o.Sensitive = []rs.Place{rs.JSON("/paymentMethod/number")}
		o.Codes = []rs.Place{rs.JSON("/paymentMethod/cvc")}
		return o
	}()
	paymentCapture = modification("payment.capture", "captures")
	paymentRefund  = modification("payment.refund", "refunds")
	paymentCancel  = modification("payment.cancel", "cancels")
)

const (
	checkout    = "https://docs.adyen.com/api-explorer/Checkout/71/post"
	idempotency = "https://docs.adyen.com/development-resources/api-idempotency"
	statuses    = "https://docs.adyen.com/development-resources/response-handling"
)

func modification(name, step string) rs.Operation {
	path := "/payments/{id}/" + step
	return row(name, path, "/reference",
		fact(rs.Documented, "the answer names the request; its end comes by webhook", checkout+"/payments/(paymentPspReference)/"+step),
		fact(rs.Unverified, "whether the reference of a modification comes back", checkout+"/payments/(paymentPspReference)/"+step))
}

func row(name, path, mark string, own ...rs.Fact) rs.Operation {
	return rs.Operation{
		Name: name, Method: http.MethodPost, Path: path,
		Keys: []rs.Place{rs.Header("Idempotency-Key")}, KeyMax: 64,
		Window: 7 * 24 * time.Hour, Resend: rs.Original,
		Marks: []rs.Place{rs.JSON(mark)},
		Facts: append([]rs.Fact{
			fact(rs.Documented, "header Idempotency-Key, at most 64 characters, on every POST", idempotency),
			fact(rs.Documented, "a processed request gives the response to the first attempt again", idempotency),
			fact(rs.Documented, "keys belong to a company account and one region, and are valid for 7 days at least", idempotency),
			fact(rs.Documented, "every answer to a request with a key repeats it, first ones too: no proof of a replay", idempotency),
			fact(rs.Documented, "a second delivery meanwhile gets 422 or 409: processed or in progress", idempotency),
			fact(rs.Documented, "400, 401, 403 and other 422 are answers of the validation; 500 says nothing", statuses),
			fact(rs.Unverified, "that the errorCode of a key in progress is 704; what the same key gives with another body, and after a failure", idempotency),
		}, own...),
	}
}

func fact(grade rs.Grade, states, url string) rs.Fact {
	return rs.Fact{States: states, URL: url, Read: "2026-11-30", Grade: grade}
}

// result is what Adyen made of a payment, by its resultCode. The codes that are not
// here wait for the shopper, the bank or a webhook.
func result(code string) (effect outbound.Effect, outcome outbound.Outcome) {
	switch code {
	case "Authorised":
		return outbound.EffectApplied, outbound.Done
	case "PartiallyAuthorised":
		return outbound.EffectApplied, outbound.Partial
	case "Refused", "Cancelled":
		return outbound.EffectNone, ""
	case "Error": // while the payment was being processed
		return outbound.EffectUnknown, ""
	}
	return outbound.EffectApplied, outbound.Pending
}
