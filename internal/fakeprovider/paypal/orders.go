package paypal

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// order is an order of Orders v2.
type order struct {
	id, intent, status string
	units              []*unit
	source             object // payment_source as PayPal shows it
	payer              object
	outcome            string // what its payments end in; "" is success
	created, updated   time.Time
}

// unit is a purchase unit with its payments.
type unit struct {
	fields         object // as they came
	reference      string
	amount         money
	authorizations []*authorization
	captures       []*capture
	refunds        []*refund
}

const (
	maxUnits  = 10  // purchase units of an order
	maxMark   = 127 // length of custom_id and invoice_id
	maxText   = 255
	maxSource = 36
)

// createOrder is POST /v2/checkout/orders. With a payment source that needs no
// payer (a card, a vaulted one) the order is paid at once.
func createOrder(x *exec) (reply, *failure) {
	b := x.body()
	o := &order{intent: b.need("intent", maxText), status: "CREATED", created: x.tx.Now, updated: x.tx.Now}
	if o.intent != "" && o.intent != "CAPTURE" && o.intent != "AUTHORIZE" {
		b.bad("INVALID_PARAMETER_VALUE", "intent", "The intent must be CAPTURE or AUTHORIZE.")
	}
	for _, f := range b.list("purchase_units", maxUnits) {
		o.units = append(o.units, readUnit(f))
	}
	if x.err == nil {
		uniqueReferences(x, o.units)
	}
	source := b.sub("payment_source")
	if x.err != nil {
		return reply{}, x.err
	}
	if source.o != nil && x.call.Key == "" {
		return reply{}, issue("PAYPAL_REQUEST_ID_REQUIRED", "PayPal-Request-Id",
			"An order with a payment_source needs a PayPal-Request-Id.")
	}
	direct := false
	if source.o != nil {
		if direct = x.readSource(o, source); x.err != nil {
			return reply{}, x.err
		}
		if o.status = "PAYER_ACTION_REQUIRED"; direct {
			o.outcome = x.mock
			if f := x.payable(o); f != nil {
				return reply{}, f
			}
		}
	}
	o.id = paymentID(x.tx)
	x.s.orders[o.id] = o
	if !direct || x.pay(o) {
		x.tx.Effect(o.id)
	}
	return reply{id: o.id}, nil
}

func readUnit(f fields) *unit {
	u := &unit{fields: maps.Clone(f.o), reference: f.text("reference_id", 256)}
	if u.reference == "" {
		u.reference = "default"
	}
	u.fields["reference_id"] = u.reference
	var given bool
	if u.amount, given = f.amount("amount", "currency_code"); !given {
		f.bad("MISSING_REQUIRED_PARAMETER", "amount", "A purchase unit needs an amount.")
	}
	f.text("custom_id", maxMark)
	f.text("invoice_id", maxMark)
	return u
}

func uniqueReferences(x *exec, units []*unit) {
	seen := map[string]bool{}
	for i, u := range units {
		if seen[u.reference] {
			x.bad("DUPLICATE_REFERENCE_ID", "/purchase_units/"+itoa(i)+"/reference_id", "Each purchase unit needs its own reference_id.")
		}
		seen[u.reference] = true
	}
}

// readSource sets what PayPal shows of a payment source. It keeps no card
// number. It reports whether the source pays without the payer.
func (x *exec) readSource(o *order, source fields) (direct bool) {
	if len(source.o) != 1 {
		x.bad("INVALID_PARAMETER_VALUE", source.path, "A payment_source names one way to pay.")
		return false
	}
	for kind := range source.o {
		if len(kind) > maxSource {
			x.bad("INVALID_PARAMETER_VALUE", source.path, "The way to pay is unknown.")
			return false
		}
		o.source, direct = shownSource(kind, source.sub(kind))
	}
	return direct
}

