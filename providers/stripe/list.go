package stripe

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// collection is the list that an operation's new object stands in.
type collection struct {
	// fixed are the parameters that become members of the object which nobody can
	// change; of those, filters make the list shorter.
	fixed, filters []string

	// loose are filters by members that can change: what they leave out may still
	// be ours.
	loose []string

	// doubt is why finding nothing proves nothing; "" if it can prove absence: the
	// object cannot be deleted, whatever state it ends in it stays listed, and the
	// list is a top-level one, which is immediately consistent.
	doubt string
}

const nested = "nobody states that a list below an object is consistent at once"

// collections are those of the creations. Sources: the update, delete and list
// endpoints of each object at https://docs.stripe.com/api.
var collections = map[string]collection{
	"payment_intent.create":               {loose: []string{"customer"}},
	"refund.create":                       {filters: []string{"charge", "payment_intent"}, fixed: []string{"charge", "payment_intent", "amount"}},
	"setup_intent.create":                 {loose: []string{"customer"}},
	"customer.create":                     {loose: []string{"email"}, doubt: "a customer can be deleted"},
	"customer_balance_transaction.create": {doubt: nested},
	"checkout_session.create":             {filters: []string{"customer"}, fixed: []string{"customer", "client_reference_id"}},
	"subscription.create":                 {filters: []string{"customer"}, fixed: []string{"customer"}},
	"invoice.create":                      {filters: []string{"customer"}, doubt: "a draft invoice can be deleted"},
	"invoice_item.create":                 {loose: []string{"customer", "invoice"}, doubt: "an invoice item can be deleted"},
	"credit_note.create":                  {filters: []string{"invoice"}, fixed: []string{"invoice"}},
	"transfer.create":                     {filters: []string{"destination", "transfer_group"}, fixed: []string{"destination", "transfer_group", "amount", "currency"}},
	"transfer_reversal.create":            {doubt: nested},
	"payout.create":                       {filters: []string{"destination"}, fixed: []string{"destination", "amount", "currency"}},
	"payout.reverse":                      {fixed: []string{"original_payout"}},
	"v2.account.create":                   {doubt: "a closed account is not listed"},
	"v2.event_destination.create":         {doubt: "an event destination can be deleted"},
}

// lists looks for marks in lists: in one for all look-ups of an operation whose
// list is top-level.
func (b *batch) lists(ctx context.Context) {
	groups := make(map[string][]*search)
	var order []string
	b.each(func(s *search) error {
		at := s.list()
		if at == "" || len(b.op.Marks) == 0 || s.Mark == "" {
			return nil
		}
		if groups[at] == nil {
			order = append(order, at)
		}
		groups[at] = append(groups[at], s)
		return nil
	})
	for _, at := range order {
		if err := b.inList(ctx, at, groups[at]); err != nil {
			for _, s := range groups[at] {
				if s.open() {
					s.err = err
				}
			}
		}
	}
}

// inList looks for the group's marks in one list. A narrow list finds; what is
// not in it is proved absent only by the whole one, where that is another.
func (b *batch) inList(ctx context.Context, at string, group []*search) error {
	c := collections[b.op.Name]
	var used credential
	if b.provable(group) {
		var err error
		if used, err = b.owners.credential(ctx, group[0].Lookup); err != nil {
			return err
		}
	}
	narrow := b.query(group, slices.Concat(c.filters, c.loose))
	whole, err := b.scan(ctx, at, narrow, group)
	if err != nil {
		return err
	}
	if loosely := slices.ContainsFunc(c.loose, narrow.Has); loosely && b.provable(group) {
		if whole, err = b.scan(ctx, at, b.query(group, c.filters), group); err != nil {
			return err
		}
	}
	if !whole || !b.provable(group) {
		return nil
	}
	if err := b.owners.check(ctx, b.get, group[0].Lookup, used); err != nil {
		return err
	}
	for _, s := range group {
		s.missing = s.provable()
	}
	return nil
}

// absences makes findings of what complete lists miss, unless an event showed
// since that the key was used.
func (b *batch) absences() {
	for _, s := range b.searches {
		if s.missing && s.provable() {
			s.absent()
		}
	}
}

// provable reports whether the absence of one of the group can be proved.
func (b *batch) provable(group []*search) bool {
	return b.owners != nil && slices.ContainsFunc(group, (*search).provable)
}

