package stripe_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const version = "2025-09-30.clover"

// probe asks the adapter alone: what it sends and what it finds, without ledger.
type probe struct {
	*testing.T
	fake    *providertest.Fake
	wire    *wire
	cfg     stripe.Config
	adapter *httpadapter.Adapter
}

// probing runs test in a bubble whose clock is the fake's. change may be nil.
func probing(t *testing.T, change func(*stripe.Config), test func(p *probe)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &probe{T: t, fake: providertest.Stripe(t, &providertest.Options{
			InMemory: true, Stripe: providertest.StripeSettings{Account: account},
		})}
		p.wire = &wire{base: p.fake.Transport()}
		p.cfg = stripe.Config{
			Account: account, SecretKey: "sk_test_probe", Test: true, Version: version, BaseURL: p.fake.URL, Transport: p.wire,
		}
		if change != nil {
			change(&p.cfg)
		}
		p.adapter = stripe.New(p.cfg)
		if _, err := p.adapter.Profile(); err != nil {
			t.Fatal(err)
		}
		test(p)
	})
}

// asks is the look-up of a call that was sent now, for the last time.
func (p *probe) asks(call outbound.Call) *outbound.Lookup {
	p.Helper()
	if call.Err != nil {
		p.Fatal(call.Err)
	}
	row, ok := rs.Find(stripe.Operations(), call.Operation)
	if !ok {
		p.Fatalf("no operation %q", call.Operation)
	}
	mode := "live"
	if p.cfg.Test {
		mode = "test"
	}
	key, err := keyderive.Derive(keyderive.Input{
		Provider: "stripe", Account: account + "/" + mode, Operation: call.Operation, CommandID: call.Command.ID,
	})
	if err != nil {
		p.Fatal(err)
	}
	frozen, err := p.adapter.Freeze(row, call.Message, key.Mark())
	if err != nil {
		p.Fatal(err)
	}
	l := &outbound.Lookup{
		Operation: row, Account: account, Message: frozen.Message, Key: key, Mark: key.Mark(),
		FirstSentAt: time.Now(), SentUntil: time.Now().Add(2 * time.Minute),
	}
	if !row.HasKey() {
		l.Key = keyderive.Key{}
	}
	return l
}

// send delivers what l asks about, once, and returns what the answer taught.
func (p *probe) send(l *outbound.Lookup) outbound.Verdict {
	p.Helper()
	verdicts := p.adapter.Send(p.Context(), &outbound.Delivery{
		Operation: l.Operation, Account: l.Account, Message: l.Message, Key: l.Key, Retry: outbound.Retry{Attempts: 1},
	})
	return verdicts[len(verdicts)-1]
}

// sent delivers a call that must succeed and returns its look-up and the id.
func (p *probe) sent(call outbound.Call) (*outbound.Lookup, string) {
	p.Helper()
	l := p.asks(call)
	v := p.send(l)
	if v.Effect != outbound.EffectApplied {
		p.Fatalf("%s was not applied: %+v %s", call.Operation, v, answerText(v))
	}
	return l, v.ExternalRef
}

func answerText(v outbound.Verdict) string {
	if v.Answer == nil {
		return ""
	}
	return string(v.Answer.Body)
}

func (p *probe) find(l *outbound.Lookup) outbound.Finding {
	p.Helper()
	f, err := p.adapter.Find(p.Context(), l)
	if err != nil {
		p.Fatalf("%s: %v", l.Operation.Name, err)
	}
	return f
}

// wantFound holds that the effect is found as the object id.
func (p *probe) wantFound(l *outbound.Lookup, id string) outbound.Finding {
	p.Helper()
	f := p.find(l)
	if f.Effect != outbound.EffectApplied || f.ExternalRef != id || f.Answer == nil || len(f.Answer.Body) == 0 {
		p.Fatalf("%s: got %+v, want %s found", l.Operation.Name, f, id)
	}
	return f
}

// wantAbsent holds that nothing is proved to be there.
func (p *probe) wantAbsent(l *outbound.Lookup) {
	p.Helper()
	if f := p.find(l); f.Effect != outbound.EffectNone || f.Code != "" {
		p.Fatalf("%s: got %+v, want a proof of absence", l.Operation.Name, f)
	}
}

// wantUnknown holds that the look-up cannot tell, with an error or without.
func (p *probe) wantUnknown(l *outbound.Lookup) {
	p.Helper()
	if f, err := p.adapter.Find(p.Context(), l); f.Effect != outbound.EffectUnknown || f.Code != "" {
		p.Fatalf("%s: got %+v, %v, want unknown", l.Operation.Name, f, err)
	}
}

