package stripe

import (
	"maps"
	"strings"
)

// customerCreate is POST /v1/customers.
func customerCreate(x *exec) (object, *failure) {
	meta := x.metadata(nil)
	balance, _ := x.number("balance")
	settings, pm := x.invoiceSettings(nil), x.paymentMethod("payment_method")
	if x.err != nil {
		return nil, x.err
	}
	if pm != "" && settings["default_payment_method"] == nil {
		settings["default_payment_method"] = pm
	}
	o := x.fresh("customer", "cus")
	maps.Copy(o, object{
		"address": nil, "balance": balance, "currency": nil, "default_source": nil, "delinquent": false,
		"discount": nil, "invoice_prefix": x.tx.Token(8, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"),
		"invoice_settings": settings, "metadata": meta, "next_invoice_sequence": int64(1), "preferred_locales": []string{},
		"shipping": nil, "tax_exempt": "none", "test_clock": nil,
	})
	x.fields(o, "description", "email", "name", "phone")
	x.address(o)
	x.store(o)
	x.emit("customer.created", o)
	return o, nil
}

func customerUpdate(x *exec) (object, *failure) {
	o, f := x.target("customer")
	if f != nil {
		return nil, f
	}
	meta, settings := x.metadata(part(o, "metadata")), x.invoiceSettings(part(o, "invoice_settings"))
	balance, given := x.number("balance")
	if x.err != nil {
		return nil, x.err
	}
	o["metadata"], o["invoice_settings"] = meta, settings
	if given {
		o["balance"] = balance
	}
	x.fields(o, "description", "email", "name", "phone", "default_source")
	x.address(o)
	x.emit("customer.updated", o)
	return o, nil
}

func (x *exec) invoiceSettings(old object) object {
	out := object{"custom_fields": nil, "default_payment_method": nil, "footer": nil, "rendering_options": nil}
	maps.Copy(out, old)
	for _, name := range []string{"default_payment_method", "footer"} {
		if v := x.p.sub("invoice_settings").str(name); v != "" {
			out[name] = v
		}
	}
	return out
}

func (x *exec) address(o object) {
	a := x.p.sub("address")
	if a == nil {
		return
	}
	out := object{}
	for _, n := range []string{"city", "country", "line1", "line2", "postal_code", "state"} {
		out[n] = orNull(a.str(n))
	}
	o["address"] = out
}

func customerDelete(x *exec) (object, *failure) {
	o, f := x.target("customer")
	if f != nil {
		return nil, f
	}
	gone := object{"id": text(o, "id"), "object": "customer", "deleted": true}
	x.emit("customer.deleted", o)
	x.s.remove(o, gone)
	return gone, nil
}

// customerGet answers for a deleted customer too.
func customerGet(x *exec) (object, *failure) {
	if o := x.s.index[x.ids[0]]; o != nil && text(o, "object") == "customer" {
		return o, nil
	}
	return nil, notFound("customer", "id")
}

// balanceTransactionCreate is POST /v1/customers/{id}/balance_transactions.
func balanceTransactionCreate(x *exec) (object, *failure) {
	c, f := x.target("customer")
	if f != nil {
		return nil, f
	}
	amount, given := x.number("amount")
	currency, meta := x.currency(), x.metadata(nil)
	if !given {
		x.bad(missing("amount"))
	}
	if x.err != nil {
		return nil, x.err
	}
	balance := whole(c, "balance") + amount
	o := x.fresh("customer_balance_transaction", "cbtxn")
	maps.Copy(o, object{
		"amount": amount, "checkout_session": nil, "credit_note": nil, "currency": currency, "customer": text(c, "id"),
		"ending_balance": balance, "invoice": nil, "metadata": meta, "type": "adjustment",
	})
	x.fields(o, "description")
	c["balance"] = balance
	return x.store(o), nil
}

func balanceTransactionGet(x *exec) (object, *failure) {
	o := x.s.get("customer_balance_transaction", x.ids[1])
	if o == nil || text(o, "customer") != x.ids[0] {
		return nil, notFound("customer_balance_transaction", "transaction")
	}
	return o, nil
}

// accountGet is GET /v1/account: whose credential this is.
func accountGet(x *exec) (object, *failure) {
	id, _, connected := strings.Cut(x.account, "/")
	if !connected {
		id = x.d.cfg.Account
	}
	if len(x.ids) > 0 && x.ids[0] != id {
		return nil, notFound("account", "account")
	}
	return object{"id": id, "object": "account", "charges_enabled": true, "payouts_enabled": true, "details_submitted": true,
		"country": "US", "default_currency": "usd", "email": nil, "metadata": object{}, "type": "standard"}, nil
}

// balanceGet is GET /v1/balance, whose livemode tells a credential's mode. The
// fake keeps no books.
func balanceGet(x *exec) (object, *failure) {
	return object{"object": "balance", "livemode": x.live, "available": []object{}, "pending": []object{}}, nil
}
