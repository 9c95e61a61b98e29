package stripe

import (
	"maps"
	"time"
)

// transferCreate is POST /v1/transfers.
func transferCreate(x *exec) (object, *failure) {
	currency, destination := x.currency(), x.need("destination")
	amount, given := x.amount("amount")
	source, meta := x.ref("charge", "source_transaction"), x.metadata(nil)
	if !given && source == nil {
		x.bad(missing("amount"))
	}
	if x.err != nil {
		return nil, x.err
	}
	if !given {
		amount = whole(source, "amount")
	}
	o := x.fresh("transfer", "tr")
	maps.Copy(o, object{
		"amount": amount, "amount_reversed": int64(0), "balance_transaction": "txn_" + x.tx.Token(24, base62),
		"currency": currency, "destination": destination, "destination_payment": "py_" + x.tx.Token(24, base62),
		"metadata": meta, "reversals": list("/v1/transfers/"+text(o, "id")+"/reversals", nil), "reversed": false,
		"source_transaction": idOf(source), "source_type": "card",
	})
	x.fields(o, "description", "transfer_group")
	x.store(o)
	x.emit("transfer.created", o)
	return o, nil
}

// transferReversalCreate is POST /v1/transfers/{id}/reversals.
func transferReversalCreate(x *exec) (object, *failure) {
	t, f := x.target("transfer")
	if f != nil {
		return nil, f
	}
	amount, given := x.amount("amount")
	meta := x.metadata(nil)
	if x.err != nil {
		return nil, x.err
	}
	left := whole(t, "amount") - whole(t, "amount_reversed")
	switch {
	case left == 0:
		return nil, guard("", "The transfer has already been fully reversed.")
	case given && amount > left:
		return nil, guard("", "The amount is greater than what is left of the transfer.")
	case !given:
		amount = left
	}
	o := x.fresh("transfer_reversal", "trr")
	delete(o, "livemode")
	maps.Copy(o, object{
		"amount": amount, "balance_transaction": "txn_" + x.tx.Token(24, base62), "currency": t["currency"],
		"destination_payment_refund": nil, "metadata": meta, "source_refund": nil, "transfer": text(t, "id"),
	})
	x.store(o)
	old, _ := part(t, "reversals")["data"].([]object)
	t["reversals"] = list(text(part(t, "reversals"), "url"), append([]object{o}, old...))
	t["amount_reversed"] = whole(t, "amount_reversed") + amount
	t["reversed"] = amount == left
	x.emit("transfer.reversed", t)
	return o, nil
}

func transferReversalGet(x *exec) (object, *failure) {
	o := x.s.get("transfer_reversal", x.ids[1])
	if o == nil || text(o, "transfer") != x.ids[0] {
		return nil, notFound("transfer_reversal", "reversal")
	}
	return o, nil
}

// payoutCreate is POST /v1/payouts. A standard payout is paid two days later, an
// instant one at once.
func payoutCreate(x *exec) (object, *failure) {
	amount, currency, meta := x.needAmount("amount"), x.currency(), x.metadata(nil)
	method := x.oneOf("method", "standard", "instant")
	if x.err != nil {
		return nil, x.err
	}
	o := x.fresh("payout", "po")
	maps.Copy(o, object{
		"amount": amount, "application_fee": nil, "arrival_date": x.tx.Now.Add(48 * time.Hour).Unix(), "automatic": false,
		"balance_transaction": "txn_" + x.tx.Token(24, base62), "currency": currency, "failure_balance_transaction": nil,
		"failure_code": nil, "failure_message": nil, "metadata": meta, "method": method, "original_payout": nil,
		"reconciliation_status": "not_applicable", "reversed_by": nil, "source_type": "card", "status": "pending",
		"type": "bank_account", "trace_id": nil,
	})
	if method == "instant" {
		o["status"], o["arrival_date"] = "paid", x.now()
	}
	x.fields(o, "description", "destination", "statement_descriptor")
	if o["destination"] == nil {
		o["destination"] = "ba_" + x.tx.Token(24, base62)
	}
	x.store(o)
	x.emit("payout.created", o)
	return o, nil
}

// payout returns the payout that the path names, as it stands now.
func (x *exec) payout() (object, *failure) {
	o, f := x.target("payout")
	if f == nil {
		x.arrive(o)
	}
	return o, f
}

func (x *exec) arrive(o object) {
	if text(o, "status") == "pending" && x.now() >= whole(o, "arrival_date") {
		o["status"] = "paid"
	}
}

func payoutGet(x *exec) (object, *failure) { return x.payout() }

func payoutCancel(x *exec) (object, *failure) {
	o, f := x.payout()
	if f != nil {
		return nil, f
	}
	if text(o, "status") != "pending" {
		return nil, guard("", "Only a pending payout can be canceled; this one is "+text(o, "status")+".")
	}
	o["status"] = "canceled"
	x.emit("payout.canceled", o)
	return o, nil
}

func payoutReverse(x *exec) (object, *failure) {
	o, f := x.payout()
	if f != nil {
		return nil, f
	}
	meta := x.metadata(nil)
	if x.err != nil {
		return nil, x.err
	}
	if text(o, "status") != "paid" || o["reversed_by"] != nil {
		return nil, guard("", "Only a paid payout that was not reversed can be reversed.")
	}
	back := maps.Clone(o)
	maps.Copy(back, object{
		"id": "po_" + x.tx.Token(24, base62), "created": x.now(), "amount": -whole(o, "amount"), "metadata": meta,
		"original_payout": text(o, "id"), "reversed_by": nil, "status": "pending",
		"arrival_date": x.tx.Now.Add(48 * time.Hour).Unix(),
	})
	x.store(back)
	o["reversed_by"] = text(back, "id")
	x.emit("payout.created", back)
	return back, nil
}

// meterEventCreate is POST /v1/billing/meter_events. An identifier is unique for
// at least 24 hours.
func meterEventCreate(x *exec) (object, *failure) {
	name, identifier := x.need("event_name"), x.p.str("identifier")
	payload := object{}
	for k, v := range x.p.sub("payload") {
		if s, ok := v.(string); ok {
			payload[k] = s
		}
	}
	if len(payload) == 0 {
		x.bad(missing("payload"))
	}
	at, given := x.number("timestamp")
	if !given {
		at = x.now()
	}
	if len(identifier) > 100 {
		x.bad(invalid("identifier", "identifier has more than 100 characters."))
	}
	if x.err != nil {
		return nil, x.err
	}
	if identifier == "" {
		identifier = "mevt_" + x.tx.Token(24, base62)
	}
	if first, seen := x.s.meters[identifier]; seen && x.now()-first < 24*3600 {
		f := guard("resource_already_exists", "A meter event with this identifier exists already.")
		f.param = "identifier"
		return nil, f
	}
	x.s.meters[identifier] = x.now()
	x.d.objects++
	return object{"object": "billing.meter_event", "created": x.now(), "event_name": name, "identifier": identifier,
		"livemode": x.live, "payload": payload, "timestamp": at}, nil
}
