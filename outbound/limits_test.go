package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// NotAfter ends the permission to send inside a call too, retries included.
func TestNoAttemptAfterNotAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &scripted{}
		a.answer = func(_ context.Context, _ int, d *outbound.Delivery) []outbound.Verdict {
			time.Sleep(10 * time.Second)
			if err := d.Allow(); err != nil {
				return []outbound.Verdict{limited, {Effect: outbound.EffectNone, Code: outbound.ErrUnavailable, Err: err}}
			}
			return []outbound.Verdict{limited, paid}
		}
		c := client(t, a, memory.New(nil), nil)
		call := pay("c1", "pay.stored")
		call.Command.NotAfter = time.Now().Add(5 * time.Second)
		_, err := c.Do(t.Context(), call)
		wantError(t, err, outbound.ErrUnavailable, outbound.EffectNone, true)
		_, err = c.Do(t.Context(), call)
		wantError(t, err, outbound.ErrExpired, outbound.EffectNone, false)
	})
}

// Without the ledger this machine's clock holds NotAfter.
func TestKeysOnlyHoldsNotAfter(t *testing.T) {
	a := &scripted{answer: always(paid)}
	c := client(t, a, memory.New(nil), &outbound.Options{KeysOnly: func(context.Context) bool { return true }})
	call := pay("c1", "pay.stored")
	call.Command.NotAfter = time.Now().Add(-time.Second)
	_, err := c.Do(t.Context(), call)
	wantError(t, err, outbound.ErrExpired, outbound.EffectUnknown, false)
	if n := len(a.deliveries()); n != 0 {
		t.Errorf("%d deliveries, want none", n)
	}
}

// C28: whoever stops waiting for the same command elsewhere hears of his own
// context, and how long the lease still lives by now.
func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &scripted{answer: func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
			time.Sleep(40 * time.Second)
			return []outbound.Verdict{paid}
		}}
		c := client(t, a, memory.New(nil), &outbound.Options{Wait: time.Minute})
		var wg sync.WaitGroup
		wg.Go(func() { c.Do(t.Context(), pay("c1", "pay.stored")) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := c.Do(ctx, pay("c1", "pay.stored"))
		e := wantError(t, err, outbound.ErrInFlight, outbound.EffectUnknown, false)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v does not say that the context ended", err)
		}
		if e.RetryAfter > 100*time.Second || e.RetryAfter < 99*time.Second {
			t.Errorf("retry after %v, want the 100s that the lease has left", e.RetryAfter)
		}
		wg.Wait()
	})
}

// An adapter that words the end of the context in its own way hides it from
// nobody.
func TestEndOfTheContextIsRecognised(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := client(t, &scripted{answer: func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
		cancel()
		return []outbound.Verdict{lost}
	}}, memory.New(nil), nil)
	_, err := c.Do(ctx, pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, true)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not context.Canceled", err)
	}
}

// panicking panics where a test wants it, with what nobody may read.
type panicking struct {
	scripted
	in string
}

const unreadable = "card 4242424242424242"

func (p *panicking) Freeze(op replaysemantics.Operation, m outbound.Message, mark string) (outbound.Frozen, error) {
	if p.in == "Freeze" {
		panic(unreadable)
	}
	return p.scripted.Freeze(op, m, mark)
}

func (p *panicking) Canonical(w io.Writer, v int, op replaysemantics.Operation, m outbound.Message, s bool) error {
	if p.in == "Canonical" {
		panic(unreadable)
	}
	return p.scripted.Canonical(w, v, op, m, s)
}

func (p *panicking) Find(context.Context, *outbound.Lookup) (outbound.Finding, error) {
	panic(unreadable)
}

