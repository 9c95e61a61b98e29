package endtoend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/paypal"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// R19: another owner's result is never replayed, and the present caller's right
// to a recorded answer is asked for.
func TestR19_ScopeIsPartOfTheIdentity(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		mine, theirs := b.refund("r19"), b.refund("r19")
		mine.Command.Scope, theirs.Command.Scope = "tenant-a", "tenant-b"
		first, second := b.must(mine), b.must(theirs)
		b.labelled(second, rs.ByNoReplayHeader, outbound.FromProvider)
		if first.ExternalRef == second.ExternalRef {
			b.Error("two tenants share one refund")
		}
		b.count("refund.create", 2, 2)
		asked := ""
		guarded := b.restart(func(o *outbound.Options) {
			o.AllowReplay = func(_ context.Context, recorded *outbound.Reply) error {
				asked = recorded.ExternalRef
				return errors.New("this caller does not own the refund")
			}
		})
		e := guarded.fails(mine, outbound.ErrForbidden, outbound.EffectApplied)
		if asked != first.ExternalRef || e.Answer != nil || strings.Contains(e.Error(), first.ExternalRef) || e.Sent {
			b.Errorf("asked about %q; %+v", asked, e)
		}
		b.count("refund.create", 2, 2)
	})
}

// R23: headers that mean nothing and order-free lists make no conflict. Builds of
// different versions: TestOlderBuildMeetsNewerFingerprint.
func TestR23_HonestRetriesDoNotConflict(t *testing.T) {
	b := newBench(t, "paypal", sdk, false, nil)
	call := payout("r23-headers")
	for i, trace := range []string{"00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01", "00-cccccccccccccccccccccccccccccccc-dddddddddddddddd-01"} {
		a, err := b.caller.send(t.Context(), call,
			outbound.Field{Name: "Traceparent", Value: trace}, outbound.Field{Name: "User-Agent", Value: fmt.Sprintf("sdk/%d", i)}, outbound.Field{Name: "Prefer", Value: []string{"return=minimal", "return=representation"}[i]})
		if err != nil || a.err != nil {
			t.Fatalf("call %d: %v, %v", i+1, err, a.err)
		}
		b.caller.token = "" // the next request brings another token
	}
	rows := paypal.Operations()
	for i := range rows {
		if rows[i].Name == "payout.create" {
			rows[i].Unordered = []rs.Place{rs.JSON("/items")}
		}
	}
	native := b.adapter()
	free := httpadapter.New(native.Codec(), httpadapter.Config{
		Provider: "paypal", Account: paypalAccount, Mode: "sandbox", BaseURL: b.fake.URL, Operations: rows, Transport: b.wire,
	})
	client := newClient(t, free, b.store, &outbound.Options{Bodies: sealed()})
	token, err := b.caller.bearer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	item := func(receiver string) string {
		return `{"recipient_type":"PAYPAL_ID","receiver":"` + receiver + `","amount":{"currency":"EUR","value":"5.00"}}`
	}
	for _, items := range []string{item("R1") + "," + item("R2"), item("R2") + "," + item("R1")} {
		call := payout("r23-order")
		call.Message.Body = []byte(`{"sender_batch_header":{},"items":[` + items + `]}`)
		call.Credentials = []outbound.Field{{Name: "Authorization", Value: "Bearer " + token}}
		if _, err := client.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	b.count("payout.create", 2, 2)
}

// R27: what is stored of request and answer is sealed, and the key is a hash.
func TestR27_StoredSealedAndHashed(t *testing.T) {
	onStripe(t, nil, func(b *bench) {
		call := stripe.RefundCreate(cmd("r27"), url.Values{"charge": {b.charge}, "amount": {"500"}, "metadata[note]": {"plain-text-marker"}})
		b.inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create", Times: 4})
		b.fails(call, outbound.ErrUncertain, outbound.EffectUnknown)
		open := b.record(call)
		b.must(call)
		done := b.record(call)
		for name, field := range map[string][]byte{"request": open.Request, "answer": done.ResponseBody, "header": done.ResponseHeader} {
			if len(field) == 0 || bytes.Contains(field, []byte("plain-text-marker")) || bytes.Contains(field, []byte("application/")) {
				b.Errorf("the stored %s has %d bytes or is readable", name, len(field))
			}
		}
		if done.Request != nil {
			b.Error("the request outlives its answer")
		}
		for _, key := range b.wire.rawKeys() {
			if strings.Contains(fmt.Sprintf("%+v", done), key) || bytes.Contains([]byte(key), done.ID.KeyHash[:]) {
				b.Error("the record holds a raw key")
			}
		}
	})
}

// R28: a key merges retries and is no lock; a version condition is passed through
// untouched, at every delivery, and is part of what the request means.
func TestR28_VersionsStayASeparateThing(t *testing.T) {
	conditional := func(call outbound.Call, version string) outbound.Call {
		call.Message.Header = append(call.Message.Header, outbound.Field{Name: "If-Match", Value: version})
		return call
	}
	onStripe(t, nil, func(b *bench) {
		b.inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create"})
		b.must(conditional(b.refund("r28-a"), `"v7"`))
		b.must(conditional(b.refund("r28-b"), `"v7"`))
		sent := b.wire.to(http.MethodPost, "/v1/refunds")
		for i, s := range sent {
			if got := s.header.Values("If-Match"); len(got) != 1 || got[0] != `"v7"` {
				b.Errorf("delivery %d carries If-Match %q", i+1, got)
			}
		}
		b.count("refund.create", 2, 3)
		b.fails(conditional(b.refund("r28-a"), `"v8"`), outbound.ErrFingerprintConflict, outbound.EffectApplied)
	})
}
