package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// costly is an adapter that needs requests of its own for each look-up.
type costly struct {
	*scripted
	each int                      // requests for one look-up
	meet func(l *outbound.Lookup) // what a request meets; nil for nothing
	mu   sync.Mutex
	at   map[string][]time.Time // the requests, by account
}

func (a *costly) FindAll(ctx context.Context, ls []*outbound.Lookup) ([]outbound.Finding, error) {
	findings := make([]outbound.Finding, len(ls))
	for i, l := range ls {
		for range a.each {
			if err := ls[0].Turn(ctx); err != nil {
				return findings, nil // what is known so far
			}
			a.mu.Lock()
			a.at[l.Account] = append(a.at[l.Account], time.Now())
			a.mu.Unlock()
			if a.meet != nil {
				a.meet(l)
			}
		}
		findings[i] = outbound.Finding{Effect: outbound.EffectApplied, ExternalRef: "re_1"}
	}
	return findings, nil
}

func (a *costly) Find(ctx context.Context, l *outbound.Lookup) (outbound.Finding, error) {
	f, err := a.FindAll(ctx, []*outbound.Lookup{l})
	return f[0], err
}

// leave leaves n uncertain records of an account.
func leave(t *testing.T, c *outbound.Client, account string, n int) {
	t.Helper()
	for i := range n {
		call := pay(fmt.Sprint(account, i), "pay.stored")
		call.Account = account
		if _, err := c.Do(t.Context(), call); !errors.Is(err, outbound.ErrUncertain) {
			t.Fatal(err)
		}
	}
}

func paced(t *testing.T, opts *outbound.ReconcilerOptions, clients ...*outbound.Client) *outbound.Reconciler {
	t.Helper()
	r, err := outbound.NewReconciler(opts, clients...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// asked sweeps an hour later, by look-ups, until nothing is due.
func asked(t *testing.T, opts outbound.ReconcilerOptions, clients ...*outbound.Client) outbound.Swept {
	t.Helper()
	time.Sleep(time.Hour)
	opts.ResendFor = time.Nanosecond
	swept, err := paced(t, &opts, clients...).Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return swept
}

// Design 6: each request of a look-up has a turn of its account's rate, also where many
// look-ups are asked together; another account's is another rate.
func TestEachRequestHasATurnOfItsAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &costly{scripted: &scripted{answer: always(lost)}, each: 3, at: map[string][]time.Time{}}
		c := client(t, a, memory.New(nil), nil)
		accounts := []string{"b1", "b2", "b3"}
		for _, account := range accounts {
			leave(t, c, account, 20)
		}
		if swept := asked(t, outbound.ReconcilerOptions{Rate: 10}, c); swept.Settled != 60 {
			t.Errorf("swept %+v, want 60 settled", swept)
		}
		for _, account := range accounts {
			at := a.at[account]
			if len(at) != 60 {
				t.Fatalf("%d requests to %s, want 60", len(at), account)
			}
			for i := range at[10:] {
				if took := at[i+10].Sub(at[i]); took < time.Second {
					t.Fatalf("%s: 11 requests in %v", account, took)
				}
			}
			if took := at[59].Sub(a.at["b1"][0]); took > 7*time.Second {
				t.Errorf("%s: the last request came after %v: it waited for another account", account, took)
			}
		}
	})
}

// An account's look-ups and resends share its rate and concurrency with those of
// another client of the same account.
func TestClientsOfOneAccountShareItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &costly{scripted: &scripted{answer: always(lost)}, each: 1, at: map[string][]time.Time{}}
		first, second := client(t, a, memory.New(nil), nil), client(t, a, memory.New(nil), nil)
		leave(t, first, "b1", 20)
		leave(t, second, "b1", 20)
		time.Sleep(time.Hour)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := paced(t, &outbound.ReconcilerOptions{Rate: 10, ResendFor: 1}, first, second).Run(ctx); err != nil {
			t.Fatal(err)
		}
		at := a.at["b1"]
		if len(at) != 40 {
			t.Fatalf("%d requests, want 40", len(at))
		}
		for i := range at[10:] {
			if took := at[i+10].Sub(at[i]); took < time.Second {
				t.Fatalf("11 requests in %v", took)
			}
		}
	})
}

