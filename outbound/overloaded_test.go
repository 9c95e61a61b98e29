package outbound_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// fullLedger is a ledger whose queue has no room for claims.
type fullLedger struct{ *memory.Store }

func (fullLedger) Claim(context.Context, recordstore.Claim) (recordstore.Claimed, error) {
	return recordstore.Claimed{}, recordstore.ErrOverloaded
}

// A claim for which the ledger's queue has no room ends the call: nothing is sent,
// and a job queue is told to ask again soon.
func TestFullQueueOfTheLedger(t *testing.T) {
	a := &scripted{answer: always(paid)}
	_, err := client(t, a, fullLedger{memory.New(nil)}, nil).Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrOverloaded, outbound.EffectUnknown, false)
	if !errors.Is(err, recordstore.ErrOverloaded) {
		t.Errorf("%v does not wrap the ledger's error", err)
	}
	if d, again := outbound.RetryAfter(err); !again || d != time.Second {
		t.Errorf("call again: %v after %v, want true after 1s", again, d)
	}
	if n := len(a.deliveries()); n != 0 {
		t.Errorf("%d deliveries, want none", n)
	}
}
