package paypal

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	// listMargin is how far apart the ledger's clock and PayPal's may be where a list
	// shall hold all that a command made: a zone set wrong is an hour.
	listMargin = 2 * time.Hour

	// statusMargin is how far apart they may be where a single time decides whether
	// the command or somebody before it was at work.
	statusMargin = 5 * time.Minute

	lateness = time.Hour // of what a request makes, after it was written
	maxPages = 20        // a list that is longer is not searched to its end: unknown
)

// period is a span of time, its ends included.
type period struct{ from, until time.Time }

func (p period) known() bool { return !p.from.IsZero() }

// madeIn is when what the command made came into being, by the ledger's clock, as
// far as that has passed; the zero period where the first send is not known.
func madeIn(l *outbound.Lookup) period {
	if l.FirstSentAt.IsZero() {
		return period{}
	}
	until := l.Now()
	if end := l.SentUntil.Add(lateness); !l.SentUntil.IsZero() && end.Before(until) {
		until = end
	}
	return period{l.FirstSentAt, until}
}

// within is p by a clock that differs by no more than margin, in whole seconds.
func (p period) within(margin time.Duration) period {
	if !p.known() {
		return p
	}
	return period{p.from.Add(-margin).UTC().Truncate(time.Second), p.until.Add(margin).UTC().Truncate(time.Second).Add(time.Second)}
}

// agrees reports whether PayPal's clock, as the Date of an answer tells it, and the
// ledger's differ by no more than margin. A server with a clock must send a Date
// (RFC 9110, 6.6.1), and PayPal's do: without one nothing is known.
func (s search) agrees(x *httpadapter.Exchange, margin time.Duration) bool {
	date, err := http.ParseTime(x.Header.Get("Date"))
	return err == nil && date.Sub(s.Now()).Abs() <= margin
}

// list is a list that comes in pages.
type list struct {
	path   string
	query  url.Values
	member string // the name of the items
	size   int    // of a page, at most

	dated bool // the query names times: it means what it says only where the clocks agree

	// sound reports whether a page is what the search takes it for; nil for always.
	sound func(page map[string]json.RawMessage) bool
}

// walk hands each item of a list over, until there is enough. whole reports
// whether all of the list was seen: every page was sound and told of as many items,
// and there were as many.
func (s search) walk(ctx context.Context, l list, each func(json.RawMessage) (enough bool)) (whole bool, err error) {
	query := url.Values{"page_size": {strconv.Itoa(l.size)}, "total_required": {"true"}}
	for name, value := range l.query {
		query[name] = value
	}
	seen, promised, sound := 0, 0, true
	for n := 1; n <= maxPages; n++ {
		query.Set("page", strconv.Itoa(n))
		var page map[string]json.RawMessage
		x, err := s.read(ctx, l.path, query, &page)
		if err != nil {
			return false, err
		}
		var items []json.RawMessage
		if raw, given := page[l.member]; given && json.Unmarshal(raw, &items) != nil {
			return false, errUnreadable
		}
		for _, item := range items {
			if seen++; each(item) {
				return false, nil
			}
		}
		total, told := number(page["total_items"])
		if n == 1 {
			promised = total
		}
		sound = sound && total == promised && (l.sound == nil || l.sound(page)) && (!l.dated || s.agrees(x, listMargin))
		pages, counted := number(page["total_pages"])
		if !told || !counted || n >= pages {
			return sound && told && counted && seen == total, nil
		}
	}
	return false, nil
}

func number(raw json.RawMessage) (n int, ok bool) {
	err := json.Unmarshal(raw, &n)
	return n, err == nil
}

// subscription looks for our mark among the plan's subscriptions, ended ones
// included. A custom_id can be changed later: absent needs another command's
// mark on every one of them.
func (s search) subscription(ctx context.Context) (outbound.Finding, error) {
	var request struct {
		PlanID string `json:"plan_id"`
	}
	if !s.asked(&request) || !idForm.MatchString(request.PlanID) || s.Mark == "" || !s.sent.known() {
		return outbound.Finding{}, nil
	}
	query := url.Values{
		"plan_ids":      {request.PlanID},
		"statuses":      {"APPROVAL_PENDING,APPROVED,ACTIVE,SUSPENDED,CANCELLED,EXPIRED"},
		"created_after": {s.listed.from.Format(time.RFC3339)},
	}
	if s.listed.until.Before(s.began) { // else the list ends at PayPal's own present
		query.Set("created_before", s.listed.until.Format(time.RFC3339))
	}
	id, foreign := "", true
	whole, err := s.walk(ctx, list{
		path: strings.TrimSuffix(subscriptionsPath, "/"), member: "subscriptions", size: 20, query: query, dated: true,
	}, func(raw json.RawMessage) bool {
		var o object
		if json.Unmarshal(raw, &o) != nil {
			foreign = false
			return false
		}
		if o.CustomID == s.Mark {
			id = o.ID
		}
		_, _, err := keyderive.ParseMark(o.CustomID)
		foreign = foreign && err == nil
		return id != ""
	})
	switch {
	case err != nil:
		return outbound.Finding{}, err
	case id != "":
		return s.byMark(ctx, subscriptionsPath, id)
	case whole && foreign && s.stamped() && !s.SentUntil.IsZero():
		return absentIf(s.ownAccount(ctx))
	}
	return outbound.Finding{}, nil
}

