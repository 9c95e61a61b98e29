package outbound

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// What was accepted and failed later is told as that, and not as a provider that
// could not be reached.
func TestWhatALookUpOfAnAppliedEffectTold(t *testing.T) {
	t.Parallel()
	failed := judged{state: recordstore.Uncertain}.found(Finding{Effect: EffectNone, Code: ErrRefused, ObjectStatus: "failed", ProviderCode: "no_funds"})
	for name, c := range map[string]struct {
		j    judged
		code Code
		want string
	}{
		"failed since": {failed, ErrRefused, "has failed since; the record stays as it was (no_funds): the object is failed"},
		"nothing":      {judged{state: recordstore.Uncertain}, ErrUnavailable, "was asked and did not tell"},
		"no answer":    {judged{state: recordstore.Uncertain, Verdict: Verdict{Err: errors.New("no route")}}, ErrUnavailable, "could not be reached"},
	} {
		e := &Error{Code: ErrInvalid, Effect: EffectApplied, Operation: "payout.create"}
		e.stands(c.j)
		if e.Code != c.code || e.Effect != EffectApplied || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%s: %s and %q, want %s and %q", name, e.Code, e.Error(), c.code, c.want)
		}
	}
}

// A webhook about somebody else's payment carries a reference of theirs: nothing to
// observe, and nothing that another delivery could mend.
func TestAForeignMarkIsNotOurs(t *testing.T) {
	t.Parallel()
	c := &Client{core: &core{}}
	for _, mark := range []string{"nobody", "INV-2026-7", strings.Repeat("g", 36)} {
		if err := c.Observe(t.Context(), Observation{Mark: mark}); err != nil {
			t.Errorf("a mark %q: %v", mark, err)
		}
	}
}
