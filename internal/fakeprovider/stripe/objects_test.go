package stripe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// operation is one way to have one effect.
type operation struct {
	op, method, path, body string
}

// operations returns every keyed operation that the SDK's table has, with
// objects in the states that they need.
func operations(a *api) []operation {
	pi := func(status string) string { return a.seed(stripe.PaymentIntent{Status: status}) }
	invoice := func(status string) string { return a.seed(stripe.Invoice{Status: status}) }
	customer, charge := a.seed(stripe.Customer{}), a.seed(stripe.Charge{})
	line := "line_items[0][price]=price_1&line_items[0][quantity]=1"
	return []operation{
		{"payment_intent.create", "POST", "/v1/payment_intents", "amount=1000&currency=eur&metadata[samekey_command]=m"},
		{"payment_intent.confirm", "POST", "/v1/payment_intents/" + pi("") + "/confirm", "payment_method=pm_card_visa"},
		{"payment_intent.capture", "POST", "/v1/payment_intents/" + pi("requires_capture") + "/capture", ""},
		{"payment_intent.cancel", "POST", "/v1/payment_intents/" + pi("") + "/cancel", ""},
		{"refund.create", "POST", "/v1/refunds", "charge=" + charge},
		{"setup_intent.create", "POST", "/v1/setup_intents", "customer=" + customer},
		{"setup_intent.confirm", "POST", "/v1/setup_intents/" + a.seed(stripe.SetupIntent{}) + "/confirm", ""},
		{"setup_intent.cancel", "POST", "/v1/setup_intents/" + a.seed(stripe.SetupIntent{}) + "/cancel", ""},
		{"customer.create", "POST", "/v1/customers", "email=a@example.com"},
		{"checkout_session.create", "POST", "/v1/checkout/sessions", "mode=payment&success_url=https://example.com&" + line},
		{"checkout_session.expire", "POST", "/v1/checkout/sessions/" + a.seed(stripe.CheckoutSession{}) + "/expire", ""},
		{"subscription.create", "POST", "/v1/subscriptions", "customer=" + customer + "&items[0][price]=price_1"},
		{"subscription.update", "POST", "/v1/subscriptions/" + a.seed(stripe.Subscription{}), "metadata[a]=b"},
		{"subscription.cancel", "DELETE", "/v1/subscriptions/" + a.seed(stripe.Subscription{}), ""},
		{"invoice.create", "POST", "/v1/invoices", "customer=" + customer},
		{"invoice.finalize", "POST", "/v1/invoices/" + invoice("draft") + "/finalize", ""},
		{"invoice.pay", "POST", "/v1/invoices/" + invoice("open") + "/pay", ""},
		{"invoice.void", "POST", "/v1/invoices/" + invoice("open") + "/void", ""},
		{"invoice.send", "POST", "/v1/invoices/" + invoice("open") + "/send", ""},
		{"invoice_item.create", "POST", "/v1/invoiceitems", "customer=" + customer + "&amount=5&currency=eur"},
		{"transfer.create", "POST", "/v1/transfers", "amount=5&currency=eur&destination=acct_1"},
		{"transfer_reversal.create", "POST", "/v1/transfers/" + a.seed(stripe.Transfer{}) + "/reversals", "amount=5"},
		{"payout.create", "POST", "/v1/payouts", "amount=5&currency=eur"},
		{"payout.cancel", "POST", "/v1/payouts/" + a.seed(stripe.Payout{}) + "/cancel", ""},
		{"payout.reverse", "POST", "/v1/payouts/" + a.seed(stripe.Payout{Paid: true}) + "/reverse", ""},
		{"customer_balance_transaction.create", "POST", "/v1/customers/" + customer + "/balance_transactions", "amount=-5&currency=eur"},
		{"credit_note.create", "POST", "/v1/credit_notes", "invoice=" + invoice("paid") + "&amount=5"},
		{"meter_event.create", "POST", "/v1/billing/meter_events", "event_name=e&payload[value]=1&identifier=i1"},
		{"v2.account.create", "POST", "/v2/core/accounts", `{"display_name":"x"}`},
		{"v2.account.update", "POST", "/v2/core/accounts/" + a.seed(stripe.Account{}), `{"display_name":"y"}`},
		{"v2.event_destination.create", "POST", "/v2/core/event_destinations", destination},
		{"v2.event_destination.update", "POST", "/v2/core/event_destinations/" + a.seed(stripe.EventDestination{}), `{"name":"z"}`},
		{"v2.event_destination.delete", "DELETE", "/v2/core/event_destinations/" + a.seed(stripe.EventDestination{}), ""},
	}
}