// byMark reads an object that a list showed, which counts only if it carries our
// mark itself.
func (s search) byMark(ctx context.Context, collection, id string) (outbound.Finding, error) {
	if !idForm.MatchString(id) {
		return outbound.Finding{}, nil
	}
	var o object
	x, err := s.read(ctx, collection+id, nil, &o)
	if err != nil || !o.carries(s.Mark) {
		return outbound.Finding{}, err
	}
	return s.foundObject(x, rs.ByLookup, &o)
}

// paymentToken tells by the state of the setup token whether it has become a
// payment token, and shows it where it is the customer's only one. Tokens can be
// deleted, and carry no mark: nothing proves that there is none.
func (s search) paymentToken(ctx context.Context) (outbound.Finding, error) {
	var request struct {
		PaymentSource struct {
			Token struct {
				ID   string `json:"id"`
				Type string `json:"type"`
			} `json:"token"`
		} `json:"payment_source"`
	}
	if !s.asked(&request) {
		return outbound.Finding{}, nil
	}
	token := request.PaymentSource.Token
	if token.Type != "SETUP_TOKEN" || !idForm.MatchString(token.ID) {
		return outbound.Finding{}, nil
	}
	var setup object
	x, err := s.read(ctx, setupTokensPath+token.ID, nil, &setup)
	if err != nil || setup.ID != token.ID || setup.Status != "VAULTED" {
		return outbound.Finding{}, err
	}
	if setup.Customer.ID == "" {
		return foundState(x), nil
	}
	var tokens []object
	whole, err := s.walk(ctx, list{
		path: strings.TrimSuffix(paymentTokensPath, "/"), member: "payment_tokens", size: 5,
		query: url.Values{"customer_id": {setup.Customer.ID}},
	}, func(raw json.RawMessage) bool {
		var o object
		if json.Unmarshal(raw, &o) == nil {
			tokens = append(tokens, o)
		}
		return len(tokens) > 1
	})
	if err != nil {
		return outbound.Finding{}, err
	}
	if !whole || len(tokens) != 1 {
		return foundState(x), nil
	}
	return s.foundObject(x, rs.ByStateGuard, &tokens[0])
}

// invoice looks for the number that the request gave the invoice: PayPal gives
// no number twice, so that the invoice with this number, if it was made since
// the first send, is the goal. A draft can be deleted: nothing proves that there
// was none.
func (s search) invoice(ctx context.Context) (outbound.Finding, error) {
	var request struct {
		Detail invoiceDetail `json:"detail"`
	}
	if !s.asked(&request) || request.Detail.InvoiceNumber == "" || !s.sent.known() {
		return outbound.Finding{}, nil
	}
	id := ""
	_, err := s.walk(ctx, list{
		path: strings.TrimSuffix(invoicesPath, "/"), member: "items", size: 100,
	}, func(raw json.RawMessage) bool {
		var o object
		if json.Unmarshal(raw, &o) == nil && s.isInvoice(&o, request.Detail.InvoiceNumber) {
			id = o.ID
		}
		return id != ""
	})
	if err != nil || !idForm.MatchString(id) {
		return outbound.Finding{}, err
	}
	var o object
	x, err := s.read(ctx, invoicesPath+id, nil, &o)
	if err != nil || !s.agrees(x, statusMargin) || !s.isInvoice(&o, request.Detail.InvoiceNumber) {
		return outbound.Finding{}, err
	}
	return s.foundObject(x, rs.ByStateGuard, &o)
}

func (s search) isInvoice(o *object, number string) bool {
	made := readTime(o.Detail.Metadata.CreateTime)
	return o.Detail.InvoiceNumber == number && !made.Before(s.sent.from) && !made.After(s.sent.until)
}
