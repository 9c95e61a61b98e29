package dropin

import (
	"net/http"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// Every code has its status; in flight apart, what may have happened is no 4xx.
func TestStatusOf(t *testing.T) {
	for code, want := range map[outbound.Code]int{
		outbound.ErrUncertain: 500, outbound.ErrManualReview: 500, outbound.ErrForgotten: 500, "of a newer build": 500,
		outbound.ErrInFlight: 409,
		outbound.ErrInvalid:  400, outbound.ErrFingerprintConflict: 400, outbound.ErrAbandoned: 400, outbound.ErrExpired: 400, outbound.ErrRejected: 400,
		outbound.ErrForbidden: 403, outbound.ErrAuth: 401, outbound.ErrRefused: 402, outbound.ErrRateLimited: 429,
		outbound.ErrStore: 503, outbound.ErrOverloaded: 503, outbound.ErrNewerRecord: 503, outbound.ErrUnavailable: 503,
	} {
		if got, _ := statusOf(code); got != want {
			t.Errorf("%s is answered with %d %s, want %d", code, got, http.StatusText(got), want)
		}
	}
}
