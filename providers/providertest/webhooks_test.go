package providertest_test

import (
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// told is a service that hears of its commands by webhook, at one provider.
type told struct {
	*testing.T
	fake       *providertest.Fake
	payments   *outbound.Client
	call       func(command string) outbound.Call
	types      []string // events of the call
	conclusive bool     // an event settles the command by itself
	// listen adds an endpoint whose handler trusts the fake, or, forged, another one.
	listen func(e providertest.Endpoint, forged bool)
}

func (x *told) client(a outbound.Adapter) {
	x.Helper()
	var err error
	if x.payments, err = outbound.New(a, memory.New(nil), &outbound.Options{Retry: outbound.Retry{Attempts: 1}}); err != nil {
		x.Fatal(err)
	}
}

// secretOf is what a handler checks with.
func secretOf(e providertest.Endpoint, forged bool) string {
	if forged {
		return "whsec_another"
	}
	return e.Secret
}

func toldByStripe(t *testing.T) *told {
	x := &told{T: t, fake: providertest.Stripe(t, &providertest.Options{InMemory: true}), types: []string{"refund.created"}}
	charge := x.fake.Seed(providertest.Charge{Amount: 1250})
	x.client(stripe.New(stripe.Config{
		Account: "acct_1FakeStripe", Test: true, SecretKey: "sk_test_1", BaseURL: x.fake.URL, Transport: x.fake.Transport(),
	}))
	x.call = func(command string) outbound.Call {
		return stripe.RefundCreate(outbound.Command{ID: command}, map[string][]string{"charge": {charge}, "amount": {"100"}})
	}
	x.listen = func(e providertest.Endpoint, forged bool) {
		e.Secret = "whsec_of_the_test"
		e.Handler = stripeWebhooks(x.payments, secretOf(e, forged))
		x.fake.AddEndpoint(e)
	}
	return x
}

func toldByPayPal(t *testing.T) *told {
	x := &told{T: t, fake: providertest.PayPal(t, &providertest.Options{InMemory: true}), types: []string{"PAYMENT.CAPTURE.REFUNDED"}, conclusive: true}
	capture := x.fake.Seed(providertest.CompletedCapture{Value: "10.00", Currency: "EUR"})
	x.client(paypal.New(paypal.Config{
		Account: "M1", ClientID: "id", Secret: "s", Sandbox: true, BaseURL: x.fake.URL, Transport: x.fake.Transport(),
	}))
	x.call = func(command string) outbound.Call {
		return paypal.CaptureRefund(outbound.Command{ID: command}, capture, paypal.RefundRequest{Amount: paypal.Money{Currency: "EUR", Value: "1.00"}})
	}
	x.listen = func(e providertest.Endpoint, forged bool) {
		verifier := &paypal.Verifier{Sandbox: true, Certificate: x.fake.Certificate, Roots: x509.NewCertPool()}
		e.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				err = verifier.Verify(r.Context(), r.Header, body)
			}
			if err != nil {
				http.Error(w, "not signed by PayPal", http.StatusBadRequest)
				return
			}
			seen, ours, err := paypal.Event(body)
			observe(w, r, x.payments, seen, ours, err)
		})
		e = x.fake.AddEndpoint(e)
		if verifier.WebhookID = e.ID; forged {
			verifier.WebhookID = "ANOTHER"
		}
		if !verifier.Roots.AppendCertsFromPEM([]byte(e.Authority)) {
			t.Error("the endpoint names no authority")
		}
	}
	return x
}

func toldByBank(t *testing.T) *told {
	x := &told{T: t, fake: providertest.New(t, bank(), &providertest.Options{InMemory: true}), types: []string{"transfer.done"}, conclusive: true}
	x.client(newBank(x.fake.URL, x.fake.Transport()))
	x.call = func(command string) outbound.Call { return transfer("x", 100)(outbound.Command{ID: command}, "") }
	x.listen = func(e providertest.Endpoint, forged bool) {
		e.Secret = "secret-of-the-test"
		e.Handler = bankWebhooks(x.payments, secretOf(e, forged))
		x.fake.AddEndpoint(e)
	}
	return x
}

// lose makes a call whose answer is lost.
func (x *told) lose(command string) {
	x.Helper()
	x.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply})
	if _, err := x.payments.Do(x.Context(), x.call(command)); outbound.EffectOf(err) != outbound.EffectUnknown || err == nil {
		x.Fatalf("got %v, want an unknown effect", err)
	}
}

func (x *told) state(command string) *outbound.Status {
	x.Helper()
	call := x.call(command)
	s, err := x.payments.Status(x.Context(), call.Command, call.Operation)
	if err != nil {
		x.Fatal(err)
	}
	return s
}

// wantSettled: the webhook settled the command, or made it due for the reconciler.
func (x *told) wantSettled(command string) {
	x.Helper()
	if !x.conclusive {
		x.sweep()
	}
	if s := x.state(command); s.State != recordstore.Succeeded {
		x.Errorf("%s is %s, due at %v, after its webhook", command, s.State, s.DueAt)
	}
}

func (x *told) sweep() {
	x.Helper()
	r, err := outbound.NewReconciler(nil, x.payments)
	if err == nil {
		_, err = r.Sweep(x.Context())
	}
	if err != nil {
		x.Error(err)
	}
}

