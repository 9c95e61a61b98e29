package outbound_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// sinceRestore is how long ago the ledger of these tests was restored: longer than
// any request may still be applied.
const sinceRestore = 48 * time.Hour

// restored returns a ledger that was restored from a backup, without a record of
// what was sent before, and when that was.
func restored(t *testing.T, ago time.Duration) (*ledgerAt, time.Time) {
	t.Helper()
	ledger := newLedger()
	at := ledger.clock().Add(-ago)
	if err := ledger.MarkRestored(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	return ledger, at
}

// dated returns a command ID that carries the day of at.
func dated(t *testing.T, at time.Time) string {
	t.Helper()
	id, err := keyderive.CommandID(at, "payment", "1")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// asking is a look-up that answers f and keeps what it was asked.
func asking(seen *[]outbound.Lookup, f func(*outbound.Lookup) (outbound.Finding, error)) func(*outbound.Lookup) (outbound.Finding, error) {
	return func(l *outbound.Lookup) (outbound.Finding, error) {
		*seen = append(*seen, *l)
		return f(l)
	}
}

func cannotTell(*outbound.Lookup) (outbound.Finding, error) {
	return outbound.Finding{}, errors.New("the provider's list is not complete")
}

func wantDeliveries(t *testing.T, a *scripted, want int) {
	t.Helper()
	if n := len(a.deliveries()); n != want {
		t.Fatalf("%d deliveries, want %d", n, want)
	}
}

// oldCommands are commands whose records a restore may have lost, and when the
// first request of each may have been written.
func oldCommands(t *testing.T, at time.Time) map[string]struct {
	id        string
	firstSent time.Time
} {
	t.Helper()
	startOfDay := func(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }
	earlier := at.Add(-72 * time.Hour)
	return map[string]struct {
		id        string
		firstSent time.Time
	}{
		"an earlier day":         {dated(t, earlier), startOfDay(earlier)},
		"the day of the restore": {dated(t, at), startOfDay(at)},
		"no day":                 {"refund-2041", time.Time{}},
	}
}

// R22: a command as old as the restore, and without a record, is looked up before
// it is sent. Found settles it.
func TestRestoredAndFound(t *testing.T) {
	ledger, at := restored(t, sinceRestore)
	for name, old := range oldCommands(t, at) {
		t.Run(name, func(t *testing.T) {
			var seen []outbound.Lookup
			a := &scripted{answer: always(paid), find: asking(&seen, found)}
			c := client(t, a, ledger, nil)
			r, err := c.Do(t.Context(), pay(old.id, "pay.stored"))
			wantReply(t, r, err, outbound.LatestStatus, outbound.FromProvider)
			if len(seen) != 1 || !seen[0].FirstSentAt.Equal(old.firstSent) || !seen[0].SentUntil.Equal(at.Truncate(time.Microsecond)) {
				t.Errorf("looked up %+v, want once what was sent from %v to %v", seen, old.firstSent, at)
			}
			r, err = c.Do(t.Context(), pay(old.id, "pay.stored"))
			wantReply(t, r, err, outbound.LatestStatus, outbound.FromLedger)
			wantDeliveries(t, a, 0)
		})
	}
}

// R22: absent, which is a proof past the horizon, sends it once.
func TestRestoredAndAbsent(t *testing.T) {
	ledger, at := restored(t, sinceRestore)
	for name, old := range oldCommands(t, at) {
		t.Run(name, func(t *testing.T) {
			a := &scripted{answer: always(paid), find: absent}
			c := client(t, a, ledger, nil)
			r, err := c.Do(t.Context(), pay(old.id, "pay.stored"))
			wantReply(t, r, err, outbound.NewExecution, outbound.FromProvider)
			r, err = c.Do(t.Context(), pay(old.id, "pay.stored"))
			wantReply(t, r, err, outbound.OriginalReplay, outbound.FromLedger)
			wantDeliveries(t, a, 1)
		})
	}
}

// R22: while nobody can tell, nothing is sent, neither by a later call nor by the
// reconciler; what it finds at last settles the command.
func TestRestoredAndUnknown(t *testing.T) {
	ledger, at := restored(t, sinceRestore)
	for name, old := range oldCommands(t, at) {
		t.Run(name, func(t *testing.T) {
			a := &scripted{answer: always(paid), find: cannotTell}
			c := client(t, a, ledger, nil)
			for range 2 {
				_, err := c.Do(t.Context(), pay(old.id, "pay.stored"))
				wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, false)
			}
			ledger.advance(time.Hour)
			r := reconciler(t, nil, c)
			if s := sweepOnce(t, r); s.LookedUp != 1 || s.Postponed != 1 {
				t.Errorf("swept %+v, want one looked up and postponed", s)
			}
			a.find = found
			ledger.advance(24 * time.Hour)
			if s := sweepOnce(t, r); s.LookedUp != 1 || s.Settled != 1 {
				t.Errorf("swept %+v, want one looked up and settled", s)
			}
			wantDeliveries(t, a, 0)
		})
	}
}

// R22: what was sent right before the restore may still be applied: inside the
// horizon absence proves nothing.
func TestRestoredJustNow(t *testing.T) {
	ledger, at := restored(t, time.Minute)
	a := &scripted{answer: always(paid), find: absent}
	c := client(t, a, ledger, nil)
	call := pay(dated(t, at), "pay.stored")
	_, err := c.Do(t.Context(), call)
	wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, false)
	wantDeliveries(t, a, 0)
	ledger.advance(time.Hour)
	r, err := c.Do(t.Context(), call)
	wantReply(t, r, err, outbound.NewExecution, outbound.FromProvider)
	wantDeliveries(t, a, 1)
}

