package paypal

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// add keeps a new record with the given id.
func (x *exec) add(index map[string]*record, list *[]*record, r *record) *record {
	r.created, r.updated = x.tx.Now, x.tx.Now
	index[r.id] = r
	if list != nil {
		*list = append(*list, r)
	}
	return r
}

// show gives a record back with its id, status and times.
func (r *record) show(links ...object) object {
	v := maps.Clone(r.fields)
	v["id"], v["create_time"], v["update_time"], v["links"] = r.id, stamp(r.created), stamp(r.updated), links
	if r.status != "" {
		v["status"] = r.status
	}
	return v
}

// one answers a GET of a record.
func (x *exec) one(index map[string]*record) (reply, *failure) {
	if index[x.ids[0]] == nil {
		return reply{}, notFound("id")
	}
	return reply{id: x.ids[0]}, nil
}

// createProduct is POST /v1/catalogs/products. The caller may choose the id.
func createProduct(x *exec) (reply, *failure) {
	b := x.body()
	b.need("name", 127)
	b.oneOf("type", "PHYSICAL", "DIGITAL", "SERVICE")
	if !b.has("type") {
		b.bad("MISSING_REQUIRED_PARAMETER", "type", "A product needs a type.")
	}
	id := b.text("id", 50)
	if x.err != nil {
		return reply{}, x.err
	}
	if x.s.products[id] != nil {
		return reply{}, refused("DUPLICATE_RESOURCE_IDENTIFIER", "Another product has this id.")
	}
	if id == "" {
		id = "PROD-" + x.tx.Token(17, upperDigits)
	}
	x.add(x.s.products, &x.s.productList, &record{id: id, fields: b.o})
	x.tx.Effect(id)
	return reply{id: id}, nil
}

func getProduct(x *exec) (reply, *failure) { return x.one(x.s.products) }

func viewProduct(x *exec, id string) object { return showProduct(x, x.s.products[id]) }

func showProduct(x *exec, r *record) object {
	return r.show(x.link("/v1/catalogs/products/"+r.id, "self", "GET"))
}

func listProducts(x *exec) (reply, *failure) {
	return x.page("products", x.s.productList, showProduct, 10)
}

// createPlan is POST /v1/billing/plans.
func createPlan(x *exec) (reply, *failure) {
	b := x.body()
	product := b.need("product_id", 50)
	b.need("name", 127)
	b.list("billing_cycles", 12)
	status := b.oneOf("status", "ACTIVE", "CREATED", "INACTIVE")
	if x.err != nil {
		return reply{}, x.err
	}
	if x.s.products[product] == nil {
		return reply{}, notFound("/product_id")
	}
	id := "P-" + x.tx.Token(24, upperDigits)
	x.add(x.s.plans, &x.s.planList, &record{id: id, status: status, fields: b.o})
	x.tx.Effect(id)
	x.publish("BILLING.PLAN.CREATED", viewPlan(x, id))
	return reply{id: id}, nil
}

func getPlan(x *exec) (reply, *failure) { return x.one(x.s.plans) }

func viewPlan(x *exec, id string) object { return showPlan(x, x.s.plans[id]) }

func showPlan(x *exec, r *record) object {
	return r.show(x.link("/v1/billing/plans/"+r.id, "self", "GET"))
}

// listPlans filters by product_id and plan_ids.
func listPlans(x *exec) (reply, *failure) {
	product, ids := x.query.Get("product_id"), x.among("plan_ids")
	list := slices.DeleteFunc(slices.Clone(x.s.planList), func(r *record) bool {
		return (product != "" && text(r.fields, "product_id") != product) || !ids(r.id)
	})
	return x.page("plans", list, showPlan, 10)
}

// among reports whether a value is in a comma-separated query parameter; all
// are where the parameter is not given.
func (x *exec) among(name string) func(string) bool {
	given := x.query.Get(name)
	list := strings.Split(given, ",")
	return func(s string) bool { return given == "" || slices.Contains(list, s) }
}

