package paypal

import (
	"net/http"
	"strings"
	"time"
)

// transaction is a line in the merchant's account.
type transaction struct {
	id, code, status string
	at               time.Time
	amount           money // negative where money went out
	custom, invoice  string
	reference        string // the transaction that this one is about
}

const (
	// searchLag is how long a transaction takes to appear in a search.
	searchLag = 3 * time.Hour
	// searchRange is the longest time that one search covers.
	searchRange = 31 * 24 * time.Hour
	maxResults  = 500
)

// searchStatus is a payment's status in Transaction Search.
func searchStatus(status string) string {
	if status == "PENDING" {
		return "P"
	}
	return "S"
}

func (x *exec) record(t *transaction) { x.s.transactions = append(x.s.transactions, t) }

// searchTransactions is GET /v1/reporting/transactions. It has no filter on
// invoice or custom ids.
func searchTransactions(x *exec) (reply, *failure) {
	from, to := x.queryTime("start_date"), x.queryTime("end_date")
	page, size := x.queryInt("page", 1, 1_000_000), x.queryInt("page_size", 100, maxResults)
	for _, name := range []string{"start_date", "end_date"} {
		if x.query.Get(name) == "" {
			x.bad("MISSING_REQUIRED_PARAMETER", name, "A search needs a start_date and an end_date.")
		}
	}
	switch {
	case x.err != nil:
	case to.Before(from):
		x.bad("INVALID_PARAMETER_VALUE", "end_date", "The end_date is before the start_date.")
	case to.Sub(from) > searchRange:
		x.bad("INVALID_PARAMETER_VALUE", "end_date", "The dates must be at most 31 days apart.")
	}
	if x.err != nil {
		return reply{}, x.err
	}
	refreshed := x.tx.Now.Add(-searchLag)
	found := []object{}
	for _, t := range x.s.transactions {
		if !t.at.Before(from) && !t.at.After(to) && !t.at.After(refreshed) && x.wants(t) {
			found = append(found, object{"transaction_info": t.show(x.cfg.MerchantID)})
		}
	}
	total := len(found)
	return reply{status: http.StatusOK, body: object{
		"transaction_details": found[min(total, (page-1)*size):min(total, page*size)],
		"account_number":      x.cfg.MerchantID,
		"start_date":          searchStamp(from), "end_date": searchStamp(to),
		"last_refreshed_datetime": searchStamp(refreshed),
		"page":                    page, "total_items": total, "total_pages": (total + size - 1) / size,
		"links": []object{x.selfLink()},
	}}, nil
}

// wants applies the filters of a search.
func (x *exec) wants(t *transaction) bool {
	for name, value := range map[string]string{"transaction_id": t.id, "transaction_status": t.status,
		"transaction_type": t.code, "transaction_currency": t.amount.currency} {
		if q := x.query.Get(name); q != "" && !strings.EqualFold(q, value) {
			return false
		}
	}
	return true
}

// searchStamp writes a time as Transaction Search does, with a numeric zone.
func searchStamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05-0700") }

func (t *transaction) show(account string) object {
	v := object{
		"paypal_account_id": account, "transaction_id": t.id, "transaction_event_code": t.code,
		"transaction_initiation_date": searchStamp(t.at), "transaction_updated_date": searchStamp(t.at),
		"transaction_amount": t.amount.view(), "transaction_status": t.status,
	}
	put(v, "invoice_id", t.invoice)
	put(v, "custom_field", t.custom)
	if t.reference != "" {
		v["paypal_reference_id"], v["paypal_reference_id_type"] = t.reference, "TXN"
	}
	return v
}
