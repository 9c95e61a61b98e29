package stripe

import "maps"

// subscriptionCreate is POST /v1/subscriptions.
func subscriptionCreate(x *exec) (object, *failure) {
	x.need("customer")
	customer, meta := x.ref("customer", "customer"), x.metadata(nil)
	behavior := x.oneOf("payment_behavior", "allow_incomplete", "default_incomplete", "error_if_incomplete", "pending_if_incomplete")
	collection := x.oneOf("collection_method", "charge_automatically", "send_invoice")
	pm, items := x.paymentMethod("default_payment_method"), x.subscriptionItems()
	trial, trialing := x.number("trial_period_days")
	atEnd := x.flag("cancel_at_period_end")
	if len(items) == 0 {
		x.bad(missing("items"))
	}
	if x.err != nil {
		return nil, x.err
	}
	status, v := "active", judge(pm, false)
	switch {
	case trialing && trial > 0:
		status = "trialing"
	case behavior == "error_if_incomplete" && v.code != "":
		return nil, paymentFailed(v)
	case behavior == "default_incomplete" || v.code != "" || v.action:
		status = "incomplete"
	}
	o := x.fresh("subscription", "sub")
	for _, item := range items {
		item["subscription"] = text(o, "id")
	}
	maps.Copy(o, object{
		"application": nil, "automatic_tax": object{"enabled": false}, "billing_cycle_anchor": x.now(),
		"billing_mode": object{"type": "classic"}, "billing_schedules": []object{},
		"cancel_at": nil, "cancel_at_period_end": atEnd, "canceled_at": nil,
		"cancellation_details": object{"comment": nil, "feedback": nil, "reason": nil}, "collection_method": collection,
		"currency": part(items[0], "price")["currency"], "customer": text(customer, "id"), "default_payment_method": orNull(pm),
		"discounts": []string{}, "ended_at": nil, "invoice_settings": object{"issuer": object{"type": "self"}},
		"items":          list("/v1/subscription_items?subscription="+text(o, "id"), items),
		"latest_invoice": nil, "metadata": meta, "pause_collection": nil, "pending_setup_intent": nil, "schedule": nil,
		"start_date": x.now(), "status": status, "trial_end": nil, "trial_start": nil,
	})
	if status == "trialing" {
		o["trial_start"], o["trial_end"] = x.now(), x.now()+trial*86400
	}
	x.fields(o, "description")
	x.store(o)
	x.emit("customer.subscription.created", o)
	return o, nil
}

// subscriptionItems builds the items of a request.
func (x *exec) subscriptionItems() []object {
	var out []object
	for _, e := range x.p.list("items") {
		p, ok := e.(params)
		if !ok {
			x.bad(invalid("items", "An item must be an object."))
			return nil
		}
		price, data := p.str("price"), p.sub("price_data")
		unit, _ := x.numberIn(data, "unit_amount", "items[price_data][unit_amount]")
		n, given := x.numberIn(p, "quantity", "items[quantity]")
		if !given {
			n = 1
		}
		currency, product := data.str("currency"), data.str("product")
		switch {
		case price == "" && data == nil:
			x.bad(missing("items[price]"))
		case price == "":
			price = "price_" + x.tx.Token(24, base62)
		}
		if currency == "" {
			currency = "usd"
		}
		if product == "" {
			product = "prod_" + x.tx.Token(14, base62)
		}
		out = append(out, object{
			"id": "si_" + x.tx.Token(14, base62), "object": "subscription_item", "created": x.now(), "metadata": object{},
			"quantity": n, "discounts": []string{}, "current_period_start": x.now(), "current_period_end": x.now() + 30*86400,
			"price": object{"id": price, "object": "price", "active": true, "currency": currency, "unit_amount": unit,
				"type": "recurring", "billing_scheme": "per_unit", "product": product, "livemode": x.live, "metadata": object{}, "created": x.now(),
				"recurring": object{"interval": "month", "interval_count": int64(1), "usage_type": "licensed"}},
		})
	}
	return out
}

func subscriptionUpdate(x *exec) (object, *failure) {
	o, f := x.target("subscription")
	if f != nil {
		return nil, f
	}
	meta, pm := x.metadata(part(o, "metadata")), x.paymentMethod("default_payment_method")
	_, atEnd := x.p["cancel_at_period_end"]
	cancel := x.flag("cancel_at_period_end")
	if x.err != nil {
		return nil, x.err
	}
	if s := text(o, "status"); s == "canceled" || s == "incomplete_expired" {
		return nil, guard("", "A "+s+" subscription cannot be updated.")
	}
	o["metadata"] = meta
	if pm != "" {
		o["default_payment_method"] = pm
	}
	if atEnd {
		o["cancel_at_period_end"] = cancel
		o["canceled_at"] = nil
		if cancel {
			o["canceled_at"] = x.now()
		}
	}
	x.fields(o, "description")
	x.emit("customer.subscription.updated", o)
	return o, nil
}

// subscriptionCancel is DELETE /v1/subscriptions/{id}. A canceled subscription is
// not found by a second one.
func subscriptionCancel(x *exec) (object, *failure) {
	o, f := x.target("subscription")
	if f != nil {
		return nil, f
	}
	if text(o, "status") == "canceled" {
		return nil, notFound("subscription", "id")
	}
	o["status"], o["canceled_at"], o["ended_at"] = "canceled", x.now(), x.now()
	details := maps.Clone(part(o, "cancellation_details"))
	details["reason"] = "cancellation_requested"
	for _, n := range []string{"comment", "feedback"} {
		if v := x.p.sub("cancellation_details").str(n); v != "" {
			details[n] = v
		}
	}
	o["cancellation_details"] = details
	x.emit("customer.subscription.deleted", o)
	return o, nil
}