// Design 6: where the provider objects the rate is half as high and rises again, and
// its Retry-After is obeyed.
func TestObjectionsSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &costly{scripted: &scripted{answer: always(lost)}, each: 1, at: map[string][]time.Time{}}
		objected := false
		a.meet = func(l *outbound.Lookup) {
			if !objected {
				objected = true
				l.Objected(30 * time.Second)
			}
		}
		c := client(t, a, memory.New(nil), nil)
		leave(t, c, "b1", 20)
		asked(t, outbound.ReconcilerOptions{Rate: 10}, c)
		at := a.at["b1"]
		if len(at) != 20 {
			t.Fatalf("%d requests, want 20", len(at))
		}
		pause := func(i int) time.Duration { return at[i].Sub(at[i-1]) }
		if pause(1) < 30*time.Second || pause(2) != 200*time.Millisecond || pause(3) >= pause(2) || pause(19) != 100*time.Millisecond {
			t.Errorf("pauses of %v, %v, %v and at the end %v", pause(1), pause(2), pause(3), pause(19))
		}
	})
}

// A batch that finds no turns while its lease lives drops the rest: nothing is
// settled that the provider was not asked about, no step of the ladder is lost and
// nothing goes to people, although each record stands on its last step.
func TestBatchThatOutlivesItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(nil)
		a := &costly{scripted: &scripted{answer: always(lost)}, each: 1, at: map[string][]time.Time{}}
		c := client(t, a, ledger, &outbound.Options{Lease: 4 * time.Second})
		leave(t, c, "b1", 10)
		sent := len(a.deliveries())
		time.Sleep(25 * time.Hour) // the window of their keys is closed
		opts := outbound.ReconcilerOptions{Rate: 1, Batch: 10, Ladder: []time.Duration{time.Minute}}
		var all outbound.Swept
		for range 4 {
			swept := asked(t, opts, c)
			if n := swept.Settled; n > 4 {
				t.Errorf("%d settled while one lease lived", n)
			}
			all.Settled += swept.Settled
			all.ToReview += swept.ToReview
		}
		if all.Settled != 10 || all.ToReview != 0 || len(a.at["b1"]) != 10 {
			t.Errorf("swept %+v by %d requests, want 10 settled by as many", all, len(a.at["b1"]))
		}
		if n := len(a.deliveries()); n != sent {
			t.Errorf("%d deliveries came after look-ups that had no turn", n-sent)
		}
		for i := range 10 {
			call := pay(fmt.Sprint("b1", i), "pay.stored")
			call.Account = "b1"
			if rec := recordOf(t, c, ledger, call); rec.State != recordstore.Succeeded || rec.Checks > 1 {
				t.Errorf("record %d: %s after %d checks", i, rec.State, rec.Checks)
			}
		}
	})
}

// A finder that knows nothing of turns has one for each look-up.
func TestFinderWithoutTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		a := &scripted{answer: always(lost), find: func(*outbound.Lookup) (outbound.Finding, error) {
			at = append(at, time.Now())
			return outbound.Finding{Effect: outbound.EffectApplied}, nil
		}}
		c := client(t, a, memory.New(nil), nil)
		leave(t, c, "b1", 5)
		asked(t, outbound.ReconcilerOptions{Rate: 1, Concurrency: 1}, c)
		for i := 1; i < len(at); i++ {
			if took := at[i].Sub(at[i-1]); took < time.Second {
				t.Errorf("two look-ups in %v", took)
			}
		}
		if len(at) != 5 {
			t.Errorf("%d look-ups, want 5", len(at))
		}
	})
}

// retrying is an adapter that makes four attempts of each delivery.
type retrying struct {
	*scripted
	at []time.Time
}

func (r *retrying) Send(_ context.Context, d *outbound.Delivery) (verdicts []outbound.Verdict) {
	for range 4 {
		if err := d.Allow(); err != nil {
			return append(verdicts, outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrUnavailable, Err: err})
		}
		r.at = append(r.at, time.Now())
		verdicts = append(verdicts, outbound.Verdict{Deliveries: 1, Answer: &outbound.Answer{Status: 503}})
	}
	return verdicts
}

// Each attempt of a resend has a turn, and a call that comes in waits for none.
func TestEachAttemptOfAResendHasATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &retrying{scripted: &scripted{}}
		c := client(t, a, memory.New(nil), nil)
		leave(t, c, "b1", 1)
		if len(a.at) != 4 || !a.at[3].Equal(a.at[0]) {
			t.Fatalf("the call's own attempts at %v", a.at)
		}
		time.Sleep(2 * time.Minute)
		if _, err := paced(t, &outbound.ReconcilerOptions{Rate: 1}, c).Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(a.at) != 8 || a.at[7].Sub(a.at[4]) < 3*time.Second {
			t.Errorf("attempts at %v, want a second between those of the resend", a.at[4:])
		}
	})
}
