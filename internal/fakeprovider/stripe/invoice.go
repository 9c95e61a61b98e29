package stripe

import (
	"maps"
	"strconv"
)

// invoiceCreate is POST /v1/invoices.
func invoiceCreate(x *exec) (object, *failure) {
	x.need("customer")
	customer, meta := x.ref("customer", "customer"), x.metadata(nil)
	collection := x.oneOf("collection_method", "charge_automatically", "send_invoice")
	pending := x.oneOf("pending_invoice_items_behavior", "exclude", "include")
	auto, pm := x.flag("auto_advance"), x.paymentMethod("default_payment_method")
	due, dated := x.number("due_date")
	if days, given := x.number("days_until_due"); given {
		due, dated = x.now()+days*86400, true
	}
	if collection == "send_invoice" && !dated {
		x.bad(missing("days_until_due"))
	}
	if x.err != nil {
		return nil, x.err
	}
	currency := x.p.str("currency")
	if currency == "" {
		currency = "usd"
	}
	o := x.fresh("invoice", "in")
	maps.Copy(o, object{
		"account_country": "US", "amount_due": int64(0), "amount_overpaid": int64(0), "amount_paid": int64(0),
		"amount_paid_off_stripe": int64(0), "issuer": object{"type": "self"},
		"payment_settings": object{"default_mandate": nil, "payment_method_options": nil, "payment_method_types": nil},
		"amount_remaining": int64(0), "amount_shipping": int64(0), "attempt_count": int64(0), "attempted": false,
		"auto_advance": auto, "automatic_tax": object{"enabled": false, "status": nil}, "billing_reason": "manual",
		"collection_method": collection, "currency": currency, "customer": text(customer, "id"),
		"customer_email": customer["email"], "default_payment_method": orNull(pm), "discounts": []string{}, "due_date": nil,
		"hosted_invoice_url": nil, "invoice_pdf": nil, "lines": list("/v1/invoices/"+text(o, "id")+"/lines", nil),
		"metadata": meta, "number": nil, "period_end": x.now(), "period_start": x.now(),
		"post_payment_credit_notes_amount": int64(0), "pre_payment_credit_notes_amount": int64(0), "status": "draft",
		"starting_balance": int64(0), "subtotal": int64(0), "total": int64(0), "default_tax_rates": []object{},
		"status_transitions": object{"finalized_at": nil, "marked_uncollectible_at": nil, "paid_at": nil, "voided_at": nil},
	})
	if dated {
		o["due_date"] = due
	}
	x.fields(o, "description", "footer", "statement_descriptor", "number")
	x.store(o)
	if pending == "include" {
		for _, item := range x.s.byKind["invoiceitem"] {
			if text(item, "invoice") == "" && text(item, "customer") == text(customer, "id") {
				x.s.attach(o, item)
			}
		}
	}
	x.emit("invoice.created", o)
	return o, nil
}

// attach puts an item on a draft invoice.
func (s *state) attach(invoice, item object) {
	item["invoice"] = text(invoice, "id")
	old, _ := part(invoice, "lines")["data"].([]object)
	line := object{
		"id": "il_" + text(item, "id"), "object": "line_item", "amount": whole(item, "amount"), "currency": item["currency"],
		"description": item["description"], "invoice": text(invoice, "id"), "livemode": item["livemode"],
		"metadata": item["metadata"], "quantity": item["quantity"], "period": item["period"], "discountable": true,
		"discounts": []string{}, "subtotal": whole(item, "amount"),
	}
	lines := append(old[:len(old):len(old)], line)
	invoice["lines"] = list(text(part(invoice, "lines"), "url"), lines)
	invoice["currency"] = item["currency"]
	total := whole(invoice, "total") + whole(item, "amount")
	for _, name := range []string{"subtotal", "total", "amount_due", "amount_remaining"} {
		invoice[name] = total
	}
}

