package paypal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

const (
	transactionsPath = "/v1/reporting/transactions"
	transactionSize  = 500              // rows of a page
	shortestRange    = 10 * time.Minute // of one search for a report; a busier account is not read to its end
	maxShown         = 100              // that are read one by one, where several show one mark
)

// lister reads Transaction Search for a report that compares a ledger with it.
type lister struct {
	search
	httpadapter.EffectQuery
	show func(httpadapter.ListedEffect) error

	stopped   error     // that show returned: nothing more is read
	foreign   bool      // a page named another account
	refreshed time.Time // what every search was as fresh as
	pages     int       // of the present search
	shown     int
	payments  bearers
	refunds   bearers
}

// bearers are the transactions that show a mark, by mark.
type bearers map[string][]string

// ListEffects implements httpadapter.EffectLister by Transaction Search: payments,
// refunds and authorizations. What moves no money is in no list by time: orders that
// nobody paid, subscriptions, plans, invoices, tokens; and of a payout it shows the
// items and not the batch.
func (codec) ListEffects(ctx context.Context, get httpadapter.Get, q httpadapter.EffectQuery, show func(httpadapter.ListedEffect) error) ([]httpadapter.Coverage, error) {
	l := &lister{
		search: search{get: get, Lookup: &outbound.Lookup{Account: q.Account}}, EffectQuery: q, show: show,
		payments: bearers{}, refunds: bearers{},
	}
	latest := l.Now() // a search is asked for no time to come
	if q.Until.After(latest) {
		q.Until = latest
		l.Until = latest
	}
	incomplete := ""
	for start := q.From.UTC().Truncate(time.Second); start.Before(q.Until) && incomplete == ""; start = start.Add(searchRange) {
		end := start.Add(searchRange)
		if end.After(q.Until) {
			end = q.Until.UTC().Truncate(time.Second)
		}
		incomplete = l.span(ctx, start, end)
	}
	if l.stopped != nil {
		return nil, l.stopped
	}
	if l.foreign {
		return nil, errors.New("paypal: the credential is of another account than the one asked about")
	}
	upTo := l.refreshed.Add(-lateness)
	if l.refreshed.IsZero() {
		upTo = q.From
	}
	if safe := latest.Add(-listMargin); upTo.After(safe) { // PayPal's clock may be so far ahead
		upTo = safe
	}
	money := httpadapter.Coverage{
		List: transactionsPath, Operations: []string{orderCapture.Name, authorizationCapture.Name, captureRefund.Name},
		Effects: l.shown, Incomplete: incomplete, UpTo: upTo,
	}
	marked := httpadapter.Coverage{List: "transactions that show one mark", UpTo: upTo}
	marked.Incomplete = l.ownMarks(ctx, &marked)
	if marked.Incomplete == "" {
		marked.Incomplete = l.orders(ctx, &marked)
	}
	return []httpadapter.Coverage{money, marked}, l.stopped
}

// span reads one range, in halves where it holds more than a search shows. It
// returns why it was not read to its end.
func (l *lister) span(ctx context.Context, start, end time.Time) (incomplete string) {
	l.pages = 0
	whole, err := l.walk(ctx, list{
		path: transactionsPath, member: "transaction_details", size: transactionSize,
		query: url.Values{
			"start_date": {start.Format(time.RFC3339)}, "end_date": {end.Format(time.RFC3339)},
			"fields": {"transaction_info"}, "balance_affecting_records_only": {"N"},
		},
		dated: true, sound: l.sound,
	}, func(raw json.RawMessage) bool {
		return l.row(raw) != nil
	})
	status, answered := errors.AsType[answered](err)
	switch {
	case l.stopped != nil || l.foreign || whole:
		return ""
	case err == nil && l.pages >= maxPages, answered && status == http.StatusBadRequest:
		if end.Sub(start) < 2*shortestRange {
			return "PayPal shows no more of it: more than 10000 transactions within minutes, or a search that it refuses"
		}
		half := start.Add(end.Sub(start) / 2).Truncate(time.Second)
		if incomplete = l.span(ctx, start, half); incomplete == "" {
			incomplete = l.span(ctx, half, end)
		}
		return incomplete
	case err != nil:
		return err.Error()
	}
	return fmt.Sprintf("the list changed while it was read, it does not say how fresh it is, or PayPal's clock and this machine's are more than %s apart", listMargin)
}

