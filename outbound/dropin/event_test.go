package dropin_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
)

func ofEvent(t *testing.T, version int) context.Context {
	t.Helper()
	cmd, err := outbound.EventCommand(keyderive.Event{Consumer: "refunds", ID: "evt_1", Version: version}, "")
	if err != nil {
		t.Fatal(err)
	}
	return outbound.WithCommand(t.Context(), cmd)
}

// R25: under an SDK too a raised effect version is refused in the provider's shape
// and sends nothing, with the ledger and with KeysOnly, unless it is admitted.
func TestRaisedVersionUnderTheDropIn(t *testing.T) {
	for name, keysOnly := range map[string]func(context.Context) bool{
		"with the ledger": nil, "KeysOnly": func(context.Context) bool { return true },
	} {
		b := newBench(t, setting{options: outbound.Options{KeysOnly: keysOnly}}, ok)
		a := b.mustPost(t, ofEvent(t, 2), "/v1/charges", "amount=1")
		a.want(t, http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
		if !strings.Contains(a.body, "manifest") || len(b.received()) != 0 {
			t.Errorf("%s: %s after %d requests, want none, and what to do", name, a.body, len(b.received()))
		}
		b = newBench(t, setting{options: outbound.Options{KeysOnly: keysOnly, EffectVersions: map[string]int{"refunds": 2}}}, ok)
		keys := map[string]bool{}
		for version := 1; version <= 2; version++ {
			b.mustPost(t, ofEvent(t, version), "/v1/charges", "amount=1").want(t, http.StatusOK, "", outbound.EffectApplied)
		}
		for _, d := range b.received() {
			keys[d.key] = true
		}
		if len(b.received()) != 2 || len(keys) != 2 {
			t.Errorf("%s: %d requests with %d keys, want one of each version with a key of its own", name, len(b.received()), len(keys))
		}
	}
}
