package stripe_test

import (
	"io"
	"net/http"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// A webhook handler. Stripe delivers an event again until it is answered with a
// 2xx status.
func ExampleVerify() {
	handler := func(payments *outbound.Client, secrets ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
			if err != nil {
				http.Error(w, "body", http.StatusBadRequest)
				return
			}
			if err := stripe.Verify(body, r.Header.Get("Stripe-Signature"), 5*time.Minute, secrets...); err != nil {
				http.Error(w, "signature", http.StatusBadRequest)
				return
			}
			seen, ours, err := stripe.Event(body)
			if err != nil {
				http.Error(w, "event", http.StatusBadRequest)
				return
			}
			if ours {
				if err := payments.Observe(r.Context(), seen); err != nil {
					http.Error(w, "try again", http.StatusServiceUnavailable)
					return
				}
			}
			w.WriteHeader(http.StatusNoContent)
		}
	}
	_ = handler
}
