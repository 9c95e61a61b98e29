package providertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/providers/providertest"
)

// send sends a keyed request and returns the status, 0 for a lost connection,
// and the object in the answer.
func send(ctx context.Context, t *testing.T, c *http.Client, method, url, body string, header map[string]string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range header {
		req.Header.Set(name, v)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil
	}
	var object map[string]any
	if err := json.Unmarshal(b, &object); err != nil && len(b) > 0 {
		t.Errorf("%s %s answers %q", method, url, b)
	}
	return resp.StatusCode, object
}

func stripeHeader(key string) map[string]string {
	return map[string]string{"Authorization": "Bearer sk_test_1", "Idempotency-Key": key,
		"Content-Type": "application/x-www-form-urlencoded"}
}

// The package comment's example: a lost answer, the same key again, one effect.
func TestLostAnswerOverASocket(t *testing.T) {
	fake := providertest.Stripe(t, nil)
	charge := fake.Seed(providertest.Charge{Amount: 1250, Currency: "eur"})
	fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"})
	refund := func() int {
		status, _ := send(t.Context(), t, fake.Client(), "POST", fake.URL+"/v1/refunds", "charge="+charge, stripeHeader("k"))
		return status
	}
	if got := refund(); got != 0 {
		t.Errorf("status %d, want a lost connection", got)
	}
	if got := refund(); got != 200 {
		t.Errorf("status %d, want 200", got)
	}
	if fake.Effects("refund.create") != 1 || fake.EffectsOfKey("k") != 1 || fake.Duplicates() != 0 || fake.Armed() != 0 {
		t.Errorf("effects %d, of the key %d, duplicates %d, armed %d", fake.Effects("refund.create"),
			fake.EffectsOfKey("k"), fake.Duplicates(), fake.Armed())
	}
	log := fake.Requests("refund.create")
	if len(log) != 2 || log[0].Fault != providertest.DropAfterApply || log[0].Status != 0 || !log[1].Replayed || log[1].Delivery != 2 {
		t.Errorf("requests = %+v", log)
	}
	if log[0].BodyHash != log[1].BodyHash || log[0].KeyHash != log[1].KeyHash {
		t.Error("the same bytes and key have other hashes")
	}
	fake.Advance(25 * time.Hour)
	if got := refund(); got != 400 { // the window is over; the charge is refunded
		t.Errorf("status %d after the window, want the guard's 400", got)
	}
}

// PayPal: approved order, capture, replay as the latest status.
func TestPayPalCapture(t *testing.T) {
	fake := providertest.PayPal(t, nil)
	c := fake.Client()
	req, err := http.NewRequestWithContext(t.Context(), "POST", fake.URL+"/v1/oauth2/token", strings.NewReader("grant_type=client_credentials"))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("id", "secret")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var token struct {
		Token string `json:"access_token"`
	}
	err = json.NewDecoder(resp.Body).Decode(&token)
	_ = resp.Body.Close()
	if err != nil || token.Token == "" {
		t.Fatalf("no token: %v", err)
	}
	order := fake.Seed(providertest.ApprovedOrder{Value: "12.50", Currency: "EUR"})
	header := map[string]string{"Authorization": "Bearer " + token.Token, "PayPal-Request-Id": "k", "Content-Type": "application/json"}
	for i, want := range []int{201, 200} {
		status, _ := send(t.Context(), t, c, "POST", fake.URL+"/v2/checkout/orders/"+order+"/capture", "{}", header)
		if status != want {
			t.Errorf("capture %d: status %d, want %d", i+1, status, want)
		}
	}
	if got := fake.Effects("order.capture"); got != 1 {
		t.Errorf("effects = %d, want 1", got)
	}
}

func TestInMemoryUnderSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := providertest.Stripe(t, &providertest.Options{InMemory: true})
		fake.Inject(providertest.Fault{Kind: providertest.LateApply, Delay: time.Minute, Running: true})
		c := fake.Client()
		post := func() (int, map[string]any) {
			return send(t.Context(), t, c, "POST", fake.URL+"/v1/customers", "name=a", stripeHeader("k"))
		}
		if status, _ := post(); status != 0 {
			t.Errorf("status %d, want a lost connection", status)
		}
		if status, _ := post(); status != 409 {
			t.Errorf("status %d while the request runs, want 409", status)
		}
		fake.AwaitEffects("customer.create", 1) // the bubble's clock moves by itself
		if status, _ := post(); status != 200 {
			t.Errorf("status %d, want 200", status)
		}
	})
}

func TestAwaitAndRelease(t *testing.T) {
	fake := providertest.Stripe(t, nil)
	fake.Inject(providertest.Fault{Kind: providertest.SlowApply})
	done := make(chan int, 1)
	go func() {
		status, _ := send(t.Context(), t, fake.Client(), "POST", fake.URL+"/v1/customers", "name=a", stripeHeader("k"))
		done <- status
	}()
	fake.AwaitRequests("customer.create", 1)
	fake.AwaitHeld(1)
	fake.Release()
	if got := <-done; got != 200 {
		t.Errorf("status %d, want 200", got)
	}
}

// Every seed of this package is known to its provider.
func TestSeeds(t *testing.T) {
	st := providertest.Stripe(t, nil)
	customer := st.Seed(providertest.Customer{})
	for _, seed := range []any{
		providertest.PaymentIntent{Status: "requires_capture", Customer: customer, Metadata: map[string]string{"a": "b"}},
		providertest.PaymentIntent{Status: "canceled"}, providertest.PaymentIntent{Status: "processing"},
		providertest.PaymentIntent{Status: "requires_action"}, providertest.Charge{}, providertest.SetupIntent{},
		providertest.StripeInvoice{Status: "void"}, providertest.StripeSubscription{}, providertest.CheckoutSession{},
		providertest.Transfer{}, providertest.StripePayout{Paid: true}, providertest.EventDestination{}, providertest.Account{},
		providertest.InAccount{Account: "acct_9", Live: true, Object: providertest.Charge{}},
	} {
		if id := st.Seed(seed); id == "" {
			t.Errorf("%T has no id", seed)
		}
	}
	pp := providertest.PayPal(t, nil)
	for _, seed := range []any{
		providertest.ApprovedOrder{Value: "1.00", Currency: "EUR"}, providertest.CreatedAuthorization{},
		providertest.CompletedCapture{}, providertest.ActivePlan{}, providertest.ActiveSubscription{},
		providertest.ApprovedSetupToken{},
	} {
		if id := pp.Seed(seed); id == "" {
			t.Errorf("%T has no id", seed)
		}
	}
	pp.Seed(providertest.RevokedTokens{})
	if st.Effects("") != 0 || pp.Effects("") != 0 {
		t.Error("seeding counted an effect")
	}
}

// spy is a testing.TB that notes a failure instead of ending the test.
type spy struct {
	testing.TB
	failed string
}

var errStopped = errors.New("stopped")

func (s *spy) Fatalf(format string, _ ...any) { s.failed = format; panic(errStopped) }

// A test that misuses the fake fails with a reason.
func TestMisuseFailsTheTest(t *testing.T) {
	for name, misuse := range map[string]func(*providertest.Fake){
		"unknown operation": func(f *providertest.Fake) {
			f.Inject(providertest.Fault{Kind: providertest.Hang, Operation: "refund.creat"})
		},
		"unknown kind":   func(f *providertest.Fake) { f.Inject(providertest.Fault{Kind: "explode"}) },
		"foreign seed":   func(f *providertest.Fake) { f.Seed(providertest.ApprovedOrder{}) },
		"unknown seed":   func(f *providertest.Fake) { f.Seed(7) },
		"impossible one": func(f *providertest.Fake) { f.Seed(providertest.PaymentIntent{Status: "paid"}) },
	} {
		s := &spy{TB: t}
		fake := providertest.Stripe(s, nil)
		func() {
			defer func() {
				if r := recover(); r != nil && r != any(errStopped) {
					panic(r)
				}
			}()
			misuse(fake)
		}()
		if s.failed == "" {
			t.Errorf("%s: the test did not fail", name)
		}
	}
}
