package outbound_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// R23: an older build meets a newer fingerprint.
func TestNewerFingerprintIsNoConflict(t *testing.T) {
	ledger := memory.New(nil)
	newer := client(t, &scripted{answer: always(paid), canonicals: []int{2, 1}}, ledger, nil)
	older := client(t, &scripted{answer: always(paid), canonicals: []int{1}}, ledger, nil)
	if _, err := newer.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	_, err := older.Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrNewerRecord, outbound.EffectApplied, false)
	if _, err := older.Do(t.Context(), pay("c2", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	r, err := newer.Do(t.Context(), pay("c2", "pay.stored")) // R23: the newer build reads the older version
	wantReply(t, r, err, outbound.OriginalReplay, outbound.FromLedger)
}

// R19: scope is part of the identity, and the present caller's right is asked.
func TestScopeAndRightToReplay(t *testing.T) {
	a := &scripted{answer: always(paid)}
	refuse := errors.New("not yours")
	var asked int
	c := client(t, a, memory.New(nil), &outbound.Options{AllowReplay: func(_ context.Context, r *outbound.Reply) error {
		asked++
		return refuse
	}})
	for _, scope := range []string{"tenant-a", "tenant-b"} {
		call := pay("c1", "pay.stored")
		call.Command.Scope = scope
		r, err := c.Do(t.Context(), call)
		wantReply(t, r, err, outbound.NewExecution, outbound.FromProvider)
	}
	call := pay("c1", "pay.stored")
	call.Command.Scope = "tenant-a"
	_, err := c.Do(t.Context(), call)
	wantError(t, err, outbound.ErrForbidden, outbound.EffectApplied, false)
	if !errors.Is(err, refuse) || asked != 1 {
		t.Errorf("%v after %d questions, want the caller's own error after one", err, asked)
	}
}

// KeysOnly sends with the same key, writes no record, and refuses what no key protects.
func TestKeysOnly(t *testing.T) {
	ledger := memory.New(nil)
	off := false
	a := &scripted{answer: always(paid)}
	c := client(t, a, ledger, &outbound.Options{KeysOnly: func(context.Context) bool { return off }})
	if _, err := c.Do(t.Context(), pay("c1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	off = true
	for range 2 {
		r, err := c.Do(t.Context(), pay("c1", "pay.stored"))
		wantReply(t, r, err, outbound.LatestStatus, outbound.FromProvider) // no ledger knows what else was sent
		if !errors.Is(r.Unrecorded, outbound.ErrStore) {
			t.Errorf("Unrecorded = %v, want ErrStore", r.Unrecorded)
		}
	}
	sent := a.deliveries()
	if len(sent) != 3 || sent[0].Key != sent[2].Key {
		t.Errorf("%d deliveries, want three with one key", len(sent))
	}
	_, err := c.Do(t.Context(), pay("m1", "mail.send"))
	wantError(t, err, outbound.ErrStore, outbound.EffectUnknown, false)
	if _, err := c.Status(t.Context(), outbound.Command{ID: "m1"}, "mail.send"); !errors.Is(err, recordstore.ErrNotFound) {
		t.Errorf("Status = %v, want ErrNotFound", err)
	}
}

// A panic in an adapter is a delivery of which nothing is known, and its value,
// which may hold a body, is shown nowhere.
func TestPanicIsUnknown(t *testing.T) {
	c := client(t, &scripted{answer: func(context.Context, int, *outbound.Delivery) []outbound.Verdict {
		panic("card 4242424242424242")
	}}, memory.New(nil), nil)
	_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrUncertain, outbound.EffectUnknown, true)
	if strings.Contains(err.Error(), "4242") {
		t.Errorf("the panic's value is in %q", err)
	}
}

// Two requests of one operation under one context are two intents with one name.
func TestTrackedResults(t *testing.T) {
	a := &scripted{answer: always(paid)}
	c := client(t, a, memory.New(nil), nil)
	cmd := outbound.Command{ID: "c1"}
	ctx, tracked := outbound.Track(t.Context(), cmd)
	if r, err := tracked.Result(); r != nil || err != nil {
		t.Fatalf("before any write: %v, %v", r, err)
	}
	if got, ok := outbound.CommandFrom(ctx); !ok || got != cmd {
		t.Fatalf("CommandFrom = %v, %v", got, ok)
	}
	if _, err := c.Do(ctx, pay("c1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(ctx, pay("c1", "no.such")); err == nil {
		t.Fatal("an unknown operation was sent")
	}
	if r, err := tracked.Result(); r != nil || !errors.Is(err, outbound.ErrInvalid) {
		t.Errorf("Result = %v, %v; want the last write's error", r, err)
	}
	if r, err := tracked.ResultOf("pay.stored"); err != nil || r.ExternalRef != "re_1" {
		t.Errorf("ResultOf = %v, %v", r, err)
	}
}

// Another secret than the ledger's is refused before the first claim.
func TestAnotherSecretThanTheLedgers(t *testing.T) {
	ledger := memory.New(nil)
	secret, err := keyderive.NewSecret([]byte(strings.Repeat("s", 32)))
	if err != nil {
		t.Fatal(err)
	}
	a := &scripted{answer: always(paid)}
	if _, err := client(t, a, ledger, nil).Do(t.Context(), pay("c1", "pay.stored")); err != nil {
		t.Fatal(err)
	}
	_, err = client(t, a, ledger, &outbound.Options{Secret: secret}).Do(t.Context(), pay("c2", "pay.stored"))
	wantError(t, err, outbound.ErrInvalid, outbound.EffectUnknown, false)
	if !strings.Contains(err.Error(), "Options.Secret") {
		t.Errorf("%q does not say what to do", err)
	}
	if n := len(a.deliveries()); n != 1 {
		t.Errorf("%d deliveries, want 1", n)
	}
}

func TestClosedClient(t *testing.T) {
	c := client(t, &scripted{answer: always(paid)}, memory.New(nil), nil)
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := c.Do(t.Context(), pay("c1", "pay.stored"))
	wantError(t, err, outbound.ErrOverloaded, outbound.EffectUnknown, false)
}
