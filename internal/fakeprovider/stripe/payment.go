package stripe

import (
	"maps"
	"net/http"
)

// paymentIntentCreate is POST /v1/payment_intents.
func paymentIntentCreate(x *exec) (object, *failure) {
	amount, currency := x.needAmount("amount"), x.currency()
	capture := x.oneOf("capture_method", "automatic_async", "automatic", "manual")
	confirmation := x.oneOf("confirmation_method", "automatic", "manual")
	confirm, offSession := x.flag("confirm"), x.p.str("off_session") == "true"
	customer, meta := x.ref("customer", "customer"), x.metadata(nil)
	pm := x.paymentMethod("payment_method")
	if x.err != nil {
		return nil, x.err
	}
	if offSession && !confirm {
		return nil, invalid("off_session", "off_session is only allowed with confirm.")
	}
	o := x.fresh("payment_intent", "pi")
	id := text(o, "id")
	maps.Copy(o, object{
		"amount": amount, "amount_capturable": int64(0), "amount_received": int64(0), "currency": currency,
		"capture_method": capture, "confirmation_method": confirmation, "customer": idOf(customer),
		"client_secret": id + "_secret_" + x.tx.Token(25, base62), "metadata": meta,
		"payment_method": orNull(pm), "payment_method_types": x.methodTypes(), "status": "requires_payment_method",
		"latest_charge": nil, "last_payment_error": nil, "next_action": nil, "canceled_at": nil,
		"cancellation_reason": nil, "application": nil, "automatic_payment_methods": nil, "processing": nil,
		"on_behalf_of": nil, "shipping": nil, "transfer_data": nil, "review": nil,
		"payment_method_options": object{}, "amount_details": object{"tip": object{}},
	})
	if x.p.sub("automatic_payment_methods").str("enabled") == "true" {
		o["automatic_payment_methods"] = object{"enabled": true, "allow_redirects": "always"}
	}
	x.fields(o, "description", "receipt_email", "setup_future_usage", "statement_descriptor",
		"statement_descriptor_suffix", "transfer_group", "on_behalf_of")
	if pm != "" {
		o["status"] = "requires_confirmation"
	}
	x.store(o)
	x.emit("payment_intent.created", o)
	if confirm {
		return x.confirm(o)
	}
	return o, nil
}

func paymentIntentUpdate(x *exec) (object, *failure) {
	o, f := x.target("payment_intent")
	if f != nil {
		return nil, f
	}
	amount, changed := x.amount("amount")
	pm, meta := x.paymentMethod("payment_method"), x.metadata(part(o, "metadata"))
	customer := x.ref("customer", "customer")
	if x.err != nil {
		return nil, x.err
	}
	switch text(o, "status") {
	case "succeeded", "canceled", "processing":
		if changed || pm != "" {
			return nil, unexpectedPayment(o, "updated")
		}
	}
	o["metadata"] = meta
	if changed {
		o["amount"] = amount
	}
	if customer != nil {
		o["customer"] = text(customer, "id")
	}
	if pm != "" {
		o["payment_method"] = pm
		if text(o, "status") == "requires_payment_method" {
			o["status"] = "requires_confirmation"
		}
	}
	x.fields(o, "description", "receipt_email", "transfer_group")
	return o, nil
}

func paymentIntentConfirm(x *exec) (object, *failure) {
	o, f := x.target("payment_intent")
	if f != nil {
		return nil, f
	}
	pm := x.paymentMethod("payment_method")
	capture := x.oneOf("capture_method", text(o, "capture_method"), "automatic_async", "automatic", "manual")
	if x.err != nil {
		return nil, x.err
	}
	switch text(o, "status") {
	case "requires_payment_method", "requires_confirmation", "requires_action":
	default:
		return nil, unexpectedPayment(o, "confirmed")
	}
	if pm == "" && o["payment_method"] == nil {
		return nil, unexpectedPayment(o, "confirmed without a payment method")
	}
	if pm != "" {
		o["payment_method"] = pm
	}
	o["capture_method"] = capture
	return x.confirm(o)
}

