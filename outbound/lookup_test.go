package outbound_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// A look-up tells the ledger's time, whoever asks; one that nobody made for a
// record tells this machine's and waits for no turns.
func TestLookupTellsTheLedgersTime(t *testing.T) {
	ledger := newLedger()
	ledger.advance(-3 * time.Hour)
	var behind []time.Duration
	a := &scripted{answer: always(lost), find: func(l *outbound.Lookup) (outbound.Finding, error) {
		behind = append(behind, ledger.clock().Sub(l.Now()))
		return outbound.Finding{}, errors.New("cannot tell")
	}}
	c := client(t, a, ledger, nil)
	call := pay("c1", "pay.stored")
	if _, err := c.Do(t.Context(), call); !errors.Is(err, outbound.ErrUncertain) {
		t.Fatal(err)
	}
	ledger.advance(25 * time.Hour) // past the window
	if _, err := c.Do(t.Context(), call); !errors.Is(err, outbound.ErrUncertain) {
		t.Fatal(err)
	}
	ledger.advance(time.Hour)
	sweep(t, c)
	if len(behind) != 2 || behind[0].Abs() > time.Minute || behind[1].Abs() > time.Minute {
		t.Errorf("the look-ups' time differs from the ledger's by %v", behind)
	}
	var l outbound.Lookup
	l.Objected(time.Hour)
	if err := l.Turn(t.Context()); err != nil || time.Since(l.Now()).Abs() > time.Minute {
		t.Errorf("a look-up of no record: %v, %v", l.Now(), err)
	}
}

// An answer to a look-up has a bound of its own, since a page of a list is
// longer than an answer to a call.
func TestLookupHasABoundOfItsOwn(t *testing.T) {
	for _, tt := range []struct {
		opts outbound.Options
		want int64
	}{
		{outbound.Options{}, 8 << 20},
		{outbound.Options{MaxBody: 64 << 10}, 8 << 20},
		{outbound.Options{MaxLookup: 1 << 20}, 1 << 20},
	} {
		var got int64
		answer := lost
		answer.Look = true
		c := client(t, &scripted{answer: always(answer), find: func(l *outbound.Lookup) (outbound.Finding, error) {
			got = l.MaxBody
			return outbound.Finding{}, errors.New("cannot tell")
		}}, memory.New(nil), &tt.opts)
		if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); !errors.Is(err, outbound.ErrUncertain) || got != tt.want {
			t.Errorf("%+v: %v, a bound of %d bytes, want %d", tt.opts, err, got, tt.want)
		}
	}
	_, err := outbound.New(&scripted{}, memory.New(nil), &outbound.Options{MaxLookup: -1})
	if !errors.Is(err, outbound.ErrInvalid) {
		t.Errorf("a negative bound: %v", err)
	}
}
