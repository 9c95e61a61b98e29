package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const mark = "0000112233445566778899aabbccddeeff00"

// site answers look-ups by their path and query, and counts them.
type site struct {
	pages map[string]string
	asked []string
}

func (s *site) get(_ context.Context, target string, query url.Values) (*httpadapter.Exchange, error) {
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	s.asked = append(s.asked, target)
	body, ok := s.pages[target]
	if !ok {
		return &httpadapter.Exchange{Status: http.StatusNotFound, Body: []byte(noSuchObject)}, nil
	}
	return &httpadapter.Exchange{Status: http.StatusOK, Header: fresh, Body: []byte(body)}, nil
}

func lookup(operation, target, body string) *outbound.Lookup {
	return &outbound.Lookup{
		Operation: operations[operation], Account: "acct_1", Mark: mark,
		Message: outbound.Message{Method: operations[operation].Method, Target: target, Body: []byte(body)},
	}
}

// TestFindByState holds that the goal is found, that a final state which excludes
// it is a refusal, and that everything else is unknown.
func TestFindByState(t *testing.T) {
	t.Parallel()
	const found, refused, unknown = "found", "refused", "unknown"
	for _, c := range []struct {
		op, action, form string
		object           string
		want             string
		evidence         rs.Evidence
	}{
		{"payment_intent.confirm", "/confirm", "", `"status":"succeeded"`, found, rs.ByStateGuard},
		{"payment_intent.confirm", "/confirm", "", `"status":"canceled"`, refused, rs.ByStateGuard},
		{"payment_intent.confirm", "/confirm", "", `"status":"requires_confirmation"`, unknown, ""},
		{"payment_intent.capture", "/capture", "", `"status":"succeeded","metadata":{}`, found, rs.ByStateGuard},
		{"payment_intent.capture", "/capture", "amount_to_capture=5", `"status":"succeeded","metadata":{}`, unknown, ""},
		{"payment_intent.capture", "/capture", "amount_to_capture=5", `"status":"succeeded","metadata":{"samekey_capture":"` + mark + `"}`, found, rs.ByLookup},
		{"payment_intent.capture", "/capture", "", `"status":"succeeded","metadata":{"samekey_capture":"another"}`, unknown, ""},
		{"payment_intent.capture", "/capture", "", `"status":"requires_capture","metadata":{"samekey_command":"` + mark + `"}`, unknown, ""},
		{"payment_intent.capture", "/capture", "", `"status":"canceled"`, refused, rs.ByStateGuard},
		{"payment_intent.cancel", "/cancel", "", `"status":"canceled"`, found, rs.ByStateGuard},
		{"payment_intent.cancel", "/cancel", "", `"status":"succeeded"`, refused, rs.ByStateGuard},
		{"setup_intent.cancel", "/cancel", "", `"status":"canceled"`, found, rs.ByStateGuard},
		{"checkout_session.expire", "/expire", "", `"status":"expired"`, found, rs.ByStateGuard},
		{"checkout_session.expire", "/expire", "", `"status":"complete"`, refused, rs.ByStateGuard},
		{"subscription.update", "", "", `"status":"active","metadata":{"samekey_update":"` + mark + `"}`, found, rs.ByLookup},
		{"subscription.update", "", "", `"status":"active","metadata":{}`, unknown, ""},
		{"subscription.cancel", "", "", `"status":"canceled"`, found, rs.ByStateGuard},
		{"subscription.cancel", "", "", `"status":"active"`, unknown, ""},
		{"invoice.finalize", "/finalize", "", `"status":"open"`, found, rs.ByStateGuard},
		{"invoice.pay", "/pay", "", `"status":"paid"`, found, rs.ByStateGuard},
		{"invoice.pay", "/pay", "", `"status":"open"`, unknown, ""},
		{"invoice.void", "/void", "", `"status":"void"`, found, rs.ByStateGuard},
		{"payout.cancel", "/cancel", "", `"status":"paid"`, refused, rs.ByStateGuard},
		{"v2.account.close", "/close", "", `"closed":true`, found, rs.ByStateGuard},
		{"v2.account.close", "/close", "", `"closed":false`, unknown, ""},
		{"v2.account.update", "", "", `"metadata":{"samekey_update":"` + mark + `"}`, found, rs.ByLookup},
	} {
		collection, _, _ := strings.Cut(operations[c.op].Path, "/{id}")
		s := &site{pages: map[string]string{collection + "/x_1": `{"id":"x_1",` + c.object + `}`}}
		f, err := codec{}.Find(t.Context(), s.get, lookup(c.op, collection+"/x_1"+c.action, c.form))
		got := unknown
		switch {
		case f.Effect == outbound.EffectApplied:
			got = found
		case f.Effect == outbound.EffectNone && f.Code == outbound.ErrRefused:
			got = refused
		}
		if err != nil || got != c.want || f.Evidence != c.evidence {
			t.Errorf("%s %s %s: %+v, %v, want %s", c.op, c.form, c.object, f, err, c.want)
		}
		if got != unknown && (f.ExternalRef != "x_1" || f.Answer == nil || f.RequestID != "req_1") {
			t.Errorf("%s: an incomplete finding: %+v", c.op, f)
		}
	}
	for op := range goals {
		if operations[op].Lookup == "" {
			t.Errorf("goals name %q, which has no look-up", op)
		}
	}
}

