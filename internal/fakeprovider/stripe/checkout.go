package stripe

import (
	"maps"
	"time"
)

// sessionCreate is POST /v1/checkout/sessions.
func sessionCreate(x *exec) (object, *failure) {
	mode := x.oneOf("mode", "payment", "setup", "subscription")
	customer, meta := x.ref("customer", "customer"), x.metadata(nil)
	ui := x.oneOf("ui_mode", "hosted", "embedded", "custom", "hosted_page", "embedded_page", "elements", "form")
	total, currency := x.lineItems()
	expires, given := x.number("expires_at")
	if !given {
		expires = x.tx.Now.Add(24 * time.Hour).Unix()
	}
	if mode != "setup" && len(x.p.list("line_items")) == 0 {
		x.bad(missing("line_items"))
	}
	if x.err != nil {
		return nil, x.err
	}
	kind := "cs_test"
	if x.live {
		kind = "cs_live"
	}
	o := x.fresh("checkout.session", kind)
	maps.Copy(o, object{
		"amount_subtotal": total, "amount_total": total, "automatic_tax": object{"enabled": false, "status": nil},
		"currency": orNull(currency), "custom_fields": []object{},
		"custom_text": object{"after_submit": nil, "shipping_address": nil, "submit": nil, "terms_of_service_acceptance": nil},
		"customer":    idOf(customer), "expires_at": expires,
		"invoice": nil, "metadata": meta, "mode": mode, "payment_intent": nil, "payment_link": nil,
		"payment_method_types": x.methodTypes(), "payment_status": "unpaid", "setup_intent": nil, "status": "open",
		"shipping_options": []object{}, "subscription": nil, "ui_mode": shownUI(ui), "livemode": x.live,
		"url": "https://checkout.stripe.com/c/pay/" + text(o, "id"),
	})
	if mode == "setup" {
		o["amount_subtotal"], o["amount_total"], o["payment_status"] = nil, nil, "no_payment_required"
	}
	x.fields(o, "cancel_url", "client_reference_id", "customer_email", "locale", "submit_type", "success_url")
	if back := x.p.str("return_url"); back != "" {
		o["return_url"] = back
	}
	x.store(o)
	return o, nil
}

// shownUI is a ui_mode as the API version of the fake's answers names it. The
// parameter may have the name that older versions use.
func shownUI(mode string) string {
	switch mode {
	case "hosted":
		return "hosted_page"
	case "embedded":
		return "embedded_page"
	case "custom":
		return "elements"
	}
	return mode
}

// lineItems adds up the lines that bring their price with them. A line that
// names a price counts nothing, because the fake holds no catalog.
func (x *exec) lineItems() (total int64, currency string) {
	currency = x.p.str("currency")
	for _, e := range x.p.list("line_items") {
		line, ok := e.(params)
		if !ok {
			x.bad(invalid("line_items", "A line item must be an object."))
			return 0, ""
		}
		price := line.sub("price_data")
		if price == nil && line.str("price") == "" {
			x.bad(missing("line_items[price]"))
		}
		unit, _ := x.numberIn(price, "unit_amount", "line_items[price_data][unit_amount]")
		n, given := x.numberIn(line, "quantity", "line_items[quantity]")
		if !given {
			n = 1
		}
		if unit < 0 || n < 0 || unit > maxAmount || n > maxAmount {
			x.bad(invalid("line_items", "A line item's amount or quantity is out of range."))
			return 0, ""
		}
		total += unit * n
		if c := price.str("currency"); c != "" {
			currency = c
		}
	}
	return total, currency
}

func sessionExpire(x *exec) (object, *failure) {
	o, f := x.target("checkout.session")
	if f != nil {
		return nil, f
	}
	if text(o, "status") != "open" {
		return nil, guard("", "Only an open session can be expired; this one is "+text(o, "status")+".")
	}
	o["status"], o["url"] = "expired", nil
	x.emit("checkout.session.expired", o)
	return o, nil
}
