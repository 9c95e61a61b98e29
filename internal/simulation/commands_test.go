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
	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	stripeAccount = "acct_1FakeStripe"
	paypalAccount = "FAKEMERCHANT1"
)

func newProviders(seed uint64) map[string]*provider {
	all := map[string]*provider{}
	for _, p := range []struct {
		name, account string
		dialect       func() fakeprovider.Dialect
	}{
		{"stripe", stripeAccount, fakestripe.New(fakestripe.Config{Account: stripeAccount})},
		{"paypal", paypalAccount, fakepaypal.New(fakepaypal.Config{MerchantID: paypalAccount})},
	} {
		f := fakeprovider.New(p.dialect, &fakeprovider.Options{Seed: seed + 1})
		all[p.name] = &provider{name: p.name, account: p.account, fake: f, server: fakeprovider.InMemory(f)}
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
	row      rs.Operation
	id       recordstore.ID
	key      keyderive.Key // As the fake counts effects; zero for an operation without one.
	sdk      keyderive.Key // That an SDK made of its own, before the command was handed to the ledger.
	order    string        // Of the payer who can choose another way to pay.

	// What the schedule did to it.
	shadowed bool // The SDK sent it by itself.
	unkept   bool // It was sent without the ledger.
	erased   bool // Its bodies were erased.
}

// newCommands are of each provider one command whose second effect nothing but the
// key stops and another one, and one that nothing stops, since it has no key.
func (s *run) newCommands(t *testing.T) []*command {
	t.Helper()
	dated := s.luck.IntN(2) == 0
	n := 0
	one := func() outbound.Command {
		n++
		cmd := outbound.Command{ID: fmt.Sprintf("simulated-%d", n)}
		if dated { // else the record is never deleted
			var err error
			if cmd.ID, err = keyderive.CommandID(time.Now(), "simulated", cmd.ID); err != nil {
				t.Fatal(err)
			}
		}
		switch s.luck.IntN(6) {
		case 0:
			cmd.NotAfter = time.Now().Add(2 * time.Hour)
		case 1, 2: // what cannot be sent any more is looked up while it may still be on its way
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
	invoice := map[string]any{
		"detail": map[string]any{"currency_code": "USD"},
		"items":  []any{map[string]any{"name": "a thing", "quantity": "1", "unit_amount": money}},
	}
	calls := []*command{
		{provider: "stripe", call: stripe.RefundCreate(one(), url.Values{
			"charge": {s.plant(t, "stripe", fakestripe.Charge{Amount: 100_000})}, "amount": {"100"}})},
		{provider: "stripe", call: stripe.PaymentIntentCreate(one(), url.Values{
			"amount": {"1000"}, "currency": {"eur"}, "payment_method": {card}, "confirm": {"true"}, "off_session": {"true"},
			"customer": {s.plant(t, "stripe", fakestripe.Customer{})}})},
		{provider: "paypal", call: paypal.CaptureRefund(one(), s.plant(t, "paypal", fakepaypal.CompletedCapture{Value: "500.00"}), paypal.RefundRequest{Amount: money})},
		{provider: "paypal", call: paypal.OrderCapture(one(), order, nil), order: order},
		{provider: "paypal", call: paypal.InvoiceCreate(one(), invoice)},
	}
	for _, c := range calls {
		s.complete(t, c)
	}
	return calls
}

// complete fills in what follows from a command's call.
func (s *run) complete(t *testing.T, c *command) {
	t.Helper()
	if c.call.Err != nil {
		t.Fatal(c.call.Err)
	}
	a := s.observer.adapters[c.provider]
	for _, row := range a.rows {
		if row.Name == c.call.Operation {
			c.row = row
		}
	}
	key, err := a.derive(c.call.Operation, c.call.Command.ID)
	if err != nil {
		t.Fatal(err)
	}
	c.id = recordstore.ID{Day: key.Day(), KeyHash: key.Hash()}
	if !c.row.HasKey() {
		return
	}
	c.key = key
	if c.sdk, err = a.derive(c.call.Operation, "of-an-sdk"); err != nil {
		t.Fatal(err)
	}
}

// derive makes a key as the core does.
func (a build) derive(operation, command string) (keyderive.Key, error) {
	p, err := a.Profile()
	if err != nil {
		return keyderive.Key{}, err
	}
	return keyderive.Derive(keyderive.Input{
		Provider: p.Provider, Account: p.Account + "/" + p.Mode, Operation: operation, CommandID: command,
	})
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

// effects are those of the command, in the order in which they happened: under
// the ledger's key or the SDK's or, without a key, all of its operation.
func (s *run) effects(c *command) (all []fakeprovider.Effect) {
	for _, e := range s.providers[c.provider].fake.EffectList() {
		if c.owns(e.Operation, e.KeyHash) {
			all = append(all, e)
		}
	}
	return all
}

// owns reports whether a request or an effect is the command's.
func (c *command) owns(operation string, keyHash [32]byte) bool {
	if operation != c.call.Operation {
		return false
	}
	return !c.row.HasKey() || keyHash == hashOf(c.key) || keyHash == hashOf(c.sdk)
}

func hashOf(k keyderive.Key) [32]byte { return sha256.Sum256([]byte(k.Raw())) }
