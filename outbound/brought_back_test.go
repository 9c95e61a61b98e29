package outbound_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// backup is the ledger's record of a call, as a backup taken now keeps it.
func backup(t *testing.T, ledger *ledgerAt, call outbound.Call) recordstore.Record {
	t.Helper()
	var secret keyderive.Secret
	key, err := secret.Derive(keyderive.Input{
		Provider: "bank", Account: "b1/test", Operation: call.Operation, CommandID: call.Command.ID,
	})
	if err != nil {
		t.Fatal(err)
	}
	rec, _, err := ledger.Get(t.Context(), recordstore.ID{Day: key.Day(), KeyHash: key.Hash()})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// restore puts a record back as it was, and tells the ledger.
func restore(t *testing.T, ledger *ledgerAt, rec recordstore.Record) {
	t.Helper()
	ledger.Seed(rec)
	if err := ledger.MarkRestored(t.Context(), ledger.clock()); err != nil {
		t.Fatal(err)
	}
	ledger.advance(time.Second)
}

// unsentRecords lead to records that say that nothing was sent, or nothing accepted.
var unsentRecords = map[string]func(*testing.T, *outbound.Client, *ledgerAt, outbound.Call){
	"planned": func(t *testing.T, c *outbound.Client, ledger *ledgerAt, call outbound.Call) {
		call.Command.NotAfter = outbound.Forever
		if err := c.Plan(t.Context(), ledger, call); err != nil {
			t.Fatal(err)
		}
	},
	"not executed": func(t *testing.T, c *outbound.Client, _ *ledgerAt, call outbound.Call) {
		_, err := c.Do(t.Context(), call)
		wantError(t, err, outbound.ErrRateLimited, outbound.EffectNone, true)
	},
}

// broughtBackAfterSending leads a call to a record that was in a backup, sends it,
// and restores the backup. It returns a new process's client.
func broughtBackAfterSending(t *testing.T, lead func(*testing.T, *outbound.Client, *ledgerAt, outbound.Call), call outbound.Call, a *scripted) (*outbound.Client, *ledgerAt) {
	t.Helper()
	ledger := newLedger()
	a.answer = always(limited)
	before := client(t, a, ledger, nil)
	lead(t, before, ledger, call)
	kept := backup(t, ledger, call)
	ledger.advance(time.Minute)
	a.answer, a.sent = always(paid), nil
	if _, err := before.Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	ledger.advance(time.Minute)
	restore(t, ledger, kept)
	return client(t, a, ledger, nil), ledger
}

// R22: what a backup knows as never sent, or as not executed, was sent after it.
// It is looked up, by a call and by the reconciler, and not sent a second time.
func TestBroughtBackIsLookedUp(t *testing.T) {
	for name, lead := range unsentRecords {
		for _, operation := range []string{"pay.stored", "pay.rerun"} {
			t.Run(name+" "+operation, func(t *testing.T) {
				a := &scripted{find: found}
				call := pay("c1", operation)
				c, ledger := broughtBackAfterSending(t, lead, call, a)
				if s := statusOf(t, c, "c1", operation); s.Effect != outbound.EffectUnknown {
					t.Errorf("the status says %s, want unknown: it may have been sent since the backup", s.Effect)
				}
				if name == "planned" {
					sweepOnce(t, reconciler(t, nil, c))
				}
				r, err := c.Do(t.Context(), call)
				want := outbound.FromProvider
				if name == "planned" { // the reconciler has found it
					want = outbound.FromLedger
				}
				wantReply(t, r, err, outbound.LatestStatus, want)
				wantDeliveries(t, a, 1)
				ledger.advance(48 * time.Hour)
				sweepOnce(t, reconciler(t, nil, c))
				wantDeliveries(t, a, 1)
			})
		}
	}
}

// R22: what cannot be told is not sent; absent past the horizon is sent once more,
// and settles as a call always does.
func TestBroughtBackAndAbsent(t *testing.T) {
	for name, lead := range unsentRecords {
		t.Run(name, func(t *testing.T) {
			a := &scripted{find: absent}
			call := pay("c1", "pay.stored")
			c, ledger := broughtBackAfterSending(t, lead, call, a)
			for range 2 { // inside the horizon after the restore
				_, err := c.Do(t.Context(), call)
				wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, false)
			}
			wantDeliveries(t, a, 1)
			ledger.advance(time.Hour)
			r, err := c.Do(t.Context(), call)
			wantReply(t, r, err, outbound.NewExecution, outbound.FromProvider)
			wantDeliveries(t, a, 2)
		})
	}
}

