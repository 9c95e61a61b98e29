package paypal_test

import (
	"regexp"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

const invoices = "/v2/invoicing/invoices"

func invoiceBody(number string) m {
	detail := m{"currency_code": "USD"}
	if number != "" {
		detail["invoice_number"] = number
	}
	return m{"detail": detail, "items": []m{
		{"name": "Hour", "quantity": "1.5", "unit_amount": usd("10.01")},
		{"name": "Trip", "quantity": "1", "unit_amount": usd("5.00")}}}
}

func TestInvoiceLife(t *testing.T) {
	a := open(t, paypal.Config{})
	created := a.post(invoices, "k", invoiceBody("A-1")).want(201).says("status", "DRAFT").
		says("amount/value", "20.02").says("detail/invoice_date", "2026-11-30")
	id := created.text("id")
	if !regexp.MustCompile(`^INV2(-[0-9A-Z]{4}){4}$`).MatchString(id) {
		t.Errorf("invoice id is %q", id)
	}
	// No request id: the same one makes another invoice, unless the number is taken.
	a.post(invoices, "k", invoiceBody("A-1")).want(422, "DUPLICATE_INVOICE_NUMBER")
	a.post(invoices, "k", invoiceBody("")).want(201)
	a.post(invoices, "k", invoiceBody("")).want(201)
	a.effects("invoice.create", 3)

	path := invoices + "/" + id
	a.post(path+"/cancel", "", nil).want(422, "CANT_CANCEL_INVOICE")
	a.post(path+"/send", "", m{}).want(200).says("href", a.url+path)
	a.post(path+"/send", "", m{}).want(422, "INVOICE_ALREADY_SENT")
	a.get(path).want(200).says("status", "SENT").says("detail/metadata/first_sent_time", "2026-11-30T12:00:00Z")
	a.post(path+"/cancel", "", m{}).want(204)
	a.post(path+"/cancel", "", m{}).want(422, "CANT_CANCEL_INVOICE")
	a.post(path+"/send", "", m{}).want(422, "CANT_SEND_INVOICE")
	a.effects("invoice.send", 1)
	a.effects("invoice.cancel", 1)

	a.post("/v2/invoicing/search-invoices", "", m{"invoice_number": "A-1"}).want(200).says("items/0/id", id).says("items/0/status", "CANCELLED")
	if got := a.post("/v2/invoicing/search-invoices?page_size=2", "", m{"status": []string{"DRAFT"}}).want(200); len(got.list("items")) != 2 {
		t.Errorf("the drafts are %s", got.raw)
	}
	if got := a.post("/v2/invoicing/search-invoices", "", m{"invoice_number": "none"}).want(200); got.at("total_items") != 0.0 {
		t.Errorf("an unknown number is found: %s", got.raw)
	}
	if got := a.get(invoices+"?page_size=2").want(200).says("items/0/detail/invoice_number", "0003"); got.at("total_items") != 3.0 || got.at("total_pages") != 2.0 {
		t.Errorf("the list, newest first, is %s", got.raw)
	}
	a.get(invoices+"?page_size=2&page=2").says("items/0/id", id).says("items/0/detail/metadata/last_sent_time", "2026-11-30T12:00:00Z")
	next := a.post("/v2/invoicing/generate-next-invoice-number", "", nil).want(200).text("invoice_number")
	a.post(invoices, "", invoiceBody(next)).want(201)

	later := invoiceBody("")
	later["detail"].(m)["invoice_date"] = "2026-12-24"
	minimal := a.post(invoices, "", later, "Prefer", "return=minimal").want(201).says("rel", "self")
	href := minimal.text("href")[len(a.url):]
	a.post(href+"/send", "", nil).want(202)
	a.get(href).says("status", "SCHEDULED")
	for _, act := range []string{"send", "cancel"} {
		a.post(invoices+"/NONE/"+act, "", nil).want(404)
	}
	a.get(invoices + "/NONE").want(404)
}

func TestInvoiceRefusals(t *testing.T) {
	a := open(t, paypal.Config{})
	item := func(quantity, currency string) m {
		return m{"detail": m{"currency_code": "USD"}, "items": []m{{"name": "n", "quantity": quantity,
			"unit_amount": m{"currency_code": currency, "value": "999999999999"}}}}
	}
	for name, body := range map[string]any{
		"empty": m{}, "no items": m{"detail": m{"currency_code": "USD"}},
		"bad date":     m{"detail": m{"currency_code": "USD", "invoice_date": "today"}, "items": invoiceBody("")["items"]},
		"exponent":     item("1e99999999", "USD"),
		"fraction":     item("1/3", "USD"),
		"negative":     item("-1", "USD"),
		"too many":     item("1000001", "USD"),
		"total":        item("1000", "USD"),
		"currency":     item("1", "EUR"),
		"no quantity":  item("", "USD"),
		"number":       m{"detail": m{"currency_code": "USD"}, "items": []m{{"name": "n", "quantity": 1, "unit_amount": usd("1")}}},
		"not an array": m{"detail": m{"currency_code": "USD"}, "items": m{}},
	} {
		if got := a.post(invoices, "", body); got.status != 400 {
			t.Errorf("%s: status %d", name, got.status)
		}
	}
	a.effects("", 0)
}
