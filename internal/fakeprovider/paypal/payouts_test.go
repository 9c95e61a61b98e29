package paypal_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

const payouts = "/v1/payments/payouts"

// C17: the batch id in the body deduplicates for 30 days, with an error that
// links to the first batch; the header alone does not.
func TestPayoutDeduplication(t *testing.T) {
	a := open(t, paypal.Config{TokenLifetime: 100 * 24 * hour})
	first := a.post(payouts, "h1", payoutBody("batch-1")).want(201).says("batch_header/batch_status", "PENDING").
		says("batch_header/sender_batch_header/sender_batch_id", "batch-1")
	id := first.text("batch_header/payout_batch_id")
	if !regexp.MustCompile(`^[0-9A-Z]{13}$`).MatchString(id) {
		t.Errorf("batch id %q is not 13 upper-case alphanumerics", id)
	}
	for _, header := range []string{"h1", "h2", ""} { // another body changes nothing
		body := payoutBody("batch-1")
		body["items"].([]m)[0]["note"] = "note " + header
		again := a.post(payouts, header, body).want(400, "USER_BUSINESS_ERROR").says("details/0/field", "SENDER_BATCH_ID")
		link := again.text("details/0/link/0/href")
		if link != a.url+payouts+"/"+id {
			t.Fatalf("the duplicate links to %q", link)
		}
		a.get(strings.TrimPrefix(link, a.url)).want(200).says("batch_header/payout_batch_id", id)
	}
	a.effects("payout.create", 1)
	if n := a.f.EffectsOfKey("batch-1"); n != 1 {
		t.Errorf("the batch id has %d effects, want 1", n)
	}

	a.post(payouts, "h3", payoutBody("")).want(201)
	a.post(payouts, "h3", payoutBody("")).want(201)
	a.effects("payout.create", 3)

	a.f.Advance(30*24*hour - time.Second)
	a.post(payouts, "", payoutBody("batch-1")).want(400)
	a.f.Advance(time.Second)
	a.post(payouts, "", payoutBody("batch-1")).want(201)
	a.effects("payout.create", 4)
}

func TestPayoutLife(t *testing.T) {
	a := open(t, paypal.Config{})
	body := payoutBody("b")
	body["items"] = append(body["items"].([]m), m{"receiver": "b@example.com", "amount": m{"currency": "USD", "value": "2.50"}})
	id := a.post(payouts, "", body).want(201).text("batch_header/payout_batch_id")
	got := a.get(payouts+"/"+id).want(200).says("items/0/transaction_status", "PENDING").says("batch_header/amount/value", "7.50")
	item := got.text("items/0/payout_item_id")
	a.f.Advance(time.Minute)
	got = a.get(payouts+"/"+id).says("batch_header/batch_status", "SUCCESS").says("batch_header/time_completed", "2026-11-30T12:01:00Z")
	if len(got.list("items")) != 2 {
		t.Errorf("the batch shows %d items, want 2", len(got.list("items")))
	}
	a.get("/v1/payments/payouts-item/"+item).want(200).says("transaction_status", "SUCCESS").
		says("payout_item/receiver", "a@example.com").says("payout_batch_id", id)
	a.get(payouts + "/NONE").want(404)
	a.get("/v1/payments/payouts-item/NONE").want(404)
}

func TestPayoutRefusals(t *testing.T) {
	a := open(t, paypal.Config{})
	for name, body := range map[string]any{
		"no header":      m{"items": payoutBody("b")["items"]},
		"no items":       m{"sender_batch_header": m{"sender_batch_id": "b"}},
		"empty items":    m{"sender_batch_header": m{"sender_batch_id": "b"}, "items": []m{}},
		"long batch id":  payoutBody(strings.Repeat("b", 257)),
		"no amount":      m{"sender_batch_header": m{"sender_batch_id": "b"}, "items": []m{{"receiver": "a"}}},
		"two currencies": m{"sender_batch_header": m{"sender_batch_id": "b"}, "items": []m{{"receiver": "a", "amount": m{"currency": "USD", "value": "1"}}, {"receiver": "a", "amount": m{"currency": "EUR", "value": "1"}}}},
		"number as id":   m{"sender_batch_header": m{"sender_batch_id": 7}, "items": payoutBody("b")["items"]},
	} {
		if got := a.post(payouts, "", body); got.status != 400 {
			t.Errorf("%s: status %d", name, got.status)
		}
	}
	a.effects("payout.create", 0)
	a.post(payouts, "", payoutBody("b"), "PayPal-Mock-Response", `{"mock_application_codes":"INSUFFICIENT_FUNDS"}`).want(422, "INSUFFICIENT_FUNDS")
	a.post(payouts, "", payoutBody("d"), "PayPal-Mock-Response", `{"mock_application_codes":"DENIED"}`).want(201).
		says("batch_header/batch_status", "DENIED")
	a.effects("payout.create", 0)
	a.post(payouts, "", payoutBody("b")).want(201) // a refused batch may be sent again
}

// A batch whose first send is still running is neither run twice nor a duplicate.
func TestPayoutInFlight(t *testing.T) {
	a := open(t, paypal.Config{})
	if err := a.f.Inject(fakeprovider.Fault{Kind: fakeprovider.LateApply, Running: true, Operation: "payout.create"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.http.Do(a.request(payouts, payoutBody("b"))); err == nil {
		t.Fatal("the first send was answered")
	}
	a.await("payout.create", func(s fakeprovider.Snapshot) bool { return s.Held == 1 })
	a.post(payouts, "", payoutBody("b")).want(409, "PREVIOUS_REQUEST_IN_PROGRESS")
	a.f.Release()
	a.await("payout.create", func(s fakeprovider.Snapshot) bool { return s.Effects == 1 })
	a.post(payouts, "", payoutBody("b")).want(400, "USER_BUSINESS_ERROR")
	a.effects("payout.create", 1)
}
