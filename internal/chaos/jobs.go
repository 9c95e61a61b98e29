package chaos

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// kind is what a job asks of a provider.
type kind string

const (
	stripeRefund  kind = "stripe_refund"
	stripePayment kind = "stripe_payment"
	paypalCapture kind = "paypal_capture"
	paypalRefund  kind = "paypal_refund"
	paypalPayout  kind = "paypal_payout"

	// Undecidable where their answers are lost: the one has a key and no look-up,
	// the other has neither.
	stripeUsage kind = "stripe_usage"
	paypalPatch kind = "paypal_patch"

	// Without a key: the one is looked up by its subscription's state, of the other
	// nothing can be found, and each request of it drafts one more invoice.
	stripeCancel  kind = "stripe_cancel"
	paypalInvoice kind = "paypal_invoice"
)

// moneyKinds are those that a provider can always be asked about.
var moneyKinds = []kind{stripeRefund, stripePayment, paypalCapture, paypalRefund, paypalPayout}

// operations name what a kind calls, in the words of tables and fakes alike.
var operations = map[kind]string{
	stripeRefund: "refund.create", stripePayment: "payment_intent.create", stripeUsage: "meter_event.create",
	paypalCapture: "order.capture", paypalRefund: "capture.refund", paypalPayout: "payout.create", paypalPatch: "order.patch",
	stripeCancel: "subscription.cancel", paypalInvoice: "invoice.create",
}

func (k kind) provider() string {
	switch k {
	case stripeRefund, stripePayment, stripeUsage, stripeCancel:
		return "stripe"
	}
	return "paypal"
}

// keyless reports whether the provider takes no key.
func (k kind) keyless() bool { return k == paypalPatch || k == stripeCancel || k == paypalInvoice }

// job is one command, with the object that it is about.
type job struct {
	ID     string
	Kind   kind
	Target string // A charge, order, capture or subscription; "" for none.
	Plan   bool   // Written in a transaction of the worker's, and sent by whoever finds it.
}

func (j job) call() outbound.Call {
	cmd := outbound.Command{ID: j.ID}
	if j.Plan {
		cmd.NotAfter = outbound.Forever
	}
	switch j.Kind {
	case stripeRefund:
		return stripe.RefundCreate(cmd, url.Values{"charge": {j.Target}, "amount": {"7"}})
	case stripePayment:
		return stripe.PaymentIntentCreate(cmd, url.Values{
			"amount": {"500"}, "currency": {"eur"}, "confirm": {"true"}, "payment_method": {"pm_card_visa"},
		})
	case stripeUsage:
		return stripe.MeterEventCreate(cmd, url.Values{"event_name": {"calls"}, "payload[stripe_customer_id]": {"cus_1"}, "payload[value]": {"1"}})
	case stripeCancel:
		return stripe.SubscriptionCancel(cmd, j.Target, nil)
	case paypalInvoice:
		return paypal.InvoiceCreate(cmd, map[string]any{
			"detail": map[string]any{"currency_code": "EUR"},
			"items":  []any{map[string]any{"name": "a thing", "quantity": "1", "unit_amount": paypal.Money{Currency: "EUR", Value: "12.50"}}},
		})
	case paypalCapture:
		return paypal.OrderCapture(cmd, j.Target, nil)
	case paypalRefund:
		return paypal.CaptureRefund(cmd, j.Target, paypal.RefundRequest{Amount: paypal.Money{Currency: "EUR", Value: "0.07"}})
	case paypalPatch:
		return paypal.OrderPatch(cmd, j.Target, []any{map[string]any{
			"op": "replace", "path": "/purchase_units/@reference_id=='default'/description", "value": j.ID,
		}})
	}
	return paypal.PayoutCreate(cmd, map[string]any{
		"sender_batch_header": map[string]any{"email_subject": "chaos"},
		"items": []any{map[string]any{
			"recipient_type": "EMAIL", "receiver": "payee@example.com", "amount": map[string]any{"value": "1.00", "currency": "EUR"},
		}},
	})
}

// provider is one fake: it keeps count of what really happened.
type provider struct {
	name   string
	fake   *fakeprovider.Fake
	server *fakeprovider.Server
	shared map[kind]string // Objects that many jobs are about.
}

// maxLog keeps every request of a run, since labels are compared with them.
const maxLog = 400_000

func newProvider(name string, seed uint64) (*provider, error) {
	dialect := fakestripe.New(fakestripe.Config{})
	if name == "paypal" {
		dialect = fakepaypal.New(fakepaypal.Config{})
	}
	p := &provider{name: name, fake: fakeprovider.New(dialect, &fakeprovider.Options{Seed: seed, MaxLog: maxLog}), shared: map[kind]string{}}
	var err error
	p.server, err = fakeprovider.Listen(p.fake)
	return p, err
}

// target puts an object in place for one job. Refunds share a large payment for
// every fifty of them, as partial refunds do.
func (p *provider) target(k kind, n int) (string, error) {
	var seed any
	switch k {
	case stripeRefund:
		seed = fakestripe.Charge{Amount: 100_000, Currency: "eur"}
	case paypalRefund:
		seed = fakepaypal.CompletedCapture{Value: "1000.00", Currency: "EUR"}
	case paypalCapture, paypalPatch:
		return p.fake.Seed(fakepaypal.ApprovedOrder{Value: "12.50", Currency: "EUR"})
	case stripeCancel:
		return p.fake.Seed(fakestripe.Subscription{})
	default:
		return "", nil
	}
	if n%50 != 0 && p.shared[k] != "" {
		return p.shared[k], nil
	}
	id, err := p.fake.Seed(seed)
	p.shared[k] = id
	return id, err
}

// providers are both fakes, by name.
type providers map[string]*provider

func newProviders(seed uint64) (providers, error) {
	ps := providers{}
	for _, name := range []string{"stripe", "paypal"} {
		p, err := newProvider(name, seed)
		if err != nil {
			ps.close()
			return nil, err
		}
		ps[name] = p
	}
	return ps, nil
}

func (ps providers) close() {
	for _, p := range ps {
		p.server.Close()
	}
}

// job makes the n-th command of a kind, with its object.
func (ps providers) job(k kind, n int) (job, error) {
	target, err := ps[k.provider()].target(k, n)
	return job{ID: string(k) + "-" + strconv.Itoa(n), Kind: k, Target: target}, err
}

// effects is how often a job's command happened, by the fake's own count. Without
// a key all effects on its object are its own, or all of its operation.
func (ps providers) effects(j job, c *outbound.Client) (int, error) {
	fake := ps[j.Kind.provider()].fake
	if j.Kind.keyless() {
		n := 0
		for _, e := range fake.EffectList() {
			if e.Operation == operations[j.Kind] && (e.Object == j.Target || j.Target == "") {
				n++
			}
		}
		return n, nil
	}
	key, err := c.Key(outbound.Command{ID: j.ID}, operations[j.Kind], "")
	if err != nil {
		return 0, fmt.Errorf("the key of %s: %w", j.ID, err)
	}
	return fake.EffectsOfKey(key.Raw()), nil
}
