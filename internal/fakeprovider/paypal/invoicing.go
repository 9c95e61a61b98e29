package paypal

import (
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"time"
)

// maxInvoice is the largest total, in the currency's smallest unit.
const maxInvoice = 1_000_000_000_000_00

// createInvoice is POST /v2/invoicing/invoices. It takes no request id; the
// invoice number alone is unique.
func createInvoice(x *exec) (reply, *failure) {
	b := x.body()
	head := b.sub("detail")
	if !b.has("detail") {
		b.bad("MISSING_REQUIRED_PARAMETER", "detail", "An invoice needs its detail.")
	}
	currency := head.need("currency_code", 3)
	number := head.text("invoice_number", 25)
	if date := head.text("invoice_date", 10); date != "" {
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			head.bad("INVALID_PARAMETER_SYNTAX", "invoice_date", "The date must be YYYY-MM-DD.")
		}
	}
	total := new(big.Rat)
	for _, item := range b.list("items", 100) {
		total.Add(total, readInvoiceItem(item, currency))
	}
	if total.Cmp(big.NewRat(maxInvoice, 1)) > 0 {
		b.bad("INVALID_PARAMETER_VALUE", "items", "The invoice's total is too high.")
	}
	if x.err != nil {
		return reply{}, x.err
	}
	if number == "" {
		number = x.s.nextNumber()
	}
	if x.s.numbers[number] {
		return reply{}, refused("DUPLICATE_INVOICE_NUMBER", "Another invoice has this number.")
	}
	detail := maps.Clone(head.o)
	detail["invoice_number"] = number
	put(detail, "invoice_date", x.tx.Now.Format(time.DateOnly))
	if head.has("invoice_date") {
		detail["invoice_date"] = head.o["invoice_date"]
	}
	detail["metadata"] = object{"create_time": stamp(x.tx.Now)}
	f := maps.Clone(b.o)
	amount := rounded(total, currency).view()
	f["detail"], f["amount"], f["due_amount"] = detail, amount, amount
	r := &record{id: invoiceID(x), status: "DRAFT", fields: f}
	x.add(x.s.invoices, &x.s.invoiceList, r)
	x.s.numbers[number] = true
	x.tx.Effect(r.id)
	x.publish("INVOICING.INVOICE.CREATED", showInvoice(x, r))
	return reply{id: r.id}, nil
}

// readInvoiceItem returns an item's amount in the currency's smallest unit.
func readInvoiceItem(f fields, currency string) *big.Rat {
	f.need("name", 200)
	quantity, ok := parseQuantity(f.need("quantity", 14))
	unit, given := f.amount("unit_amount", "currency_code")
	switch {
	case !given:
		f.bad("MISSING_REQUIRED_PARAMETER", "unit_amount", "An item needs a unit_amount.")
	case f.x.err != nil:
	case !ok:
		f.bad("INVALID_PARAMETER_VALUE", "quantity", "The quantity must be a positive decimal.")
	case unit.currency != currency:
		f.bad("INVALID_PARAMETER_VALUE", "unit_amount/currency_code", "The items have the invoice's currency.")
	default:
		return quantity.Mul(quantity, new(big.Rat).SetInt64(unit.minor))
	}
	return new(big.Rat)
}

// parseQuantity reads a positive decimal of at most a million.
func parseQuantity(s string) (*big.Rat, bool) {
	for _, r := range s {
		if (r < '0' || r > '9') && r != '.' {
			return nil, false // an exponent would make a number of any size
		}
	}
	q, ok := new(big.Rat).SetString(s)
	return q, ok && q.Sign() > 0 && q.Cmp(big.NewRat(1_000_000, 1)) <= 0
}

// rounded returns the amount to the nearest smallest unit, halves up.
func rounded(r *big.Rat, currency string) money {
	n := new(big.Int).Mul(r.Num(), big.NewInt(2))
	n.Add(n, r.Denom()).Quo(n, new(big.Int).Mul(r.Denom(), big.NewInt(2)))
	return money{currency, n.Int64()}
}

func invoiceID(x *exec) string {
	t := func() string { return x.tx.Token(4, upperDigits) }
	return "INV2-" + t() + "-" + t() + "-" + t() + "-" + t()
}

