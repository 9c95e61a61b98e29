package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	clockSkew = 5 * time.Minute // between the ledger's clock and Stripe's
	pageSize  = 100
	maxPages  = 10 // a list that is longer is not searched to its end: unknown
)

// search is one look-up. It finds by the id that an earlier answer told, by our
// mark, or by a state that is the operation's own goal. What it does not find it
// does not know: it never proves that something is absent.
type search struct {
	get httpadapter.Get
	*outbound.Lookup
}

// Find looks an effect up. A look-up that is refused or fails is an error.
func (codec) Find(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	s := search{get, l}
	switch {
	case l.ExternalRef != "":
		return s.byReference(ctx)
	case s.creates():
		return s.inList(ctx)
	}
	return s.byState(ctx)
}

// creates reports whether the operation makes an object of its own.
func (s search) creates() bool {
	return strings.HasSuffix(s.Operation.Name, ".create") || s.Operation.Name == "payout.reverse"
}

// byReference reads the object that an earlier answer named.
func (s search) byReference(ctx context.Context) (outbound.Finding, error) {
	at := s.list()
	if !s.creates() {
		at, _, _ = strings.Cut(s.Operation.Path, "/{id}")
	}
	if at == "" {
		return outbound.Finding{}, nil
	}
	x, err := s.read(ctx, at+"/"+url.PathEscape(s.ExternalRef), nil)
	if err != nil {
		return outbound.Finding{}, err
	}
	return s.found(x, x.Body, rs.ByLookup)
}

// goal says which states of an object prove that an operation was done, and
// which final ones that it never was.
type goal struct{ reached, missed []string }

// goals are those of the operations whose object's state guards them. Source:
// the life cycles at https://docs.stripe.com/api.
var goals = map[string]goal{
	"payment_intent.confirm":  {reached: []string{"succeeded", "requires_capture", "processing"}, missed: []string{"canceled"}},
	"payment_intent.capture":  {reached: []string{"succeeded"}, missed: []string{"canceled"}},
	"payment_intent.cancel":   {reached: []string{"canceled"}, missed: []string{"succeeded"}},
	"setup_intent.confirm":    {reached: []string{"succeeded", "processing"}, missed: []string{"canceled"}},
	"setup_intent.cancel":     {reached: []string{"canceled"}, missed: []string{"succeeded"}},
	"checkout_session.expire": {reached: []string{"expired"}, missed: []string{"complete"}},
	"subscription.cancel":     {reached: []string{"canceled"}, missed: []string{"incomplete_expired"}},
	"invoice.finalize":        {reached: []string{"open", "paid"}},
	"invoice.pay":             {reached: []string{"paid"}, missed: []string{"void"}},
	"invoice.void":            {reached: []string{"void"}, missed: []string{"paid"}},
	"payout.cancel":           {reached: []string{"canceled"}, missed: []string{"paid", "failed"}},
}

// byState reads the object that the operation works on.
func (s search) byState(ctx context.Context) (outbound.Finding, error) {
	at, ok := s.target()
	if !ok {
		return outbound.Finding{}, nil
	}
	x, err := s.read(ctx, at, nil)
	if err != nil {
		return outbound.Finding{}, err
	}
	var o object
	if err := json.Unmarshal(x.Body, &o); err != nil {
		return outbound.Finding{}, errUnreadable
	}
	g := goals[s.Operation.Name]
	switch {
	case o.carries(s.Operation, s.Mark):
		return s.found(x, x.Body, rs.ByLookup)
	case s.Operation.Name == "v2.account.close" && o.Closed:
		return s.found(x, x.Body, rs.ByStateGuard)
	case slices.Contains(g.reached, o.Status) && s.whole(o):
		return s.found(x, x.Body, rs.ByStateGuard)
	case slices.Contains(g.missed, o.Status):
		return outbound.Finding{
			Effect: outbound.EffectNone, Code: outbound.ErrRefused, Evidence: rs.ByStateGuard,
			ExternalRef: o.ID, ObjectStatus: o.Status, ProviderCode: o.Status,
			RequestID: x.Header.Get(headerRequestID), Answer: answerOf(x.Body),
		}, nil
	}
	return outbound.Finding{}, nil
}

// whole reports whether the state alone can be the operation's goal. That of a
// capture can where it captures everything and nobody else's mark is on it.
func (s search) whole(o object) bool {
	if s.Operation.Name != "payment_intent.capture" {
		return true
	}
	form, err := url.ParseQuery(string(s.Message.Body))
	return err == nil && !form.Has("amount_to_capture") && form.Get("final_capture") != "false" && o.Metadata[onCapture] == ""
}

// filters are the parameters that make a list as short as the request allows.
var filters = map[string][]string{
	"payment_intent.create":   {"customer"},
	"refund.create":           {"charge", "payment_intent"},
	"setup_intent.create":     {"customer"},
	"customer.create":         {"email"},
	"checkout_session.create": {"customer"},
	"subscription.create":     {"customer"},
	"invoice.create":          {"customer"},
	"invoice_item.create":     {"customer", "invoice"},
	"credit_note.create":      {"invoice"},
	"transfer.create":         {"destination", "transfer_group"},
	"payout.create":           {"destination"},
}

