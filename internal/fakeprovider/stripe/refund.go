package stripe

import "maps"

// refundCreate is POST /v1/refunds.
func refundCreate(x *exec) (object, *failure) {
	ch := x.ref("charge", "charge")
	pi := x.ref("payment_intent", "payment_intent")
	amount, given := x.amount("amount")
	x.oneOf("reason", "", "duplicate", "fraudulent", "requested_by_customer")
	meta := x.metadata(nil)
	if x.err != nil {
		return nil, x.err
	}
	switch {
	case ch == nil && pi == nil:
		return nil, invalid("", "Name a charge or a payment_intent.")
	case pi != nil:
		ch = x.s.get("charge", text(pi, "latest_charge"))
		if ch == nil || text(ch, "status") == "failed" {
			return nil, guard("charge_not_refundable", "The PaymentIntent has no successful charge to refund.")
		}
	}
	left := whole(ch, "amount_captured") - whole(ch, "amount_refunded")
	switch {
	case ch["refunded"] == true:
		return nil, guard("charge_already_refunded", "The charge has already been refunded.")
	case text(ch, "status") == "failed" || ch["captured"] != true:
		return nil, guard("charge_not_refundable", "The charge was not captured.")
	case given && amount > left:
		f := guard("", "The amount is greater than what is left of the charge.")
		f.param = "amount"
		return nil, f
	case !given:
		amount = left
	}
	o := x.fresh("refund", "re")
	delete(o, "livemode")
	maps.Copy(o, object{
		"amount": amount, "balance_transaction": "txn_" + x.tx.Token(24, base62), "charge": text(ch, "id"),
		"currency": ch["currency"], "metadata": meta, "payment_intent": ch["payment_intent"], "reason": nil,
		"receipt_number": nil, "source_transfer_reversal": nil, "transfer_reversal": nil, "status": "succeeded",
	})
	if judge(text(ch, "payment_method"), false).pendingRefund {
		o["status"], o["pending_reason"] = "pending", "processing"
	}
	x.fields(o, "reason")
	ch["amount_refunded"] = whole(ch, "amount_refunded") + amount
	ch["refunded"] = amount == left
	x.store(o)
	x.emit("refund.created", o)
	x.emit("charge.refunded", ch)
	return o, nil
}

func refundCancel(x *exec) (object, *failure) {
	o, f := x.target("refund")
	if f != nil {
		return nil, f
	}
	if text(o, "status") != "requires_action" && text(o, "status") != "pending" {
		return nil, guard("", "Only a refund that is not complete can be canceled.")
	}
	o["status"] = "canceled"
	if ch := x.s.get("charge", text(o, "charge")); ch != nil {
		ch["amount_refunded"], ch["refunded"] = whole(ch, "amount_refunded")-whole(o, "amount"), false
	}
	x.emit("refund.updated", o)
	return o, nil
}
