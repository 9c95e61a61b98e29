package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// eventsKept is how long Stripe lists events. Source:
// https://docs.stripe.com/api/events/list.
const eventsKept = 30 * 24 * time.Hour

// trace is the events that a request leaves, with its key in
// request.idempotency_key. An event is evidence of an effect or of a decline;
// the lack of one proves nothing.
type trace struct {
	object  string // What the operation creates or works on, as in the object attribute.
	applied []string
	refused []string
	beside  []string // Applied too, but without the id of the object: they serve webhooks only.
}

// traces are those of the operations that take a key. Source:
// https://docs.stripe.com/api/events/types.
var traces = map[string]trace{
	"payment_intent.create": {object: "payment_intent", applied: []string{"payment_intent.created"}, refused: []string{"payment_intent.payment_failed"}},
	"payment_intent.confirm": {
		object: "payment_intent",
		applied: []string{
			"payment_intent.succeeded", "payment_intent.processing", "payment_intent.requires_action", "payment_intent.amount_capturable_updated",
		},
		refused: []string{"payment_intent.payment_failed"},
	},
	"payment_intent.capture": {object: "payment_intent", applied: []string{"payment_intent.succeeded", "charge.captured"}},
	"payment_intent.cancel":  {object: "payment_intent", applied: []string{"payment_intent.canceled"}},

	"refund.create": {object: "refund", applied: []string{"refund.created"}, beside: []string{"charge.refunded"}},

	"setup_intent.create": {object: "setup_intent", applied: []string{"setup_intent.created"}, refused: []string{"setup_intent.setup_failed"}},
	"setup_intent.confirm": {
		object: "setup_intent", applied: []string{"setup_intent.succeeded", "setup_intent.requires_action"}, refused: []string{"setup_intent.setup_failed"},
	},
	"setup_intent.cancel": {object: "setup_intent", applied: []string{"setup_intent.canceled"}},

	"customer.create": {object: "customer", applied: []string{"customer.created"}},

	"checkout_session.create": {object: "checkout.session"}, // leaves none
	"checkout_session.expire": {object: "checkout.session", applied: []string{"checkout.session.expired"}},

	"subscription.create": {object: "subscription", applied: []string{"customer.subscription.created"}},
	"subscription.update": {object: "subscription", applied: []string{"customer.subscription.updated"}},

	"invoice.create":      {object: "invoice", applied: []string{"invoice.created"}},
	"invoice.finalize":    {object: "invoice", applied: []string{"invoice.finalized"}},
	"invoice.pay":         {object: "invoice", applied: []string{"invoice.paid"}, refused: []string{"invoice.payment_failed"}},
	"invoice.void":        {object: "invoice", applied: []string{"invoice.voided"}},
	"invoice.send":        {object: "invoice", applied: []string{"invoice.sent"}},
	"invoice_item.create": {object: "invoiceitem", applied: []string{"invoiceitem.created"}},
	"credit_note.create":  {object: "credit_note", applied: []string{"credit_note.created"}},

	"transfer.create":          {object: "transfer", applied: []string{"transfer.created"}},
	"transfer_reversal.create": {object: "transfer_reversal", beside: []string{"transfer.reversed"}},

	"payout.create":  {object: "payout", applied: []string{"payout.created"}},
	"payout.cancel":  {object: "payout", applied: []string{"payout.canceled"}},
	"payout.reverse": {object: "payout", applied: []string{"payout.created"}},
}

// event is what is read of one, in a list or a webhook.
type event struct {
	ID       string `json:"id"`
	Object   string `json:"object"`
	Type     string `json:"type"`
	Account  string `json:"account"` // Of a connected account; "" for the one that listens.
	Created  int64  `json:"created"`
	Livemode *bool  `json:"livemode"`
	Data     struct {
		Object json.RawMessage `json:"object"`
	} `json:"data"`
	Request json.RawMessage `json:"request"` // An object; in old versions of the API a text.
}

// key returns the key of the request that caused the event; the zero Key where
// it is none of ours.
func (e *event) key() keyderive.Key {
	var request struct {
		Key string `json:"idempotency_key"`
	}
	if json.Unmarshal(e.Request, &request) != nil {
		return keyderive.Key{}
	}
	key, err := keyderive.Parse(request.Key)
	if err != nil {
		return keyderive.Key{}
	}
	return key
}

