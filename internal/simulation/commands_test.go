package simulation

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fakepaypal "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	fakestripe "github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

const (
	stripeAccount = "acct_1FakeStripe"
	paypalAccount = "FAKEMERCHANT1"
)

func newProviders(seed uint64) map[string]*provider {
	all := map[string]*provider{}
	for name, dialect := range map[string]func() fakeprovider.Dialect{
		"stripe": fakestripe.New(fakestripe.Config{Account: stripeAccount}),
		"paypal": fakepaypal.New(fakepaypal.Config{MerchantID: paypalAccount}),
	} {
		f := fakeprovider.New(dialect, &fakeprovider.Options{Seed: seed + 1})
		all[name] = &provider{name: name, fake: f, server: fakeprovider.InMemory(f)}
	}
	return all
}

func newAdapter(name, base string, to http.RoundTripper) *httpadapter.Adapter {
	if name == "stripe" {
		return stripe.New(stripe.Config{Account: stripeAccount, Test: true, SecretKey: "sk_test_simulation", BaseURL: base, Transport: to})
	}
	return paypal.New(paypal.Config{Account: paypalAccount, ClientID: "client", Secret: "secret", Sandbox: true, BaseURL: base, Transport: to})
}

// command is one business intent of the run.
type command struct {
	provider string
	call     outbound.Call
	id       recordstore.ID
	key      string // The raw key, as the fake counts effects.
	keyHash  [32]byte
	order    string // Of the payer who can choose another way to pay.
}

// newCommands are four commands: of each provider one whose second effect nothing
// but the key stops, and another one.
func (s *run) newCommands(t *testing.T) []*command {
	t.Helper()
	one := func(n int) outbound.Command {
		cmd := outbound.Command{ID: fmt.Sprintf("simulated-%d", n)}
		switch s.luck.IntN(6) {
		case 0:
			cmd.NotAfter = time.Now().Add(2 * time.Hour)
		case 1:
			cmd.NotAfter = time.Now().Add(2 * time.Minute)
		}
		return cmd
	}
	card := "pm_card_visa"
	if s.luck.IntN(4) == 0 {
		card = "pm_card_chargeDeclined"
	}
	money := paypal.Money{Value: "1.00", Currency: "USD"}
	// The payer's bank refuses until the payer chooses another way to pay: the same
	// request is refused now and executed later.
	order := s.plant(t, "paypal", fakepaypal.ApprovedOrder{Outcome: "INSTRUMENT_DECLINED"})
	calls := []*command{
		{provider: "stripe", call: stripe.RefundCreate(one(0), url.Values{
			"charge": {s.plant(t, "stripe", fakestripe.Charge{Amount: 100_000})}, "amount": {"100"}})},
		{provider: "stripe", call: stripe.PaymentIntentCreate(one(1), url.Values{
			"amount": {"1000"}, "currency": {"eur"}, "payment_method": {card}, "confirm": {"true"}, "off_session": {"true"},
			"customer": {s.plant(t, "stripe", fakestripe.Customer{})}})},
		{provider: "paypal", call: paypal.CaptureRefund(one(2), s.plant(t, "paypal", fakepaypal.CompletedCapture{Value: "500.00"}), paypal.RefundRequest{Amount: money})},
		{provider: "paypal", call: paypal.OrderCapture(one(3), order, nil), order: order},
	}
	for _, c := range calls {
		if c.call.Err != nil {
			t.Fatal(c.call.Err)
		}
		key, err := s.observer.clients[c.provider].Key(c.call.Command, c.call.Operation, "")
		if err != nil {
			t.Fatal(err)
		}
		c.id, c.key = recordstore.ID{Day: key.Day(), KeyHash: key.Hash()}, key.Raw()
		c.keyHash = sha256.Sum256([]byte(c.key))
	}
	return calls
}

// plant puts an object in place at a provider.
func (s *run) plant(t *testing.T, provider string, object any) string {
	t.Helper()
	id, err := s.providers[provider].fake.Seed(object)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// effects is how often the command has really happened.
func (s *run) effects(c *command) int { return s.providers[c.provider].fake.EffectsOfKey(c.key) }
