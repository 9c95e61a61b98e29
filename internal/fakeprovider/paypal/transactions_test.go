package paypal_test

import (
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

const search = "/v1/reporting/transactions"

// Dates are required and at most 31 days apart; a transaction appears three
// hours later; what was marked comes back.
func TestTransactionSearch(t *testing.T) {
	a := open(t, paypal.Config{})
	capture := a.seed(paypal.CompletedCapture{CustomID: "mark", InvoiceID: "inv"})
	refund := a.post("/v2/payments/captures/"+capture+"/refund", "r", m{"amount": usd("1.00"), "custom_id": "rmark"}).text("id")
	a.post(payouts, "", payoutBody("b")).want(201)
	dates := "?start_date=2026-11-30T00:00:00Z&end_date=2026-12-30T00:00:00-0000"

	a.f.Advance(3*hour - time.Second)
	if got := a.get(search + dates).want(200); len(got.list("transaction_details")) != 0 {
		t.Errorf("a transaction appears before its time: %s", got.raw)
	}
	a.f.Advance(time.Second)
	got := a.get(search+dates).want(200).says("account_number", "FAKEMERCHANT1").
		says("transaction_details/0/transaction_info/transaction_id", capture).
		says("transaction_details/0/transaction_info/custom_field", "mark").
		says("transaction_details/0/transaction_info/invoice_id", "inv").
		says("transaction_details/0/transaction_info/transaction_initiation_date", "2026-11-30T12:00:00+0000").
		says("transaction_details/1/transaction_info/transaction_id", refund).
		says("transaction_details/1/transaction_info/transaction_amount/value", "-1.00").
		says("transaction_details/1/transaction_info/paypal_reference_id", capture).
		says("last_refreshed_datetime", "2026-11-30T12:00:00+0000")
	if got.at("total_items") != 3.0 {
		t.Errorf("total_items is %v, want 3", got.at("total_items"))
	}
	a.get(search+dates+"&transaction_id="+refund).says("transaction_details/0/transaction_info/custom_field", "rmark")
	a.get(search + dates + "&transaction_status=P").want(200)
	a.get(search+dates+"&page_size=2&page=2").says("transaction_details/0/transaction_info/transaction_amount/value", "-5.00")
	// invoice_id is no filter: it changes nothing.
	if got := a.get(search + dates + "&invoice_id=none"); len(got.list("transaction_details")) != 3 {
		t.Errorf("invoice_id filters: %s", got.raw)
	}
	for query, issue := range map[string]string{
		"":                                 "MISSING_REQUIRED_PARAMETER",
		"?start_date=2026-11-30T00:00:00Z": "MISSING_REQUIRED_PARAMETER",
		"?start_date=2026-11-01T00:00:00Z&end_date=2026-12-02T00:00:01Z": "INVALID_PARAMETER_VALUE",
		"?start_date=2026-11-02T00:00:00Z&end_date=2026-11-01T00:00:00Z": "INVALID_PARAMETER_VALUE",
		"?start_date=monday&end_date=2026-11-01T00:00:00Z":               "INVALID_PARAMETER_SYNTAX",
		dates + "&page_size=501":                                         "INVALID_PARAMETER_VALUE",
	} {
		a.get(search+query).want(400, issue)
	}
	a.get(search + "?start_date=2026-11-01T00:00:00Z&end_date=2026-12-02T00:00:00Z").want(200)
}
