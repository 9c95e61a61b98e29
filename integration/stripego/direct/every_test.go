package direct_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v86"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// keyless are the writes that Stripe takes no key for: DELETE in API v1.
func (w write) keyless() bool {
	return slices.Contains([]string{"customer.delete", "subscription.cancel", "invoice.delete"}, w.name)
}

func (w write) v2() bool { return strings.HasPrefix(w.name, "v2.") }

func (w write) subject(d *direct) string {
	if w.ready == nil {
		return ""
	}
	return w.ready(d)
}

// Every operation that the fake has is called by stripe-go's own method of the
// two tables below. There is none that it cannot call.
func TestReachesEveryOperation(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, w := range writes() {
		named[w.name] = true
	}
	for _, r := range lookups() {
		named[r.name] = true
	}
	for _, operation := range newDirect(t).fake.Operations() {
		if !named[operation] {
			t.Errorf("no test reaches %s with stripe-go", operation)
		}
	}
}

// R12, without samekey: a write succeeds, its key gives the first answer back and
// no second effect, and the key is refused elsewhere.
func TestWrites(t *testing.T) {
	t.Parallel()
	for _, w := range writes() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			d := newDirect(t)
			id := w.subject(d)
			before := d.fake.Effects(w.name)
			first := w.call(t.Context(), d, id, "key-1")
			if first.err != nil || first.header.Get("Idempotent-Replayed") != "" {
				t.Fatalf("got %v with %v, want a first answer", first.err, first.header)
			}
			d.wantReached(w.name)
			d.wantEffects(w.name, before+1)
			if w.keyless() {
				return
			}
			again := w.call(t.Context(), d, id, "key-1")
			replayed := again.header.Get("Idempotent-Replayed") == "true"
			if again.err != nil || again.id != first.id || replayed == w.v2() {
				t.Errorf("got %q, %v with %v, want %q again", again.id, again.err, again.header, first.id)
			}
			d.wantEffects(w.name, before+1)
			_, err := d.sc.V1Customers.Create(t.Context(), &stripe.CustomerCreateParams{Params: keyed("key-1"), Email: text("other@example.com")})
			if !w.v2() { // whose keys are a space of their own
				d.wantRefusal(err, http.StatusBadRequest, stripe.ErrorTypeIdempotency, "")
			}
		})
	}
}

// What goes wrong reaches the caller as stripe-go's own error, and changes
// nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, w := range writes() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			d := newDirect(t)
			id := w.subject(d)
			before := d.fake.Effects(w.name)
			for _, x := range []struct {
				kind   fakeprovider.Kind
				status int
				typ    stripe.ErrorType
				code   stripe.ErrorCode
			}{
				{fakeprovider.InFlight, http.StatusConflict, stripe.ErrorTypeInvalidRequest, "idempotency_key_in_use"},
				{fakeprovider.RateLimit, http.StatusTooManyRequests, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeRateLimit},
				{fakeprovider.Status500, http.StatusInternalServerError, stripe.ErrorTypeAPI, ""},
				{fakeprovider.Unauthorized, http.StatusUnauthorized, stripe.ErrorTypeInvalidRequest, ""},
			} {
				d.inject(fakeprovider.Fault{Kind: x.kind, Operation: w.name})
				d.wantRefusal(w.call(t.Context(), d, id, "key-1").err, x.status, x.typ, x.code)
			}
			d.wantEffects(w.name, before)
			if id != "" && !strings.HasPrefix(w.name, "v2.") && !strings.HasSuffix(w.name, ".create") {
				d.wantRefusal(w.call(t.Context(), d, "missing_1", "key-2").err, http.StatusNotFound, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeResourceMissing)
			}
		})
	}
}

// Look-ups by id, lists, searches and events find what there is.
func TestReads(t *testing.T) {
	t.Parallel()
	for _, r := range lookups() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			d := newDirect(t)
			id := ""
			if r.ready != nil {
				id = r.ready(d)
			}
			found, err := r.call(t.Context(), d, id)
			if err != nil || id != "" && !slices.Contains(found, id) || len(found) == 0 {
				t.Errorf("found %v and %v, want %q", found, err, id)
			}
			d.wantReached(r.name)
			if !strings.HasSuffix(r.name, ".get") || id == "" {
				return
			}
			_, err = r.call(t.Context(), d, "missing_1")
			d.wantRefusal(err, http.StatusNotFound, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeResourceMissing)
		})
	}
}
