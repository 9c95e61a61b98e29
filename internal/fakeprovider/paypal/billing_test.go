package paypal_test

import (
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

const subscriptions = "/v1/billing/subscriptions"

func TestSubscriptionLife(t *testing.T) {
	a := open(t, paypal.Config{})
	product := a.post("/v1/catalogs/products", "p", m{"name": "News", "type": "SERVICE"}).want(201).text("id")
	plan := a.post("/v1/billing/plans", "p", m{"product_id": product, "name": "Monthly", "status": "",
		"billing_cycles": []m{{"sequence": 1}}}).want(201).says("status", "ACTIVE").text("id")
	created := a.post(subscriptions, "s", m{"plan_id": plan, "custom_id": "mark"}).want(201).
		says("status", "APPROVAL_PENDING").says("custom_id", "mark")
	id := created.text("id")
	if !strings.HasPrefix(id, "I-") || created.link("approve") == "" {
		t.Errorf("the subscription is %s", created.raw)
	}
	path := subscriptions + "/" + id
	for _, act := range []string{"activate", "suspend", "cancel"} {
		a.post(path+"/"+act, "", m{"reason": "r"}).want(422, "SUBSCRIPTION_STATUS_INVALID")
	}
	a.seed(paypal.Approval{ID: id})
	a.get(path).want(200).says("status", "ACTIVE")
	a.post(path+"/suspend", "k", m{"reason": "holiday"}).want(204)
	a.get(path).says("status", "SUSPENDED").says("status_change_note", "holiday")
	// These calls take no request id: the state machine alone stops a resend.
	a.post(path+"/suspend", "k", m{"reason": "holiday"}).want(422, "SUBSCRIPTION_STATUS_INVALID")
	a.post(path+"/activate", "", nil).want(204)
	a.post(path+"/cancel", "", m{"reason": "done"}).want(204)
	a.post(path+"/cancel", "", m{"reason": "done"}).want(422, "SUBSCRIPTION_STATUS_INVALID")
	a.get(path).says("status", "CANCELLED")
	for _, act := range []string{"activate", "suspend", "cancel"} {
		a.effects("subscription."+act, 1)
		a.post(subscriptions+"/NONE/"+act, "", nil).want(404)
	}
	a.get(subscriptions + "/NONE").want(404)
}

func TestSubscriptionList(t *testing.T) {
	a := open(t, paypal.Config{})
	plan, other := a.seed(paypal.ActivePlan{}), a.seed(paypal.ActivePlan{Name: "Other"})
	one := a.seed(paypal.ActiveSubscription{PlanID: plan, CustomID: "one"})
	a.f.Advance(hour)
	two := a.seed(paypal.ActiveSubscription{PlanID: plan, Status: "SUSPENDED"})
	a.seed(paypal.ActiveSubscription{PlanID: other})
	got := a.get(subscriptions+"?plan_ids="+plan).want(200).says("subscriptions/0/id", two).
		says("subscriptions/1/id", one).says("subscriptions/1/custom_id", "one")
	if got.at("total_items") != 2.0 {
		t.Errorf("total_items is %v, want 2", got.at("total_items"))
	}
	a.get(subscriptions+"?plan_ids="+plan+"&statuses=ACTIVE,CANCELLED").says("subscriptions/0/id", one)
	a.get(subscriptions+"?plan_ids="+plan+"&created_after=2026-11-30T12:30:00Z").says("subscriptions/0/id", two)
	a.get(subscriptions+"?plan_ids="+plan+"&created_before=2026-11-30T12:30:00Z").says("subscriptions/0/id", one)
	page := a.get(subscriptions+"?plan_ids="+plan+"&page_size=1&page=2").says("subscriptions/0/id", one)
	if page.at("total_pages") != 2.0 || len(page.list("subscriptions")) != 1 {
		t.Errorf("the second page is %s", page.raw)
	}
	a.get(subscriptions + "?page=9").want(200)
	for _, bad := range []string{"page=x", "page=-1", "page_size=1000", "created_after=yesterday"} {
		a.get(subscriptions + "?" + bad).want(400)
	}
}

func TestProductsAndPlans(t *testing.T) {
	a := open(t, paypal.Config{})
	a.post("/v1/catalogs/products", "", m{"id": "P-own", "name": "N", "type": "DIGITAL"}).want(201).says("id", "P-own")
	a.post("/v1/catalogs/products", "", m{"id": "P-own", "name": "N", "type": "DIGITAL"}).want(422, "DUPLICATE_RESOURCE_IDENTIFIER")
	a.post("/v1/catalogs/products", "", m{"name": "N"}).want(400, "MISSING_REQUIRED_PARAMETER")
	a.post("/v1/catalogs/products", "", m{"name": "N", "type": "GAS"}).want(400, "INVALID_PARAMETER_VALUE")
	a.get("/v1/catalogs/products/P-own").want(200).says("type", "DIGITAL")
	a.get("/v1/catalogs/products?page=0&page_size=5").want(200).says("products/0/id", "P-own")
	plan := m{"product_id": "P-own", "name": "N", "billing_cycles": []m{{"sequence": 1}}}
	id := a.post("/v1/billing/plans", "", plan).want(201).text("id")
	a.get("/v1/billing/plans/"+id).want(200).says("product_id", "P-own")
	a.get("/v1/billing/plans?product_id=P-own&plan_ids="+id).want(200).says("plans/0/id", id)
	if got := a.get("/v1/billing/plans?product_id=other"); len(got.list("plans")) != 0 {
		t.Errorf("another product has plans: %s", got.raw)
	}
	plan["product_id"] = "NONE"
	a.post("/v1/billing/plans", "", plan).want(404, "RESOURCE_NOT_FOUND")
	a.post("/v1/billing/plans", "", m{"product_id": "P-own", "name": "N"}).want(400)
	a.post(subscriptions, "", m{"plan_id": "NONE"}).want(404, "RESOURCE_NOT_FOUND")
	a.post(subscriptions, "", m{"plan_id": id, "start_time": "soon"}).want(400)
	direct := a.post(subscriptions, "", m{"plan_id": id, "subscriber": m{"email_address": "a@example.com",
		"payment_source": m{"card": m{"number": "4111111111111111"}}}}).want(201).says("status", "ACTIVE")
	if strings.Contains(direct.raw, "4111") {
		t.Error("a card number came back")
	}
}