// inList looks for our mark among the objects made since the first send.
func (s search) inList(ctx context.Context) (outbound.Finding, error) {
	at := s.list()
	if at == "" || len(s.Operation.Marks) == 0 || s.Mark == "" {
		return outbound.Finding{}, nil
	}
	query := s.query()
	for range maxPages {
		x, err := s.read(ctx, at, query)
		if err != nil {
			return outbound.Finding{}, err
		}
		var page list
		if err := json.Unmarshal(x.Body, &page); err != nil {
			return outbound.Finding{}, errUnreadable
		}
		last := ""
		for _, raw := range page.Data {
			var o object
			if err := json.Unmarshal(raw, &o); err != nil {
				return outbound.Finding{}, errUnreadable
			}
			if o.carries(s.Operation, s.Mark) {
				return s.found(x, raw, rs.ByLookup)
			}
			last = o.ID
		}
		switch {
		case page.NextPageURL != "": // API v2
			at, query = page.NextPageURL, nil
		case page.HasMore && last != "":
			query.Set("starting_after", last)
		default:
			return outbound.Finding{}, nil
		}
	}
	return outbound.Finding{}, nil
}

// query narrows the list. Lists below another object, and those of API v2, take
// no filters, and a cancelled subscription is listed only when asked for.
func (s search) query() url.Values {
	q := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if isV2(s.Operation) || strings.Contains(s.Operation.Path, "/{id}") && s.Operation.Name != "payout.reverse" {
		return q
	}
	if !s.FirstSentAt.IsZero() {
		q.Set("created[gte]", strconv.FormatInt(s.FirstSentAt.Add(-clockSkew).Unix(), 10))
	}
	if form, err := url.ParseQuery(string(s.Message.Body)); err == nil {
		for _, name := range filters[s.Operation.Name] {
			if v := form.Get(name); v != "" {
				q.Set(name, v)
			}
		}
	}
	if s.Operation.Name == "subscription.create" {
		q.Set("status", "all")
	}
	return q
}

// list is the path of the list that a created object stands in; "" where it
// needs an id that is not known any more.
func (s search) list() string {
	if s.Operation.Name == "payout.reverse" {
		return "/v1/payouts"
	}
	if !strings.Contains(s.Operation.Path, "{id}") {
		return s.Operation.Path
	}
	path, _, _ := strings.Cut(s.Message.Target, "?")
	return path
}

// target is the path of the object that the operation works on.
func (s search) target() (string, bool) {
	before, after, ok := strings.Cut(s.Operation.Path, "{id}")
	path, _, _ := strings.Cut(s.Message.Target, "?")
	path, isBelow := strings.CutPrefix(path, before)
	id, isAction := strings.CutSuffix(path, after)
	if !ok || !isBelow || !isAction || id == "" || strings.Contains(id, "/") {
		return "", false
	}
	return before + id, true
}

var errUnreadable = errors.New("stripe: the look-up's answer cannot be read")

// read GETs an object or a list.
func (s search) read(ctx context.Context, at string, query url.Values) (*httpadapter.Exchange, error) {
	x, err := s.get(ctx, at, query)
	if err != nil {
		return nil, fmt.Errorf("stripe: %w", err)
	}
	if x.Status != http.StatusOK {
		return nil, fmt.Errorf("stripe: the look-up was answered %d", x.Status)
	}
	return x, nil
}

// found makes the object in body a finding. An id that Stripe answered for is
// the object's own.
func (s search) found(x *httpadapter.Exchange, body []byte, evidence rs.Evidence) (outbound.Finding, error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || !a.identified() {
		return outbound.Finding{}, errUnreadable
	}
	v := judgeObject(s.Operation.Name, &a)
	return outbound.Finding{
		Effect: v.Effect, Code: v.Code, Evidence: evidence, Outcome: v.Outcome,
		ExternalRef: v.ExternalRef, ObjectStatus: v.ObjectStatus, ProviderCode: v.ProviderCode,
		RequestID: x.Header.Get(headerRequestID), Answer: answerOf(body),
	}, nil
}

func answerOf(body []byte) *outbound.Answer {
	return &outbound.Answer{
		Status: http.StatusOK,
		Header: []outbound.Field{{Name: "Content-Type", Value: "application/json"}},
		Body:   body,
	}
}

// object is what a search reads of one.
type object struct {
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Closed   bool              `json:"closed"`
	Metadata map[string]string `json:"metadata"`
}

// list is a page of API v1, or of v2 with its own way to the next one.
type list struct {
	Data        []json.RawMessage `json:"data"`
	HasMore     bool              `json:"has_more"`
	NextPageURL string            `json:"next_page_url"`
}

// carries reports whether the operation's mark is on o.
func (o object) carries(op rs.Operation, mark string) bool {
	if mark == "" || len(op.Marks) == 0 {
		return false
	}
	name := strings.TrimPrefix(op.Marks[0].Name, "/metadata/")
	name = strings.TrimSuffix(strings.TrimPrefix(name, "metadata["), "]")
	return o.Metadata[name] == mark
}
