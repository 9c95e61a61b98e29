package stripe

import "maps"

// setupIntentCreate is POST /v1/setup_intents.
func setupIntentCreate(x *exec) (object, *failure) {
	customer, meta := x.ref("customer", "customer"), x.metadata(nil)
	pm, confirm := x.paymentMethod("payment_method"), x.flag("confirm")
	usage := x.oneOf("usage", "off_session", "on_session")
	if x.err != nil {
		return nil, x.err
	}
	o := x.fresh("setup_intent", "seti")
	maps.Copy(o, object{
		"customer": idOf(customer), "metadata": meta, "payment_method": orNull(pm), "usage": usage,
		"client_secret": text(o, "id") + "_secret_" + x.tx.Token(25, base62), "status": "requires_payment_method",
		"payment_method_types": x.methodTypes(), "last_setup_error": nil, "latest_attempt": nil, "mandate": nil,
		"next_action": nil, "cancellation_reason": nil, "application": nil, "automatic_payment_methods": nil,
		"payment_method_options": nil, "single_use_mandate": nil, "flow_directions": nil,
	})
	x.fields(o, "description", "on_behalf_of")
	if pm != "" {
		o["status"] = "requires_confirmation"
	}
	x.store(o)
	x.emit("setup_intent.created", o)
	if confirm {
		return x.confirmSetup(o)
	}
	return o, nil
}

func setupIntentConfirm(x *exec) (object, *failure) {
	o, f := x.target("setup_intent")
	if f != nil {
		return nil, f
	}
	pm := x.paymentMethod("payment_method")
	if x.err != nil {
		return nil, x.err
	}
	switch text(o, "status") {
	case "requires_payment_method", "requires_confirmation", "requires_action":
	default:
		return nil, unexpectedSetup(o, "confirmed")
	}
	if pm == "" && o["payment_method"] == nil {
		return nil, unexpectedSetup(o, "confirmed without a payment method")
	}
	if pm != "" {
		o["payment_method"] = pm
	}
	return x.confirmSetup(o)
}

func (x *exec) confirmSetup(o object) (object, *failure) {
	pm := text(o, "payment_method")
	if pm == "" {
		return nil, unexpectedSetup(o, "confirmed without a payment method")
	}
	v := judge(pm, false)
	switch {
	case pm == "pm_card_chargeCustomerFail": // attaches, and fails when charged
	case v.code != "":
		f := declined(v.code, v.decline)
		o["status"], o["payment_method"], o["last_setup_error"] = "requires_payment_method", nil, f.body()
		x.emit("setup_intent.setup_failed", o)
		f.with = object{"setup_intent": maps.Clone(o)}
		return nil, f
	case v.action:
		o["status"] = "requires_action"
		o["next_action"] = object{"type": "use_stripe_sdk", "use_stripe_sdk": object{"type": "three_d_secure_redirect"}}
		x.emit("setup_intent.requires_action", o)
		return o, nil
	}
	o["status"], o["next_action"], o["last_setup_error"] = "succeeded", nil, nil
	x.emit("setup_intent.succeeded", o)
	return o, nil
}

func setupIntentCancel(x *exec) (object, *failure) {
	o, f := x.target("setup_intent")
	if f != nil {
		return nil, f
	}
	switch text(o, "status") {
	case "succeeded", "canceled":
		return nil, unexpectedSetup(o, "canceled")
	}
	o["status"] = "canceled"
	x.fields(o, "cancellation_reason")
	x.emit("setup_intent.canceled", o)
	return o, nil
}

func unexpectedSetup(o object, verb string) *failure {
	f := guard("setup_intent_unexpected_state", "A SetupIntent with status "+text(o, "status")+" cannot be "+verb+".")
	f.with = object{"setup_intent": maps.Clone(o)}
	return f
}