// Every operation has one effect under its name, and none when repeated.
func TestEveryOperation(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	a.effects("", 0) // seeding counts nothing
	for _, op := range operations(a) {
		t.Run(op.op, func(t *testing.T) {
			b := &api{t, a.fake}
			b.call(op.method, op.path, op.body, key("key "+op.op)).ok()
			b.effects(op.op, 1)
			again := b.call(op.method, op.path, op.body, key("key "+op.op))
			if op.op != "subscription.cancel" { // DELETE in v1 takes no key
				again.ok()
			}
			b.effects(op.op, 1)
			if got := a.fake.EffectsOfKey("key " + op.op); op.op != "subscription.cancel" && got != 1 {
				t.Errorf("effects of the key = %d, want 1", got)
			}
		})
	}
	if got := a.fake.Report().Duplicates; got != 0 {
		t.Errorf("duplicates = %d", got)
	}
}

// The state machines refuse what was done already; a refusal has no effect, and
// v1 stores it.
func TestGuards(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	charge := a.seed(stripe.Charge{Amount: 1000})
	a.post("/v1/refunds", "amount=900&charge="+charge).ok()
	before := a.fake.Effects("")
	done := a.seed(stripe.PaymentIntent{Status: "succeeded"})
	session := a.seed(stripe.CheckoutSession{})
	a.post("/v1/checkout/sessions/"+session+"/expire", "").ok()
	setup := a.seed(stripe.SetupIntent{})
	a.post("/v1/setup_intents/"+setup+"/confirm", "").ok()
	a.post("/v1/billing/meter_events", "event_name=e&payload[value]=1&identifier=same").ok()
	before += 3
	for _, c := range []struct{ path, body, code string }{
		{"/v1/refunds", "amount=101&charge=" + charge, ""},
		{"/v1/refunds", "payment_intent=" + a.seed(stripe.PaymentIntent{}), "charge_not_refundable"},
		{"/v1/payment_intents/" + done + "/confirm", "payment_method=pm_card_visa", "payment_intent_unexpected_state"},
		{"/v1/payment_intents/" + done + "/capture", "", "payment_intent_unexpected_state"},
		{"/v1/payment_intents/" + done + "/cancel", "", "payment_intent_unexpected_state"},
		{"/v1/payment_intents/" + a.seed(stripe.PaymentIntent{Status: "requires_payment_method"}) + "/confirm", "", "payment_intent_unexpected_state"},
		{"/v1/payment_intents/" + a.seed(stripe.PaymentIntent{Status: "requires_capture", Amount: 5}) + "/capture", "amount_to_capture=6", "amount_too_large"},
		{"/v1/charges/" + charge + "/capture", "", "charge_already_captured"},
		{"/v1/setup_intents/" + setup + "/cancel", "", "setup_intent_unexpected_state"},
		{"/v1/checkout/sessions/" + session + "/expire", "", ""},
		{"/v1/invoices/" + a.seed(stripe.Invoice{Status: "paid"}) + "/pay", "", ""},
		{"/v1/invoices/" + a.seed(stripe.Invoice{Status: "open"}) + "/finalize", "", ""},
		{"/v1/invoices/" + a.seed(stripe.Invoice{Status: "draft"}) + "/void", "", ""},
		{"/v1/invoices/" + a.seed(stripe.Invoice{Status: "void"}) + "/send", "", ""},
		{"/v1/payouts/" + a.seed(stripe.Payout{Paid: true}) + "/cancel", "", ""},
		{"/v1/payouts/" + a.seed(stripe.Payout{}) + "/reverse", "", ""},
		{"/v1/transfers/" + a.seed(stripe.Transfer{Amount: 5}) + "/reversals", "amount=6", ""},
		{"/v1/credit_notes", "amount=1001&invoice=" + a.seed(stripe.Invoice{}), ""},
		{"/v1/billing/meter_events", "event_name=e&payload[value]=1&identifier=same", "resource_already_exists"},
	} {
		k := key(c.path + c.body)
		a.post(c.path, c.body, k).failed(400, "invalid_request_error", c.code)
		if !a.post(c.path, c.body, k).replayed() {
			t.Errorf("%s: the guard's answer was not stored", c.path)
		}
	}
	a.effects("", before)
}

