package direct_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	plutov "github.com/plutov/paypal/v4"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fake "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

// Every operation that the fake has is reached through the SDK, but for those
// that no client calls.
func TestReachesEveryOperation(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, o := range operations() {
		named[o.name] = true
	}
	all := newDirect(t, fake.Config{}).fake.Operations()
	for _, name := range all {
		if named[name] == (unreachable[name] != "") {
			t.Errorf("%s: called %t, but out of reach: %q", name, named[name], unreachable[name])
		}
	}
	for name, why := range without {
		if !slices.Contains(all, name) || !named[name] || why == "" {
			t.Errorf("%s has no method, but is no operation that is called, or lacks a reason", name)
		}
	}
}

func (o operation) subject(d *direct) string {
	if o.ready == nil {
		return ""
	}
	return o.ready(d)
}

// R12, without samekey: each call succeeds and reaches its operation.
func TestOperations(t *testing.T) {
	t.Parallel()
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			d := newDirect(t, fake.Config{})
			id := o.subject(d)
			before := len(d.fake.Requests(o.name))
			got, err := o.call(d, id)
			if err != nil || got == "" {
				t.Errorf("got %q and %v, want a success", got, err)
			}
			if strings.HasSuffix(o.name, ".get") && id != "" && got != id {
				t.Errorf("got %q, want %q", got, id)
			}
			if len(d.fake.Requests(o.name)) != before+1 {
				t.Errorf("the SDK did not reach %s but %+v", o.name, d.fake.Requests(""))
			}
		})
	}
}

// What goes wrong reaches the caller as the SDK's own error, and changes
// nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, o := range operations() {
		if o.name == "token" || o.name == "webhook.verify" { // which answer in another shape, or not to a call of ours
			continue
		}
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			d := newDirect(t, fake.Config{})
			id := o.subject(d)
			before := d.fake.Effects("")
			for _, x := range []struct {
				kind        fakeprovider.Kind
				status      int
				name, issue string
			}{
				{fakeprovider.InFlight, http.StatusConflict, "RESOURCE_CONFLICT", "PREVIOUS_REQUEST_IN_PROGRESS"},
				{fakeprovider.RateLimit, http.StatusTooManyRequests, "RATE_LIMIT_REACHED", ""},
				{fakeprovider.Status500, http.StatusInternalServerError, "INTERNAL_SERVER_ERROR", ""},
				{fakeprovider.Status503, http.StatusServiceUnavailable, "SERVICE_UNAVAILABLE", ""},
			} {
				d.inject(fakeprovider.Fault{Kind: x.kind, Operation: o.name})
				_, err := o.call(d, id)
				d.wantRefusal(err, x.status, x.name, x.issue)
			}
			if got := d.fake.Effects(""); got != before {
				t.Errorf("%d effects, want none", got-before)
			}
			if strings.HasSuffix(o.name, ".get") && id != "" {
				_, err := o.call(d, "missing")
				d.wantRefusal(err, http.StatusNotFound, "RESOURCE_NOT_FOUND", "INVALID_RESOURCE_ID")
			}
		})
	}
}

// The four methods that take a request id get the latest state back for it, and
// one effect.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	for _, o := range operations() {
		if !slices.Contains([]string{"order.create", "order.capture", "authorization.capture", "capture.refund"}, o.name) {
			continue
		}
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			d := newDirect(t, fake.Config{})
			id := o.subject(d)
			first, err := o.call(d, id)
			if err != nil {
				t.Fatal(err)
			}
			again, err := o.call(d, id)
			if err != nil || again != first {
				t.Errorf("got %q and %v, want %q again", again, err, first)
			}
			d.wantEffects(o.name, 1)
			requests := d.fake.Requests(o.name)
			if len(requests) != 2 || requests[0].KeyHash == ([32]byte{}) || requests[0].KeyHash != requests[1].KeyHash || !requests[1].Replayed {
				t.Errorf("got %+v, want a replay under one id", requests)
			}
		})
	}
}

// A second batch under a sender_batch_id is refused with a link to the first
// (C17).
func TestSecondBatch(t *testing.T) {
	t.Parallel()
	d := newDirect(t, fake.Config{})
	first := batch(d)
	_, err := pay(d)
	d.wantRefusal(err, http.StatusBadRequest, "USER_BUSINESS_ERROR", "")
	d.wantEffects("payout.create", 1)
	if got, err := d.pp.GetPayout(t.Context(), first); err != nil || got.BatchHeader.PayoutBatchID != first {
		t.Errorf("got %v, want the first batch", err)
	}
}

// A decline, a guard and a mismatch, where the fake is told to compare, are the
// SDK's own errors too.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	d := newDirect(t, fake.Config{CompareBodies: true})
	declined := d.seed(fake.ApprovedOrder{Outcome: "INSTRUMENT_DECLINED"})
	_, err := d.pp.CaptureOrder(t.Context(), declined, plutov.CaptureOrderRequest{})
	d.wantRefusal(err, http.StatusUnprocessableEntity, "UNPROCESSABLE_ENTITY", "INSTRUMENT_DECLINED")
	order := d.seed(fake.ApprovedOrder{})
	for _, issue := range []string{"", "ORDER_ALREADY_CAPTURED"} {
		if _, err = d.pp.CaptureOrder(t.Context(), order, plutov.CaptureOrderRequest{}); issue == "" && err == nil {
			continue
		}
		d.wantRefusal(err, http.StatusUnprocessableEntity, "UNPROCESSABLE_ENTITY", issue)
	}
	capture := d.seed(fake.CompletedCapture{Value: "12.50", Currency: "EUR"})
	refund := func(value string) error {
		_, err := d.pp.RefundCaptureWithPaypalRequestId(t.Context(), capture, plutov.RefundCaptureRequest{Amount: euros(value)}, "id-1")
		return err
	}
	if err := refund("5.00"); err != nil {
		t.Fatal(err)
	}
	d.wantRefusal(refund("6.00"), http.StatusUnprocessableEntity, "UNPROCESSABLE_ENTITY", "PAYPAL_REQUEST_ID_PREVIOUSLY_USED")
	d.wantEffects("capture.refund", 1)
}