// createSubscription is POST /v1/billing/subscriptions. It waits for its payer,
// unless the subscriber comes with a way to pay.
func createSubscription(x *exec) (reply, *failure) {
	b := x.body()
	plan := b.need("plan_id", 50)
	b.text("custom_id", maxMark)
	subscriber := b.sub("subscriber")
	source := subscriber.sub("payment_source")
	if start := b.text("start_time", 64); start != "" {
		if _, err := time.Parse(time.RFC3339, start); err != nil {
			b.bad("INVALID_PARAMETER_SYNTAX", "start_time", "The time must be as in RFC 3339.")
		}
	}
	if x.err != nil {
		return reply{}, x.err
	}
	if x.s.plans[plan] == nil {
		return reply{}, notFound("/plan_id")
	}
	r := &record{id: subscriptionID(x), status: "APPROVAL_PENDING", fields: maps.Clone(b.o)}
	if subscriber.o != nil {
		shown := maps.Clone(subscriber.o)
		delete(shown, "payment_source") // it may hold a card number
		r.fields["subscriber"] = shown
	}
	if _, given := r.fields["start_time"]; !given {
		r.fields["start_time"] = stamp(x.tx.Now)
	}
	if source.o != nil {
		r.status = "ACTIVE"
	}
	x.add(x.s.subscriptions, &x.s.subscriptionList, r)
	x.tx.Effect(r.id)
	x.publish("BILLING.SUBSCRIPTION.CREATED", showSubscription(x, r))
	return reply{id: r.id}, nil
}

func subscriptionID(x *exec) string { return "I-" + x.tx.Token(12, upperDigits) }

func getSubscription(x *exec) (reply, *failure) { return x.one(x.s.subscriptions) }

func viewSubscription(x *exec, id string) object {
	v := showSubscription(x, x.s.subscriptions[id])
	if x.full {
		return v
	}
	return object{"id": v["id"], "status": v["status"], "create_time": v["create_time"], "links": v["links"]}
}

func showSubscription(x *exec, r *record) object {
	path := "/v1/billing/subscriptions/" + r.id
	links := []object{x.link(path, "self", "GET")}
	switch r.status {
	case "APPROVAL_PENDING":
		links = append(links, x.link("/webapps/billing/subscriptions?ba_token="+r.id, "approve", "GET"))
	case "ACTIVE":
		links = append(links, x.link(path+"/cancel", "cancel", "POST"), x.link(path+"/suspend", "suspend", "POST"))
	case "SUSPENDED":
		links = append(links, x.link(path+"/cancel", "cancel", "POST"), x.link(path+"/activate", "activate", "POST"))
	}
	v := r.show(links...)
	v["status_update_time"] = stamp(r.updated)
	return v
}

// listSubscriptions filters by plan_ids, statuses, created_after and
// created_before; the newest comes first.
func listSubscriptions(x *exec) (reply, *failure) {
	plans, statuses := x.among("plan_ids"), x.among("statuses")
	after, before := x.queryTime("created_after"), x.queryTime("created_before")
	if x.err != nil {
		return reply{}, x.err
	}
	list := slices.DeleteFunc(slices.Clone(x.s.subscriptionList), func(r *record) bool {
		return !plans(text(r.fields, "plan_id")) || !statuses(r.status) ||
			(!after.IsZero() && r.created.Before(after)) || (!before.IsZero() && r.created.After(before))
	})
	slices.Reverse(list)
	return x.page("subscriptions", list, showSubscription, 10)
}

func activateSubscription(x *exec) (reply, *failure) {
	return x.moveSubscription("ACTIVE", "BILLING.SUBSCRIPTION.ACTIVATED", "SUSPENDED", "APPROVED")
}

func suspendSubscription(x *exec) (reply, *failure) {
	return x.moveSubscription("SUSPENDED", "BILLING.SUBSCRIPTION.SUSPENDED", "ACTIVE")
}

func cancelSubscription(x *exec) (reply, *failure) {
	return x.moveSubscription("CANCELLED", "BILLING.SUBSCRIPTION.CANCELLED", "ACTIVE", "SUSPENDED")
}

// moveSubscription changes a status. These calls take no request id: only the
// state machine keeps a resend from happening twice.
func (x *exec) moveSubscription(to, event string, from ...string) (reply, *failure) {
	r := x.s.subscriptions[x.ids[0]]
	if r == nil {
		return reply{}, notFound("id")
	}
	note := x.body().text("reason", 128)
	if x.err != nil {
		return reply{}, x.err
	}
	if !slices.Contains(from, r.status) {
		return reply{}, refused("SUBSCRIPTION_STATUS_INVALID", "The subscription's status does not allow this.")
	}
	r.status, r.updated = to, x.tx.Now
	r.fields = maps.Clone(r.fields)
	put(r.fields, "status_change_note", note)
	x.tx.Effect(r.id)
	x.publish(event, showSubscription(x, r))
	return reply{id: r.id}, nil
}
