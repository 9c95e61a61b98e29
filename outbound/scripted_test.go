package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// scripted is an adapter whose answers a test scripts. The provider adapters are
// tested against the fakes; here it is the core's own rules that are judged.
type scripted struct {
	answer     func(ctx context.Context, n int, d *outbound.Delivery) []outbound.Verdict
	find       func(l *outbound.Lookup) (outbound.Finding, error)
	canonicals []int
	sensitive  bool

	mu   sync.Mutex
	sent []outbound.Delivery
}

func (s *scripted) Profile() (outbound.Profile, error) {
	facts := []replaysemantics.Fact{{States: "test", URL: "https://example.com", Read: "2026-11-30", Grade: replaysemantics.Measured}}
	key := []replaysemantics.Place{replaysemantics.Header("Idempotency-Key")}
	versions := s.canonicals
	if versions == nil {
		versions = []int{1}
	}
	return outbound.Profile{
		Provider: "bank", Account: "b1", Mode: "test", Canonicals: versions, Credentials: true,
		Operations: []replaysemantics.Operation{
			{Name: "pay.stored", Method: "POST", Path: "/stored", Keys: key, Window: 24 * time.Hour, Resend: replaysemantics.Original, Failures: replaysemantics.Stored, Lookup: "by script", Facts: facts},
			{Name: "pay.rerun", Method: "POST", Path: "/rerun", Keys: key, Window: 24 * time.Hour, Resend: replaysemantics.Latest, Lookup: "by script", Facts: facts},
			{Name: "mail.send", Method: "POST", Path: "/mail", Facts: facts},
		},
	}, nil
}

func (s *scripted) Freeze(_ replaysemantics.Operation, m outbound.Message, _ string) (outbound.Frozen, error) {
	if m.Target == "" {
		return outbound.Frozen{}, errors.New("a message needs a target")
	}
	return outbound.Frozen{Message: m, Sensitive: s.sensitive}, nil
}

func (s *scripted) Canonical(w io.Writer, version int, _ replaysemantics.Operation, m outbound.Message, _ bool) error {
	_, err := fmt.Fprintf(w, "%d %s %s %s", version, m.Method, m.Target, m.Body)
	return err
}

func (s *scripted) Send(ctx context.Context, d *outbound.Delivery) []outbound.Verdict {
	if err := d.Allow(); err != nil {
		return []outbound.Verdict{{Effect: outbound.EffectNone, Code: outbound.ErrUnavailable, Err: err}}
	}
	s.mu.Lock()
	s.sent = append(s.sent, *d)
	n := len(s.sent)
	s.mu.Unlock()
	return s.answer(ctx, n, d)
}

func (s *scripted) Find(_ context.Context, l *outbound.Lookup) (outbound.Finding, error) {
	if s.find == nil {
		return outbound.Finding{}, errors.New("no look-up was scripted")
	}
	return s.find(l)
}

func (s *scripted) deliveries() []outbound.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]outbound.Delivery(nil), s.sent...)
}

// always answers every delivery alike.
func always(v outbound.Verdict) func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
	return func(context.Context, int, *outbound.Delivery) []outbound.Verdict { return []outbound.Verdict{v} }
}

// inTurn answers the n-th delivery with the n-th verdict, and the rest with the
// last one.
func inTurn(vs ...outbound.Verdict) func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
	return func(_ context.Context, n int, _ *outbound.Delivery) []outbound.Verdict {
		return []outbound.Verdict{vs[min(n, len(vs))-1]}
	}
}

var (
	paid = outbound.Verdict{
		Effect: outbound.EffectApplied, Deliveries: 1, ExternalRef: "re_1", ObjectStatus: "succeeded", RequestID: "req_1",
		Answer: &outbound.Answer{Status: 200, Header: []outbound.Field{{Name: "Request-Id", Value: "req_1"}}, Body: []byte(`{"id":"re_1"}`)},
	}
	lost     = outbound.Verdict{Deliveries: 1, Err: errors.New("connection reset")}
	limited  = outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRateLimited, Deliveries: 1, RetryAfter: 7 * time.Second}
	declined = outbound.Verdict{
		Effect: outbound.EffectNone, Code: outbound.ErrRefused, Deliveries: 1, ProviderCode: "card_declined",
		Answer: &outbound.Answer{Status: 402, Body: []byte(`{"error":{"code":"card_declined"}}`)},
	}
)

// ledgerAt is a memory ledger whose clock a test moves.
type ledgerAt struct {
	*memory.Store
	mu  sync.Mutex
	now time.Time
}

func newLedger() *ledgerAt {
	l := &ledgerAt{now: time.Now()}
	l.Store = memory.New(&memory.Options{Now: l.clock})
	return l
}

func (l *ledgerAt) clock() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *ledgerAt) advance(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(d)
}

func client(t *testing.T, a outbound.Adapter, s recordstore.Store, opts *outbound.Options) *outbound.Client {
	t.Helper()
	c, err := outbound.New(a, s, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

func pay(id, operation string) outbound.Call {
	return outbound.Call{
		Command: outbound.Command{ID: id}, Operation: operation,
		Message: outbound.Message{Method: "POST", Target: "/x", Body: []byte("amount=100")},
	}
}

// wantError checks code, effect and sent of an error of Do.
func wantError(t *testing.T, err error, code outbound.Code, effect outbound.Effect, sent bool) *outbound.Error {
	t.Helper()
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok {
		t.Fatalf("error %v (%T), want an *outbound.Error with %s", err, err, code)
	}
	if e.Code != code || e.Effect != effect || e.Sent != sent {
		t.Fatalf("code %s, effect %s, sent %v; want %s, %s, %v (%v)", e.Code, e.Effect, e.Sent, code, effect, sent, err)
	}
	if !errors.Is(err, code) {
		t.Errorf("errors.Is(err, %s) is false", code)
	}
	return e
}

func wantReply(t *testing.T, r *outbound.Reply, err error, label outbound.Label, origin outbound.Origin) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if r.Label != label || r.Origin != origin {
		t.Fatalf("label %q from %q, want %q from %q", r.Label, r.Origin, label, origin)
	}
}