// confirm charges the intent's payment method.
func (x *exec) confirm(o object) (object, *failure) {
	pm := text(o, "payment_method")
	if pm == "" {
		return nil, unexpectedPayment(o, "confirmed without a payment method")
	}
	verdict := judge(pm, x.p.str("off_session") == "true" || x.p.str("error_on_requires_action") == "true")
	switch {
	case verdict.code != "":
		return nil, x.declinePayment(o, verdict)
	case verdict.action:
		o["status"] = "requires_action"
		o["next_action"] = object{"type": "use_stripe_sdk", "use_stripe_sdk": object{"type": "three_d_secure_redirect"}}
		x.emit("payment_intent.requires_action", o)
		return o, nil
	}
	ch := x.charge(o, pm)
	o["latest_charge"], o["last_payment_error"], o["next_action"] = text(ch, "id"), nil, nil
	switch {
	case verdict.slow:
		o["status"], ch["status"], ch["paid"], ch["captured"] = "processing", "pending", false, true
		x.emit("payment_intent.processing", o)
	case text(o, "capture_method") == "manual":
		o["status"], o["amount_capturable"] = "requires_capture", whole(o, "amount")
		x.emit("payment_intent.amount_capturable_updated", o)
	default:
		ch["captured"], ch["amount_captured"] = true, whole(o, "amount")
		o["status"], o["amount_received"] = "succeeded", whole(o, "amount")
		x.emit("charge.succeeded", ch)
		x.emit("payment_intent.succeeded", o)
	}
	return o, nil
}

// declinePayment leaves the intent waiting for another payment method. No money
// moved.
func (x *exec) declinePayment(o object, v verdict) *failure {
	f := declined(v.code, v.decline)
	ch := x.charge(o, text(o, "payment_method"))
	maps.Copy(ch, object{"status": "failed", "paid": false, "failure_code": v.code, "failure_message": f.message})
	o["latest_charge"], o["payment_method"], o["status"] = text(ch, "id"), nil, "requires_payment_method"
	f.with = object{"charge": text(ch, "id")}
	o["last_payment_error"] = f.body()
	x.emit("charge.failed", ch)
	x.emit("payment_intent.payment_failed", o)
	f.with = object{"charge": text(ch, "id"), "payment_intent": maps.Clone(o)}
	return f
}

// charge stores a new succeeded, uncaptured charge of an intent.
func (x *exec) charge(pi object, pm string) object {
	ch := x.fresh("charge", "ch")
	maps.Copy(ch, object{
		"amount": whole(pi, "amount"), "amount_captured": int64(0), "amount_refunded": int64(0),
		"balance_transaction": nil, "billing_details": object{}, "captured": false, "currency": pi["currency"],
		"customer": pi["customer"], "description": pi["description"], "disputed": false, "failure_code": nil,
		"failure_message": nil, "fraud_details": object{}, "metadata": maps.Clone(part(pi, "metadata")),
		"paid": true, "payment_intent": orNull(text(pi, "id")), "payment_method": orNull(pm), "refunded": false,
		"payment_method_details": object{"type": "card", "card": object{
			"brand": "visa", "last4": "4242", "exp_month": int64(12), "exp_year": int64(2034)}},
		"receipt_email": pi["receipt_email"], "receipt_number": nil, "receipt_url": nil, "status": "succeeded",
		"transfer_group": pi["transfer_group"], "outcome": nil,
	})
	return x.store(ch)
}

func paymentIntentCapture(x *exec) (object, *failure) {
	o, f := x.target("payment_intent")
	if f != nil {
		return nil, f
	}
	amount, given := x.amount("amount_to_capture")
	final, meta := x.p.str("final_capture") != "false", x.metadata(part(o, "metadata"))
	if x.err != nil {
		return nil, x.err
	}
	if text(o, "status") != "requires_capture" {
		return nil, unexpectedPayment(o, "captured")
	}
	capturable := whole(o, "amount_capturable")
	if !given {
		amount = capturable
	}
	if amount > capturable {
		f := guard("amount_too_large", "The amount is larger than what can be captured.")
		f.param = "amount_to_capture"
		return nil, f
	}
	ch := x.s.get("charge", text(o, "latest_charge"))
	ch["captured"], ch["amount_captured"] = true, whole(ch, "amount_captured")+amount
	o["metadata"], o["amount_received"] = meta, whole(o, "amount_received")+amount
	if !final && amount < capturable { // several captures of one authorization
		o["amount_capturable"] = capturable - amount
		x.emit("charge.captured", ch)
		return o, nil
	}
	o["status"], o["amount_capturable"] = "succeeded", int64(0)
	x.emit("charge.captured", ch)
	x.emit("payment_intent.succeeded", o)
	return o, nil
}