// R21, R22: without a key and a look-up nobody but a person can tell.
func TestRestoredWithoutKey(t *testing.T) {
	ledger, at := restored(t, sinceRestore)
	for name, old := range oldCommands(t, at) {
		t.Run(name, func(t *testing.T) {
			a := &scripted{answer: always(paid)}
			c := client(t, a, ledger, nil)
			_, err := c.Do(t.Context(), pay(old.id, "mail.send"))
			wantError(t, err, outbound.ErrManualReview, outbound.EffectUnknown, false)
			wantDeliveries(t, a, 0)
			if s := statusOf(t, c, old.id, "mail.send"); s.State != recordstore.ManualReview {
				t.Errorf("state %s, want manual_review", s.State)
			}
		})
	}
}

// A command of a later day than an ID may be dated ahead cannot have lost its
// record: it is sent as always.
func TestNewerThanTheRestore(t *testing.T) {
	ledger, at := restored(t, sinceRestore)
	var seen []outbound.Lookup
	a := &scripted{answer: always(paid), find: asking(&seen, found)}
	c := client(t, a, ledger, nil)
	r, err := c.Do(t.Context(), pay(dated(t, at.Add(48*time.Hour)), "pay.stored"))
	wantReply(t, r, err, outbound.NewExecution, outbound.FromProvider)
	if wantDeliveries(t, a, 1); len(seen) != 0 {
		t.Errorf("%d look-ups, want none", len(seen))
	}
}

// A plan is sent later without a look-up: one whose command may have been sent
// before the restore is refused, and nothing is written.
func TestPlanOlderThanTheRestore(t *testing.T) {
	ledger, at := restored(t, sinceRestore)
	c := client(t, &scripted{answer: always(paid)}, ledger, nil)
	plan := func(id string) error {
		call := pay(id, "pay.stored")
		call.Command.NotAfter = outbound.Forever
		return c.Plan(t.Context(), ledger, call)
	}
	for name, old := range oldCommands(t, at) {
		if err := plan(old.id); !errors.Is(err, outbound.ErrInvalid) || !strings.Contains(err.Error(), "call Do") {
			t.Errorf("%s: %v, want ErrInvalid that says what to do", name, err)
		}
		if _, err := c.Status(t.Context(), outbound.Command{ID: old.id}, "pay.stored"); !errors.Is(err, recordstore.ErrNotFound) {
			t.Errorf("%s: status is %v, want ErrNotFound", name, err)
		}
	}
	if err := plan(dated(t, at.Add(48*time.Hour))); err != nil {
		t.Errorf("a newer command: %v", err)
	}
}

// Lifting takes effect for a new client; one that runs keeps to what it read.
func TestRestoreLifted(t *testing.T) {
	ledger, at := restored(t, sinceRestore)
	a := &scripted{answer: always(paid), find: cannotTell}
	before := client(t, a, ledger, nil)
	_, err := before.Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, false)
	if err := ledger.MarkRestored(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	_, err = before.Do(t.Context(), pay("c2", "pay.stored"))
	wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, false)
	wantDeliveries(t, a, 0)

	after := client(t, a, ledger, nil)
	r, err := after.Do(t.Context(), pay(dated(t, at), "pay.stored"))
	wantReply(t, r, err, outbound.NewExecution, outbound.FromProvider)
	_, err = after.Do(t.Context(), pay("c1", "pay.stored")) // its record says that it may have been sent
	wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, false)
	wantDeliveries(t, a, 1)
}

// forgetful is a ledger that cannot say whether it was restored.
type forgetful struct {
	*ledgerAt
	away bool
}

func (f *forgetful) Restored(ctx context.Context) (time.Time, error) {
	if f.away {
		return time.Time{}, errCut
	}
	return f.ledgerAt.Restored(ctx)
}

// R22: nothing is sent before it is known whether records may be lost.
func TestRestoreNotReadable(t *testing.T) {
	inner, _ := restored(t, sinceRestore)
	ledger := &forgetful{inner, true}
	a := &scripted{answer: always(paid), find: found}
	c := client(t, a, ledger, nil)
	_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	if wantError(t, err, outbound.ErrStore, outbound.EffectUnknown, false); !errors.Is(err, errCut) {
		t.Errorf("%v, want the ledger's error", err)
	}
	ledger.away = false
	r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantReply(t, r, err, outbound.LatestStatus, outbound.FromProvider)
	wantDeliveries(t, a, 0)
}