// idOf returns the id of the object of a kind that the event is about, itself or
// as a member: the payment_intent of a charge; "" if it names none.
func (e *event) idOf(kind string) string {
	var o struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}
	if json.Unmarshal(e.Data.Object, &o) != nil {
		return ""
	}
	if o.Object == kind {
		return o.ID
	}
	var members map[string]json.RawMessage
	var id ID
	if json.Unmarshal(e.Data.Object, &members) != nil || json.Unmarshal(members[kind], &id) != nil {
		return ""
	}
	return string(id)
}

// events looks for the keys of what is still open in one list of events.
func (b *batch) events(ctx context.Context) {
	tr := traces[b.op.Name]
	types := slices.Concat(tr.applied, tr.refused)
	byKey := make(map[keyderive.Key]*search)
	var group []*search
	b.each(func(s *search) error {
		if len(types) > 0 && !s.Key.IsZero() && !s.FirstSentAt.IsZero() && s.Now().Sub(s.FirstSentAt) < eventsKept {
			byKey[s.Key] = s
			group = append(group, s)
		}
		return nil
	})
	if len(group) == 0 {
		return
	}
	q := url.Values{"limit": {strconv.Itoa(pageSize)}, "types[]": types}
	created(q, group)
	seen := make(map[*search]event)
	_, err := b.pages(ctx, "/v1/events", q, pagesFor(len(group)), func(_ *httpadapter.Exchange, raw json.RawMessage) (string, bool, error) {
		var e event
		if err := json.Unmarshal(raw, &e); err != nil {
			return "", false, errUnreadable
		}
		s := byKey[e.key()]
		if s == nil || !slices.Contains(types, e.Type) {
			return e.ID, true, nil
		}
		s.rival = true
		if _, newer := seen[s]; !newer && s.asSent(&e) && (slices.Contains(tr.refused, e.Type) || s.madeOf(&e) != "") {
			seen[s] = e
		}
		return e.ID, len(seen) < len(group), nil
	})
	for _, s := range group {
		if e, ok := seen[s]; ok {
			err := b.told(ctx, s, &e)
			s.err = err
		} else if err != nil {
			s.err = err
		}
	}
}

// asSent reports whether the event's object shows what our request put in the
// place of the mark. If not, the key was used with another request.
func (s *search) asSent(e *event) bool {
	var o struct {
		object
		Kind string `json:"object"`
	}
	if json.Unmarshal(e.Data.Object, &o) != nil {
		return false
	}
	if markField(s.Operation) == "" || o.Kind != traces[s.Operation.Name].object {
		return true
	}
	want := s.Mark
	if place := s.Operation.Marks[0].Name; s.form.Has(place) {
		want = s.form.Get(place)
	}
	return o.mark(s.Operation) == want
}

// madeOf is the path of the object that the event's request made or changed; ""
// if the event does not name it.
func (s *search) madeOf(e *event) string {
	id := e.idOf(traces[s.Operation.Name].object)
	switch {
	case id == "":
		return ""
	case !creates(s.Operation):
		at, _, _ := strings.Cut(s.Operation.Path, "{id}")
		return at + url.PathEscape(id)
	case s.list() == "":
		return ""
	}
	return s.list() + "/" + url.PathEscape(id)
}

// told makes an event of the search's key the finding: a decline as the event
// tells it, an effect as its object stands now.
func (b *batch) told(ctx context.Context, s *search, e *event) error {
	if slices.Contains(traces[s.Operation.Name].refused, e.Type) {
		var a answer
		if json.Unmarshal(e.Data.Object, &a) != nil {
			return errUnreadable
		}
		v := declined(&a)
		if a.failure() == "" {
			v.ProviderCode = e.Type
		}
		s.conclude(v, rs.ByLookup, "", e.Data.Object)
		return nil
	}
	s.created = true
	x, err := b.read(ctx, s.madeOf(e), nil)
	if answered := answeredError(0); errors.As(err, &answered) && answered == http.StatusNotFound {
		// It was deleted since: what the event showed of it is the latest status.
		return s.found(&httpadapter.Exchange{}, e.Data.Object, rs.ByLookup)
	}
	if err != nil {
		return err
	}
	return s.found(x, x.Body, rs.ByLookup)
}
