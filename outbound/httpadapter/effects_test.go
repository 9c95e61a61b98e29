package httpadapter

import (
	"strings"
	"testing"
)

// A provider whose codec keeps no lists says so, and asks nothing.
func TestListEffectsNeedsALister(t *testing.T) {
	t.Parallel()
	a := New(seeker{}, Config{Provider: "acme"})
	coverage, err := a.ListEffects(t.Context(), EffectQuery{Account: "m"}, func(ListedEffect) error { return nil })
	if err == nil || coverage != nil || !strings.Contains(err.Error(), "acme: there are no lists") {
		t.Errorf("got %v, %v", coverage, err)
	}
}
