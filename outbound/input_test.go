package outbound_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// keeping remembers what a claim carried and which record it wrote last.
type keeping struct {
	recordstore.Store
	claims  int
	request []byte
	id      recordstore.ID
}

func (k *keeping) Claim(ctx context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	k.claims++
	k.id, k.request = c.ID, c.Request
	return k.Store.Claim(ctx, c)
}

func (k *keeping) Last(t *testing.T) recordstore.Record {
	t.Helper()
	rec, _, err := k.Get(t.Context(), k.id)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// Bad input gets a clear error, stores nothing and sends nothing.
func TestBadCalls(t *testing.T) {
	cmd := func(id string) outbound.Call { return pay(id, "pay.stored") }
	step := func(c outbound.Command) outbound.Call {
		call := pay("x", "pay.stored")
		call.Command = c
		return call
	}
	big := cmd("c1")
	big.Message.Body = make([]byte, 1<<20+1)
	failed := cmd("c1")
	failed.Err = errors.New("an amount is an integer")
	untargeted := cmd("c1")
	untargeted.Message.Target = ""
	ok := outbound.Command{ID: "ord_1"}
	for why, tt := range map[string]struct {
		call outbound.Call
		want string
	}{
		"empty ID":               {cmd(""), "empty or blank"},
		"blank ID":               {cmd(" \t "), "empty or blank"},
		"oversized ID":           {cmd(strings.Repeat("x", 256)), "255 bytes"},
		"control character":      {cmd("a\x00b"), "control characters"},
		"bad UTF-8":              {cmd("a\xffb"), "UTF-8"},
		"slash in the ID":        {cmd("a/b"), "slash"},
		"empty step":             {step(ok.Step("")), ""},
		"slash in a step":        {step(ok.Step("a/b")), "slash"},
		"step of a step":         {step(ok.Step("a").Step("b")), "slash"},
		"step of a slash":        {step(outbound.Command{ID: "a/b"}.Step("c")), "slash"},
		"oversized step":         {step(ok.Step(strings.Repeat("x", 250))), "255 bytes"},
		"unknown operation":      {pay("c1", "pay.unheard"), "no operation"},
		"oversized body":         {big, "MaxBody"},
		"failed call":            {failed, "an amount is an integer"},
		"refused by the adapter": {untargeted, "needs a target"},
	} {
		t.Run(why, func(t *testing.T) {
			ledger := &keeping{Store: memory.New(nil)}
			a := &scripted{answer: always(paid)}
			c := client(t, a, ledger, &outbound.Options{MaxBody: 1 << 20})
			_, err := c.Do(t.Context(), tt.call)
			wantError(t, err, outbound.ErrInvalid, outbound.EffectUnknown, false)
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q does not say %q on one line", err, tt.want)
			}
			if ledger.claims != 0 || len(a.deliveries()) != 0 {
				t.Errorf("%d claims and %d deliveries, want none", ledger.claims, len(a.deliveries()))
			}
			if _, again := outbound.RetryAfter(err); again {
				t.Error("RetryAfter says that calling again could help")
			}
		})
	}
}

// A day in the future is found on the ledger's clock, and a past NotAfter too.
func TestDaysAndDeadlines(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(paid)}
	c := client(t, a, ledger, nil)
	ledger.advance(-72 * time.Hour)
	_, err := c.Do(t.Context(), pay(outbound.NewCommandID(), "pay.stored"))
	wantError(t, err, outbound.ErrInvalid, outbound.EffectUnknown, false)
	late := pay("c1", "pay.stored")
	late.Command.NotAfter = ledger.clock().Add(-time.Second)
	_, err = c.Do(t.Context(), late)
	wantError(t, err, outbound.ErrExpired, outbound.EffectNone, false)
	if _, err := c.Status(t.Context(), late.Command, "pay.stored"); !errors.Is(err, recordstore.ErrNotFound) {
		t.Errorf("Status = %v: something was stored", err)
	}
	if n := len(a.deliveries()); n != 0 {
		t.Errorf("%d deliveries, want none", n)
	}
}

