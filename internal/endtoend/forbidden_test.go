package endtoend

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// R16: what must never happen, each as its own test.
func TestR16_Forbidden(t *testing.T) {
	t.Run("resending as new where an official key exists", resendingAsNew)
	t.Run("one key on another operation", oneKeyOnAnotherOperation)
	t.Run("one key with another fingerprint", oneKeyWithAnotherFingerprint)
	t.Run("a new key after a timeout", aNewKeyAfterATimeout)
	t.Run("no trace from command to key", noTraceFromCommandToKey)
	t.Run("two concurrent sends of one key", twoConcurrentSends)
	t.Run("personal data in keys", personalDataInKeys)
	t.Run("one replay rule for all providers", oneReplayRule)
}

// Whatever is lost, the resend is the same request to the provider: it says so
// by replaying, and nothing goes out without the key.
func resendingAsNew(t *testing.T) {
	kinds := []providertest.Kind{
		providertest.DropBeforeApply, providertest.DropAfterApply, providertest.Truncate, providertest.Empty,
		providertest.HTML502, providertest.Status503, providertest.LateApply, providertest.Redirect,
	}
	test := func(b *bench, call func(string) outbound.Call) {
		for i, kind := range kinds {
			b.inject(providertest.Fault{Kind: kind, Delay: time.Second, Applied: true, Operation: call("x").Operation})
			again := call(fmt.Sprintf("again-%d", i))
			if kind == providertest.Redirect { // ends the call: a resend could be led away too
				b.fails(again, outbound.ErrUncertain, outbound.EffectUnknown)
			}
			b.must(again)
		}
		operation := call("x").Operation
		b.count(operation, len(kinds), 2*len(kinds))
		keys := map[[32]byte]int{}
		for _, r := range b.fake.Requests(operation) {
			keys[r.KeyHash]++
		}
		if len(keys) != len(kinds) || keys[[32]byte{}] != 0 {
			b.Errorf("%d commands went out under %d keys", len(kinds), len(keys))
		}
	}
	onStripe(t, nil, func(b *bench) { test(b, b.refund) })
	onPayPal(t, nil, func(b *bench) { test(b, func(id string) outbound.Call { return authorized(b, id) }) })
}

// One command, used for every operation that the seeds allow: no key was seen
// on two of them.
func oneKeyOnAnotherOperation(t *testing.T) {
	seenOnce := func(b *bench) {
		b.Helper()
		on := map[[32]byte]string{}
		for _, r := range b.fake.Requests("") {
			if r.KeyHash == [32]byte{} {
				continue
			}
			if other, used := on[r.KeyHash]; used && other != r.Operation {
				b.Errorf("one key on %s and %s", other, r.Operation)
			}
			on[r.KeyHash] = r.Operation
		}
		if len(on) < 3 {
			b.Fatalf("%d operations were tried", len(on))
		}
	}
	onStripe(t, nil, func(b *bench) {
		b.must(b.refund("one"))
		b.must(pay("one", goodCard))
		b.must(stripe.CustomerCreate(cmd("one"), url.Values{"name": {"A"}}))
		b.must(stripe.TransferCreate(cmd("one"), url.Values{"amount": {"100"}, "currency": {"eur"}, "destination": {"acct_2"}}))
		seenOnce(b)
	})
	onPayPal(t, nil, func(b *bench) {
		captured := b.must(b.capture("one"))
		b.must(paypal.CaptureRefund(cmd("one"), captured.ExternalRef, paypal.RefundRequest{Amount: paypal.Money{Currency: "EUR", Value: "1.00"}}))
		b.must(payout("one"))
		b.must(authorized(b, "one"))
		seenOnce(b)
	})
}

// Whoever calls with whatever body, a key was seen with one request only.
func oneKeyWithAnotherFingerprint(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create", Times: 4})
		amount := func(n string) outbound.Call {
			return stripe.RefundCreate(cmd("bodies"), url.Values{"charge": {b.charge}, "amount": {n}})
		}
		b.fails(amount("500"), outbound.ErrUncertain, outbound.EffectUnknown)
		b.fails(amount("501"), outbound.ErrFingerprintConflict, outbound.EffectUnknown)
		b.restart(nil).fails(amount("502"), outbound.ErrFingerprintConflict, outbound.EffectUnknown)
		b.must(amount("500"))
		b.fails(amount("501"), outbound.ErrFingerprintConflict, outbound.EffectApplied)
		b.same("refund.create")
		b.count("refund.create", 1, 5)
	})
}

func aNewKeyAfterATimeout(t *testing.T) {
	onStripe(t, attempts(2), func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.Hang, Operation: "refund.create", Times: 5})
		for range 3 { // under an SDK each call brings another random key
			_, _ = b.call(b.Context(), b.refund("patient"))
		}
		b.count("refund.create", 1, 6)
		b.same("refund.create")
	})
}