func TestDeclineTokens(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	for pm, want := range map[string][2]string{
		"pm_card_chargeDeclined":                  {"card_declined", "generic_decline"},
		"pm_card_visa_chargeDeclined":             {"card_declined", "generic_decline"},
		"pm_card_chargeDeclinedLostCard":          {"card_declined", "lost_card"},
		"pm_card_chargeDeclinedExpiredCard":       {"expired_card", ""},
		"pm_card_chargeDeclinedIncorrectCvc":      {"incorrect_cvc", ""},
		"pm_card_chargeDeclinedProcessingError":   {"processing_error", ""},
		"pm_card_authenticationRequired":          {"authentication_required", "authentication_required"},
		"pm_card_chargeDeclinedInsufficientFunds": {"card_declined", "insufficient_funds"},
	} {
		body := "amount=1000&currency=eur&confirm=true&off_session=true&payment_method=" + pm
		r := a.post("/v1/payment_intents", body).failed(402, "card_error", want[0])
		if got, _ := r.json["error"].(map[string]any)["decline_code"].(string); got != want[1] {
			t.Errorf("%s: decline code %q, want %q", pm, got, want[1])
		}
	}
	a.effects("", 0)
}

func TestPendingOutcomes(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	body := "amount=1000&currency=eur&confirm=true&payment_method="
	if got := a.post("/v1/payment_intents", body+"pm_usBankAccount_success").ok().str("status"); got != "processing" {
		t.Errorf("bank debit: %q, want processing", got)
	}
	if got := a.post("/v1/payment_intents", body+"pm_card_authenticationRequired").ok().str("status"); got != "requires_action" {
		t.Errorf("authentication: %q, want requires_action", got)
	}
	r := a.post("/v1/refunds", "charge="+a.seed(stripe.Charge{SlowRefund: true})).ok()
	if r.str("status") != "pending" {
		t.Errorf("slow refund: %q, want pending", r.str("status"))
	}
	po := a.post("/v1/payouts", "amount=5&currency=eur").ok().id()
	a.fake.Advance(49 * time.Hour)
	if got := a.get("/v1/payouts/" + po).ok().str("status"); got != "paid" {
		t.Errorf("payout after two days: %q, want paid", got)
	}
}

func TestLists(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	customer := a.seed(stripe.Customer{})
	var ids []string
	var times []int64
	for i := range 5 {
		r := a.post("/v1/payment_intents", fmt.Sprintf("amount=%d&currency=eur&customer=%s", 100+i, customer)).ok()
		ids, times = append(ids, r.id()), append(times, int64(r.json["created"].(float64)))
		a.fake.Advance(time.Minute)
	}
	a.seed(stripe.PaymentIntent{})
	for _, c := range []struct {
		query string
		want  []string
		more  bool
	}{
		{"limit=2&customer=" + customer, []string{ids[4], ids[3]}, true},
		{"limit=2&customer=" + customer + "&starting_after=" + ids[3], []string{ids[2], ids[1]}, true},
		{"limit=2&customer=" + customer + "&starting_after=" + ids[1], []string{ids[0]}, false},
		{"limit=2&customer=" + customer + "&ending_before=" + ids[1], []string{ids[3], ids[2]}, true},
		{fmt.Sprintf("customer=%s&created[gte]=%d", customer, times[3]), []string{ids[4], ids[3]}, false},
		{fmt.Sprintf("customer=%s&created[gt]=%d&created[lt]=%d", customer, times[1], times[3]), []string{ids[2]}, false},
		{fmt.Sprintf("created=%d", times[0]), []string{ids[0]}, false},
		{"customer=cus_other", nil, false},
	} {
		r := a.get("/v1/payment_intents?" + c.query).ok()
		var got []string
		for _, e := range r.data() {
			got = append(got, e.(map[string]any)["id"].(string))
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") || r.json["has_more"] != c.more {
			t.Errorf("%s: got %v, more %v; want %v, %v", c.query, got, r.json["has_more"], c.want, c.more)
		}
	}
	a.get("/v1/payment_intents?limit=101").failed(400, "invalid_request_error", "")
	a.get("/v1/payment_intents?starting_after=pi_none").failed(404, "invalid_request_error", "resource_missing")
}