// invoiceItemCreate is POST /v1/invoiceitems.
func invoiceItemCreate(x *exec) (object, *failure) {
	x.need("customer")
	customer, invoice, meta := x.ref("customer", "customer"), x.ref("invoice", "invoice"), x.metadata(nil)
	amount, given := x.number("amount")
	n, counted := x.number("quantity")
	if !counted {
		n = 1
	}
	if !given {
		data := x.p.sub("price_data")
		unit, has := x.numberIn(data, "unit_amount", "price_data[unit_amount]")
		if !has && x.p.sub("pricing") == nil {
			x.bad(missing("amount"))
		}
		if unit > maxAmount || unit < -maxAmount || n > maxAmount || n < 0 {
			x.bad(invalid("quantity", "The amount or quantity is out of range."))
			unit = 0
		}
		amount = unit * n
	}
	currency := x.p.str("currency")
	if currency == "" {
		currency = x.p.sub("price_data").str("currency")
	}
	if currency == "" {
		x.bad(missing("currency"))
	}
	if x.err != nil {
		return nil, x.err
	}
	if invoice != nil && text(invoice, "status") != "draft" {
		return nil, guard("invoice_not_editable", "Items can be added to a draft invoice only.")
	}
	o := x.fresh("invoiceitem", "ii")
	delete(o, "created")
	maps.Copy(o, object{
		"amount": amount, "currency": currency, "customer": text(customer, "id"), "date": x.now(), "discountable": true,
		"discounts": []string{}, "invoice": nil, "metadata": meta, "proration": false, "quantity": n,
		"quantity_decimal": strconv.FormatInt(n, 10),
		"period":           object{"start": x.now(), "end": x.now()}, "tax_rates": []object{}, "test_clock": nil,
	})
	x.fields(o, "description")
	x.store(o)
	if invoice != nil {
		x.s.attach(invoice, o)
	}
	x.emit("invoiceitem.created", o)
	return o, nil
}

func invoiceFinalize(x *exec) (object, *failure) {
	o, f := x.target("invoice")
	if f != nil {
		return nil, f
	}
	if text(o, "status") != "draft" {
		return nil, guard("", "This invoice is already finalized.")
	}
	x.finalize(o)
	return o, nil
}

func (x *exec) finalize(o object) {
	o["status"] = "open"
	if o["number"] == nil {
		o["number"] = "FAKE-" + strconv.Itoa(len(x.s.byKind["invoice"]))
	}
	o["hosted_invoice_url"] = "https://invoice.stripe.com/i/" + text(o, "id")
	x.transition(o, "finalized_at")
	x.emit("invoice.finalized", o)
	if whole(o, "amount_due") <= 0 {
		x.settle(o)
	}
}

func (x *exec) transition(o object, name string) {
	t := maps.Clone(part(o, "status_transitions"))
	t[name] = x.now()
	o["status_transitions"] = t
}

// settle marks an invoice as paid.
func (x *exec) settle(o object) {
	o["amount_paid"], o["amount_remaining"], o["status"] = whole(o, "amount_due"), int64(0), "paid"
	o["attempted"] = true
	x.transition(o, "paid_at")
	x.emit("invoice.paid", o)
}

func invoicePay(x *exec) (object, *failure) {
	o, f := x.target("invoice")
	if f != nil {
		return nil, f
	}
	pm, outside := x.paymentMethod("payment_method"), x.flag("paid_out_of_band")
	if x.err != nil {
		return nil, x.err
	}
	switch text(o, "status") {
	case "paid":
		return nil, guard("", "This invoice is already paid.")
	case "void", "uncollectible":
		return nil, guard("", "A "+text(o, "status")+" invoice cannot be paid.")
	}
	if pm == "" {
		pm = text(o, "default_payment_method")
	}
	if pm == "" {
		customer := x.s.get("customer", text(o, "customer"))
		pm = text(part(customer, "invoice_settings"), "default_payment_method")
	}
	v := judge(pm, true)
	switch {
	case outside:
	case pm == "":
		return nil, guard("resource_missing", "The customer has no default payment method.")
	case v.code != "":
		o["attempted"], o["attempt_count"] = true, whole(o, "attempt_count")+1
		x.emit("invoice.payment_failed", o)
		return nil, paymentFailed(v)
	}
	if text(o, "status") == "draft" {
		x.finalize(o)
	}
	o["attempt_count"] = whole(o, "attempt_count") + 1
	if text(o, "status") == "open" {
		x.settle(o)
	}
	return o, nil
}