func (s *state) nextNumber() string {
	for n := len(s.invoiceList) + 1; ; n++ {
		if number := fmt.Sprintf("%04d", n); !s.numbers[number] {
			return number
		}
	}
}

// nextInvoiceNumber is POST …/generate-next-invoice-number. It reserves nothing.
func nextInvoiceNumber(x *exec) (reply, *failure) {
	return reply{body: object{"invoice_number": x.s.nextNumber()}}, nil
}

func getInvoice(x *exec) (reply, *failure) { return x.one(x.s.invoices) }

// viewInvoice shows an invoice; the minimal answer is a link only.
func viewInvoice(x *exec, id string) object {
	if !x.full {
		return x.link("/v2/invoicing/invoices/"+id, "self", "GET")
	}
	return showInvoice(x, x.s.invoices[id])
}

func showInvoice(x *exec, r *record) object {
	path := "/v2/invoicing/invoices/" + r.id
	v := r.show(x.link(path, "self", "GET"), x.link(path+"/send", "send", "POST"), x.link(path+"/cancel", "cancel", "POST"))
	delete(v, "create_time") // invoices have it in detail.metadata
	delete(v, "update_time")
	return v
}

// sendInvoice answers 200, or 202 for an invoice that is dated later.
func sendInvoice(x *exec) (reply, *failure) {
	r, f := x.invoice()
	if f != nil {
		return reply{}, f
	}
	switch r.status {
	case "DRAFT":
	case "SENT", "SCHEDULED":
		return reply{}, refused("INVOICE_ALREADY_SENT", "The invoice is sent already.")
	default:
		return reply{}, refused("CANT_SEND_INVOICE", "The invoice's status does not allow this.")
	}
	out := reply{id: r.id, status: http.StatusOK, body: x.link("/v2/invoicing/invoices/"+r.id, "self", "GET")}
	status := "SENT"
	detail, _ := r.fields["detail"].(object)
	if text(detail, "invoice_date") > x.tx.Now.Format(time.DateOnly) {
		status, out.status = "SCHEDULED", http.StatusAccepted
	}
	x.moveInvoice(r, status, "first_sent_time")
	return out, nil
}

func cancelInvoice(x *exec) (reply, *failure) {
	r, f := x.invoice()
	if f != nil {
		return reply{}, f
	}
	if r.status != "SENT" && r.status != "SCHEDULED" {
		return reply{}, refused("CANT_CANCEL_INVOICE", "Only an invoice that was sent can be cancelled.")
	}
	x.moveInvoice(r, "CANCELLED", "cancel_time")
	x.publish("INVOICING.INVOICE.CANCELLED", showInvoice(x, r))
	return reply{id: r.id}, nil
}

// invoice returns the invoice that the path names.
func (x *exec) invoice() (*record, *failure) {
	r := x.s.invoices[x.ids[0]]
	if r == nil {
		return nil, notFound("invoice_id")
	}
	return r, nil
}

// moveInvoice sets a status and notes the time in the invoice's metadata.
func (x *exec) moveInvoice(r *record, status, when string) {
	r.status, r.updated = status, x.tx.Now
	detail, _ := r.fields["detail"].(object)
	if meta, ok := detail["metadata"].(object); ok {
		meta[when] = stamp(x.tx.Now)
		if status == "SENT" {
			meta["last_sent_time"] = stamp(x.tx.Now)
		}
	}
	x.tx.Effect(r.id)
}

// listInvoices is GET /v2/invoicing/invoices; the newest comes first.
func listInvoices(x *exec) (reply, *failure) {
	list := slices.Clone(x.s.invoiceList)
	slices.Reverse(list)
	return x.page("items", list, showInvoice, 20)
}

// searchInvoices is POST /v2/invoicing/search-invoices, by number and status.
func searchInvoices(x *exec) (reply, *failure) {
	b := x.body()
	number := b.text("invoice_number", 25)
	statuses, _ := b.o["status"].([]any)
	if x.err != nil {
		return reply{}, x.err
	}
	list := slices.DeleteFunc(slices.Clone(x.s.invoiceList), func(r *record) bool {
		detail, _ := r.fields["detail"].(object)
		return (number != "" && text(detail, "invoice_number") != number) ||
			(len(statuses) > 0 && !slices.Contains(statuses, any(r.status)))
	})
	return x.page("items", list, showInvoice, 20)
}