// TestFindInList holds that only our mark finds a creation, on whatever page,
// and that a search which finds nothing proves nothing.
func TestFindInList(t *testing.T) {
	t.Parallel()
	first := time.Unix(1_796_000_000+2*60*60, 0)
	other := func(id string) string { return fmt.Sprintf(`{"id":%q,"object":"refund","status":"succeeded"}`, id) }
	ours := `{"id":"re_9","object":"refund","status":"pending","metadata":{"samekey_command":"` + mark + `"}}`
	const query = "/v1/refunds?charge=ch_1&created%5Bgte%5D=1796000000&limit=100"

	l := lookup("refund.create", "/v1/refunds", "charge=ch_1&amount=500")
	l.FirstSentAt = first
	s := &site{pages: map[string]string{
		query:                          `{"object":"list","has_more":true,"data":[` + other("re_1") + `,` + other("re_2") + `]}`,
		query + "&starting_after=re_2": `{"object":"list","has_more":false,"data":[` + other("re_3") + `,` + ours + `]}`,
	}}
	f, err := codec{}.Find(t.Context(), s.get, l)
	if err != nil || f.Effect != outbound.EffectApplied || f.ExternalRef != "re_9" || f.Outcome != outbound.Pending || f.Evidence != rs.ByLookup || string(f.Answer.Body) != ours {
		t.Errorf("got %+v, %v", f, err)
	}

	delete(s.pages, query+"&starting_after=re_2")
	if f, err := (codec{}).Find(t.Context(), s.get, l); err == nil || f.Effect != outbound.EffectUnknown {
		t.Errorf("a look-up that failed gave %+v, %v", f, err)
	}
	s.pages[query] = `{"object":"list","has_more":false,"data":[` + other("re_1") + `]}`
	if f, err := (codec{}).Find(t.Context(), s.get, l); err != nil || f.Effect != outbound.EffectUnknown {
		t.Errorf("a look-up that found nothing gave %+v, %v", f, err)
	}
	s.pages[query] = `{"object":"list","has_more":true,"data":[` + other("re_1") + `]}`
	s.pages[query+"&starting_after=re_1"], s.asked = s.pages[query], nil
	if f, err := (codec{}).Find(t.Context(), s.get, l); err != nil || f.Effect != outbound.EffectUnknown || len(s.asked) != maxPages {
		t.Errorf("an endless list gave %+v, %v after %d pages", f, err, len(s.asked))
	}
}

// TestFindLists holds which list each creation is looked for in.
func TestFindLists(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ op, target, form, want string }{
		{"subscription.create", "/v1/subscriptions", "customer=cus_1", "/v1/subscriptions?customer=cus_1&limit=100&status=all"},
		{"customer.create", "/v1/customers", "email=a%40b.c", "/v1/customers?email=a%40b.c&limit=100"},
		{"transfer_reversal.create", "/v1/transfers/tr_1/reversals", "amount=5", "/v1/transfers/tr_1/reversals?limit=100"},
		{"customer_balance_transaction.create", "/v1/customers/cus_1/balance_transactions", "", "/v1/customers/cus_1/balance_transactions?limit=100"},
		{"payout.reverse", "/v1/payouts/po_1/reverse", "", "/v1/payouts?limit=100"},
		{"v2.account.create", "/v2/core/accounts", "", "/v2/core/accounts?limit=100"},
	} {
		next := `{"data":[],"next_page_url":"/v2/core/accounts?page=2"}`
		found := `{"data":[{"id":"x_1","metadata":{"samekey_command":"` + mark + `"}}]}`
		s := &site{pages: map[string]string{c.want: found}}
		if strings.HasPrefix(c.op, "v2.") {
			s.pages = map[string]string{c.want: next, "/v2/core/accounts?page=2": found}
		}
		f, err := codec{}.Find(t.Context(), s.get, lookup(c.op, c.target, c.form))
		if err != nil || f.ExternalRef != "x_1" {
			t.Errorf("%s: %+v, %v; asked %v", c.op, f, err, s.asked)
		}
	}
}

