package paypal

import (
	"maps"
	"slices"
)

// createSetupToken is POST /v3/vault/setup-tokens. A wallet waits for its
// payer; a card is approved at once.
func createSetupToken(x *exec) (reply, *failure) {
	b := x.body()
	shown, direct := x.vaultSource(b)
	customer := x.customer(b, nil)
	if x.err != nil {
		return reply{}, x.err
	}
	r := &record{id: paymentID(x.tx), status: "PAYER_ACTION_REQUIRED", fields: object{"payment_source": shown, "customer": customer()}}
	if direct {
		r.status = "APPROVED"
	}
	x.add(x.s.setupTokens, nil, r)
	x.tx.Effect(r.id)
	return reply{id: r.id}, nil
}

// vaultSource reads a payment source that is to be kept. No card number stays.
func (x *exec) vaultSource(b fields) (shown object, direct bool) {
	source := b.sub("payment_source")
	switch {
	case x.err != nil:
	case source.o == nil:
		b.bad("MISSING_REQUIRED_PARAMETER", "payment_source", "The payment_source is missing.")
	default:
		var o order
		direct = x.readSource(&o, source)
		return o.source, direct
	}
	return nil, false
}

// customer returns what makes the customer of a token: the one in the body, the
// given one, or a new one. Nothing is drawn before the rest is checked.
func (x *exec) customer(b fields, known object) func() object {
	given := b.sub("customer")
	id := given.text("id", 36)
	given.text("merchant_customer_id", 64)
	return func() object {
		if given.o == nil && known != nil {
			return known
		}
		o := object{}
		maps.Copy(o, given.o)
		if id == "" {
			o["id"] = x.tx.Token(10, base62)
		}
		return o
	}
}

// createPaymentToken is POST /v3/vault/payment-tokens: of an approved setup
// token, or of a card.
func createPaymentToken(x *exec) (reply, *failure) {
	b := x.body()
	shown, _ := x.vaultSource(b)
	var known object
	var setup *record
	if t, ok := shown["token"].(object); ok && x.err == nil {
		setup = x.s.setupTokens[text(t, "id")]
		switch {
		case text(t, "type") != "SETUP_TOKEN":
			x.bad("INVALID_PARAMETER_VALUE", "/payment_source/token/type", "The type must be SETUP_TOKEN.")
		case setup == nil:
			return reply{}, notFound("/payment_source/token/id")
		case setup.status != "APPROVED" && setup.status != "VAULTED": // PayPal does not say that it is used up
			return reply{}, refused("SETUP_TOKEN_NOT_APPROVED", "The payer has not approved the setup token.")
		default:
			shown, _ = setup.fields["payment_source"].(object)
			known, _ = setup.fields["customer"].(object)
		}
	}
	customer := x.customer(b, known)
	if x.err != nil {
		return reply{}, x.err
	}
	r := &record{id: x.tx.Token(8, lowerDigits), fields: object{"payment_source": shown, "customer": customer()}}
	x.add(x.s.paymentTokens, &x.s.paymentTokenList, r)
	if setup != nil {
		setup.status, setup.updated = "VAULTED", x.tx.Now
	}
	x.tx.Effect(r.id)
	x.publish("VAULT.PAYMENT-TOKEN.CREATED", showPaymentToken(x, r))
	return reply{id: r.id}, nil
}

func getSetupToken(x *exec) (reply, *failure) { return x.one(x.s.setupTokens) }

func getPaymentToken(x *exec) (reply, *failure) { return x.one(x.s.paymentTokens) }

func viewSetupToken(x *exec, id string) object {
	r := x.s.setupTokens[id]
	links := []object{x.link("/v3/vault/setup-tokens/"+id, "self", "GET")}
	if r.status == "PAYER_ACTION_REQUIRED" {
		links = append(links, x.link("/agreements/approve?approval_session_id="+id, "approve", "GET"))
	} else {
		links = append(links, x.link("/v3/vault/payment-tokens", "confirm", "POST"))
	}
	return r.show(links...)
}

func viewPaymentToken(x *exec, id string) object { return showPaymentToken(x, x.s.paymentTokens[id]) }

func showPaymentToken(x *exec, r *record) object {
	return r.show(x.link("/v3/vault/payment-tokens/"+r.id, "self", "GET"))
}

// listPaymentTokens needs a customer_id.
func listPaymentTokens(x *exec) (reply, *failure) {
	id := x.query.Get("customer_id")
	if id == "" {
		x.bad("MISSING_REQUIRED_PARAMETER", "customer_id", "The customer_id is missing.")
		return reply{}, x.err
	}
	list := slices.DeleteFunc(slices.Clone(x.s.paymentTokenList), func(r *record) bool {
		customer, _ := r.fields["customer"].(object)
		return text(customer, "id") != id
	})
	out, f := x.page("payment_tokens", list, showPaymentToken, 5)
	if f == nil {
		out.body["customer"] = object{"id": id}
	}
	return out, f
}