func invoiceVoid(x *exec) (object, *failure) {
	o, f := x.target("invoice")
	if f != nil {
		return nil, f
	}
	if s := text(o, "status"); s != "open" && s != "uncollectible" {
		return nil, guard("", "A "+s+" invoice cannot be voided.")
	}
	o["status"] = "void"
	x.transition(o, "voided_at")
	x.emit("invoice.voided", o)
	return o, nil
}

// invoiceSend e-mails the invoice, each time it is called.
func invoiceSend(x *exec) (object, *failure) {
	o, f := x.target("invoice")
	if f != nil {
		return nil, f
	}
	switch s := text(o, "status"); s {
	case "draft":
		x.finalize(o)
	case "open":
	default:
		return nil, guard("", "A "+s+" invoice cannot be sent.")
	}
	x.emit("invoice.sent", o)
	return o, nil
}

func invoiceDelete(x *exec) (object, *failure) {
	o, f := x.target("invoice")
	if f != nil {
		return nil, f
	}
	if text(o, "status") != "draft" {
		return nil, guard("", "Only a draft invoice can be deleted.")
	}
	gone := object{"id": text(o, "id"), "object": "invoice", "deleted": true}
	x.s.remove(o, gone)
	return gone, nil
}

// creditNoteCreate is POST /v1/credit_notes.
func creditNoteCreate(x *exec) (object, *failure) {
	x.need("invoice")
	invoice, meta := x.ref("invoice", "invoice"), x.metadata(nil)
	amount, given := x.amount("amount")
	if !given {
		for _, e := range x.p.list("lines") {
			if line, ok := e.(params); ok {
				n, _ := x.numberIn(line, "amount", "lines[amount]")
				amount += n
			}
		}
	}
	if amount <= 0 {
		x.bad(missing("amount"))
	}
	if x.err != nil {
		return nil, x.err
	}
	if s := text(invoice, "status"); s != "open" && s != "paid" {
		return nil, guard("", "A credit note needs an open or paid invoice; this one is "+s+".")
	}
	noted := whole(invoice, "pre_payment_credit_notes_amount") + whole(invoice, "post_payment_credit_notes_amount")
	if amount > whole(invoice, "total")-noted {
		return nil, guard("", "The credit notes would be larger than the invoice.")
	}
	kind := "pre_payment"
	if text(invoice, "status") == "paid" {
		kind = "post_payment"
	} else {
		for _, n := range []string{"amount_due", "amount_remaining"} {
			invoice[n] = whole(invoice, n) - amount
		}
	}
	invoice[kind+"_credit_notes_amount"] = whole(invoice, kind+"_credit_notes_amount") + amount
	o := x.fresh("credit_note", "cn")
	maps.Copy(o, object{
		"amount": amount, "amount_shipping": int64(0), "currency": invoice["currency"], "customer": invoice["customer"],
		"customer_balance_transaction": nil, "discount_amount": int64(0), "discount_amounts": []object{},
		"invoice": text(invoice, "id"), "lines": list("/v1/credit_notes/"+text(o, "id")+"/lines", nil), "metadata": meta,
		"number": "FAKE-CN-" + strconv.Itoa(len(x.s.byKind["credit_note"])+1), "out_of_band_amount": nil, "pdf": "",
		"pre_payment_amount": int64(0), "post_payment_amount": int64(0), "pretax_credit_amounts": []object{},
		"refunds": []object{}, "status": "issued", "subtotal": amount, "total": amount, "type": kind, "voided_at": nil,
	})
	o[kind+"_amount"] = amount
	x.fields(o, "memo", "reason")
	x.store(o)
	x.emit("credit_note.created", o)
	return o, nil
}
