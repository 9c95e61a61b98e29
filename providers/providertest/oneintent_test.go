package providertest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// shop is a service under test: what it does for one row.
type shop struct {
	*testing.T
	fake   *Fake
	client *outbound.Client
	charge string
}

func newShop(t *testing.T, inMemory bool) *shop {
	s := &shop{T: t, fake: Stripe(t, &Options{InMemory: inMemory})}
	s.charge = s.fake.Seed(Charge{Amount: 100_000, Currency: "eur"})
	var err error
	s.client, err = outbound.New(
		stripe.New(stripe.Config{Account: "acct_1FakeStripe", SecretKey: "sk_test_1", Test: true, BaseURL: s.fake.URL, Transport: s.fake.Transport()}),
		memory.New(nil), &outbound.Options{Retry: outbound.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *shop) refund(id string) error {
	_, err := s.client.Do(s.Context(), stripe.RefundCreate(outbound.Command{ID: id}, url.Values{"charge": {s.charge}, "amount": {"100"}}))
	return err
}

// refundUnder sends under a key of the shop's own, without samekey.
func (s *shop) refundUnder(key string) error {
	req, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.fake.URL+"/v1/refunds",
		strings.NewReader(url.Values{"charge": {s.charge}, "amount": {"100"}}.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer sk_test_1")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Idempotency-Key", key)
	resp, err := s.fake.Client().Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// judge runs OneIntent and returns what it said.
func (s *shop) judge(effects int, try func(Try) error) *recorder {
	r := &recorder{TB: s.T}
	done := make(chan struct{})
	go func() { // a fatal failure ends its goroutine
		defer close(done)
		OneIntent(r, s.fake, effects, try)
	}()
	<-done
	return r
}

// C29: each way of making a fresh ID inside the call is found, by what it is, and
// what is right passes.
func TestOneIntent(t *testing.T) {
	t.Parallel()
	created := time.Date(1999, 3, 4, 5, 6, 7, 0, time.UTC) // before a bubble begins
	for name, c := range map[string]struct {
		effects int // 1 if not given
		try     func(*shop) func(Try) error
		want    string // "" passes
	}{
		"the row's ID": {try: func(s *shop) func(Try) error {
			row := rand.Text()
			return func(Try) error { return s.refund(row) }
		}},
		"an ID of the row's parts": {try: func(s *shop) func(Try) error {
			return func(Try) error {
				id, err := keyderive.CommandID(created, "refund", "7")
				return errors.Join(err, s.refund(id))
			}
		}},
		"the row's key without samekey": {try: func(s *shop) func(Try) error {
			return func(Try) error { return s.refundUnder("refund-7") }
		}},
		"three lines": {effects: 3, try: func(s *shop) func(Try) error {
			return func(Try) error {
				return inTurn(3, func(line int) error { return s.refund(fmt.Sprintf("payout-7-line-%d", line)) })
			}
		}},
		"a new ID inside": {want: "made inside the call", try: func(s *shop) func(Try) error {
			return func(Try) error { return s.refund(rand.Text()) }
		}},
		"the clock inside": {want: "made inside the call", try: func(s *shop) func(Try) error {
			return func(Try) error { return s.refund(fmt.Sprintf("refund-7-at-%d", time.Now().Unix())) }
		}},
		"today inside": {want: "made inside the call", try: func(s *shop) func(Try) error {
			return func(Try) error {
				id, err := keyderive.CommandID(time.Now(), "refund", "7")
				return errors.Join(err, s.refund(id))
			}
		}},
		"the attempt inside": {want: "The attempt differed", try: func(s *shop) func(Try) error {
			return func(try Try) error { return s.refund(fmt.Sprintf("refund-7-%d", try.Attempt)) }
		}},
		"the run inside": {want: "The run differed", try: func(s *shop) func(Try) error {
			return func(try Try) error { return s.refund("refund-7-" + try.Run) }
		}},
		"a fresh key in a loop": {want: "within one try", try: func(s *shop) func(Try) error {
			return func(Try) error {
				var err error
				for range 3 {
					if err = s.refundUnder(rand.Text()); err == nil {
						break
					}
				}
				return err
			}
		}},
		"a fresh line among three": {effects: 3, want: "refund.create was sent under 4 keys. Attempt and run differed", try: func(s *shop) func(Try) error {
			return func(try Try) error {
				return inTurn(3, func(line int) error {
					if line == 3 {
						return s.refund("payout-7-" + try.Run)
					}
					return s.refund(fmt.Sprintf("payout-7-line-%d", line))
				})
			}
		}},
		"a fresh ID after a success only": {want: "Attempt and run differed", try: func(s *shop) func(Try) error {
			id := "refund-7"
			return func(Try) error {
				err := s.refund(id)
				if err == nil {
					id = rand.Text()
				}
				return err
			}
		}},
		"half of an intent": {effects: 2, want: "had 1 effects, want 2: let each try do the whole", try: func(s *shop) func(Try) error {
			return func(Try) error { return s.refund("refund-7") }
		}},
		"a try that cannot succeed": {want: "nothing went wrong at try 5", try: func(s *shop) func(Try) error {
			return func(Try) error { return errors.New("always") }
		}},
		"no effect": {effects: -1, want: "proves nothing", try: func(s *shop) func(Try) error {
			return func(Try) error { return nil }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, true)
				if c.effects == 0 {
					c.effects = 1
				}
				r := s.judge(c.effects, c.try(s))
				if said := r.log.String(); r.failed != (c.want != "") || !strings.Contains(said, c.want) {
					t.Errorf("failed %t with %q, want %q", r.failed, said, c.want)
				}
			})
		})
	}
}

