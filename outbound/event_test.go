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

func eventCall(t *testing.T, e keyderive.Event, body string) outbound.Call {
	t.Helper()
	cmd, err := outbound.EventCommand(e, "")
	if err != nil {
		t.Fatal(err)
	}
	call := pay("", "pay.stored")
	call.Command, call.Message.Body = cmd, []byte(body)
	return call
}

// R25: a raised effect version is refused before anything is written, in a step and
// with KeysOnly too, unless it is admitted; a higher one than that is refused still.
func TestRaisedVersionIsRefused(t *testing.T) {
	a := &scripted{answer: always(paid)}
	ledger := memory.New(nil)
	plain := client(t, a, ledger, nil)
	admitting := client(t, a, ledger, &outbound.Options{EffectVersions: map[string]int{"refunds": 2}})
	at := func(version int) outbound.Call {
		return eventCall(t, keyderive.Event{Consumer: "refunds", ID: "evt_1", Version: version}, "amount=100")
	}
	stepped := at(2)
	stepped.Command = stepped.Command.Step("a")
	other := eventCall(t, keyderive.Event{Consumer: "mailer", ID: "evt_1", Version: 2}, "amount=100")
	for name, refused := range map[string]struct {
		c    *outbound.Client
		call outbound.Call
	}{
		"none admitted": {plain, at(2)}, "a step": {plain, stepped}, "higher": {admitting, at(3)}, "another consumer": {admitting, other},
	} {
		_, err := refused.c.Do(t.Context(), refused.call)
		wantError(t, err, outbound.ErrInvalid, outbound.EffectUnknown, false)
		if err == nil || !strings.Contains(err.Error(), "manifest") {
			t.Errorf("%s: %v does not say what to do", name, err)
		}
		if got, err := refused.c.Compare(t.Context(), refused.call); err != nil || got.State != "" {
			t.Errorf("%s: a refused call left a record %+v, %v", name, got, err)
		}
	}
	if n := len(a.deliveries()); n != 0 {
		t.Fatalf("%d refused calls were sent", n)
	}
	for version := range 3 { // 0 is the first version
		if _, err := admitting.Do(t.Context(), at(version)); err != nil {
			t.Errorf("version %d: %v", version, err)
		}
	}
	if n := len(a.deliveries()); n != 2 {
		t.Errorf("%d deliveries, want one of each version", n)
	}
}

// R25: Plan refuses a raised effect version as Do does, and so does Do while KeysOnly
// is on, which asks no ledger: nothing is planned and nothing is sent.
func TestRaisedVersionIsNeitherPlannedNorSentByKey(t *testing.T) {
	a := &scripted{answer: always(paid)}
	ledger := memory.New(nil)
	keysOnly := func(context.Context) bool { return true }
	call := eventCall(t, keyderive.Event{Consumer: "refunds", ID: "evt_1", Version: 2}, "amount=100")
	call.Command.NotAfter = outbound.Forever
	versions := map[string]int{"refunds": 2}

	plain := client(t, a, ledger, nil)
	wantRefusedVersion(t, "Plan", plain.Plan(t.Context(), ledger, call))
	if _, err := plain.Status(t.Context(), call.Command, call.Operation); !errors.Is(err, recordstore.ErrNotFound) {
		t.Errorf("Status = %v, want that nothing is planned", err)
	}
	_, err := client(t, a, ledger, &outbound.Options{KeysOnly: keysOnly}).Do(t.Context(), call)
	wantRefusedVersion(t, "KeysOnly", err)
	if n := len(a.deliveries()); n != 0 {
		t.Fatalf("%d refused calls were sent", n)
	}

	if err := client(t, a, ledger, &outbound.Options{EffectVersions: versions}).Plan(t.Context(), ledger, call); err != nil {
		t.Errorf("an admitted version is not planned: %v", err)
	}
	if _, err := client(t, a, ledger, &outbound.Options{EffectVersions: versions, KeysOnly: keysOnly}).Do(t.Context(), call); err != nil {
		t.Errorf("an admitted version is not sent: %v", err)
	}
	if n := len(a.deliveries()); n != 1 {
		t.Errorf("%d deliveries, want that of the admitted version", n)
	}
}

func wantRefusedVersion(t *testing.T, name string, err error) {
	t.Helper()
	wantError(t, err, outbound.ErrInvalid, outbound.EffectUnknown, false)
	if err == nil || !strings.Contains(err.Error(), "manifest") {
		t.Errorf("%s: %v does not say what to do", name, err)
	}
}

// R24: two consumers of one event are two effects, an event seen twice is one, and an
// API's command of the same words is another.
func TestEventEffects(t *testing.T) {
	a := &scripted{answer: always(paid)}
	c := client(t, a, memory.New(nil), nil)
	refunds := keyderive.Event{Consumer: "refunds", ID: "evt_1"}
	for _, e := range []keyderive.Event{refunds, {Consumer: "mailer", ID: "evt_1"}, refunds} {
		if _, err := c.Do(t.Context(), eventCall(t, e, "amount=100")); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"evt_1", "refunds", "refunds/evt_1"} {
		call := pay(id, "pay.stored")
		if name, step, stepped := strings.Cut(id, "/"); stepped {
			call.Command = outbound.Command{ID: name}.Step(step)
		}
		if _, err := c.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(a.deliveries()); n != 5 {
		t.Errorf("%d deliveries, want 2 of the event and 3 of the API", n)
	}
	if _, err := outbound.EventCommand(keyderive.Event{ID: "evt_1"}, ""); !errors.Is(err, keyderive.ErrInvalid) {
		t.Errorf("an event without a consumer: %v", err)
	}
}

// Compare sends and claims nothing, and tells a changed request from the same one.
func TestCompare(t *testing.T) {
	a := &scripted{answer: always(paid)}
	c := client(t, a, memory.New(nil), nil)
	e := keyderive.Event{Consumer: "refunds", ID: "evt_1"}
	first := eventCall(t, e, "amount=100")
	if got, err := c.Compare(t.Context(), first); err != nil || *got != (outbound.Comparison{}) {
		t.Errorf("before the call: %+v, %v", got, err)
	}
	if _, err := c.Do(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	for body, same := range map[string]bool{"amount=100": true, "amount=200": false} {
		got, err := c.Compare(t.Context(), eventCall(t, e, body))
		if err != nil || got.Effect != outbound.EffectApplied || !got.Read || got.Same != same {
			t.Errorf("%s: %+v, %v; want same %t", body, got, err, same)
		}
	}
	if n := len(a.deliveries()); n != 1 {
		t.Errorf("%d deliveries, want that of Do", n)
	}
	_, err := c.Compare(t.Context(), pay("c1", "no.such"))
	wantError(t, err, outbound.ErrInvalid, outbound.EffectUnknown, false)
}