// do asks the fake directly, as the account's owner may with other software.
func (p *probe) do(method, path string, form url.Values) (object map[string]any) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), method, p.fake.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		p.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer sk_test_owner"}}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := p.fake.Client().Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(body, &object) != nil {
		p.Fatalf("%s %s: %d %s, %v", method, path, resp.StatusCode, body, err)
	}
	return object
}

// step is one operation: what it works on, and the call.
type step struct {
	operation string
	call      func(p *probe, cmd outbound.Command) outbound.Call
}

// on is a step on a seeded object.
func on(operation string, act func(outbound.Command, string, url.Values) outbound.Call, seed any, params ...string) step {
	return step{operation, func(p *probe, cmd outbound.Command) outbound.Call {
		return act(cmd, p.fake.Seed(seed), values(params...))
	}}
}

// from is a step that creates from parameters; "$" stands for the seed's id.
func from(operation string, create func(outbound.Command, url.Values) outbound.Call, seed any, params ...string) step {
	return step{operation, func(p *probe, cmd outbound.Command) outbound.Call {
		v := values(params...)
		if seed != nil {
			id := p.fake.Seed(seed)
			for name := range v {
				if v.Get(name) == "$" {
					v.Set(name, id)
				}
			}
		}
		return create(cmd, v)
	}}
}

func values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// steps are all operations that can be looked up.
func steps() []step {
	destination := map[string]any{
		"name": "hooks", "type": "webhook_endpoint", "event_payload": "thin", "enabled_events": []string{"v1.billing.meter.no_meter_found"},
		"webhook_endpoint": map[string]string{"url": "https://example.com/hook"},
	}
	draft, open := providertest.StripeInvoice{Status: "draft"}, providertest.StripeInvoice{}
	return []step{
		from("payment_intent.create", stripe.PaymentIntentCreate, providertest.Customer{}, "amount", "2000", "currency", "eur", "customer", "$"),
		on("payment_intent.confirm", stripe.PaymentIntentConfirm, providertest.PaymentIntent{}, "return_url", "https://example.com"),
		on("payment_intent.capture", stripe.PaymentIntentCapture, providertest.PaymentIntent{Status: "requires_capture"}),
		on("payment_intent.cancel", stripe.PaymentIntentCancel, providertest.PaymentIntent{}),
		from("refund.create", stripe.RefundCreate, providertest.Charge{Amount: 2000}, "charge", "$", "amount", "500"),
		from("setup_intent.create", stripe.SetupIntentCreate, nil),
		on("setup_intent.confirm", stripe.SetupIntentConfirm, providertest.SetupIntent{}),
		on("setup_intent.cancel", stripe.SetupIntentCancel, providertest.SetupIntent{}),
		from("customer.create", stripe.CustomerCreate, nil, "email", "a@example.com"),
		on("customer_balance_transaction.create", stripe.CustomerBalanceTransactionCreate, providertest.Customer{}, "amount", "-500", "currency", "eur"),
		from("checkout_session.create", stripe.CheckoutSessionCreate, nil, "mode", "setup", "currency", "eur", "success_url", "https://example.com"),
		on("checkout_session.expire", stripe.CheckoutSessionExpire, providertest.CheckoutSession{}),
		from("subscription.create", stripe.SubscriptionCreate, providertest.Customer{}, "customer", "$", "items[0][price]", "price_1"),
		on("subscription.update", stripe.SubscriptionUpdate, providertest.StripeSubscription{}, "description", "moved"),
		on("subscription.cancel", stripe.SubscriptionCancel, providertest.StripeSubscription{}),
		from("invoice.create", stripe.InvoiceCreate, providertest.Customer{}, "customer", "$"),
		on("invoice.finalize", stripe.InvoiceFinalize, draft),
		on("invoice.pay", stripe.InvoicePay, open),
		on("invoice.void", stripe.InvoiceVoid, open),
		on("invoice.send", stripe.InvoiceSend, open),
		from("invoice_item.create", stripe.InvoiceItemCreate, providertest.Customer{}, "customer", "$", "amount", "500", "currency", "eur"),
		from("credit_note.create", stripe.CreditNoteCreate, open, "invoice", "$", "amount", "500"),
		from("transfer.create", stripe.TransferCreate, nil, "amount", "500", "currency", "eur", "destination", "acct_seller"),
		on("transfer_reversal.create", stripe.TransferReversalCreate, providertest.Transfer{}, "amount", "500"),
		from("payout.create", stripe.PayoutCreate, nil, "amount", "500", "currency", "eur"),
		on("payout.cancel", stripe.PayoutCancel, providertest.StripePayout{}),
		on("payout.reverse", stripe.PayoutReverse, providertest.StripePayout{Paid: true}),
		{"v2.account.create", func(_ *probe, cmd outbound.Command) outbound.Call {
			return stripe.V2AccountCreate(cmd, map[string]string{"display_name": "A"})
		}},
		{"v2.account.update", func(p *probe, cmd outbound.Command) outbound.Call {
			return stripe.V2AccountUpdate(cmd, p.fake.Seed(providertest.Account{}), map[string]string{"display_name": "B"})
		}},
		{"v2.account.close", func(p *probe, cmd outbound.Command) outbound.Call {
			return stripe.V2AccountClose(cmd, p.fake.Seed(providertest.Account{}), nil)
		}},
		{"v2.event_destination.create", func(_ *probe, cmd outbound.Command) outbound.Call {
			return stripe.V2EventDestinationCreate(cmd, destination)
		}},
		{"v2.event_destination.update", func(p *probe, cmd outbound.Command) outbound.Call {
			return stripe.V2EventDestinationUpdate(cmd, p.fake.Seed(providertest.EventDestination{}), map[string]string{"name": "x"})
		}},
	}
}