// shownSource returns what PayPal shows of a payment source and whether it pays
// without the payer.
func shownSource(kind string, f fields) (shown object, direct bool) {
	s := object{}
	direct = kind == "card" || kind == "token" || f.has("vault_id") || f.has("billing_agreement_id")
	for _, name := range []string{"name", "email_address", "vault_id", "id", "type"} {
		if v, ok := f.o[name]; ok && v != nil {
			s[name] = v
		}
	}
	if number := f.text("number", 19); kind == "card" && number != "" {
		s["last_digits"] = number[max(0, len(number)-4):]
	}
	return object{kind: s}, direct
}

func getOrder(x *exec) (reply, *failure) {
	_, f := x.order()
	return reply{id: x.ids[0]}, f
}

// order returns the order that the path names.
func (x *exec) order() (*order, *failure) {
	o := x.s.orders[x.ids[0]]
	if o == nil {
		return nil, notFound("id")
	}
	return o, nil
}

// confirmPaymentSource is POST …/confirm-payment-source. It takes no request id.
func confirmPaymentSource(x *exec) (reply, *failure) {
	o, f := x.order()
	if f != nil {
		return reply{}, f
	}
	next := *o
	source := x.body().sub("payment_source")
	if source.o == nil {
		x.bad("MISSING_REQUIRED_PARAMETER", "/payment_source", "The payment_source is missing.")
		return reply{}, x.err
	}
	direct := x.readSource(&next, source)
	switch {
	case x.err != nil:
		return reply{}, x.err
	case o.status == "COMPLETED" && o.intent == "CAPTURE":
		return reply{}, refused("ORDER_ALREADY_CAPTURED", "The order is already captured.")
	case o.status == "COMPLETED":
		return reply{}, refused("ORDER_ALREADY_AUTHORIZED", "The order is already authorized.")
	case direct:
		next.status = "APPROVED"
	default:
		next.status = "PAYER_ACTION_REQUIRED"
	}
	if next.status != o.status || !reflect.DeepEqual(next.source, o.source) {
		next.updated = x.tx.Now
		*o = next
		x.tx.Effect(o.id)
	}
	return reply{id: o.id}, nil
}

// patchOrder is PATCH /v2/checkout/orders/{id}. It takes no request id. All its
// operations happen, or none.
func patchOrder(x *exec) (reply, *failure) {
	o, f := x.order()
	if f != nil {
		return reply{}, f
	}
	if o.status == "COMPLETED" || o.status == "VOIDED" {
		return reply{}, refused("ORDER_ALREADY_COMPLETED", "A completed order cannot be patched.")
	}
	list, _ := x.json.([]any)
	if len(list) == 0 {
		x.bad("MISSING_REQUIRED_PARAMETER", "/", "The body must be a list of patches.")
		return reply{}, x.err
	}
	next := *o
	next.units = make([]*unit, len(o.units))
	for i, u := range o.units {
		c := *u
		c.fields = maps.Clone(u.fields)
		next.units[i] = &c
	}
	for i, p := range list {
		patch, _ := p.(object)
		x.patch(&next, fields{x: x, o: patch, path: "/" + itoa(i)})
	}
	if x.err != nil {
		return reply{}, x.err
	}
	if !reflect.DeepEqual(*o, next) {
		next.updated = x.tx.Now
		*o = next
		x.tx.Effect(o.id)
	}
	return reply{id: o.id, status: http.StatusNoContent}, nil
}