// From the command to the record, from the key on the wire to the record and its
// command, from the mark on the object to the same record.
func noTraceFromCommandToKey(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		call := b.refund("traced")
		call.Command.Scope = "tenant-a"
		refund, err := stripe.RefundOf(b.must(call))
		if err != nil {
			b.Fatal(err)
		}
		status, err := b.client.Status(b.Context(), call.Command, call.Operation)
		if err != nil || status.State != recordstore.Succeeded || status.Reply.ExternalRef != refund.ID {
			b.Errorf("from the command: %+v, %v", status, err)
		}
		key, err := keyderive.Parse(b.wire.rawKeys()[0])
		if err != nil {
			b.Fatal(err)
		}
		rec, _, err := b.store.Get(b.Context(), recordstore.ID{Day: key.Day(), KeyHash: key.Hash()})
		if err != nil || rec.CommandID != "traced" || rec.Operation != "refund.create" || rec.Scope != keyderive.ScopeHash("tenant-a") {
			b.Errorf("from the key: %+v, %v", rec, err)
		}
		day, hash, err := keyderive.ParseMark(refund.Metadata["samekey_command"])
		if err != nil || day != rec.ID.Day || hash != rec.ID.KeyHash {
			b.Errorf("the object's mark leads elsewhere: %v", err)
		}
	})
}

// crowd counts how many requests of one key are on their way at once.
type crowd struct {
	base http.RoundTripper
	mu   sync.Mutex
	now  map[string]int
	most int
}

func (c *crowd) RoundTrip(r *http.Request) (*http.Response, error) {
	key := r.Header.Get("Idempotency-Key")
	c.mu.Lock()
	c.now[key]++
	c.most = max(c.most, c.now[key])
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now[key]--
	}()
	return c.base.RoundTrip(r)
}

// Many callers of two processes call the same few commands again and again,
// while answers are slow and lost.
func twoConcurrentSends(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		watched := &crowd{base: b.fake.Transport(), now: map[string]int{}}
		processes := []*bench{b, b.restart(nil)}
		for _, p := range processes {
			p.wire.base = watched
		}
		for _, kind := range []providertest.Kind{providertest.SlowApply, providertest.DropAfterApply, providertest.HTML502} {
			b.inject(providertest.Fault{Kind: kind, Operation: "refund.create", Times: 5, Delay: 2 * time.Second})
		}
		const commands = 4
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				for n := range commands {
					call := b.refund(fmt.Sprintf("crowd-%d", (n+i)%commands))
					for {
						_, err := processes[i%2].call(b.Context(), call)
						if _, again := outbound.RetryAfter(err); !again {
							break
						}
						time.Sleep(100 * time.Millisecond) // the bubble's clock
					}
				}
			})
		}
		group.Wait()
		if watched.most != 1 {
			b.Errorf("%d requests of one key were on their way at once", watched.most)
		}
		b.count("refund.create", commands, len(b.fake.Requests("refund.create")))
	})
}

// Neither the command's name nor its scope nor the payload shows in key or mark.
func personalDataInKeys(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		for _, person := range []string{"alice@example.com", "+491701234567", "alice.smith", "4000056655665556"} {
			call := stripe.CustomerCreate(outbound.Command{ID: "customer of " + person, Scope: person}, url.Values{"description": {"someone"}})
			customer, err := stripe.CustomerOf(b.must(call))
			if err != nil {
				b.Fatal(err)
			}
			for what, text := range map[string]string{"key": b.wire.rawKeys()[len(b.wire.rawKeys())-1], "mark": customer.Metadata["samekey_command"]} {
				if !regexp.MustCompile(`^[0-9a-f-]{36}$`).MatchString(text) || strings.Contains(text, person) {
					b.Errorf("the %s is not opaque", what)
				}
			}
			for _, s := range b.wire.to(http.MethodPost, "/v1/customers") {
				if strings.Contains(fmt.Sprint(s.header)+s.body, person) {
					b.Error("the provider is told the command's name or scope")
				}
			}
		}
		one, err1 := b.client.Key(cmd("c"), "customer.create", "")
		two, err2 := b.restart(nil).client.Key(cmd("c"), "customer.create", "")
		if err1 != nil || err2 != nil || one != two {
			b.Error("the key depends on more than the command")
		}
	})
}