// Wherever an adapter panics, the call ends in what is known, the record is
// settled, and nobody sees the panic's value.
func TestPanicsOfTheAdapter(t *testing.T) {
	look := lost
	look.Look = true
	for in, code := range map[string]outbound.Code{
		"Freeze": outbound.ErrInvalid, "Canonical": outbound.ErrInvalid, "Find": outbound.ErrUncertain,
	} {
		t.Run(in, func(t *testing.T) {
			ledger := memory.New(nil)
			c := client(t, &panicking{scripted: scripted{answer: always(look)}, in: in}, ledger, nil)
			_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
			wantError(t, err, code, outbound.EffectUnknown, in == "Find")
			if strings.Contains(err.Error(), "4242") || !strings.Contains(err.Error(), "panicked") {
				t.Errorf("the error says %q", err)
			}
			if in == "Find" && recordOf(t, c, ledger, pay("c1", "pay.stored")).State != recordstore.Uncertain {
				t.Error("the record is not settled")
			}
		})
	}
}

// moody is a sealer that panics once it has been tried.
type moody struct{ tried bool }

func (m *moody) Encrypt(b, _ []byte) ([]byte, error) {
	if m.tried {
		panic(unreadable)
	}
	return b, nil
}

func (m *moody) Decrypt(b, _ []byte) ([]byte, error) { m.tried = true; return b, nil }

// A sealer that panics costs no reply.
func TestPanicOfTheSealer(t *testing.T) {
	c := client(t, &scripted{answer: always(paid), sensitive: true}, memory.New(nil), &outbound.Options{Bodies: &moody{}})
	r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, r, err, outbound.NewExecution, outbound.FromProvider)

	c = client(t, &scripted{answer: always(paid)}, memory.New(nil), &outbound.Options{Bodies: &moody{}})
	_, err = c.Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrStore, outbound.EffectUnknown, false)
	if strings.Contains(err.Error(), "4242") {
		t.Errorf("the panic's value is in %q", err)
	}
}

// What made a call fail is its cause, never its code or its effect.
func TestErrorOfAnotherCallInACall(t *testing.T) {
	other := &outbound.Error{Code: outbound.ErrUncertain, Effect: outbound.EffectApplied, Sent: true, Operation: "pay.rerun"}
	c := client(t, &scripted{answer: always(paid)}, memory.New(nil), nil)
	call := pay("c1", "pay.stored")
	call.Err = fmt.Errorf("the order was not made: %w", other)
	_, err := c.Do(t.Context(), call)
	wantError(t, err, outbound.ErrInvalid, outbound.EffectUnknown, false)
	if other.Operation != "pay.rerun" || !errors.Is(err, outbound.ErrUncertain) {
		t.Errorf("the cause was changed or lost: %v, %+v", err, other)
	}
}

// A status of 0 is gRPC's OK, and no sign of an answer that is gone.
func TestStatusZeroIsReplayed(t *testing.T) {
	ok := paid
	ok.Answer = &outbound.Answer{Body: []byte("reply")}
	c := client(t, &scripted{answer: always(ok)}, memory.New(nil), nil)
	if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, r, err, outbound.OriginalReplay, outbound.FromLedger)
	if string(r.Body) != "reply" {
		t.Errorf("body %q", r.Body)
	}
}

// An error is one line of bounded length, whatever its parts hold.
func TestErrorIsOneBoundedLine(t *testing.T) {
	e := &outbound.Error{
		Code: outbound.ErrUncertain, Operation: "pay\n" + strings.Repeat("x", 5000), ProviderCode: "a\x1bb",
		Err: errors.Join(errors.New("first"), errors.New("second\r\x1b[31m"+strings.Repeat("y", 100_000))),
	}
	text := e.Error()
	if len(text) > 2000 || strings.ContainsAny(text, "\n\r\x1b") || !strings.Contains(text, "first; second") {
		t.Errorf("%d bytes: %.300q", len(text), text)
	}
}

// A window shorter than the margin is still a window: half of it counts.
func TestShortWindowsStayWindows(t *testing.T) {
	ledger := memory.New(nil)
	c := client(t, &scripted{answer: always(paid)}, ledger, &outbound.Options{WindowMargin: 100 * time.Hour})
	if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	rec := recordOf(t, c, ledger, pay("c1", "pay.stored"))
	if w := rec.WindowEndsAt.Sub(rec.ClaimedAt); w != 12*time.Hour {
		t.Errorf("the window lasts %v, want 12h", w)
	}
}
