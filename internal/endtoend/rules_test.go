package endtoend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// dying is a ledger that its process lost: claims were made, nothing more is
// written.
type dying struct{ recordstore.Store }

var errLost = errors.New("the ledger is out of reach")

func (dying) Settle(context.Context, recordstore.Settlement) (recordstore.Record, error) {
	return recordstore.Record{}, errLost
}

func (dying) Report(context.Context, recordstore.ID, recordstore.Result) (recordstore.Record, error) {
	return recordstore.Record{}, errLost
}

// alone is one attempt only.
func alone(o *outbound.Options) { o.Retry.Attempts = 1 }

// A takeover whose own deliveries all get 429, while the dead holder's is still
// on its way, knows nothing: never None. The late effect then stands alone.
func TestTakeoverWith429IsNeverNone(t *testing.T) {
	test := func(b *bench, call outbound.Call, replayed outbound.Evidence) {
		b.inject(providertest.Fault{Kind: providertest.LateApply, Operation: call.Operation, Delay: 10 * time.Minute})
		dead := b.rebuilt(nil, func(s recordstore.Store) recordstore.Store { return dying{s} }, alone)
		dead.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		if rec := b.record(call); rec.State != recordstore.Sending {
			b.Fatalf("the dead holder left %s behind", rec.State)
		}
		b.fails(call, outbound.ErrInFlight, outbound.EffectUnknown)
		time.Sleep(3 * time.Minute) // the lease ends

		b.inject(providertest.Fault{Kind: providertest.RateLimit, Operation: call.Operation, Times: 4})
		e := b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		if rec := b.record(call); rec.State != recordstore.Uncertain || !rec.Doubt || !errors.Is(e, outbound.ErrRateLimited) {
			b.Errorf("after the 429s the record is %s, doubt %v; the error is %v", rec.State, rec.Doubt, e)
		}
		b.fake.AwaitEffects(call.Operation, 1) // the old delivery arrives
		b.labelled(b.must(call), replayed, outbound.FromProvider)
		b.count(call.Operation, 1, 6)
	}
	onStripe(t, nil, func(b *bench) { test(b, b.refund("late"), rs.ByReplayHeader) })
	onPayPal(t, nil, func(b *bench) { test(b, b.capture("late"), rs.ByStatusCode) })
}

// A decline on a resend says nothing of the first delivery where failures run
// again: it is not final.
func TestDeclineOnAResendIsNotFinal(t *testing.T) {
	onPayPal(t, nil, func(b *bench) {
		call := paypal.OrderCapture(cmd("declined"), b.fake.Seed(providertest.ApprovedOrder{Outcome: "INSTRUMENT_DECLINED"}), nil)
		b.inject(providertest.Fault{Kind: providertest.DropBeforeApply, Operation: "order.capture"})
		e := b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		if rec := b.record(call); rec.State != recordstore.Uncertain || e.ProviderCode != "INSTRUMENT_DECLINED" {
			b.Errorf("the record is %s, the code %q", rec.State, e.ProviderCode)
		}
		b.count("order.capture", 0, 2)

		firm := paypal.OrderCapture(cmd("firm"), b.fake.Seed(providertest.ApprovedOrder{Outcome: "INSTRUMENT_DECLINED"}), nil)
		b.fails(firm, outbound.ErrRefused, outbound.EffectNone) // alone it is
	})
	onStripe(t, nil, func(b *bench) { // Stripe stores declines
		b.inject(providertest.Fault{Kind: providertest.DropBeforeApply, Operation: "payment_intent.create"})
		b.fails(pay("declined", declinedCard), outbound.ErrRefused, outbound.EffectNone)
		b.count("payment_intent.create", 0, 2)
	})
}