// patch carries out one patch on a copy of the order.
func (x *exec) patch(o *order, p fields) {
	op := p.oneOf("op", "replace", "add", "remove")
	path := p.need("path", maxText)
	value, given := p.o["value"]
	if op != "remove" && !given {
		p.bad("MISSING_REQUIRED_PARAMETER", "value", "The value is missing.")
		return
	}
	if path == "/intent" && op == "replace" {
		intent, _ := value.(string)
		if intent != "CAPTURE" && intent != "AUTHORIZE" {
			p.bad("INVALID_PARAMETER_VALUE", "value", "The intent must be CAPTURE or AUTHORIZE.")
			return
		}
		o.intent = intent
		return
	}
	rest, found := strings.CutPrefix(path, "/purchase_units/@reference_id=='")
	reference, member, quoted := strings.Cut(rest, "'/")
	if !found || !quoted || !patchable(member, op) {
		p.bad("NOT_PATCHABLE", "path", "This cannot be patched.")
		return
	}
	i := slices.IndexFunc(o.units, func(u *unit) bool { return u.reference == reference })
	if i < 0 {
		p.bad("INVALID_PATCH_OPERATION", "path", "No purchase unit has this reference_id.")
		return
	}
	u := o.units[i]
	if op == "remove" {
		delete(u.fields, member)
		return
	}
	at := fields{x: x, o: object{member: value}, path: p.path + "/value"}
	switch member {
	case "amount":
		u.amount, _ = at.amount(member, "currency_code")
	case "custom_id", "invoice_id":
		at.need(member, maxMark)
	}
	u.fields[member] = value
}

// patchable says which members of a purchase unit can change, and how.
func patchable(member, op string) bool {
	switch member {
	case "amount":
		return op == "replace"
	case "custom_id", "invoice_id", "description", "soft_descriptor", "items", "shipping":
		return true
	}
	return false
}

// viewOrder shows an order. The minimal answer has the payments, once there are
// any, as PayPal's sample answers do.
func viewOrder(x *exec, id string) object {
	o := x.s.orders[id]
	v := object{"id": o.id, "status": o.status, "links": x.orderLinks(o)}
	if o.source != nil {
		v["payment_source"] = o.source
	}
	if o.payer != nil {
		v["payer"] = o.payer
	}
	if x.full {
		v["intent"], v["create_time"], v["update_time"] = o.intent, stamp(o.created), stamp(o.updated)
	}
	units, paid := make([]object, len(o.units)), false
	for i, u := range o.units {
		units[i] = object{"reference_id": u.reference}
		if x.full {
			units[i] = maps.Clone(u.fields)
			if units[i]["payee"] == nil {
				units[i]["payee"] = object{"merchant_id": x.cfg.MerchantID}
			}
		}
		if p := x.payments(u); p != nil {
			units[i]["payments"], paid = p, true
		}
	}
	if x.full || paid {
		v["purchase_units"] = units
	}
	return v
}

// payments shows what a purchase unit was paid with, or nil.
func (x *exec) payments(u *unit) object {
	p := object{}
	if len(u.authorizations) > 0 {
		p["authorizations"] = shown(u.authorizations, x.showAuthorization)
	}
	if len(u.captures) > 0 {
		p["captures"] = shown(u.captures, x.showCapture)
	}
	if len(u.refunds) > 0 {
		p["refunds"] = shown(u.refunds, x.showRefund)
	}
	if len(p) == 0 {
		return nil
	}
	return p
}

func shown[T any](list []T, show func(T) object) []object {
	out := make([]object, len(list))
	for i, v := range list {
		out[i] = show(v)
	}
	return out
}

func (x *exec) orderLinks(o *order) []object {
	path := "/v2/checkout/orders/" + o.id
	links := []object{x.link(path, "self", "GET")}
	act := strings.ToLower(o.intent)
	switch o.status {
	case "CREATED":
		links = append(links, x.link("/checkoutnow?token="+o.id, "approve", "GET"))
	case "PAYER_ACTION_REQUIRED":
		links = append(links, x.link("/checkoutnow?token="+o.id, "payer-action", "GET"))
	}
	if o.status != "COMPLETED" {
		links = append(links, x.link(path, "update", "PATCH"), x.link(path+"/"+act, act, "POST"))
	}
	return links
}

// approve is what a payer does at PayPal.
func (o *order) approve(tx *fakeprovider.Tx) {
	o.status, o.updated = "APPROVED", tx.Now
	o.payer = object{"payer_id": tx.Token(13, upperDigits), "email_address": "payer@example.com",
		"name": object{"given_name": "Pat", "surname": "Payer"}, "address": object{"country_code": "US"}}
	if o.source == nil {
		o.source = object{"paypal": object{"email_address": "payer@example.com"}}
	}
}