func TestStepsAreDifferentEffects(t *testing.T) {
	a := &scripted{answer: always(paid)}
	c := client(t, a, memory.New(nil), nil)
	for _, name := range []string{"seller-1", "seller-2", "seller-1"} {
		call := pay("x", "pay.stored")
		call.Command = outbound.Command{ID: "ord_1"}.Step(name)
		if _, err := c.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(a.deliveries()); n != 2 {
		t.Errorf("%d deliveries, want 2", n)
	}
}

type badProfile struct {
	scripted
	profile outbound.Profile
	err     error
}

func (b *badProfile) Profile() (outbound.Profile, error) { return b.profile, b.err }

func TestBadSettings(t *testing.T) {
	good, _ := (&scripted{}).Profile()
	with := func(change func(*outbound.Profile)) outbound.Adapter {
		p := good
		p.Operations = append([]replaysemantics.Operation(nil), good.Operations...)
		change(&p)
		return &badProfile{profile: p}
	}
	var none *memory.Store
	day := 24 * time.Hour
	for why, tt := range map[string]struct {
		adapter outbound.Adapter
		ledger  recordstore.Store
		opts    outbound.Options
		want    string
	}{
		"no adapter":      {nil, memory.New(nil), outbound.Options{}, "adapter"},
		"no ledger":       {&scripted{}, nil, outbound.Options{}, "ledger"},
		"a nil store":     {&scripted{}, none, outbound.Options{}, "ledger"},
		"bad adapter":     {&badProfile{err: errors.New("set Config.Account")}, memory.New(nil), outbound.Options{}, "Config.Account"},
		"missing account": {with(func(p *outbound.Profile) { p.Account = "" }), memory.New(nil), outbound.Options{}, "Account"},
		"no operations":   {with(func(p *outbound.Profile) { p.Operations = nil }), memory.New(nil), outbound.Options{}, "operations"},
		"short key limit": {with(func(p *outbound.Profile) { p.Operations[0].KeyMax = 30 }), memory.New(nil), outbound.Options{}, "36"}, // C16
		"no canonical":    {with(func(p *outbound.Profile) { p.Canonicals = nil }), memory.New(nil), outbound.Options{}, "Canonical"},
		"odd canonical":   {with(func(p *outbound.Profile) { p.Canonicals = []int{256} }), memory.New(nil), outbound.Options{}, "Canonical"},
		"same canonical":  {with(func(p *outbound.Profile) { p.Canonicals = []int{1, 1} }), memory.New(nil), outbound.Options{}, "Canonical"},
		"tiny lease":      {&scripted{}, memory.New(nil), outbound.Options{Lease: 1}, "Lease"},
		"short replay":    {&scripted{}, memory.New(nil), outbound.Options{Retention: map[replaysemantics.Class]outbound.Retention{replaysemantics.Money: {Replay: time.Hour, Evidence: day}}}, "at least as long"},
		"short evidence":  {&scripted{}, memory.New(nil), outbound.Options{Retention: map[replaysemantics.Class]outbound.Retention{replaysemantics.Money: {Replay: 2 * day, Evidence: day}}}, "evidence"},
		"lease too short": {&scripted{}, memory.New(nil), outbound.Options{Lease: 10 * time.Second, Retry: outbound.Retry{AttemptTimeout: 20 * time.Second}}, "Lease"},
		"negative":        {&scripted{}, memory.New(nil), outbound.Options{Lease: -1}, "negative"},
		"waits":           {&scripted{}, memory.New(nil), outbound.Options{Retry: outbound.Retry{MinWait: time.Minute, MaxWait: time.Second}}, "MaxWait"},
	} {
		t.Run(why, func(t *testing.T) {
			_, err := outbound.New(tt.adapter, tt.ledger, &tt.opts)
			wantError(t, err, outbound.ErrInvalid, outbound.EffectUnknown, false)
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q does not say %q", err, tt.want)
			}
		})
	}
}

// A lease may be as long as anyone likes.
func TestHugeLease(t *testing.T) {
	c := client(t, &scripted{answer: always(paid)}, memory.New(nil), &outbound.Options{Lease: 100 * 365 * 24 * time.Hour})
	if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
		t.Error(err)
	}
}

func TestRetryAfter(t *testing.T) {
	for code, want := range map[outbound.Code]bool{
		outbound.ErrInvalid: false, outbound.ErrFingerprintConflict: false, outbound.ErrOverloaded: true,
		outbound.ErrForgotten: false, outbound.ErrStore: true, outbound.ErrNewerRecord: true,
		outbound.ErrForbidden: false, outbound.ErrExpired: false, outbound.ErrAbandoned: false,
		outbound.ErrRejected: false, outbound.ErrRefused: false, outbound.ErrAuth: true,
		outbound.ErrRateLimited: true, outbound.ErrUnavailable: true, outbound.ErrInFlight: true,
		outbound.ErrUncertain: true, outbound.ErrManualReview: false,
	} {
		d, again := outbound.RetryAfter(&outbound.Error{Code: code})
		if again != want || (d > 0) != want {
			t.Errorf("RetryAfter(%s) = %v, %v; want %v", code, d, again, want)
		}
		if msg := (&outbound.Error{Code: code}).Error(); !strings.Contains(msg, string(code)+": ") || strings.HasSuffix(msg, ": ") {
			t.Errorf("the text of %s says nothing: %q", code, msg)
		}
	}
	if d, _ := outbound.RetryAfter(&outbound.Error{Code: outbound.ErrInFlight, RetryAfter: 3 * time.Second}); d != 3*time.Second {
		t.Errorf("RetryAfter = %v, want the error's own 3s", d)
	}
	for wait, want := range map[time.Duration]time.Duration{8760 * time.Hour: time.Hour, 2 * time.Minute: 2 * time.Minute} {
		if d, _ := outbound.RetryAfter(&outbound.Error{Code: outbound.ErrUncertain, RetryAfter: wait}); d != want {
			t.Errorf("an uncertain effect is asked for again after %v, want %v", d, want)
		}
	}
	if d, _ := outbound.RetryAfter(&outbound.Error{Code: outbound.ErrRateLimited, RetryAfter: 2 * time.Hour}); d != 2*time.Hour {
		t.Errorf("a rate limit that says when is asked again after %v", d)
	}
	if _, again := outbound.RetryAfter(errors.New("other")); again {
		t.Error("an error that is not ours may not be repeated on our word")
	}
}

// A plan whose transaction is still open has no lease to wait for.
func TestInFlightWithoutALease(t *testing.T) {
	c := client(t, &scripted{answer: always(paid)}, openPlan{memory.New(nil)}, nil)
	_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	if e := wantError(t, err, outbound.ErrInFlight, outbound.EffectUnknown, false); e.RetryAfter != time.Second {
		t.Errorf("retry after %v, want 1s", e.RetryAfter)
	}
}

type openPlan struct{ *memory.Store }

func (openPlan) Claim(_ context.Context, c recordstore.Claim) (recordstore.Claimed, error) {
	return recordstore.Claimed{Decision: recordstore.InFlight, Record: recordstore.Record{ID: c.ID}, Now: time.Now()}, nil
}
