package stripe_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// all looks up and returns how many effects were found, absent and unknown.
func (p *probe) all(ls []*outbound.Lookup, ids []string) (found, absent, unknown int) {
	p.Helper()
	findings, err := p.adapter.FindAll(p.Context(), ls)
	if err != nil || len(findings) != len(ls) {
		p.Fatalf("got %d findings for %d look-ups, %v", len(findings), len(ls), err)
	}
	for i, f := range findings {
		switch {
		case f.Effect == outbound.EffectApplied && f.ExternalRef == ids[i]:
			found++
		case f.Effect == outbound.EffectNone && f.Code == "" && ids[i] == "":
			absent++
		case f.Effect == outbound.EffectUnknown:
			unknown++
		default:
			p.Errorf("look-up %d of %s: got %+v, want %q", i, ls[i].Operation.Name, f, ids[i])
		}
	}
	return found, absent, unknown
}

func (p *probe) gets() int { return len(p.wire.sent) - len(p.wire.writes()) }

// TestFindAllByOneList holds that one list answers 100 look-ups, and that those
// which it misses are proved absent.
func TestFindAllByOneList(t *testing.T) {
	probing(t, nil, func(p *probe) {
		charge := p.fake.Seed(providertest.Charge{Amount: 99_000_000})
		var ls []*outbound.Lookup
		var ids []string
		for i := range 100 {
			call := refundOf(fmt.Sprintf("cmd_%d", i), charge)
			if i%10 == 0 {
				ls, ids = append(ls, p.asks(call)), append(ids, "")
				continue
			}
			l, id := p.sent(call)
			ls, ids = append(ls, l), append(ids, id)
		}
		if found, absent, _ := p.all(ls, ids); found != 90 || absent != 10 {
			p.Errorf("%d found, %d absent, want 90 and 10", found, absent)
		}
		if lists, owner, events := len(p.fake.Requests("refund.list")), len(p.fake.Requests("account.get")), len(p.fake.Requests("event.list")); lists != 1 || owner != 1 || events != 1 {
			p.Errorf("%d lists of refunds, %d of events, and %d questions for the account, want one each", lists, events, owner)
		}
	})
}

// TestFindAllOfSeveralParents holds that one list serves look-ups whose filters
// differ, that a list below an object serves those of that object, and that an id
// which an event named is found in the list too.
func TestFindAllOfSeveralParents(t *testing.T) {
	probing(t, nil, func(p *probe) {
		var ls []*outbound.Lookup
		var ids []string
		for i := range 4 {
			l, id := p.sent(refundOf(fmt.Sprintf("cmd_%d", i), p.fake.Seed(providertest.Charge{})))
			if i == 0 {
				l.ExternalRef = id
			}
			ls, ids = append(ls, l), append(ids, id)
		}
		if found, _, _ := p.all(ls, ids); found != 4 || p.gets() != 1 {
			p.Errorf("%d found by %d requests, want 4 by one", found, p.gets())
		}
	})
	t.Run("nested", func(t *testing.T) {
		probing(t, nil, func(p *probe) {
			var ls []*outbound.Lookup
			var ids []string
			for range 2 {
				transfer := p.fake.Seed(providertest.Transfer{})
				for i := range 3 {
					l, id := p.sent(stripe.TransferReversalCreate(outbound.Command{ID: fmt.Sprint(transfer, i)}, transfer, values("amount", "10")))
					ls, ids = append(ls, l), append(ids, id)
				}
			}
			if found, _, _ := p.all(ls, ids); found != 6 || p.gets() != 2 {
				p.Errorf("%d found by %d requests, want 6 by two", found, p.gets())
			}
		})
	})
}