// R21, R22: a plan without a key and a look-up is for a person, and so is one whose
// time is over: that it was never sent is not known.
func TestBroughtBackForAPerson(t *testing.T) {
	a := &scripted{}
	c, _ := broughtBackAfterSending(t, unsentRecords["planned"], pay("m1", "mail.send"), a)
	if s := sweepOnce(t, reconciler(t, nil, c)); s.ToReview != 1 {
		t.Errorf("swept %+v, want one in review", s)
	}
	wantDeliveries(t, a, 1)
	_, err := c.Do(t.Context(), pay("m1", "mail.send"))
	wantError(t, err, outbound.ErrManualReview, outbound.EffectUnknown, false)
}

// R22: past its NotAfter a plan that was brought back is looked up, not given up as
// never sent.
func TestBroughtBackAndExpired(t *testing.T) {
	a := &scripted{find: found}
	call := pay("c1", "pay.stored")
	c, ledger := broughtBackAfterSending(t, func(t *testing.T, c *outbound.Client, ledger *ledgerAt, call outbound.Call) {
		call.Command.NotAfter = ledger.clock().Add(90 * time.Second)
		if err := c.Plan(t.Context(), ledger, call); err != nil {
			t.Fatal(err)
		}
	}, call, a)
	ledger.advance(time.Hour)
	if s := sweepOnce(t, reconciler(t, nil, c)); s.LookedUp != 1 || s.Settled != 1 {
		t.Errorf("swept %+v, want one looked up and settled", s)
	}
	wantDeliveries(t, a, 1)
	if s := statusOf(t, c, "c1", "pay.stored"); s.State != recordstore.Succeeded {
		t.Errorf("state %s, want succeeded", s.State)
	}
}

// R22: an uncertain record of the backup may have been sent again after it: for
// the reconciler, too, absence proves nothing until the horizon after the restore.
func TestUncertainBroughtBack(t *testing.T) {
	ledger := newLedger()
	a := &scripted{answer: always(lost), find: absent}
	before := client(t, a, ledger, nil)
	call := pay("c1", "pay.stored")
	lose(t, before, "c1", "pay.stored")
	kept := backup(t, ledger, call)
	ledger.advance(48 * time.Hour) // the window is closed
	restore(t, ledger, kept)
	a.answer = always(paid)
	c := client(t, a, ledger, nil)
	if s := sweepOnce(t, reconciler(t, nil, c)); s.LookedUp != 1 || s.Postponed != 1 {
		t.Errorf("swept %+v, want one looked up and postponed", s)
	}
	wantDeliveries(t, a, 1)
	ledger.advance(24 * time.Hour)
	if s := sweepOnce(t, reconciler(t, nil, c)); s.Sent != 1 || s.Settled != 1 {
		t.Errorf("swept %+v, want one sent after the proof", s)
	}
	wantDeliveries(t, a, 2)
}

// A command that is past its NotAfter and has no record was never sent by this
// ledger; after a restore nobody knows.
func TestExpiredWithoutARecord(t *testing.T) {
	for _, mark := range []bool{false, true} {
		ledger := newLedger()
		want := outbound.EffectNone
		if mark {
			want = outbound.EffectUnknown
			if err := ledger.MarkRestored(t.Context(), ledger.clock()); err != nil {
				t.Fatal(err)
			}
		}
		a := &scripted{answer: always(paid)}
		c := client(t, a, ledger, nil)
		call := pay("c1", "pay.stored")
		call.Command.NotAfter = ledger.clock().Add(-time.Second)
		_, err := c.Do(t.Context(), call)
		wantError(t, err, outbound.ErrExpired, want, false)
		if _, err := c.Status(t.Context(), call.Command, "pay.stored"); !errors.Is(err, recordstore.ErrNotFound) {
			t.Errorf("status is %v, want ErrNotFound", err)
		}
		wantDeliveries(t, a, 0)
	}
}
