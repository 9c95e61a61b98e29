package failures

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

const refundCreate = "refund.create"

// service is a service that refunds a charge: a client on the ledger under test,
// and the provider that keeps count.
type service struct {
	t      *testing.T
	fake   *providertest.Fake
	charge string
	*outbound.Client
}

// newService returns a service on ledger with a provider of its own. change may
// be nil.
func newService(t *testing.T, ledger recordstore.Store, change func(*outbound.Options)) *service {
	t.Helper()
	s := &service{t: t, fake: providertest.Stripe(t, nil)}
	s.charge = s.fake.Seed(providertest.Charge{Amount: 1_000_000, Currency: "eur"})
	return s.again(ledger, change)
}

// again is another process of the service, after this one, on ledger.
func (s *service) again(ledger recordstore.Store, change func(*outbound.Options)) *service {
	s.t.Helper()
	opts := &outbound.Options{
		Bodies: outbound.Seal(outbound.SealKey{ID: "test", Bytes: []byte("0123456789abcdef0123456789abcdef")}),
		Lease:  time.Minute, ClaimTimeout: time.Second, SettleTimeout: time.Second,
		Retry: outbound.Retry{MinWait: 5 * time.Millisecond, MaxWait: 20 * time.Millisecond, AttemptTimeout: 20 * time.Second, CallTimeout: 30 * time.Second},
	}
	if change != nil {
		change(opts)
	}
	client, err := outbound.New(stripe.New(stripe.Config{
		Account: "acct_1FakeStripe", Test: true, SecretKey: "sk_test_failures", BaseURL: s.fake.URL, Transport: s.fake.Transport(),
	}), ledger, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Close(ctx) // a ledger that is gone for good is told nothing
	})
	return &service{s.t, s.fake, s.charge, client}
}

// shortLease is for calls whose lease has to end before the test does.
func shortLease(o *outbound.Options) {
	o.Lease, o.Retry.AttemptTimeout, o.Retry.CallTimeout = 3*time.Second, time.Second, 2*time.Second
}

func (s *service) refund(command string) outbound.Call {
	return stripe.RefundCreate(outbound.Command{ID: command}, url.Values{"charge": {s.charge}, "amount": {"7"}})
}

// must calls and expects an answer.
func (s *service) must(call outbound.Call) *outbound.Reply {
	s.t.Helper()
	reply, err := s.Do(s.t.Context(), call)
	if err != nil {
		s.t.Fatalf("%s: %v", call.Command.ID, err)
	}
	return reply
}

// fails calls and expects the error that says: this call sent nothing, what
// earlier ones did is in the ledger, which does not answer; call again.
func (s *service) fails(call outbound.Call, cause string) {
	s.t.Helper()
	_, err := s.Do(s.t.Context(), call)
	s.unasked(err, cause)
}

func (s *service) unasked(err error, cause string) {
	s.t.Helper()
	e, ours := errors.AsType[*outbound.Error](err)
	if !ours || e.Code != outbound.ErrStore || e.Effect != outbound.EffectUnknown || e.Sent {
		s.t.Fatalf("the call ends in %v; want store, effect unknown, nothing sent", err)
	}
	if _, again := outbound.RetryAfter(err); !again {
		s.t.Errorf("RetryAfter says not to call again after %v", err)
	}
	for _, word := range []string{"nothing was sent", "call again with the same command", cause} {
		if text := err.Error(); !strings.Contains(text, word) || strings.Contains(text, "\n") {
			s.t.Errorf("the error is %q; want one line with %q", text, word)
		}
	}
}

// unrecorded expects an answer that the ledger could not be told.
func (s *service) unrecorded(reply *outbound.Reply, err error, cause string) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("an applied effect is an error: %v", err)
	}
	if reply.ExternalRef == "" || reply.Unrecorded == nil {
		s.t.Fatalf("the answer is %q, unrecorded: %v; want one that the ledger does not hold", reply.ExternalRef, reply.Unrecorded)
	}
	if text := reply.Unrecorded.Error(); !errors.Is(reply.Unrecorded, outbound.ErrStore) || !strings.Contains(text, cause) || strings.Contains(text, "\n") {
		s.t.Errorf("Unrecorded is %q; want one line, store, with %q", text, cause)
	}
}

// persist calls again as long as RetryAfter says so, sooner than it says, and
// tells each error to heard, which may be nil.
func (s *service) persist(call outbound.Call, heard func(error)) (*outbound.Reply, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		reply, err := s.Do(ctx, call)
		after, again := outbound.RetryAfter(err)
		if !again || ctx.Err() != nil {
			return reply, err
		}
		if heard != nil {
			heard(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(after, 50*time.Millisecond)):
		}
	}
}

// replayed expects that the ledger answers with what the provider did first.
func (s *service) replayed(call outbound.Call, ref string) *outbound.Reply {
	s.t.Helper()
	reply := s.must(call)
	if reply.Origin != outbound.FromLedger || reply.ExternalRef != ref {
		s.t.Errorf("the next call gets %s of the %s, want %s of the ledger", reply.ExternalRef, reply.Origin, ref)
	}
	return reply
}

// count compares what the provider saw.
func (s *service) count(effects, requests int) {
	s.t.Helper()
	if e, r, d := s.fake.Effects(refundCreate), len(s.fake.Requests(refundCreate)), s.fake.Duplicates(); e != effects || r != requests || d != 0 {
		s.t.Errorf("%d effects by %d requests, %d of them twice; want %d by %d", e, r, d, effects, requests)
	}
}

// ended is what a call in the background came to.
type ended struct {
	reply *outbound.Reply
	err   error
}

// held starts a call in the background and returns when its request is at the
// provider, which holds it until released.
func (s *service) held(call outbound.Call) (release func() (*outbound.Reply, error)) {
	s.t.Helper()
	until := make(chan struct{})
	s.fake.Inject(providertest.Fault{Kind: providertest.SlowApply, Operation: call.Operation, Until: until})
	end := make(chan ended, 1)
	go func() {
		reply, err := s.Do(s.t.Context(), call)
		end <- ended{reply, err}
	}()
	s.fake.AwaitHeld(1)
	return func() (*outbound.Reply, error) {
		close(until)
		e := <-end
		return e.reply, e.err
	}
}

// record reads the ledger's record of a refund.
func (s *service) record(ledger recordstore.Store, command string) (recordstore.Record, error) {
	s.t.Helper()
	key, err := s.Key(outbound.Command{ID: command}, refundCreate, "")
	if err != nil {
		s.t.Fatal(err)
	}
	rec, _, err := ledger.Get(s.t.Context(), recordstore.ID{Day: key.Day(), KeyHash: key.Hash()})
	return rec, err
}

// awaitState waits until the ledger holds a refund in a state.
func (s *service) awaitState(ledger recordstore.Store, command string, want recordstore.State) recordstore.Record {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		rec, err := s.record(ledger, command)
		if err == nil && rec.State == want {
			return rec
		}
		if time.Now().After(end) {
			s.t.Fatalf("after 30 s the record is %q, %v; want %s", rec.State, err, want)
		}
		<-time.After(20 * time.Millisecond)
	}
}