// TestFindAllByEvents holds that one list of events answers for many requests
// that leave no other trace, and that its lack of one proves nothing.
func TestFindAllByEvents(t *testing.T) {
	probing(t, nil, func(p *probe) {
		var ls []*outbound.Lookup
		var ids []string
		for i := range 20 {
			invoice := p.fake.Seed(providertest.StripeInvoice{})
			call := stripe.InvoiceSend(outbound.Command{ID: fmt.Sprintf("cmd_%d", i)}, invoice, nil)
			if i%2 == 0 {
				ls, ids = append(ls, p.asks(call)), append(ids, "")
				continue
			}
			l, _ := p.sent(call)
			ls, ids = append(ls, l), append(ids, invoice)
		}
		found, absent, unknown := p.all(ls, ids)
		if found != 10 || absent != 0 || unknown != 10 {
			p.Errorf("%d found, %d absent, %d unknown, want 10, none, 10", found, absent, unknown)
		}
		if n := len(p.fake.Requests("event.list")); n != 1 {
			p.Errorf("%d lists of events, want 1", n)
		}
	})
}

// TestFindAllByState holds that objects are read one by one where no list helps,
// and no more of them once Stripe objects.
func TestFindAllByState(t *testing.T) {
	probing(t, nil, func(p *probe) {
		var ls []*outbound.Lookup
		var ids []string
		for i := range 5 {
			intent := p.fake.Seed(providertest.PaymentIntent{})
			l, _ := p.sent(stripe.PaymentIntentCancel(outbound.Command{ID: fmt.Sprintf("cmd_%d", i)}, intent, nil))
			ls, ids = append(ls, l), append(ids, intent)
		}
		if found, _, _ := p.all(ls, ids); found != 5 {
			p.Errorf("%d found, want 5", found)
		}
		before := p.gets()
		p.fake.Inject(providertest.Fault{Kind: providertest.RateLimit, Operation: "payment_intent.get"})
		if f, err := p.adapter.FindAll(p.Context(), ls); err == nil || p.gets() != before+1 {
			p.Errorf("got %+v, %v after %d requests, want an error after one", f, err, p.gets()-before)
		}
		p.fake.Inject(providertest.Fault{Kind: providertest.RateLimit, Operation: "payment_intent.get", Skip: 2})
		if found, _, unknown := p.all(ls, ids); found != 2 || unknown != 3 {
			p.Errorf("%d found, %d unknown, want 2 and 3", found, unknown)
		}
	})
}

// TestTargetThatIsNotKnown holds that an operation on an object is found by its
// event where the request, and so the object, is not known any more.
func TestTargetThatIsNotKnown(t *testing.T) {
	for _, st := range steps() {
		switch st.operation {
		case "payment_intent.confirm", "payment_intent.capture", "payment_intent.cancel", "setup_intent.confirm", "setup_intent.cancel",
			"checkout_session.expire", "subscription.update", "invoice.finalize", "invoice.pay", "invoice.void", "invoice.send", "payout.cancel":
		default:
			continue
		}
		t.Run(st.operation, func(t *testing.T) {
			probing(t, nil, func(p *probe) {
				l, id := p.sent(st.call(p, outbound.Command{ID: "cmd_1"}))
				l.Message = outbound.Message{}
				p.wantFound(l, id)
				time.Sleep(31 * 24 * time.Hour)
				p.wantUnknown(l)
			})
		})
	}
}

// TestLongLists holds that a list is read page by page, and that one which is not
// read to its end proves nothing.
func TestLongLists(t *testing.T) {
	probing(t, nil, func(p *probe) {
		first, id := p.sent(stripe.PayoutCreate(outbound.Command{ID: "cmd_first"}, values("amount", "500", "currency", "eur")))
		absent := p.asks(stripe.PayoutCreate(outbound.Command{ID: "cmd_none"}, values("amount", "500", "currency", "eur")))
		for range 250 {
			p.fake.Seed(providertest.StripePayout{Amount: 700})
		}
		p.wantFound(first, id)
		if n := p.gets(); n != 3 {
			p.Errorf("%d pages, want 3", n)
		}
		p.wantAbsent(absent)
		for range 750 {
			p.fake.Seed(providertest.StripePayout{Amount: 700})
		}
		p.wantUnknown(absent)
	})
}