// sound reports whether a page is of the account, and notes how fresh it is.
func (l *lister) sound(page map[string]json.RawMessage) bool {
	l.pages++
	var account, refreshed string
	if json.Unmarshal(page["account_number"], &account) != nil || json.Unmarshal(page["last_refreshed_datetime"], &refreshed) != nil {
		return false
	}
	if account != l.EffectQuery.Account {
		l.foreign = true
		return false
	}
	at := readTime(refreshed)
	if l.refreshed.IsZero() || at.Before(l.refreshed) {
		l.refreshed = at
	}
	return !at.IsZero()
}

// row shows one transaction.
func (l *lister) row(raw json.RawMessage) error {
	var row struct {
		Info struct {
			transaction
			Status string `json:"transaction_status"`
			At     string `json:"transaction_initiation_date"`
		} `json:"transaction_info"`
	}
	if l.stopped = json.Unmarshal(raw, &row); l.stopped != nil {
		l.stopped = errUnreadable
		return l.stopped
	}
	t := row.Info
	effect := httpadapter.ListedEffect{
		Operations: t.operations(), Ref: t.ID, Creates: true, Mark: t.mark(), At: readTime(t.At).UTC(), Refused: t.Status == "D",
	}
	if len(effect.Operations) == 0 {
		return nil
	}
	switch {
	case effect.Mark == "" || effect.Refused:
	case t.payment():
		l.payments.add(effect.Mark, t.ID)
	case t.refund(): // it may be the payment's
		l.refunds.add(effect.Mark, t.ID)
		effect.Mark = ""
	}
	l.shown++
	l.stopped = l.show(effect)
	return l.stopped
}

// operations are those that a transaction can be the effect of; none for what a
// ledger does not know by its transaction: items of payouts, payments of
// subscriptions, reversals, fees.
func (t transaction) operations() []string {
	switch {
	case t.Code == "T0001", t.Code == "T0002":
		return nil
	case t.payment():
		return []string{orderCapture.Name, authorizationCapture.Name}
	case t.Code == "T1107":
		return []string{captureRefund.Name}
	case t.authorization():
		return []string{orderAuthorize.Name, authorizationReauthorize.Name}
	}
	return nil
}

// mark is the mark that a transaction bears; "" for none.
func (t transaction) mark() string {
	for _, text := range []string{t.Custom, t.Invoice} {
		if _, _, err := keyderive.ParseMark(text); err == nil {
			return text
		}
	}
	return ""
}

// add notes a bearer once.
func (b bearers) add(mark, id string) {
	if len(b[mark]) <= maxShown && !slices.Contains(b[mark], id) {
		b[mark] = append(b[mark], id)
	}
}

// ownMarks shows the marks of refunds. A search may show the payment's own field on
// a refund: where several show one mark, each is read for its own. It returns why not
// all were.
func (l *lister) ownMarks(ctx context.Context, c *httpadapter.Coverage) (incomplete string) {
	tell := func(mark, id string) {
		if l.stopped == nil {
			l.stopped = l.show(httpadapter.ListedEffect{Operations: []string{captureRefund.Name}, Ref: id, Creates: true, Mark: mark})
			c.Effects++
		}
	}
	read := 0
	for mark, ids := range l.refunds {
		if len(ids) == 1 {
			tell(mark, ids[0])
			continue
		}
		for _, id := range ids {
			var refund object
			if incomplete = l.object(ctx, &read, refundsPath, id, &refund); incomplete != "" {
				return incomplete
			}
			if refund.carries(mark) {
				tell(mark, id)
			}
		}
	}
	return ""
}

// orders tells the orders apart whose payments bear one mark: two orders of one
// command are a duplicate, two payments of one order are none. It returns why not all
// were.
func (l *lister) orders(ctx context.Context, c *httpadapter.Coverage) (incomplete string) {
	read := 0
	for mark, ids := range l.payments {
		if len(ids) == 1 {
			continue
		}
		for _, id := range ids {
			var payment object
			if incomplete = l.object(ctx, &read, capturesPath, id, &payment); incomplete != "" {
				return incomplete
			}
			if order := payment.orderID(); order != "" && l.stopped == nil {
				l.stopped = l.show(httpadapter.ListedEffect{Operations: []string{orderCreate.Name}, Ref: order, Creates: true, Mark: mark})
				c.Effects++
			}
		}
	}
	return ""
}

// object reads one of the few that are read one by one. It returns why it was not.
func (l *lister) object(ctx context.Context, read *int, collection, id string, into *object) (incomplete string) {
	if *read++; *read > maxShown {
		return fmt.Sprintf("more than %d transactions share their marks with others: ask for a shorter time", maxShown)
	}
	if !idForm.MatchString(id) {
		return "a transaction's id cannot be read"
	}
	if _, err := l.read(ctx, collection+id, nil, into); err != nil {
		return err.Error()
	}
	return ""
}