// The tables differ between and within the providers, what they say has sources,
// and a row that says nothing is never sent twice.
func oneReplayRule(t *testing.T) {
	rules := map[string][]rs.Resend{}
	for provider, rows := range map[string][]rs.Operation{"stripe": stripe.Operations(), "paypal": paypal.Operations()} {
		for _, op := range rows {
			if !slices.Contains(rules[provider], op.Resend) {
				rules[provider] = append(rules[provider], op.Resend)
			}
		}
	}
	if !slices.Contains(rules["stripe"], rs.Original) || slices.Contains(rules["paypal"], rs.Original) ||
		!slices.Contains(rules["paypal"], rs.Latest) || !slices.Contains(rules["paypal"], rs.ConflictWithLink) {
		t.Errorf("rules by provider: %v", rules)
	}
	b := newBench(t, "stripe", native, false, nil)
	silent := rs.Operation{
		Name: "silent.create", Method: http.MethodPost, Path: "/v1/silent",
		Facts: []rs.Fact{{States: "nothing", URL: "https://provider.example/docs", Read: "2026-11-30"}},
	}
	client := newClient(t, b.adapter().With(silent), b.store, &outbound.Options{Bodies: sealed(), Retry: outbound.Retry{MinWait: time.Millisecond}})
	call := outbound.Call{Command: cmd("silent"), Operation: "silent.create", Message: outbound.Message{Method: http.MethodPost, Target: "/v1/silent"}}
	b.wire.base = lost{}
	_, err := client.Do(t.Context(), call)
	wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown)
	for range 3 {
		_, err := client.Do(t.Context(), call)
		if e, ok := errors.AsType[*outbound.Error](err); !ok || e.Effect != outbound.EffectUnknown || e.Sent {
			t.Errorf("called again: %v", err)
		}
	}
	if n := len(b.wire.to(http.MethodPost, "/v1/silent")); n != 1 {
		t.Errorf("an operation of which nothing is known was sent %d times", n)
	}
}

// lost is a transport that loses every answer.
type lost struct{}

func (lost) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("connection reset")
}

// R14: log lines carry provider, operation, command and the provider's request
// id, and no raw key. TestSecretsStayInside hunts further.
func TestR14_LogsHoldNoKey(t *testing.T) {
	onPayPal(t, nil, func(b *bench) {
		reply := b.must(b.capture("r14-command"))
		logs := b.seen.logs.String()
		for _, want := range []string{`"provider":"paypal"`, `"operation":"order.capture"`, `"command":"r14-command"`, `"request_id":"` + reply.RequestID + `"`} {
			if !strings.Contains(logs, want) {
				b.Errorf("the log does not hold %s: %s", want, logs)
			}
		}
		for _, key := range b.wire.rawKeys() {
			if strings.Contains(logs, key) {
				b.Error("the log holds a raw key")
			}
		}
	})
}

// R15: new call, same-key resend, provider's replay, latest status, the ledger's
// replay, conflict and blocked duplicate can be told apart and counted together.
func TestR15_KindsOfCallsAreCountedApart(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		b.must(b.refund("r15-new"))
		b.must(b.refund("r15-new")) // from the ledger
		b.inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"})
		b.must(b.refund("r15-resent"))
		other := stripe.RefundCreate(cmd("r15-new"), url.Values{"charge": {b.charge}, "amount": {"1"}})
		b.fails(other, outbound.ErrFingerprintConflict, outbound.EffectApplied)
		b.inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "refund.create", Delay: time.Second})
		done := make(chan error, 1)
		go func() { _, err := b.call(b.Context(), b.refund("r15-slow")); done <- err }()
		b.fake.AwaitHeld(1)
		b.fails(b.refund("r15-slow"), outbound.ErrInFlight, outbound.EffectUnknown)
		if err := <-done; err != nil {
			b.Error(err)
		}
		on := attribute.String("samekey.operation", "refund.create")
		for _, want := range []struct {
			kind string
			n    int64
		}{{"new_execution", 2}, {"ledger_replay", 1}, {"provider_replay", 1}, {"fingerprint_conflict", 1}, {"in_flight", 1}} {
			if got := b.seen.sum(b.T, "samekey.calls", result(want.kind), on, attribute.String("samekey.provider", "stripe")); got != want.n {
				b.Errorf("%d calls count as %s, want %d", got, want.kind, want.n)
			}
		}
		for kind, n := range map[string]int64{"first": 3, "resend": 1} {
			if got := b.seen.sum(b.T, "samekey.deliveries", attribute.String("samekey.delivery", kind), on); got != n {
				b.Errorf("%d deliveries count as %s, want %d", got, kind, n)
			}
		}
		spans := b.seen.spans.Ended()
		for _, want := range []string{"new_execution", "ledger_replay", "provider_replay", "fingerprint_conflict", "in_flight"} {
			if !slices.ContainsFunc(spans, func(s span) bool { return slices.Contains(s.Attributes(), result(want)) }) {
				b.Errorf("no span says %s", want)
			}
		}
	})
}
