package httpadapter

import (
	"strings"
	"testing"
)

// A provider whose codec cannot ask whose a credential is says so: it is no consent.
func TestCheckOwnerNeedsAChecker(t *testing.T) {
	t.Parallel()
	err := New(seeker{}, Config{Provider: "acme"}).CheckOwner(t.Context(), "m")
	if err == nil || !strings.Contains(err.Error(), "acme: it cannot be asked whose the credential is") {
		t.Errorf("got %v", err)
	}
}