// A 409 on a first delivery is unknown: somebody else may have used the key.
func TestConflictOnAFirstDeliveryIsUnknown(t *testing.T) {
	test := func(b *bench, call outbound.Call) {
		b.inject(providertest.Fault{Kind: providertest.InFlight, Operation: call.Operation})
		b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		if rec := b.record(call); rec.State != recordstore.Uncertain {
			b.Errorf("the record is %s", rec.State)
		}
		b.count(call.Operation, 0, 1)
		b.must(call)
		b.count(call.Operation, 1, 2)
	}
	onStripe(t, alone, func(b *bench) { test(b, b.refund("conflict")) })
	onPayPal(t, alone, func(b *bench) { test(b, b.capture("conflict")) })
}

// ledger is a durable ledger that a test can cut off.
type ledger struct {
	store recordstore.Store
	stop  func()                   // from now on nobody reaches it
	again func() recordstore.Store // reaches it again
}

// eachLedger runs test on PostgreSQL, whose connections are cut, and on SQLite,
// which is closed.
func eachLedger(t *testing.T, test func(t *testing.T, b *bench, l ledger)) {
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		store, _, g := postgresLedger(t, nil)
		test(t, newBench(t, "stripe", native, false, nil), ledger{store, func() { g.set(true) }, func() recordstore.Store { g.set(false); return store }})
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "stripe", native, false, nil)
		first := b.restart(nil)
		test(t, b, ledger{first.store, func() {
			if err := first.store.Close(); err != nil {
				t.Error(err)
			}
		}, func() recordstore.Store { return b.store }})
	})
}

// quick are options for real time: leases of two seconds and short waits.
func quick() *outbound.Options {
	return &outbound.Options{
		Bodies: sealed(), Lease: 2 * time.Second, SettleTimeout: time.Second,
		Retry: outbound.Retry{Attempts: 2, MinWait: 5 * time.Millisecond, MaxWait: 20 * time.Millisecond, AttemptTimeout: 500 * time.Millisecond, CallTimeout: 1500 * time.Millisecond},
	}
}

// Sent, answer lost, ledger gone, called again: this call sent nothing, and the
// effect is unknown, which is not none.
func TestLostAnswerThenLostLedger(t *testing.T) {
	eachLedger(t, func(t *testing.T, b *bench, l ledger) {
		client := newClient(t, b.adapter(), l.store, quick())
		call := b.refund("gone")
		b.inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create", Times: 2})
		_, err := client.Do(t.Context(), call)
		if e := wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown); !e.Sent {
			t.Error("the first call says that it sent nothing")
		}
		l.stop()
		_, err = client.Do(t.Context(), call)
		if e := wantError(t, err, outbound.ErrStore, outbound.EffectUnknown); e.Sent {
			t.Error("the second call says that it sent something")
		}
		if _, again := outbound.RetryAfter(err); !again {
			t.Error("calling again would help")
		}
		b.count("refund.create", 1, 2)
		back := newClient(t, b.adapter(), l.again(), quick())
		reply, err := back.Do(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		b.labelled(reply, rs.ByReplayHeader, outbound.FromProvider)
		b.count("refund.create", 1, 3)
	})
}

// Applied but not recorded is a reply and no error; the next call replays.
func TestAppliedButNotRecorded(t *testing.T) {
	eachLedger(t, func(t *testing.T, b *bench, l ledger) {
		patient := quick()
		patient.Lease, patient.Retry.AttemptTimeout, patient.Retry.CallTimeout = 5*time.Second, 3*time.Second, 4*time.Second
		client := newClient(t, b.adapter(), l.store, patient)
		call := b.refund("unrecorded")
		b.inject(providertest.Fault{Kind: providertest.SlowApply, Operation: "refund.create"})
		type result struct {
			reply *outbound.Reply
			err   error
		}
		done := make(chan result, 1)
		go func() {
			reply, err := client.Do(t.Context(), call)
			done <- result{reply, err}
		}()
		b.fake.AwaitHeld(1)
		l.stop()
		b.fake.Release()
		first := <-done
		if first.err != nil || first.reply.Label != outbound.NewExecution || !errors.Is(first.reply.Unrecorded, outbound.ErrStore) {
			t.Fatalf("got %+v, %v; want a reply that says it is not recorded", first.reply, first.err)
		}
		next := newClient(t, b.adapter(), l.again(), quick())
		reply := untilDone(t, next, call)
		if reply.Label != outbound.OriginalReplay || reply.ExternalRef != first.reply.ExternalRef || reply.Unrecorded != nil {
			t.Errorf("the next call: %+v; want the original replayed", reply)
		}
		if b.fake.Effects("refund.create") != 1 || b.fake.Duplicates() != 0 {
			t.Errorf("%d effects", b.fake.Effects("refund.create"))
		}
	})
}