// TestFindByReference reads what an earlier answer named.
func TestFindByReference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op, target, want string
		evidence         rs.Evidence
	}{
		{"payment_intent.create", "/v1/payment_intents", "/v1/payment_intents/x_1", rs.ByLookup},
		{"payment_intent.create", "", "/v1/payment_intents/x_1", rs.ByLookup},
		{"payment_intent.confirm", "", "/v1/payment_intents/x_1", rs.ByStateGuard}, // the object was there before
		{"payout.reverse", "/v1/payouts/po_1/reverse", "/v1/payouts/x_1", rs.ByLookup},
		{"transfer_reversal.create", "/v1/transfers/tr_1/reversals", "/v1/transfers/tr_1/reversals/x_1", rs.ByLookup},
	} {
		s := &site{pages: map[string]string{c.want: `{"id":"x_1","status":"succeeded"}`}}
		l := lookup(c.op, c.target, "")
		l.ExternalRef, l.Mark = "x_1", ""
		f, err := codec{}.Find(t.Context(), s.get, l)
		if err != nil || f.ExternalRef != "x_1" || f.Evidence != c.evidence {
			t.Errorf("%s: %+v, %v; asked %v", c.op, f, err, s.asked)
		}
	}
}

// TestFindNeedsWhatItSearchesBy holds that nothing is asked, and nothing known,
// where message or mark are gone.
func TestFindNeedsWhatItSearchesBy(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"payment_intent.confirm", "subscription.cancel", "transfer_reversal.create"} {
		s := &site{}
		if f, err := (codec{}).Find(t.Context(), s.get, lookup(op, "", "")); err != nil || f.Effect != outbound.EffectUnknown || len(s.asked) != 0 {
			t.Errorf("%s: %+v, %v; asked %v", op, f, err, s.asked)
		}
	}
	l := lookup("refund.create", "/v1/refunds", "")
	l.Mark = ""
	s := &site{}
	if f, err := (codec{}).Find(t.Context(), s.get, l); err != nil || f.Effect != outbound.EffectUnknown || len(s.asked) != 0 {
		t.Errorf("without a mark: %+v, %v; asked %v", f, err, s.asked)
	}
}

// TestFindFails holds C24: a look-up that fails, whatever the status, is an
// error, which is unknown, and never a failure of the payment.
func TestFindFails(t *testing.T) {
	t.Parallel()
	down := errors.New("no route")
	for _, get := range []httpadapter.Get{
		func(context.Context, string, url.Values) (*httpadapter.Exchange, error) { return nil, down },
		answers(http.StatusForbidden, badKey), answers(http.StatusBadRequest, missingParam), answers(http.StatusNotFound, noSuchObject),
		answers(http.StatusInternalServerError, serverError), answers(http.StatusOK, htmlPage), answers(http.StatusOK, `{"data":[7]}`),
	} {
		for _, l := range []*outbound.Lookup{
			lookup("refund.create", "/v1/refunds", "charge=ch_1"),
			lookup("payment_intent.cancel", "/v1/payment_intents/pi_1/cancel", ""),
		} {
			f, err := codec{}.Find(t.Context(), get, l)
			if f.Effect != outbound.EffectUnknown || f.Answer != nil {
				t.Errorf("%s: %+v, %v", l.Operation.Name, f, err)
			}
		}
	}
}

func answers(status int, body string) httpadapter.Get {
	return func(context.Context, string, url.Values) (*httpadapter.Exchange, error) {
		return &httpadapter.Exchange{Status: status, Header: fresh, Body: []byte(body)}, nil
	}
}

// TestSame holds when a listed member can be what the request gave: where the
// request's text is not understood, it can.
func TestSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		member, want string
		same         bool
	}{
		{`500`, "500", true}, {`500`, "0500", true}, {`500`, "499", false}, {`500`, "5e2", true},
		{`"eur"`, "EUR", true}, {`"eur"`, "usd", false}, {`null`, "ch_1", false}, {`null`, "0", false},
		{`{"id":"ch_1","object":"charge"}`, "ch_1", true}, {`{"id":"ch_2"}`, "ch_1", false}, {`true`, "x", true},
	} {
		if got := same(json.RawMessage(c.member), c.want); got != c.same {
			t.Errorf("%s and %q: %t", c.member, c.want, got)
		}
	}
}