// TestEveryFinder holds that every operation with a look-up is found after a lost
// answer (R8, R22), and that one without an effect is proved absent exactly where
// the row says what the proof needs.
func TestEveryFinder(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, st := range steps() {
		covered[st.operation] = true
		t.Run(st.operation, func(t *testing.T) {
			probing(t, nil, func(p *probe) {
				missing := p.asks(st.call(p, outbound.Command{ID: "cmd_0"}))
				lost := p.asks(st.call(p, outbound.Command{ID: "cmd_1"}))
				p.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: st.operation})
				if v := p.send(lost); v.Effect != outbound.EffectUnknown {
					p.Fatalf("the answer was not lost: %+v", v)
				}
				time.Sleep(20 * time.Minute)
				f := p.find(lost)
				if f.Effect != outbound.EffectApplied || f.ExternalRef == "" || f.Answer == nil {
					p.Errorf("not found: %+v", f)
				}
				if missing.Operation.Absence != "" {
					p.wantAbsent(missing)
				} else {
					p.wantUnknown(missing)
				}
				for _, r := range p.fake.Requests("") {
					if strings.Contains(r.Path, "/search") {
						p.Errorf("a search lags and proves nothing: %s", r.Path)
					}
				}
				if got := p.fake.Effects(""); got != 1 {
					p.Errorf("the look-ups had effects: %d in all, want 1", got)
				}
			})
		})
	}
	for _, op := range stripe.Operations() {
		if covered[op.Name] != (op.Lookup != "") {
			t.Errorf("%s: looked up %q, and covered %t", op.Name, op.Lookup, covered[op.Name])
		}
	}
}

// TestLookupsKeepTheVersion holds that a look-up asks in the version of its
// message, or in the configured one where the message is not known any more.
func TestLookupsKeepTheVersion(t *testing.T) {
	probing(t, nil, func(p *probe) {
		l, id := p.sent(stripe.CustomerCreate(outbound.Command{ID: "cmd_1"}, values("email", "a@example.com")))
		for i, f := range l.Message.Header {
			if f.Name == "Stripe-Version" {
				l.Message.Header[i].Value = "2024-06-20"
			}
		}
		p.wantFound(l, id)
		l.Message = outbound.Message{}
		p.wantFound(l, id)
		var asked []string
		for _, s := range p.wire.sent {
			asked = append(asked, s.header.Get("Stripe-Version"))
		}
		if strings.Join(asked, " ") != version+" 2024-06-20 "+version {
			p.Errorf("asked in the versions %v", asked)
		}
	})
}

// TestVersionIsFrozen holds that a resend after a deploy carries the version of
// the first delivery, and that a caller's own version stays.
func TestVersionIsFrozen(t *testing.T) {
	probing(t, nil, func(p *probe) {
		l := p.asks(stripe.CustomerCreate(outbound.Command{ID: "cmd_1"}, nil))
		call := stripe.CustomerCreate(outbound.Command{ID: "cmd_2"}, nil)
		call.Message.Header = append(call.Message.Header, outbound.Field{Name: "Stripe-Version", Value: "2023-10-16"})
		own := p.asks(call)
		p.cfg.Version = "2026-06-24.dahlia"
		p.adapter = stripe.New(p.cfg)
		p.send(l)
		p.send(own)
		w := p.wire.writes()
		if first, second := w[0].header.Get("Stripe-Version"), w[1].header.Get("Stripe-Version"); first != version || second != "2023-10-16" {
			p.Errorf("sent in the versions %q and %q", first, second)
		}
	})
}