// untilDone calls again as long as RetryAfter says so, 20 s at most.
func untilDone(t *testing.T, c *outbound.Client, call outbound.Call) *outbound.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		reply, err := c.Do(ctx, call)
		if err == nil {
			return reply
		}
		if _, again := outbound.RetryAfter(err); !again {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A holder whose lease was taken over still brings its 200 home: while the new
// holder is at work it is noted and that one's settlement takes it, and after
// the new holder has given up it settles the record itself.
func TestAStaleHoldersAnswerIsNotLost(t *testing.T) {
	slowFirst := func(b *bench, call outbound.Call) <-chan *outbound.Reply {
		b.inject(providertest.Fault{Kind: providertest.SlowApply, Operation: call.Operation, Delay: 10 * time.Second})
		done := make(chan *outbound.Reply, 1)
		go func() {
			reply, err := b.call(b.Context(), call)
			if err != nil {
				b.Error(err)
			}
			done <- reply
		}()
		b.fake.AwaitHeld(1)
		return done
	}
	ahead := func() time.Time { return time.Now().Add(5 * time.Minute) } // the first holder seems long dead
	onStripe(t, nil, func(b *bench) {
		call := b.refund("stale")
		first := slowFirst(b, call)
		second := b.rebuilt(ahead, nil, alone)
		second.fails(call, outbound.ErrUncertain, outbound.EffectUnknown) // 409: the first is running
		reply := <-first
		if reply == nil || reply.Label != outbound.NewExecution || reply.Unrecorded != nil {
			b.Fatalf("the stale holder got %+v", reply)
		}
		if rec := b.record(call); rec.State != recordstore.Succeeded || rec.ExternalRef != reply.ExternalRef {
			b.Errorf("the ledger holds %s %q", rec.State, rec.ExternalRef)
		}
		if again := second.must(call); again.ExternalRef != reply.ExternalRef || again.Origin != outbound.FromLedger {
			b.Errorf("the next call: %+v", again)
		}
		b.count("refund.create", 1, 2)
	})
	onStripe(t, nil, func(b *bench) {
		call := b.refund("noted")
		first := slowFirst(b, call)
		b.inject(providertest.Fault{Kind: providertest.Hang, Operation: "refund.create", Times: 4, Delay: 30 * time.Second})
		second, done := b.rebuilt(ahead, nil, nil), make(chan *outbound.Reply, 1)
		go func() {
			reply, err := second.call(b.Context(), call)
			if err != nil {
				b.Error(err)
			}
			done <- reply
		}()
		b.fake.AwaitHeld(2)
		reply := <-first
		if reply == nil || !errors.Is(reply.Unrecorded, recordstore.ErrNotHeld) {
			b.Fatalf("the stale holder got %+v; want its answer, noted", reply)
		}
		if rec := b.record(call); rec.State != recordstore.Sending || rec.Noted != recordstore.Succeeded {
			b.Errorf("the ledger holds %s, noted %q", rec.State, rec.Noted)
		}
		if other := <-done; other == nil || other.ExternalRef != reply.ExternalRef {
			b.Errorf("the new holder ends with %+v, the stale one with %q", other, reply.ExternalRef)
		}
		if rec := b.record(call); rec.State != recordstore.Succeeded {
			b.Errorf("the ledger holds %s", rec.State)
		}
		b.count("refund.create", 1, len(b.fake.Requests("refund.create")))
	})
}

// newer is an adapter of a later build, which writes fingerprints in a version
// that this build does not know and still reads the one it does.
type newer struct{ *httpadapter.Adapter }

func (n newer) Profile() (outbound.Profile, error) {
	p, err := n.Adapter.Profile()
	p.Canonicals = append([]int{9}, p.Canonicals...)
	return p, err
}

func (n newer) Canonical(w io.Writer, version int, op rs.Operation, m outbound.Message, sensitive bool) error {
	if version == 9 {
		if _, err := io.WriteString(w, "another form\n"); err != nil {
			return err
		}
		version = 1
	}
	return n.Adapter.Canonical(w, version, op, m, sensitive)
}

// R23: an older build that meets a newer fingerprint says so, and takes it for no
// conflict; the newer build reads what the older one wrote.
func TestOlderBuildMeetsNewerFingerprint(t *testing.T) {
	b := newBench(t, "stripe", native, false, nil)
	later := newClient(t, newer{b.adapter()}, b.store, &outbound.Options{Bodies: sealed()})

	if _, err := later.Do(t.Context(), b.refund("by-newer")); err != nil {
		t.Fatal(err)
	}
	e := b.fails(b.refund("by-newer"), outbound.ErrNewerRecord, outbound.EffectApplied)
	if _, again := outbound.RetryAfter(e); !again || e.Sent || !strings.Contains(e.Error(), "newer build") {
		t.Errorf("RetryAfter %v, Sent %v, %q", again, e.Sent, e)
	}
	b.door = sdk
	if a, err := b.caller.send(t.Context(), b.refund("by-newer")); err != nil || a.status != http.StatusServiceUnavailable {
		t.Errorf("an SDK gets %d, %v; want 503", a.status, err)
	}

	older := b.must(b.refund("by-older"))
	reply, err := later.Do(t.Context(), b.refund("by-older"))
	if err != nil || reply.ExternalRef != older.ExternalRef || reply.Label != outbound.OriginalReplay {
		t.Errorf("the newer build: %+v, %v", reply, err)
	}
	changed := stripe.RefundCreate(cmd("by-older"), map[string][]string{"charge": {b.charge}, "amount": {"1"}})
	_, err = later.Do(t.Context(), changed)
	wantError(t, err, outbound.ErrFingerprintConflict, outbound.EffectApplied)
	b.count("refund.create", 2, 2)
}

// Whatever 5xx, 424, redirect or unreadable answer a write gets, nobody knows,
// whether or not it was executed.
func TestAnswersThatProveNothing(t *testing.T) {
	kinds := []providertest.Kind{
		providertest.Status500, providertest.HTML502, providertest.Status503, providertest.Status424,
		providertest.Redirect, providertest.Truncate, providertest.Empty, providertest.Oversized,
	}
	test := func(b *bench, call func(string) outbound.Call) {
		for _, kind := range kinds {
			for _, applied := range []bool{false, true} { // the last three are always applied
				before := b.fake.Effects("")
				one := call(fmt.Sprintf("%s %v", kind, applied))
				b.inject(providertest.Fault{Kind: kind, Operation: one.Operation, Applied: applied})
				b.fails(one, outbound.ErrUncertain, outbound.EffectUnknown)
				if rec := b.record(one); rec.State != recordstore.Uncertain {
					b.Errorf("%s: the record is %s", kind, rec.State)
				}
				b.must(one)
				if got := b.fake.Effects("") - before; got != 1 {
					b.Errorf("%s, applied %v: %d effects", kind, applied, got)
				}
			}
		}
		if b.fake.Duplicates() != 0 {
			b.Errorf("%d duplicates", b.fake.Duplicates())
		}
	}
	onStripe(t, alone, func(b *bench) { test(b, b.refund) })
	onPayPal(t, alone, func(b *bench) { test(b, func(id string) outbound.Call { return authorized(b, id) }) })
}