// wantDeliveries compares the answers of the handler.
func (x *told) wantDeliveries(status, n int) {
	x.Helper()
	x.fake.AwaitDeliveries(n)
	all := x.fake.Deliveries()
	for _, d := range all {
		if d.Status != status || !slices.Contains(x.types, d.Type) {
			x.Errorf("%s was answered with %d %s, want %d", d.Type, d.Status, d.Error, status)
		}
	}
	if len(all) != n {
		x.Errorf("%d deliveries, want %d", len(all), n)
	}
}

// C26: a webhook settles a command, or brings its look-up forward, whenever it comes
// and however often; a forged one changes nothing, and none makes a second effect.
func TestWebhooksAreObserved(t *testing.T) {
	for name, provider := range map[string]func(*testing.T) *told{"stripe": toldByStripe, "paypal": toldByPayPal, "bank": toldByBank} {
		for when, test := range map[string]func(*told){
			"early": webhookEarly, "late": webhookLate, "repeated": webhookRepeated, "out of order": webhookOutOfOrder, "forged": webhookForged,
		} {
			t.Run(name+"/"+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(provider(t)) })
			})
		}
	}
}

// webhookEarly: it is there before the answer, which then never comes.
func webhookEarly(x *told) {
	x.listen(providertest.Endpoint{Events: x.types}, false)
	x.fake.Inject(providertest.Fault{Kind: providertest.Hang, Applied: true})
	done := make(chan error, 1)
	go func() {
		_, err := x.payments.Do(x.Context(), x.call("c1"))
		done <- err
	}()
	x.wantDeliveries(http.StatusNoContent, 1)
	x.fake.AwaitHeld(1)
	x.fake.Release()
	if err := <-done; x.conclusive && err != nil || outbound.EffectOf(err) == outbound.EffectNone {
		x.Errorf("the call ended in %v", err)
	}
	if !x.conclusive { // it came while the call was on its way, whose end says when to look
		time.Sleep(time.Until(x.state("c1").DueAt))
	}
	x.wantSettled("c1")
	x.wantEffects(1)
}

func webhookLate(x *told) {
	x.listen(providertest.Endpoint{Events: x.types, Hold: true}, false)
	x.lose("c1")
	x.sweep()
	if s := x.state("c1"); s.State != recordstore.Uncertain || !s.DueAt.After(time.Now()) {
		x.Errorf("the command is %s, due at %v, before the webhook", s.State, s.DueAt)
	}
	if n := x.fake.Deliver(providertest.OldestFirst); n != 1 {
		x.Errorf("%d webhooks waited, want 1", n)
	}
	x.wantDeliveries(http.StatusNoContent, 1)
	x.wantSettled("c1")
	x.wantEffects(1)
}

func webhookRepeated(x *told) {
	x.listen(providertest.Endpoint{Events: x.types, Repeat: 3, Hold: true}, false)
	x.lose("c1")
	x.fake.Deliver(providertest.Shuffled)
	x.wantDeliveries(http.StatusNoContent, 3)
	x.wantSettled("c1")
	x.fake.DeliverAgain(x.fake.Deliveries()[0].Event, 2)
	x.wantDeliveries(http.StatusNoContent, 5)
	x.wantSettled("c1")
	x.wantEffects(1)
}

func webhookOutOfOrder(x *told) {
	x.listen(providertest.Endpoint{Events: x.types, Hold: true}, false)
	x.lose("c1")
	x.fake.Advance(time.Second)
	x.lose("c2")
	x.fake.Deliver(providertest.NewestFirst)
	x.wantDeliveries(http.StatusNoContent, 2)
	if all := x.fake.Deliveries(); all[0].Event == all[1].Event {
		x.Errorf("one event was delivered twice: %+v", all)
	}
	x.wantSettled("c1")
	x.wantSettled("c2")
	x.wantEffects(2)
}

func webhookForged(x *told) {
	x.listen(providertest.Endpoint{Events: x.types, Attempts: 1}, true)
	x.lose("c1")
	x.wantDeliveries(http.StatusBadRequest, 1)
	x.sweep()
	if s := x.state("c1"); s.State != recordstore.Uncertain {
		x.Errorf("after a forged webhook the command is %s", s.State)
	}
	x.wantEffects(1)
}

func (x *told) wantEffects(n int) {
	x.Helper()
	if got := x.fake.Effects(""); got != n {
		x.Errorf("effects = %d, want %d", got, n)
	}
}

// An endpoint may be a server's URL, and gets nothing more once it is removed.
func TestWebhooksToAURL(t *testing.T) {
	got := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.Path }))
	t.Cleanup(server.Close)
	fake := providertest.New(t, bank(), nil)
	e := fake.AddEndpoint(providertest.Endpoint{URL: server.URL + "/hooks"})
	if e.ID == "" || e.Secret == "" || e.Base != fake.URL {
		t.Errorf("the endpoint %+v lacks what the fake fills in", e)
	}
	move := func(key string) {
		send(t.Context(), t, fake.Client(), "POST", fake.URL+"/v1/transfers", "{}", map[string]string{"Authorization": "t", "Idempotency-Key": key})
	}
	move("k1")
	if path := <-got; path != "/hooks" {
		t.Errorf("the webhook went to %s", path)
	}
	fake.AwaitDeliveries(1)
	fake.RemoveEndpoints()
	move("k2")
	if n := fake.Deliver(providertest.OldestFirst); n != 0 || len(fake.Deliveries()) != 1 {
		t.Errorf("%d webhooks wait and %d went after the endpoint was removed", n, len(fake.Deliveries()))
	}
}
