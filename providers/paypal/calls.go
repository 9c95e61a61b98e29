package paypal

import (
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// The constructors are named after their operation: order.capture is
// OrderCapture. body is anything that encodes as the JSON that PayPal documents
// for it; amounts are decimal strings. An empty id and a body that does not
// encode make Do return outbound.ErrInvalid. Keys, marks and credentials are
// added later; a sender_batch_id in body is replaced.

// OrderCreate creates an order. The mark is stamped as custom_id of each
// purchase unit that has none.
func OrderCreate(cmd outbound.Command, body any) outbound.Call {
	return httpadapter.JSONCall(orderCreate, cmd, nil, body)
}

// OrderAuthorize authorizes the payment of an approved order. body may be nil.
func OrderAuthorize(cmd outbound.Command, orderID string, body any) outbound.Call {
	return act(orderAuthorize, cmd, orderID, body)
}

// OrderCapture captures the payment of an approved order. body may be nil.
func OrderCapture(cmd outbound.Command, orderID string, body any) outbound.Call {
	return act(orderCapture, cmd, orderID, body)
}

// OrderPatch changes an order; body is the list of JSON patches. It has no key:
// it is sent at most once.
func OrderPatch(cmd outbound.Command, orderID string, body any) outbound.Call {
	return httpadapter.JSONCall(orderPatch, cmd, []string{orderID}, body)
}

// OrderConfirmPaymentSource confirms how an order will be paid. It has no key:
// it is sent at most once.
func OrderConfirmPaymentSource(cmd outbound.Command, orderID string, body any) outbound.Call {
	return httpadapter.JSONCall(orderConfirmPaymentSource, cmd, []string{orderID}, body)
}

// AuthorizationCapture captures an authorization, in full if body is nil.
func AuthorizationCapture(cmd outbound.Command, authorizationID string, body any) outbound.Call {
	return act(authorizationCapture, cmd, authorizationID, body)
}

// AuthorizationReauthorize authorizes anew what an authorization held. body may
// be nil.
func AuthorizationReauthorize(cmd outbound.Command, authorizationID string, body any) outbound.Call {
	return act(authorizationReauthorize, cmd, authorizationID, body)
}

// AuthorizationVoid gives up an authorization.
func AuthorizationVoid(cmd outbound.Command, authorizationID string) outbound.Call {
	return httpadapter.JSONCall(authorizationVoid, cmd, []string{authorizationID}, nil)
}

// CaptureRefund refunds a capture, in part or in full. The mark is stamped as
// custom_id where r leaves it free.
func CaptureRefund(cmd outbound.Command, captureID string, r RefundRequest) outbound.Call {
	call := httpadapter.JSONCall(captureRefund, cmd, []string{captureID}, r)
	if err := r.Amount.check(); err != nil && call.Err == nil {
		call.Err = err
	}
	return call
}

// PayoutCreate pays a batch. Its sender_batch_id is the command's key.
func PayoutCreate(cmd outbound.Command, body any) outbound.Call {
	return httpadapter.JSONCall(payoutCreate, cmd, nil, body)
}

// SubscriptionCreate creates a subscription. The mark is stamped as custom_id
// where body leaves it free.
func SubscriptionCreate(cmd outbound.Command, body any) outbound.Call {
	return httpadapter.JSONCall(subscriptionCreate, cmd, nil, body)
}

// SubscriptionActivate activates a subscription. reason may be "". It has no
// key: the subscription's state guards it.
func SubscriptionActivate(cmd outbound.Command, subscriptionID, reason string) outbound.Call {
	return httpadapter.JSONCall(subscriptionActivate, cmd, []string{subscriptionID}, statusChange{reason})
}

// SubscriptionSuspend suspends a subscription; PayPal wants a reason. It has no
// key: the subscription's state guards it.
func SubscriptionSuspend(cmd outbound.Command, subscriptionID, reason string) outbound.Call {
	return httpadapter.JSONCall(subscriptionSuspend, cmd, []string{subscriptionID}, statusChange{reason})
}

// SubscriptionCancel cancels a subscription; PayPal wants a reason. It has no
// key: the subscription's state guards it.
func SubscriptionCancel(cmd outbound.Command, subscriptionID, reason string) outbound.Call {
	return httpadapter.JSONCall(subscriptionCancel, cmd, []string{subscriptionID}, statusChange{reason})
}

// PlanCreate creates a billing plan.
func PlanCreate(cmd outbound.Command, body any) outbound.Call {
	return httpadapter.JSONCall(planCreate, cmd, nil, body)
}

// ProductCreate creates a catalog product.
func ProductCreate(cmd outbound.Command, body any) outbound.Call {
	return httpadapter.JSONCall(productCreate, cmd, nil, body)
}

// SetupTokenCreate creates a setup token of the vault. A body with a card number
// is never stored: only a caller who brings it again can resend it.
func SetupTokenCreate(cmd outbound.Command, body any) outbound.Call {
	return httpadapter.JSONCall(setupTokenCreate, cmd, nil, body)
}

// PaymentTokenCreate creates a payment token of the vault. A body with a card
// number is never stored: only a caller who brings it again can resend it.
func PaymentTokenCreate(cmd outbound.Command, body any) outbound.Call {
	return httpadapter.JSONCall(paymentTokenCreate, cmd, nil, body)
}

// InvoiceCreate drafts an invoice. It has no key: it is sent at most once.
func InvoiceCreate(cmd outbound.Command, body any) outbound.Call {
	return httpadapter.JSONCall(invoiceCreate, cmd, nil, body)
}

// InvoiceSend sends an invoice. It has no key: it is sent at most once. body may
// be nil.
func InvoiceSend(cmd outbound.Command, invoiceID string, body any) outbound.Call {
	return act(invoiceSend, cmd, invoiceID, body)
}

// InvoiceCancel cancels a sent invoice. It has no key: the invoice's state
// guards it. body may be nil.
func InvoiceCancel(cmd outbound.Command, invoiceID string, body any) outbound.Call {
	return act(invoiceCancel, cmd, invoiceID, body)
}

type statusChange struct {
	Reason string `json:"reason,omitempty"`
}

// act is a call on an object, whose body may be left out: an empty object then,
// since PayPal wants JSON.
func act(op rs.Operation, cmd outbound.Command, id string, body any) outbound.Call {
	if body == nil {
		body = struct{}{}
	}
	return httpadapter.JSONCall(op, cmd, []string{id}, body)
}
