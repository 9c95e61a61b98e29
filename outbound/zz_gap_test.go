package outbound_test

import (
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
)

func TestZZGap(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: inTurn(limited, paid), find: found}
	opts := &outbound.Options{Retry: outbound.Retry{Attempts: 1}}
	c := client(t, a, ledger, opts)
	_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	t.Log(err)
	p := pay("p1", "mail.send")
	p.Command.NotAfter = outbound.Forever
	if err := c.Plan(t.Context(), ledger, p); err != nil {
		t.Fatal(err)
	}
	// the backup is of here; what follows until the restore is lost
	ledger.advance(30 * time.Hour)
	if err := ledger.MarkRestored(t.Context(), ledger.clock()); err != nil {
		t.Fatal(err)
	}
	d := client(t, a, ledger, opts)
	r, err := d.Do(t.Context(), pay("c1", "pay.stored"))
	t.Log(r, err, len(a.deliveries()))
	sweepOnce(t, reconciler(t, nil, d))
	for _, s := range a.deliveries() {
		t.Log(s.Operation.Name, s.Resend)
	}
}