// An event names the key of the request that made it: a look-up by it is possible.
func TestEventsNameTheirKey(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	r := a.post("/v1/refunds", "charge="+a.seed(stripe.Charge{}), key("k")).ok()
	a.post("/v1/customers", "name=a").ok()
	list := a.get("/v1/events?types[0]=refund.created&types[1]=payment_intent.created").ok().data()
	if len(list) != 1 {
		t.Fatalf("%d events, want only the refund's: seeding publishes none", len(list))
	}
	e := list[0].(map[string]any)
	request := e["request"].(map[string]any)
	object := e["data"].(map[string]any)["object"].(map[string]any)
	if request["idempotency_key"] != "k" || request["id"] != r.header.Get("Request-Id") || object["id"] != r.id() {
		t.Errorf("event = %v", e)
	}
	a.get("/v1/events/" + e["id"].(string)).ok()
	if got := a.get("/v1/events?type=charge.*").ok().data(); len(got) != 1 {
		t.Errorf("%d charge events, want 1", len(got))
	}
	a.fake.Advance(31 * 24 * time.Hour)
	if got := a.get("/v1/events").ok().data(); len(got) != 0 {
		t.Errorf("%d events are listed after 30 days", len(got))
	}
}

func TestSearchLags(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	id := a.post("/v1/payment_intents", "amount=1000&currency=eur&metadata[samekey_command]=m1").ok().id()
	a.post("/v1/payment_intents", "amount=2000&currency=eur&metadata[samekey_command]=m2").ok()
	query := "/v1/payment_intents/search?" + form("query", "metadata['samekey_command']:'m1' AND amount>=1000 AND -status:'canceled'")
	if got := a.get(query).ok().data(); len(got) != 0 {
		t.Errorf("found %d at once: search must lag", len(got))
	}
	a.fake.Advance(time.Minute)
	if got := a.get(query).ok().data(); len(got) != 1 || got[0].(map[string]any)["id"] != id {
		t.Errorf("found %v, want %s", got, id)
	}
	for _, bad := range []string{"", "metadata['x]:'y'", "status", "status:'a' OR status:'b'", "a[b]:'c'", "status:"} {
		if r := a.get("/v1/payment_intents/search?" + form("query", bad)); r.status != 400 {
			t.Errorf("query %q: %d, want 400", bad, r.status)
		}
	}
}

func TestExpand(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	pi := a.seed(stripe.PaymentIntent{Status: "succeeded"})
	got := a.get("/v1/payment_intents/" + pi + "?expand[0]=latest_charge.payment_intent").ok().json["latest_charge"]
	charge, ok := got.(map[string]any)
	if !ok {
		t.Fatalf("latest_charge = %v, want an object", got)
	}
	if inner, ok := charge["payment_intent"].(map[string]any); !ok || inner["id"] != pi {
		t.Errorf("the charge's payment intent = %v, want an object", charge["payment_intent"])
	}
	if _, text := a.get("/v1/payment_intents/" + pi).ok().json["latest_charge"].(string); !text {
		t.Error("expanding changed the stored object")
	}
}

func TestInvoiceLines(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	customer := a.seed(stripe.Customer{})
	a.post("/v1/invoiceitems", "amount=300&currency=eur&customer="+customer).ok()
	inv := a.post("/v1/invoices", "pending_invoice_items_behavior=include&customer="+customer).ok().id()
	a.post("/v1/invoiceitems", "price_data[unit_amount]=100&price_data[currency]=eur&quantity=2&invoice="+inv+"&customer="+customer).ok()
	paid := a.post("/v1/invoices/"+inv+"/pay", "").ok()
	if paid.json["total"] != 500.0 || paid.json["amount_paid"] != 500.0 || paid.str("status") != "paid" {
		t.Errorf("total %v, paid %v, status %q", paid.json["total"], paid.json["amount_paid"], paid.str("status"))
	}
	poor := a.post("/v1/invoices", "customer="+a.seed(stripe.Customer{PaymentMethod: "pm_card_chargeCustomerFail"})).ok().id()
	a.post("/v1/invoices/"+poor+"/pay", "").failed(402, "card_error", "card_declined")
	a.effects("invoice.pay", 1)
}

// A full fake refuses to create, and says how to go on.
func TestFullOfObjects(t *testing.T) {
	a := newAPI(t, stripe.Config{MaxObjects: 1})
	id := a.post("/v1/customers", "name=a").ok().id()
	r := a.post("/v1/customers", "name=b").failed(503, "api_error", "")
	if !strings.Contains(r.raw, "Reset") {
		t.Errorf("the refusal does not say what to do: %s", r.raw)
	}
	a.post("/v1/customers/"+id, "name=c").ok()
}
