package stripego_test

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v86"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Reads and lists pass untouched, with a command and without, under Strict too.
func TestReadsPass(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{dropin: &dropin.Options{Strict: true}})
	charge := b.charge()
	for i := range 3 {
		if a := b.refundOf(b.named("cmd_"+string(rune('a'+i))), charge, 100); a.err != nil {
			t.Fatal(a.err)
		}
	}
	for name, ctx := range map[string]context.Context{"named": b.named("cmd_x"), "unnamed": t.Context()} {
		r, err := b.sc.V1Charges.Retrieve(ctx, charge, nil)
		if err != nil || r.ID != charge || r.LastResponse.Header.Get(dropin.HeaderEffect) != "" {
			t.Errorf("%s: got %v with %v", name, err, r.LastResponse.Header)
		}
		n, list := 0, &stripe.RefundListParams{Charge: &charge}
		list.Limit = count(2)
		for _, err := range b.sc.V1Refunds.List(ctx, list).All(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 3 {
			t.Errorf("%s: listed %d refunds over two pages, want 3", name, n)
		}
	}
	if n := b.transport.Unnamed(); n != 0 {
		t.Errorf("%d reads counted as writes", n)
	}
}

// R31: a write without a command is refused where money moves; others pass with
// the SDK's own key and are counted; Strict refuses them all.
func TestUnnamedWrites(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		b := newBench(t, setting{dropin: &dropin.Options{Strict: strict}})
		charge := b.charge()
		e := b.wantError(b.refund(t.Context(), charge), http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
		if !strings.Contains(e.Msg, "outbound.WithCommand") {
			t.Errorf("message %q does not say what to do", e.Msg)
		}
		b.wantTrips(1)

		create := func() answer {
			r, err := b.sc.V1Customers.Create(t.Context(), &stripe.CustomerCreateParams{Email: text("a@example.com")})
			return of(r.APIResource, r.ID, err)
		}
		update := func() answer { // no operation of the table
			r, err := b.sc.V1Charges.Update(t.Context(), charge, &stripe.ChargeUpdateParams{Description: text("x")})
			return of(r.APIResource, r.ID, err)
		}
		for _, call := range []func() answer{create, update} {
			a := call()
			if strict {
				b.wantError(a, http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
			} else if a.err != nil || a.header.Get(dropin.HeaderEffect) != "" {
				t.Errorf("got %v with %v, want the SDK's own answer", a.err, a.header)
			}
		}
		passed := 2
		if strict {
			passed = 0
		}
		if got := b.fake.Requests(""); len(got) != passed || b.transport.Unnamed() != int64(passed) {
			t.Errorf("strict %t: %d requests arrived and %d were counted, want %d", strict, len(got), b.transport.Unnamed(), passed)
		}
		for _, r := range b.fake.Requests("") {
			if r.KeyHash == ([32]byte{}) {
				t.Error("the SDK's own key was taken away")
			}
		}
	}
}

// A command on a route that is no operation is refused with the line that
// registers it. So is stripe-go's V1Payouts.Cancel, which posts to another
// object's route in this version.
func TestUnknownRoute(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{})
	charge := b.charge()
	r, err := b.sc.V1Charges.Update(b.named("cmd_1"), charge, &stripe.ChargeUpdateParams{Description: text("x")})
	e := b.wantError(of(r.APIResource, r.ID, err), http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
	if !strings.Contains(e.Msg, "adapter.With(replaysemantics.Operation{") || strings.Contains(e.Msg, charge) {
		t.Errorf("message %q: want the line that registers the route, and no ids", e.Msg)
	}
	p, err := b.sc.V1Payouts.Cancel(b.named("cmd_1"), b.fake.Seed(providertest.StripePayout{}), nil)
	b.wantError(of(p.APIResource, p.ID, err), http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
	b.wantTrips(2)
	if n := len(b.fake.Requests("")); n != 0 {
		t.Errorf("%d requests arrived, want none", n)
	}
}

// Only narrows samekey to the operations it names; the rest is as without it.
func TestOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{dropin: &dropin.Options{Only: []string{"refund.create"}}})
	charge := b.charge()
	p := &stripe.TransferCreateParams{Amount: count(100), Currency: text("eur"), Destination: text("acct_seller")}
	p.SetIdempotencyKey("mine")
	r, err := b.sc.V1Transfers.Create(b.named("cmd_1"), p)
	if err != nil || r.LastResponse.Header.Get(dropin.HeaderEffect) != "" {
		t.Errorf("got %v, want the SDK's own answer", err)
	}
	if got := b.fake.Requests("transfer.create"); len(got) != 1 || got[0].KeyHash != sha256.Sum256([]byte("mine")) {
		t.Errorf("got %+v, want the caller's own key", got)
	}
	b.wantLabel(b.refund(b.named("cmd_1"), charge), "no_replay_header", outbound.FromProvider)
	b.wantSent("cmd_1", "refund.create", 1, 1)
}

// Shadow changes nothing for an application that makes a fresh key at each try
// (C29), and reports the second refund that it would have prevented.
func TestShadow(t *testing.T) {
	t.Parallel()
	b := newBench(t, setting{dropin: &dropin.Options{Shadow: true}})
	charge := b.charge()
	try := func(key string) answer {
		p := &stripe.RefundCreateParams{Charge: &charge, Amount: count(500)}
		p.SetIdempotencyKey(key)
		r, err := b.sc.V1Refunds.Create(b.named("cmd_1"), p)
		return of(r.APIResource, r.ID, err)
	}
	b.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create", Times: 3})
	if a := try("try-1"); a.err == nil { // and two retries of stripe-go's own
		t.Fatal("the answer was not lost")
	}
	b.wantTrips(3)
	a := try("try-2")
	if a.err != nil || a.header.Get(dropin.HeaderEffect) != "" {
		t.Fatalf("got %v with %v, want the SDK's own answer", a.err, a.header)
	}
	b.wantTrips(1)
	if got := b.fake.Effects("refund.create"); got != 2 {
		t.Errorf("%d refunds, want the application's two: Shadow changes nothing", got)
	}
	shadow := 0
	for line := range strings.Lines(b.logs.String()) {
		if strings.Contains(line, "samekey: shadow") && strings.Contains(line, "cmd_1") && !strings.Contains(line, "result=send") {
			shadow++
		}
		if strings.Contains(line, "try-") {
			t.Errorf("a log line shows a key: %s", line)
		}
	}
	if shadow != 3 {
		t.Errorf("%d sends were reported that samekey would not have made, want the 3 after the first:\n%s", shadow, b.logs)
	}

	// The cut-over: what Shadow recorded is the command's answer from now on.
	status, err := b.client.Status(t.Context(), outbound.Command{ID: "cmd_1"}, "refund.create")
	if err != nil || status.State != recordstore.Succeeded || status.Reply.ExternalRef != a.id {
		t.Fatalf("got %+v, %v, want the shadowed refund recorded", status, err)
	}
	transport, err := dropin.New(b.client, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.sc = stripe.NewClient(secretKey, stripe.WithBackends(newBackends(t, transport.Client(), b.fake.URL)))
	if now := b.refund(b.named("cmd_1"), charge); now.err != nil || now.id != a.id {
		t.Errorf("got %q, %v, want the recorded %q", now.id, now.err, a.id)
	}
	if got := b.fake.Effects("refund.create"); got != 2 {
		t.Errorf("%d refunds after the cut-over, want no third", got)
	}
}