func paymentIntentCancel(x *exec) (object, *failure) {
	o, f := x.target("payment_intent")
	if f != nil {
		return nil, f
	}
	switch text(o, "status") {
	case "succeeded", "canceled":
		return nil, unexpectedPayment(o, "canceled")
	}
	if ch := x.s.get("charge", text(o, "latest_charge")); ch != nil && text(o, "status") == "requires_capture" {
		ch["refunded"], ch["amount_refunded"] = true, whole(ch, "amount")-whole(ch, "amount_captured")
	}
	o["status"], o["canceled_at"], o["amount_capturable"] = "canceled", x.now(), int64(0)
	x.fields(o, "cancellation_reason")
	x.emit("payment_intent.canceled", o)
	return o, nil
}

func unexpectedPayment(o object, verb string) *failure {
	f := guard("payment_intent_unexpected_state", "A PaymentIntent with status "+text(o, "status")+" cannot be "+verb+".")
	f.with = object{"payment_intent": maps.Clone(o)}
	return f
}

// chargeCreate is the older POST /v1/charges with a token as source.
func chargeCreate(x *exec) (object, *failure) {
	amount, currency := x.needAmount("amount"), x.currency()
	customer, meta, source := x.ref("customer", "customer"), x.metadata(nil), x.p.str("source")
	if x.err != nil {
		return nil, x.err
	}
	if source == "" && customer == nil {
		return nil, missing("source")
	}
	v := judge(source, true)
	o := x.charge(object{"amount": amount, "currency": currency, "customer": idOf(customer), "metadata": meta,
		"description": orNull(x.p.str("description"))}, source)
	if v.code != "" {
		f := declined(v.code, v.decline)
		maps.Copy(o, object{"status": "failed", "paid": false, "failure_code": v.code, "failure_message": f.message})
		f.with = object{"charge": text(o, "id")}
		return nil, f
	}
	if x.p.str("capture") != "false" {
		o["captured"], o["amount_captured"] = true, amount
	}
	x.emit("charge.succeeded", o)
	return o, nil
}

func chargeCapture(x *exec) (object, *failure) {
	o, f := x.target("charge")
	if f != nil {
		return nil, f
	}
	amount, given := x.amount("amount")
	if x.err != nil {
		return nil, x.err
	}
	if !given {
		amount = whole(o, "amount")
	}
	switch {
	case o["captured"] == true:
		return nil, guard("charge_already_captured", "The charge has already been captured.")
	case text(o, "status") != "succeeded" || o["refunded"] == true:
		return nil, guard("charge_not_capturable", "The charge cannot be captured.")
	case amount > whole(o, "amount"):
		return nil, guard("amount_too_large", "The amount is larger than the charge.")
	}
	o["captured"], o["amount_captured"] = true, amount
	if pi := x.s.get("payment_intent", text(o, "payment_intent")); pi != nil {
		pi["status"], pi["amount_received"], pi["amount_capturable"] = "succeeded", amount, int64(0)
	}
	x.emit("charge.captured", o)
	return o, nil
}

// paymentMethod returns the payment method that a parameter names. Any id of a
// plausible kind is accepted: test tokens need not be created first.
func (x *exec) paymentMethod(name string) string {
	pm := x.p.str(name)
	if pm == "" {
		if x.p.sub("payment_method_data") != nil {
			return "pm_" + x.tx.Token(24, base62) // its details are not kept
		}
		return ""
	}
	for _, prefix := range []string{"pm_", "card_", "src_", "ba_", "tok_"} {
		if len(pm) > len(prefix) && pm[:len(prefix)] == prefix {
			return pm
		}
	}
	x.bad(notFound("PaymentMethod", name))
	return ""
}

func (x *exec) methodTypes() []string {
	if types := x.p.strings("payment_method_types"); len(types) > 0 {
		return types
	}
	return []string{"card"}
}

func idOf(o object) any {
	if o == nil {
		return nil
	}
	return text(o, "id")
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// paymentFailed shapes a decline for an operation other than a payment intent.
func paymentFailed(v verdict) *failure {
	f := declined(v.code, v.decline)
	f.status = http.StatusPaymentRequired
	return f
}
