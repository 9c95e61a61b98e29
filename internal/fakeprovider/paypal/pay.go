package paypal

import "net/http"

// authorizeOrder is POST /v2/checkout/orders/{id}/authorize.
func authorizeOrder(x *exec) (reply, *failure) {
	return x.complete("AUTHORIZE", "ORDER_ALREADY_AUTHORIZED")
}

// captureOrder is POST /v2/checkout/orders/{id}/capture.
func captureOrder(x *exec) (reply, *failure) {
	return x.complete("CAPTURE", "ORDER_ALREADY_CAPTURED")
}

// complete authorizes or captures an order: all purchase units at once.
func (x *exec) complete(intent, already string) (reply, *failure) {
	o, f := x.order()
	if f != nil {
		return reply{}, f
	}
	next := *o
	direct := false
	if source := x.body().sub("payment_source"); source.o != nil {
		direct = x.readSource(&next, source)
	}
	switch {
	case x.err != nil:
		return reply{}, x.err
	case o.intent != intent:
		return reply{}, refused("ACTION_DOES_NOT_MATCH_INTENT", "The order was made with the other intent.")
	case o.status == "COMPLETED":
		return reply{}, refused(already, "This was done before. Look the order up.")
	case o.status == "APPROVED" || direct:
	case o.status == "PAYER_ACTION_REQUIRED":
		return reply{}, refused("PAYER_ACTION_REQUIRED", "The payer must act first.")
	default:
		return reply{}, refused("ORDER_NOT_APPROVED", "The payer has not approved the order.")
	}
	if x.mock != "" {
		next.outcome = x.mock
	}
	if f := x.payable(&next); f != nil {
		return reply{}, f
	}
	*o = next
	if x.pay(o) {
		x.tx.Effect(o.id)
	}
	return reply{id: o.id}, nil
}

// payable refuses an order whose payment would not be accepted.
func (x *exec) payable(o *order) *failure {
	if o.outcome == instrumentDeclined {
		return refused(instrumentDeclined, "The payer's bank refused. The payer must choose another way to pay.")
	}
	for _, u := range o.units {
		if x.invoiceTaken(text(u.fields, "invoice_id"), o) {
			return duplicateInvoice()
		}
	}
	return nil
}

// instrumentDeclined is a refusal that leaves the order open for another try.
const instrumentDeclined = "INSTRUMENT_DECLINED"

// pay makes the payments of an order that may be paid. It reports whether money
// was moved or held.
func (x *exec) pay(o *order) bool {
	o.status, o.updated = "COMPLETED", x.tx.Now
	moved := false
	for _, u := range o.units {
		custom, invoice := text(u.fields, "custom_id"), text(u.fields, "invoice_id")
		var ok bool
		if o.intent == "AUTHORIZE" {
			ok = x.addAuthorization(o, u, u.amount, custom, invoice, o.outcome).held()
		} else {
			c := &capture{order: o, unit: u, amount: u.amount, custom: custom, invoice: invoice, final: true}
			ok = x.addCapture(c, o.outcome).moved()
		}
		if ok && invoice != "" {
			x.s.invoiceIDs[invoice] = o.id
		}
		moved = moved || ok
	}
	return moved
}

// invoiceTaken reports whether a payment of another order carries the invoice
// id. An order may carry its own several times.
func (x *exec) invoiceTaken(invoice string, o *order) bool {
	owner, taken := x.s.invoiceIDs[invoice]
	return invoice != "" && taken && owner != o.id
}

func duplicateInvoice() *failure {
	return refused("DUPLICATE_INVOICE_ID", "Another payment has this invoice_id.")
}

func getAuthorization(x *exec) (reply, *failure) {
	_, f := x.authorization()
	return reply{id: x.ids[0]}, f
}

func getCapture(x *exec) (reply, *failure) {
	_, f := x.capture()
	return reply{id: x.ids[0]}, f
}

func getRefund(x *exec) (reply, *failure) {
	if x.s.refunds[x.ids[0]] == nil {
		return reply{}, notFound("refund_id")
	}
	return reply{id: x.ids[0]}, nil
}

// authorization returns the authorization that the path names.
func (x *exec) authorization() (*authorization, *failure) {
	a := x.s.authorizations[x.ids[0]]
	if a == nil {
		return nil, notFound("authorization_id")
	}
	return a, nil
}

// capture returns the capture that the path names.
func (x *exec) capture() (*capture, *failure) {
	c := x.s.captures[x.ids[0]]
	if c == nil {
		return nil, notFound("capture_id")
	}
	return c, nil
}

// captureAuthorization is POST /v2/payments/authorizations/{id}/capture. An
// empty body captures the whole authorized amount.
func captureAuthorization(x *exec) (reply, *failure) {
	a, f := x.authorization()
	if f != nil {
		return reply{}, f
	}
	b := x.body()
	c := &capture{order: a.order, unit: a.unit, authorization: a,
		custom: b.text("custom_id", maxMark), invoice: b.text("invoice_id", maxMark), final: b.flag("final_capture")}
	b.text("note_to_payer", maxText)
	amount, given := b.amount("amount", "currency_code")
	if c.amount = a.amount; given {
		c.amount = amount
	}
	if x.err != nil {
		return reply{}, x.err
	}
	if f := x.capturable(a, c); f != nil {
		return reply{}, f
	}
	own := c.invoice != ""
	if c.custom == "" {
		c.custom = a.custom
	}
	if c.invoice == "" {
		c.invoice = a.invoice
	}
	outcome := a.outcome
	if x.mock != "" {
		outcome = x.mock
	}
	x.addCapture(c, outcome)
	if c.moved() {
		a.captured += c.amount.minor
		a.closed = a.closed || c.final
		a.status, a.updated = "PARTIALLY_CAPTURED", x.tx.Now
		if a.captured >= a.amount.minor {
			a.status = "CAPTURED"
		}
		if own {
			x.s.invoiceIDs[c.invoice] = c.id
		}
		x.tx.Effect(c.id)
	}
	return reply{id: c.id}, nil
}

