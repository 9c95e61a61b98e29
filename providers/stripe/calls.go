package stripe

import (
	"net/http"
	"net/url"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

// form makes a call of API v1. Of a DELETE the parameters stand in the query, as
// Stripe's own SDKs send them.
func form(cmd outbound.Command, operation string, params url.Values, ids ...string) outbound.Call {
	op := operations[operation]
	if op.Method != http.MethodDelete {
		return httpadapter.FormCall(op, cmd, ids, params)
	}
	call := httpadapter.FormCall(op, cmd, ids, nil)
	if query := params.Encode(); query != "" && call.Err == nil {
		call.Message.Target += "?" + query
	}
	return call
}

// jsonCall makes a call of API v2.
func jsonCall(cmd outbound.Command, operation string, body any, ids ...string) outbound.Call {
	return httpadapter.JSONCall(operations[operation], cmd, ids, body)
}

// PaymentIntentCreate creates a payment intent and, with confirm=true, charges it.
func PaymentIntentCreate(cmd outbound.Command, params url.Values) outbound.Call {
	return form(cmd, "payment_intent.create", params)
}

// PaymentIntentConfirm confirms a payment intent.
func PaymentIntentConfirm(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "payment_intent.confirm", params, id)
}

// PaymentIntentCapture captures an authorized payment intent.
func PaymentIntentCapture(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "payment_intent.capture", params, id)
}

// PaymentIntentCancel cancels a payment intent.
func PaymentIntentCancel(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "payment_intent.cancel", params, id)
}

// RefundCreate refunds a charge or payment intent; without an amount, what is left of it.
func RefundCreate(cmd outbound.Command, params url.Values) outbound.Call {
	return form(cmd, "refund.create", params)
}

// SetupIntentCreate creates a setup intent.
func SetupIntentCreate(cmd outbound.Command, params url.Values) outbound.Call {
	return form(cmd, "setup_intent.create", params)
}

// SetupIntentConfirm confirms a setup intent.
func SetupIntentConfirm(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "setup_intent.confirm", params, id)
}

// SetupIntentCancel cancels a setup intent.
func SetupIntentCancel(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "setup_intent.cancel", params, id)
}

// CustomerCreate creates a customer.
func CustomerCreate(cmd outbound.Command, params url.Values) outbound.Call {
	return form(cmd, "customer.create", params)
}

// CustomerBalanceTransactionCreate credits or debits a customer's balance.
func CustomerBalanceTransactionCreate(cmd outbound.Command, customer string, params url.Values) outbound.Call {
	return form(cmd, "customer_balance_transaction.create", params, customer)
}

// CheckoutSessionCreate creates a checkout session.
func CheckoutSessionCreate(cmd outbound.Command, params url.Values) outbound.Call {
	return form(cmd, "checkout_session.create", params)
}

// CheckoutSessionExpire expires an open checkout session.
func CheckoutSessionExpire(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "checkout_session.expire", params, id)
}

// SubscriptionCreate creates a subscription.
func SubscriptionCreate(cmd outbound.Command, params url.Values) outbound.Call {
	return form(cmd, "subscription.create", params)
}

// SubscriptionUpdate changes a subscription.
func SubscriptionUpdate(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "subscription.update", params, id)
}

// SubscriptionCancel cancels a subscription at once. It is a DELETE, for which Stripe takes no key: it is sent once.
func SubscriptionCancel(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "subscription.cancel", params, id)
}

// InvoiceCreate creates a draft invoice.
func InvoiceCreate(cmd outbound.Command, params url.Values) outbound.Call {
	return form(cmd, "invoice.create", params)
}

// InvoiceFinalize finalizes a draft invoice.
func InvoiceFinalize(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "invoice.finalize", params, id)
}

// InvoicePay pays an invoice.
func InvoicePay(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "invoice.pay", params, id)
}

// InvoiceVoid voids a finalized invoice.
func InvoiceVoid(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "invoice.void", params, id)
}

// InvoiceSend e-mails an invoice.
func InvoiceSend(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "invoice.send", params, id)
}

// InvoiceItemCreate adds a line to an invoice or to the customer's next one.
func InvoiceItemCreate(cmd outbound.Command, params url.Values) outbound.Call {
	return form(cmd, "invoice_item.create", params)
}

// CreditNoteCreate issues a credit note.
func CreditNoteCreate(cmd outbound.Command, params url.Values) outbound.Call {
	return form(cmd, "credit_note.create", params)
}

// TransferCreate moves funds to a connected account.
func TransferCreate(cmd outbound.Command, params url.Values) outbound.Call {
	return form(cmd, "transfer.create", params)
}

// TransferReversalCreate takes a transfer back, in whole or in part.
func TransferReversalCreate(cmd outbound.Command, transfer string, params url.Values) outbound.Call {
	return form(cmd, "transfer_reversal.create", params, transfer)
}

// PayoutCreate pays out to a bank account or card.
func PayoutCreate(cmd outbound.Command, params url.Values) outbound.Call {
	return form(cmd, "payout.create", params)
}

// PayoutCancel cancels a pending payout.
func PayoutCancel(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "payout.cancel", params, id)
}

// PayoutReverse reverses a paid payout, which creates another.
func PayoutReverse(cmd outbound.Command, id string, params url.Values) outbound.Call {
	return form(cmd, "payout.reverse", params, id)
}

// MeterEventCreate reports usage. Its identifier is the key: one in params is overwritten.
func MeterEventCreate(cmd outbound.Command, params url.Values) outbound.Call {
	return form(cmd, "meter_event.create", params)
}

// V2AccountCreate creates an account.
func V2AccountCreate(cmd outbound.Command, body any) outbound.Call {
	return jsonCall(cmd, "v2.account.create", body)
}

// V2AccountUpdate changes an account.
func V2AccountUpdate(cmd outbound.Command, id string, body any) outbound.Call {
	return jsonCall(cmd, "v2.account.update", body, id)
}

// V2AccountClose closes an account.
func V2AccountClose(cmd outbound.Command, id string, body any) outbound.Call {
	return jsonCall(cmd, "v2.account.close", body, id)
}

// V2EventDestinationCreate creates an event destination.
func V2EventDestinationCreate(cmd outbound.Command, body any) outbound.Call {
	return jsonCall(cmd, "v2.event_destination.create", body)
}

// V2EventDestinationUpdate changes an event destination.
func V2EventDestinationUpdate(cmd outbound.Command, id string, body any) outbound.Call {
	return jsonCall(cmd, "v2.event_destination.update", body, id)
}

// V2EventDestinationDelete deletes an event destination.
func V2EventDestinationDelete(cmd outbound.Command, id string) outbound.Call {
	return jsonCall(cmd, "v2.event_destination.delete", nil, id)
}
