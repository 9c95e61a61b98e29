package paypal

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	searchLag     = 3 * time.Hour        // until Transaction Search shows a payment, at most
	searchHorizon = searchLag + lateness // what it does not show then, it never will
	searchRange   = 31 * day             // that one search may cover
	maxRanges     = 13
	maxCandidates = 20 // that are read one by one
)

// transaction is a row of Transaction Search.
type transaction struct {
	ID        string `json:"transaction_id"`
	Reference string `json:"paypal_reference_id"`
	Code      string `json:"transaction_event_code"`
	Custom    string `json:"custom_field"`
	Invoice   string `json:"invoice_id"`
}

func (t transaction) carries(mark string) bool {
	return mark != "" && (t.Custom == mark || t.Invoice == mark)
}

// The groups of event codes. Source: PayPal's transaction event codes.
func (t transaction) payment() bool       { return strings.HasPrefix(t.Code, "T00") }
func (t transaction) refund() bool        { return strings.HasPrefix(t.Code, "T11") }
func (t transaction) authorization() bool { return strings.HasPrefix(t.Code, "T13") }

// transactions reads the account's transactions since the first send. whole
// reports whether they are all: the account that PayPal names is the record's,
// and what it shows is as fresh as the last send and what may come late of it.
func (s search) transactions(ctx context.Context) (rows []transaction, whole bool, err error) {
	if !s.sent.known() {
		return nil, false, nil
	}
	whole = !s.SentUntil.IsZero()
	start, until := s.listed.from, s.listed.until
	if until.After(s.began) {
		until = s.began.UTC().Truncate(time.Second).Add(time.Second)
	}
	for range maxRanges {
		end := start.Add(searchRange)
		if end.After(until) {
			end = until
		}
		part, err := s.walk(ctx, list{
			path: "/v1/reporting/transactions", member: "transaction_details", size: 500,
			query: url.Values{
				"start_date": {start.Format(time.RFC3339)}, "end_date": {end.Format(time.RFC3339)},
				"fields": {"transaction_info"}, "balance_affecting_records_only": {"N"},
			},
			dated: true, sound: s.fresh,
		}, func(raw json.RawMessage) bool {
			var row struct {
				Info transaction `json:"transaction_info"`
			}
			if json.Unmarshal(raw, &row) != nil {
				whole = false
			}
			rows = append(rows, row.Info)
			return false
		})
		if err != nil {
			return nil, false, err
		}
		if whole = whole && part; !end.Before(until) {
			return rows, whole, nil
		}
		start = end
	}
	return rows, false, nil
}

func (s search) fresh(page map[string]json.RawMessage) bool {
	var account, refreshed string
	if json.Unmarshal(page["account_number"], &account) != nil || json.Unmarshal(page["last_refreshed_datetime"], &refreshed) != nil {
		return false
	}
	return account != "" && account == s.Account && !readTime(refreshed).Before(s.SentUntil.Add(lateness))
}

// orderByTransaction finds the order whose payment carries the mark that was
// stamped on its purchase units. An order that nobody paid is in no list.
func (s search) orderByTransaction(ctx context.Context) (outbound.Finding, error) {
	if !s.stamped() {
		return outbound.Finding{}, nil
	}
	rows, _, err := s.transactions(ctx)
	if err != nil {
		return outbound.Finding{}, err
	}
	for _, t := range candidates(rows, func(t transaction) bool { return t.carries(s.Mark) && (t.payment() || t.authorization()) }) {
		path := capturesPath
		if t.authorization() {
			path = authorizationsPath
		}
		var payment object
		x, err := s.read(ctx, path+t.ID, nil, &payment)
		if err != nil {
			return outbound.Finding{}, err
		}
		o, err := s.orderOf(ctx, &payment)
		if err != nil {
			return outbound.Finding{}, err
		}
		if o != nil && o.carries(s.Mark) {
			return found(x, rs.ByLookup, o.result(s.Operation.Name), o.raw), nil
		}
	}
	return outbound.Finding{}, nil
}

// carries reports whether a purchase unit carries the mark.
func (o *order) carries(mark string) bool {
	for _, u := range o.PurchaseUnits {
		if mark != "" && u.CustomID == mark {
			return true
		}
	}
	return false
}

// captureByTransaction finds a capture of an authorization that names no order.
func (s search) captureByTransaction(ctx context.Context, authorization string) (outbound.Finding, error) {
	if !s.stamped() {
		return outbound.Finding{}, nil
	}
	rows, _, err := s.transactions(ctx)
	if err != nil {
		return outbound.Finding{}, err
	}
	for _, t := range candidates(rows, func(t transaction) bool { return t.carries(s.Mark) && t.payment() }) {
		var capture object
		x, err := s.read(ctx, capturesPath+t.ID, nil, &capture)
		if err != nil {
			return outbound.Finding{}, err
		}
		if capture.carries(s.Mark) && capture.parent(authorizationsPath) == authorization {
			return s.foundObject(x, rs.ByLookup, &capture)
		}
	}
	return outbound.Finding{}, nil
}

// refundByTransaction finds a refund of a capture that names no order. PayPal may
// show the payment's custom field on a refund: each is read for its own.
func (s search) refundByTransaction(ctx context.Context, capture string) (outbound.Finding, error) {
	if !s.stamped() {
		return outbound.Finding{}, nil
	}
	rows, whole, err := s.transactions(ctx)
	if err != nil {
		return outbound.Finding{}, err
	}
	refunds := candidates(rows, func(t transaction) bool { return t.refund() && (t.Reference == capture || t.Reference == "") })
	if len(refunds) > maxCandidates {
		return outbound.Finding{}, nil
	}
	var failed outbound.Finding
	for _, t := range refunds {
		var refund object
		x, err := s.read(ctx, refundsPath+t.ID, nil, &refund)
		switch {
		case err != nil:
			return outbound.Finding{}, err
		case refund.carries(s.Mark):
			f, err := s.foundObject(x, rs.ByLookup, &refund)
			if err != nil || f.Effect == outbound.EffectApplied {
				return f, err
			}
			failed = f
		case refund.CustomID == "":
			whole = false // it might be ours, and not show it
		}
	}
	if failed != (outbound.Finding{}) {
		return failed, nil
	}
	return absentIf(whole, nil)
}

// candidates keeps the rows that are wanted and can be read, and stops at one
// more than are read.
func candidates(rows []transaction, wanted func(transaction) bool) (kept []transaction) {
	for _, t := range rows {
		if len(kept) <= maxCandidates && wanted(t) && idForm.MatchString(t.ID) {
			kept = append(kept, t)
		}
	}
	return kept
}