// provable reports whether finding nothing would prove that there is nothing. Not
// where something named the object, nor where the key was used with another
// request, of which nobody knows what it did.
func (s *search) provable() bool {
	c, listed := collections[s.Operation.Name]
	return s.open() && listed && c.doubt == "" && !s.rival && s.ExternalRef == "" && s.Code != typeIdempotency && s.sentMark() &&
		!s.FirstSentAt.IsZero() && !s.SentUntil.IsZero()
}

// scan reads a list, newest first, until everything is found or it ends, and
// reports whether it ended.
func (b *batch) scan(ctx context.Context, at string, query url.Values, group []*search) (whole bool, err error) {
	return b.pages(ctx, at, query, pagesFor(len(group)), func(x *httpadapter.Exchange, raw json.RawMessage) (last string, more bool, err error) {
		var o object
		if err := json.Unmarshal(raw, &o); err != nil {
			return "", false, errUnreadable
		}
		more = false
		for _, s := range group {
			if !s.open() {
				continue
			}
			switch {
			case o.carries(b.op, s.Mark), s.ExternalRef != "" && o.ID == s.ExternalRef && !isMark(o.mark(b.op)):
				if err := s.found(x, raw, rs.ByLookup); err != nil {
					return "", false, err
				}
				continue
			case !isMark(o.mark(b.op)) && s.mayBe(raw, collections[b.op.Name].fixed):
				s.rival = true
			}
			more = true
		}
		return o.ID, more, nil
	})
}

// pagesFor bounds a list that answers so many look-ups.
func pagesFor(searches int) int { return min(maxPages*searches, allPages) }

// pages reads a list page by page and shows each element, until it ends, most pages
// were read or show wants no more of it. It reports whether the list ended, and held what its query
// says: one by times does so only where the clocks agree.
func (b *batch) pages(ctx context.Context, at string, query url.Values, most int,
	show func(x *httpadapter.Exchange, raw json.RawMessage) (id string, more bool, err error),
) (ended bool, err error) {
	agreed := true
	for range most {
		x, err := b.read(ctx, at, query)
		if err != nil {
			return false, err
		}
		var p page
		if err := json.Unmarshal(x.Body, &p); err != nil || p.Data == nil {
			return false, errUnreadable
		}
		agreed = agreed && b.agrees(x)
		last := ""
		for _, raw := range *p.Data {
			id, more, err := show(x, raw)
			if err != nil || !more {
				return false, err
			}
			last = id
		}
		switch {
		case p.NextPageURL != "": // API v2
			at, query = p.NextPageURL, nil
		case !p.HasMore:
			return agreed, nil
		case last == "":
			return false, errUnreadable // more of it, and no place to go on from
		case query == nil:
			return false, errUnreadable
		default:
			query.Set("starting_after", last)
		}
	}
	return false, nil
}

// agrees reports whether Stripe's clock, as the Date of an answer tells it, and the
// ledger's differ by no more than clockSkew. A server with a clock must send a Date
// (RFC 9110, 6.6.1), and Stripe's do: without one nothing is known.
func (b *batch) agrees(x *httpadapter.Exchange) bool {
	date, err := http.ParseTime(x.Header.Get("Date"))
	return err == nil && date.Sub(b.searches[0].Now()).Abs() <= clockSkew
}

// page is one of a list of API v1, or of v2 with its own way to the next one.
type page struct {
	Data        *[]json.RawMessage `json:"data"`
	HasMore     bool               `json:"has_more"`
	NextPageURL string             `json:"next_page_url"`
}

// query narrows a list to when the group's effects can have been created, and by
// the parameters that all of its requests share. A list below a transfer, and
// those of API v2, take no filters; a canceled subscription is listed only when
// asked for.
func (b *batch) query(group []*search, filters []string) url.Values {
	q := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if isV2(b.op) || b.op.Name == "transfer_reversal.create" {
		return q
	}
	created(q, group)
	for _, name := range filters {
		v := group[0].form.Get(name)
		same := func(s *search) bool { return s.form.Get(name) == v }
		if v != "" && !slices.ContainsFunc(group, func(s *search) bool { return !same(s) }) {
			q.Set(name, v)
		}
	}
	if b.op.Name == "subscription.create" {
		q.Set("status", "all")
	}
	return q
}

// created narrows a list to the group's window.
func created(q url.Values, group []*search) {
	from, until := window(group)
	for bound, t := range map[string]time.Time{"created[gte]": from, "created[lte]": until} {
		if !t.IsZero() {
			q.Set(bound, strconv.FormatInt(t.Unix(), 10))
		}
	}
}