// capturable refuses a capture that the authorization's state does not allow.
func (x *exec) capturable(a *authorization, c *capture) *failure {
	switch {
	case a.status == "VOIDED":
		return refused("AUTHORIZATION_VOIDED", "The authorization is void.")
	case a.status == "CAPTURED" || a.closed:
		return refused("AUTHORIZATION_ALREADY_CAPTURED", "The authorization is captured. Look it up.")
	case a.status == "DENIED":
		return refused("AUTHORIZATION_DENIED", "The authorization was denied.")
	case !x.tx.Now.Before(a.expires()):
		return refused("AUTHORIZATION_EXPIRED", "The authorization has expired.")
	case c.amount.currency != a.amount.currency:
		return refused("AUTH_CAPTURE_CURRENCY_MISMATCH", "The authorization has another currency.")
	case a.captured+c.amount.minor > a.amount.minor:
		return refused("MAX_CAPTURE_AMOUNT_EXCEEDED", "The captures would be more than the authorization.")
	case x.invoiceTaken(c.invoice, a.order):
		return duplicateInvoice()
	case a.outcome == instrumentDeclined:
		return refused(instrumentDeclined, "The payer's bank refused.")
	}
	return nil
}

// reauthorize is POST …/reauthorize. It makes a new authorization; the old one
// stays as it is.
func reauthorize(x *exec) (reply, *failure) {
	old, f := x.authorization()
	if f != nil {
		return reply{}, f
	}
	amount, given := x.body().amount("amount", "currency_code")
	if !given {
		amount = old.amount
	}
	switch {
	case x.err != nil:
		return reply{}, x.err
	case old.status == "VOIDED":
		return reply{}, refused("AUTHORIZATION_VOIDED", "The authorization is void.")
	case old.status != "CREATED":
		return reply{}, refused("AUTHORIZATION_ALREADY_CAPTURED", "The authorization is captured.")
	case old.again:
		return reply{}, refused("REAUTHORIZATION_NOT_SUPPORTED", "A reauthorization cannot be reauthorized.")
	case !x.tx.Now.Before(old.expires()):
		return reply{}, refused("AUTHORIZATION_EXPIRED", "The authorization has expired.")
	case x.tx.Now.Before(old.created.Add(honorPeriod)) && !x.cfg.Lenient:
		return reply{}, refused("REAUTHORIZATION_TOO_SOON", "The honor period of three days is not over.")
	case amount.currency != old.amount.currency:
		return reply{}, refused("AUTH_CURRENCY_MISMATCH", "The authorization has another currency.")
	}
	a := x.addAuthorization(old.order, old.unit, amount, old.custom, old.invoice, x.mock)
	a.again = true
	if a.held() {
		x.tx.Effect(a.id)
	}
	return reply{id: a.id}, nil
}

// voidAuthorization is POST …/void. It answers 204, or 200 with the
// authorization where the client prefers it.
func voidAuthorization(x *exec) (reply, *failure) {
	a, f := x.authorization()
	if f != nil {
		return reply{}, f
	}
	switch {
	case a.status == "VOIDED":
		return reply{}, refused("PREVIOUSLY_VOIDED", "The authorization is void already.")
	case a.status == "CAPTURED" || a.closed:
		return reply{}, refused("PREVIOUSLY_CAPTURED", "The authorization is captured and cannot be voided.")
	case a.status == "DENIED":
		return reply{}, refused("AUTHORIZATION_DENIED", "The authorization was denied.")
	}
	a.status, a.updated = "VOIDED", x.tx.Now
	x.tx.Effect(a.id)
	x.publish("PAYMENT.AUTHORIZATION.VOIDED", x.showAuthorization(a))
	if x.full {
		return reply{id: a.id, status: http.StatusOK}, nil
	}
	return reply{id: a.id}, nil
}

// refundCapture is POST /v2/payments/captures/{id}/refund. An empty body
// refunds what remains when it is processed.
func refundCapture(x *exec) (reply, *failure) {
	c, f := x.capture()
	if f != nil {
		return reply{}, f
	}
	b := x.body()
	r := &refund{capture: c, custom: b.text("custom_id", maxMark), invoice: b.text("invoice_id", maxMark),
		note: b.text("note_to_payer", maxText)}
	amount, given := b.amount("amount", "currency_code")
	if r.amount = c.amount.minus(c.refunded); given {
		r.amount = amount
	}
	switch {
	case x.err != nil:
		return reply{}, x.err
	case c.status == "REFUNDED":
		return reply{}, refused("CAPTURE_FULLY_REFUNDED", "The capture is fully refunded.")
	case c.status == "PENDING":
		return reply{}, refused("PENDING_CAPTURE", "The capture is pending.")
	case !c.moved():
		return reply{}, refused("REFUND_NOT_ALLOWED", "The capture moved no money.")
	case r.amount.currency != c.amount.currency:
		return reply{}, refused("REFUND_CAPTURE_CURRENCY_MISMATCH", "The capture has another currency.")
	case c.refunded+r.amount.minor > c.amount.minor:
		return reply{}, refused("REFUND_AMOUNT_EXCEEDED", "The refunds would be more than the capture.")
	case x.invoiceTaken(r.invoice, c.order):
		return reply{}, duplicateInvoice()
	}
	outcome := c.refundOutcome
	if x.mock != "" {
		outcome = x.mock
	}
	x.addRefund(r, outcome)
	if r.moved() {
		x.tx.Effect(r.id)
	}
	return reply{id: r.id}, nil
}
