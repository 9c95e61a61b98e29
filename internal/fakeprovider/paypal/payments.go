package paypal

import "time"

// authorization is money held on a payer's account.
type authorization struct {
	id, status       string
	order            *order
	unit             *unit
	amount           money
	custom, invoice  string
	captured         int64
	closed           bool   // by a final capture
	again            bool   // made by a reauthorization
	outcome          string // what its captures end in; "" is success
	created, updated time.Time
}

// How long PayPal vouches for an authorization, and how long it can be used.
const (
	honorPeriod        = 3 * 24 * time.Hour
	authorizationValid = 29 * 24 * time.Hour
)

func (a *authorization) expires() time.Time { return a.created.Add(authorizationValid) }

func (a *authorization) held() bool { return a.status != "DENIED" }

// capture is money that was moved, or could not be.
type capture struct {
	id, status       string
	order            *order
	unit             *unit
	authorization    *authorization // nil where the order was captured directly
	amount           money
	custom, invoice  string
	final            bool
	refunded         int64
	refundOutcome    string // what its refunds end in; "" is success
	created, updated time.Time
}

func (c *capture) moved() bool { return c.status != "DECLINED" && c.status != "FAILED" }

// refund is money that was given back, or could not be.
type refund struct {
	id, status      string
	capture         *capture
	amount          money
	custom, invoice string
	note            string
	created         time.Time
}

func (r *refund) moved() bool { return r.status != "FAILED" && r.status != "CANCELLED" }

func (x *exec) addAuthorization(o *order, u *unit, amount money, custom, invoice, outcome string) *authorization {
	a := &authorization{id: paymentID(x.tx), status: "CREATED", order: o, unit: u, amount: amount,
		custom: custom, invoice: invoice, created: x.tx.Now, updated: x.tx.Now}
	if outcome != "" {
		a.status = outcome
	}
	x.s.authorizations[a.id] = a
	u.authorizations = append(u.authorizations, a)
	if a.held() {
		x.publish("PAYMENT.AUTHORIZATION.CREATED", x.showAuthorization(a))
	}
	return a
}

func (x *exec) addCapture(c *capture, outcome string) *capture {
	c.id, c.status, c.created, c.updated = paymentID(x.tx), "COMPLETED", x.tx.Now, x.tx.Now
	if outcome != "" {
		c.status = outcome
	}
	x.s.captures[c.id] = c
	c.unit.captures = append(c.unit.captures, c)
	if c.moved() {
		x.record(&transaction{id: c.id, code: "T0006", at: x.tx.Now, amount: c.amount, status: searchStatus(c.status),
			custom: c.custom, invoice: c.invoice})
	}
	events := map[string]string{"PENDING": "PAYMENT.CAPTURE.PENDING", "COMPLETED": "PAYMENT.CAPTURE.COMPLETED"}
	typ, found := events[c.status]
	if !found {
		typ = "PAYMENT.CAPTURE.DECLINED"
	}
	x.publish(typ, x.showCapture(c))
	return c
}

func (x *exec) addRefund(r *refund, outcome string) {
	r.id, r.status, r.created = paymentID(x.tx), "COMPLETED", x.tx.Now
	if outcome != "" {
		r.status = outcome
	}
	c := r.capture
	x.s.refunds[r.id] = r
	c.unit.refunds = append(c.unit.refunds, r)
	if !r.moved() {
		return
	}
	c.refunded += r.amount.minor
	c.status, c.updated = "PARTIALLY_REFUNDED", x.tx.Now
	if c.refunded >= c.amount.minor {
		c.status = "REFUNDED"
	}
	if r.invoice != "" {
		x.s.invoiceIDs[r.invoice] = r.id
	}
	x.record(&transaction{id: r.id, code: "T1107", at: x.tx.Now, amount: money{r.amount.currency, -r.amount.minor},
		status: searchStatus(r.status), custom: r.custom, invoice: r.invoice, reference: c.id})
	x.publish("PAYMENT.CAPTURE.REFUNDED", x.showRefund(r))
}

func viewAuthorization(x *exec, id string) object {
	return x.minimal(x.showAuthorization(x.s.authorizations[id]))
}

func viewCapture(x *exec, id string) object { return x.minimal(x.showCapture(x.s.captures[id])) }

func viewRefund(x *exec, id string) object { return x.minimal(x.showRefund(x.s.refunds[id])) }

// minimal leaves what PayPal answers with where the client has no preference.
func (x *exec) minimal(o object) object {
	if x.full {
		return o
	}
	return object{"id": o["id"], "status": o["status"], "links": o["links"]}
}

func (x *exec) showAuthorization(a *authorization) object {
	path := "/v2/payments/authorizations/" + a.id
	v := object{
		"id": a.id, "status": a.status, "amount": a.amount.view(),
		"create_time": stamp(a.created), "update_time": stamp(a.updated), "expiration_time": stamp(a.expires()),
		"supplementary_data": object{"related_ids": object{"order_id": a.order.id}},
		"links": []object{x.link(path, "self", "GET"), x.link(path+"/capture", "capture", "POST"),
			x.link(path+"/void", "void", "POST"), x.link(path+"/reauthorize", "reauthorize", "POST"),
			x.link("/v2/checkout/orders/"+a.order.id, "up", "GET")},
	}
	put(v, "custom_id", a.custom)
	put(v, "invoice_id", a.invoice)
	if a.status == "PENDING" {
		v["status_details"] = object{"reason": "PENDING_REVIEW"}
	}
	return v
}

func (x *exec) showCapture(c *capture) object {
	path := "/v2/payments/captures/" + c.id
	up := "/v2/checkout/orders/" + c.order.id
	related := object{"order_id": c.order.id}
	if c.authorization != nil {
		up = "/v2/payments/authorizations/" + c.authorization.id
		related["authorization_id"] = c.authorization.id
	}
	v := object{
		"id": c.id, "status": c.status, "amount": c.amount.view(), "final_capture": c.final,
		"create_time": stamp(c.created), "update_time": stamp(c.updated),
		"supplementary_data": object{"related_ids": related},
		"links": []object{x.link(path, "self", "GET"), x.link(path+"/refund", "refund", "POST"),
			x.link(up, "up", "GET")},
	}
	put(v, "custom_id", c.custom)
	put(v, "invoice_id", c.invoice)
	if c.status == "PENDING" {
		v["status_details"] = object{"reason": "PENDING_REVIEW"}
	}
	return v
}

func (x *exec) showRefund(r *refund) object {
	v := object{
		"id": r.id, "status": r.status, "amount": r.amount.view(),
		"create_time": stamp(r.created), "update_time": stamp(r.created),
		"seller_payable_breakdown": object{"gross_amount": r.amount.view(),
			"total_refunded_amount": money{r.amount.currency, r.capture.refunded}.view()},
		"links": []object{x.link("/v2/payments/refunds/"+r.id, "self", "GET"),
			x.link("/v2/payments/captures/"+r.capture.id, "up", "GET")},
	}
	put(v, "custom_id", r.custom)
	put(v, "invoice_id", r.invoice)
	put(v, "note_to_payer", r.note)
	return v
}