// inTurn does n things until one fails.
func inTurn(n int, do func(int) error) error {
	for i := range n {
		if err := do(i + 1); err != nil {
			return err
		}
	}
	return nil
}

// Over a socket no time is moved: what is random is found there too.
func TestOneIntentOverASocket(t *testing.T) {
	t.Parallel()
	s := newShop(t, false)
	if r := s.judge(1, func(Try) error { return s.refund("refund-7") }); r.failed {
		t.Error(r.log.String())
	}
	if r := s.judge(1, func(Try) error { return s.refund(outbound.NewCommandID()) }); !strings.Contains(r.log.String(), "made inside the call") {
		t.Errorf("it says %q", r.log.String())
	}
}

// C29: a capture has one effect however many commands ask for it; the keys tell.
func TestOneIntentOfAnObjectWithOneEffect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id   func() string
		want string // "" passes
	}{
		"the row's ID":    {id: func() string { return "capture-7" }},
		"a new ID inside": {id: rand.Text, want: "order.capture was sent under 2 keys. Nothing but the time differed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := PayPal(t, &Options{InMemory: true})
				order := fake.Seed(ApprovedOrder{})
				client, err := outbound.New(
					paypal.New(paypal.Config{Account: "M1", ClientID: "id", Secret: "s", Sandbox: true, BaseURL: fake.URL, Transport: fake.Transport()}),
					memory.New(nil), &outbound.Options{Retry: outbound.Retry{Attempts: 1}})
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
						t.Error(err)
					}
				}()
				s := &shop{T: t, fake: fake}
				r := s.judge(1, func(Try) error {
					_, err := client.Do(t.Context(), paypal.OrderCapture(outbound.Command{ID: c.id()}, order, nil))
					return err
				})
				if said := r.log.String(); r.failed != (c.want != "") || !strings.Contains(said, c.want) {
					t.Errorf("failed %t with %q, want %q", r.failed, said, c.want)
				}
				if had := fake.Effects("order.capture"); had != 1 {
					t.Errorf("%d effects, want 1: the object was to allow one only", had)
				}
			})
		})
	}
}
