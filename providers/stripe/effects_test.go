package stripe_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// effects lists the effects of the last hours, as a report asks for them.
func (p *probe) effects(period time.Duration) (shown []httpadapter.ListedEffect, coverage []httpadapter.Coverage) {
	p.Helper()
	q := httpadapter.EffectQuery{Account: account, From: time.Now().Add(-period), Until: time.Now().Add(time.Second)}
	coverage, err := p.adapter.ListEffects(p.Context(), q, func(e httpadapter.ListedEffect) error {
		shown = append(shown, e)
		return nil
	})
	if err != nil {
		p.Fatal(err)
	}
	return shown, coverage
}

// TestListEffects holds that lists show what was created, with its mark, that events
// state the key of the request, and that both name one object.
func TestListEffects(t *testing.T) {
	probing(t, nil, func(p *probe) {
		call := refundOf("cmd_1", p.fake.Seed(providertest.Charge{}))
		l, id := p.sent(call)
		intent := stripe.PaymentIntentCreate(outbound.Command{ID: "cmd_2"}, url.Values{
			"amount": {"500"}, "currency": {"eur"}, "capture_method": {"manual"}, "confirm": {"true"}, "payment_method": {"pm_card_visa"},
		})
		_, intentID := p.sent(intent)
		capture := p.asks(stripe.PaymentIntentCapture(outbound.Command{ID: "cmd_3"}, intentID, nil))
		p.send(capture)

		shown, coverage := p.effects(time.Hour)
		var listed, stated, captured, captureStated bool
		for _, e := range shown {
			listed = listed || e.Ref == id && e.Creates && e.Mark == l.Mark && e.Key.IsZero() && slices.Equal(e.Operations, []string{"refund.create"})
			stated = stated || e.Ref == id && e.Creates && e.Key == l.Key && e.RequestID != "" && slices.Contains(e.Operations, "refund.create")
			captured = captured || e.Ref == intentID && !e.Creates && e.Mark == capture.Mark && slices.Equal(e.Operations, []string{"payment_intent.capture"})
			captureStated = captureStated || e.Ref == intentID && !e.Creates && e.Key == capture.Key && slices.Contains(e.Operations, "payment_intent.capture")
		}
		if !listed || !stated || !captured || !captureStated {
			p.Errorf("listed %t, stated %t, captured %t, its key stated %t: %+v", listed, stated, captured, captureStated, shown)
		}
		covered := map[string]string{}
		for _, c := range coverage {
			if c.Incomplete != "" {
				p.Errorf("%s is incomplete: %s", c.List, c.Incomplete)
			}
			for _, operation := range c.Operations {
				covered[operation] = c.Doubt
			}
		}
		if doubt, ok := covered["refund.create"]; !ok || doubt != "" || covered["customer.create"] == "" {
			p.Errorf("covered are %v", covered)
		}
		for _, operation := range []string{"customer_balance_transaction.create", "transfer_reversal.create", "v2.account.create", "payment_intent.capture"} {
			if _, ok := covered[operation]; ok {
				p.Errorf("%s is called covered", operation)
			}
		}
	})
}

// TestListEffectsBounds holds that a long list is read page by page, that failing
// lists are incomplete and the others go on, and that events end after 30 days.
func TestListEffectsBounds(t *testing.T) {
	probing(t, nil, func(p *probe) {
		charge := p.fake.Seed(providertest.Charge{Amount: 99_000_000})
		for i := range 120 {
			p.sent(refundOf(fmt.Sprintf("cmd_%d", i), charge))
		}
		refunds := func(shown []httpadapter.ListedEffect) (n int) {
			for _, e := range shown {
				if e.Mark != "" && e.Key.IsZero() {
					n++
				}
			}
			return n
		}
		if shown, _ := p.effects(time.Hour); refunds(shown) != 120 || len(p.fake.Requests("refund.list")) != 2 {
			p.Errorf("%d refunds are shown by %d pages", refunds(shown), len(p.fake.Requests("refund.list")))
		}
		p.fake.Inject(providertest.Fault{Kind: providertest.Truncate, Operation: "refund.list", Skip: 1})
		shown, coverage := p.effects(time.Hour)
		for _, c := range coverage {
			if (c.Incomplete != "") != (c.List == "/v1/refunds") {
				p.Errorf("of %s it says %q", c.List, c.Incomplete)
			}
		}
		if refunds(shown) != 100 {
			p.Errorf("%d refunds are shown of the first page", refunds(shown))
		}
		if _, coverage := p.effects(31 * 24 * time.Hour); !strings.Contains(coverage[len(coverage)-1].Incomplete, "30 days") {
			p.Errorf("of old events it says %+v", coverage[len(coverage)-1])
		}
		full := errors.New("full")
		q := httpadapter.EffectQuery{Account: account, From: time.Now().Add(-time.Hour), Until: time.Now()}
		if _, err := p.adapter.ListEffects(p.Context(), q, func(httpadapter.ListedEffect) error { return full }); !errors.Is(err, full) {
			p.Errorf("the one who is shown them had enough: %v", err)
		}
		other := p.cfg
		other.Account, q.Account = "acct_other", "acct_other"
		if _, err := stripe.New(other).ListEffects(p.Context(), q, func(httpadapter.ListedEffect) error { return nil }); err == nil {
			p.Error("the lists of an account that the credential is not of are taken")
		}
	})
}
