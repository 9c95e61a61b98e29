package dropin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// C04, C29: an SDK's random key is overwritten by the derived one; the same
// command again is answered from the ledger, whatever key the SDK made then.
func TestNamedWrite(t *testing.T) {
	b := newBench(t, setting{}, ok)
	ctx, tracked := outbound.Track(t.Context(), outbound.Command{ID: "cmd_1"})
	a := b.mustPost(t, ctx, "/v1/charges", "amount=1&to=x", "Account", "A2")
	a.want(t, http.StatusOK, "", outbound.EffectApplied)
	if a.body != `{"id":"ch_1"}` || a.ContentLength != 13 || a.Header.Get("Request-Id") != "req_1" {
		t.Errorf("answer = %+v %s, want the provider's", a.Header, a.body)
	}
	if label, err := dropin.Read(a.Header); label != outbound.NewExecution || err != nil || a.Header.Get(dropin.HeaderOrigin) != "provider" || a.Header.Get(dropin.HeaderEvidence) != "first_delivery" {
		t.Errorf("header = %v, want a new execution by the provider", a.Header)
	}
	if reply, err := tracked.Result(); err != nil || reply == nil || reply.ExternalRef != "ch_1" {
		t.Errorf("tracked result = %+v, %v", reply, err)
	}
	a = b.mustPost(t, ctx, "/v1/charges", "to=x&amount=1", "Account", "A2", "Idempotency-Key", "random-2")
	a.want(t, http.StatusOK, "", outbound.EffectApplied)
	if label, _ := dropin.Read(a.Header); label != outbound.OriginalReplay || a.Header.Get(dropin.HeaderOrigin) != "ledger" || a.body != `{"id":"ch_1"}` {
		t.Errorf("second answer = %v %s, want the original from the ledger", a.Header, a.body)
	}
	key, err := b.client.Key(outbound.Command{ID: "cmd_1"}, "charge.create", "A2")
	if err != nil {
		t.Fatal(err)
	}
	want := delivered{"POST", "/v1/charges", key.Raw(), "Bearer sdk", "A2", "Go-http-client/1.1", "amount=1&to=x"}
	if got := b.received(); len(got) != 1 || got[0] != want {
		t.Errorf("received %+v, want once %+v", got, want)
	}
}

// R31: a slash at the end of a path makes no unknown route of a money operation,
// and the header says what to do really.
func TestSlashAtTheEnd(t *testing.T) {
	b := newBench(t, setting{}, ok)
	for _, tt := range []struct {
		ctx  context.Context
		path string
		key  string
		want string
	}{
		{t.Context(), "/v1/charges", "random-1", "outbound.WithCommand"},
		{t.Context(), "/v1/charges/", "random-1", "outbound.WithCommand"},
		{named(t.Context(), "cmd_1"), "/v1/charges/", "random-1", "take the slash away"},
		{named(t.Context(), "cmd_1"), "/v1/charges", "abc", "take the key out"},
	} {
		a := b.mustPost(t, tt.ctx, tt.path, "amount=1", "Idempotency-Key", tt.key)
		a.want(t, http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
		_, err := dropin.Read(a.Header)
		if said := err.Error(); !strings.Contains(said, tt.want) || strings.Contains(said, "settings") || strings.Contains(said, "\n") {
			t.Errorf("%s: Read says %q, want %q", tt.path, said, tt.want)
		}
	}
	if n := len(b.received()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// R31: a write without a command is refused where it moves money, and everywhere
// under Strict; what passes is counted and unchanged.
func TestUnnamedWrites(t *testing.T) {
	for _, strict := range []bool{false, true} {
		b := newBench(t, setting{dropin: &dropin.Options{Strict: strict}}, ok)
		a := b.mustPost(t, t.Context(), "/v1/charges", "amount=1")
		a.want(t, http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
		if !strings.Contains(a.body, "outbound.WithCommand") {
			t.Errorf("refusal = %s, want it to say what to do", a.body)
		}
		for _, path := range []string{"/v1/customers", "/v1/unknown"} {
			a := b.mustPost(t, t.Context(), path, "name=x")
			if strict {
				a.want(t, http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
			} else if a.StatusCode != http.StatusOK || a.Header.Get(dropin.HeaderLabel) != "" {
				t.Errorf("%s: %d %v, want it to pass without our headers", path, a.StatusCode, a.Header)
			}
		}
		passed := 2
		if strict {
			passed = 0
		}
		got := b.received()
		if len(got) != passed || b.transport.Unnamed() != int64(passed) {
			t.Fatalf("strict %t: %d requests passed, %d counted, want %d", strict, len(got), b.transport.Unnamed(), passed)
		}
		for _, d := range got {
			if d.key != "random-1" || d.authorization != "Bearer sdk" || d.agent != "sdk/1" || d.body != "name=x" {
				t.Errorf("a passing request was changed: %+v", d)
			}
		}
	}
}

// A command on a route that nobody described is refused with what registers it.
func TestUnknownRoute(t *testing.T) {
	b := newBench(t, setting{}, ok)
	a := b.mustPost(t, named(t.Context(), "cmd_1"), "/v1/things/secret-id", "")
	a.want(t, http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
	if !strings.Contains(a.body, "adapter.With(replaysemantics.Operation{") || strings.Contains(a.body, "secret-id") {
		t.Errorf("refusal = %s, want the line that registers the route, without ids", a.body)
	}
	if n := len(b.received()); n != 0 {
		t.Errorf("%d requests, want 0", n)
	}
}

// Reads and token fetches pass untouched, under a command too.
func TestReadsAndTokensPass(t *testing.T) {
	b := newBench(t, setting{dropin: &dropin.Options{Strict: true}}, ok)
	ctx := named(t.Context(), "cmd_1")
	b.mustPost(t, ctx, "/v1/token", "grant_type=client_credentials")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.provider.URL+"/v1/charges", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	got := b.received()
	if len(got) != 2 || got[0].key != "random-1" || got[0].body != "grant_type=client_credentials" || got[1].method != "GET" || b.transport.Unnamed() != 0 {
		t.Errorf("received %+v, want both as they came", got)
	}
	if resp.Header.Get(dropin.HeaderLabel) != "" {
		t.Error("a provider's own Samekey header passed")
	}
}

// A key that the caller chose is refused loudly; the derived one passes, which
// is what a service sends that began with package keyderive alone.
func TestChosenKeys(t *testing.T) {
	b := newBench(t, setting{}, ok)
	ctx := named(t.Context(), "cmd_1")
	a := b.mustPost(t, ctx, "/v1/charges", "amount=1", "Idempotency-Key", "order-4711")
	a.want(t, http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
	if strings.Contains(a.body, "4711") || len(b.received()) != 0 {
		t.Errorf("refusal = %s after %d requests, want none, and no key shown", a.body, len(b.received()))
	}
	key, err := b.client.Key(outbound.Command{ID: "cmd_1"}, "charge.create", "")
	if err != nil {
		t.Fatal(err)
	}
	b.mustPost(t, ctx, "/v1/charges", "amount=1", "Idempotency-Key", key.Raw()).want(t, http.StatusOK, "", outbound.EffectApplied)

	b = newBench(t, setting{codec: plain{}}, ok) // cannot tell random keys
	a = b.mustPost(t, ctx, "/v1/charges", "amount=1")
	a.want(t, http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
	if !strings.HasPrefix(a.body, `{"error":{"code":"invalid","message":`) || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("a codec that shapes nothing gives %s", a.body)
	}
}

func TestOnly(t *testing.T) {
	b := newBench(t, setting{dropin: &dropin.Options{Only: []string{"customer.create"}}}, ok)
	ctx := named(t.Context(), "cmd_1")
	b.mustPost(t, ctx, "/v1/charges", "amount=1", "Idempotency-Key", "chosen")
	b.mustPost(t, ctx, "/v1/unknown", "amount=1", "Idempotency-Key", "chosen")
	b.mustPost(t, ctx, "/v1/customers", "name=x").want(t, http.StatusOK, "", outbound.EffectApplied)
	got := b.received()
	if len(got) != 3 || got[0].key != "chosen" || got[1].key != "chosen" || got[2].key == "random-1" {
		t.Errorf("received %+v, want only customer.create with a derived key", got)
	}
	if _, err := dropin.New(b.client, &dropin.Options{Only: []string{"no.such"}}); err == nil {
		t.Error("Only took an operation that does not exist")
	}
}

// Shadow records and reports, and changes neither request nor answer.
func TestShadow(t *testing.T) {
	b := newBench(t, setting{dropin: &dropin.Options{Shadow: true, Strict: true}}, ok)
	ctx := named(t.Context(), "cmd_1")
	for range 2 {
		a := b.mustPost(t, ctx, "/v1/charges", "b=1&a=2", "Idempotency-Key", "chosen")
		if a.StatusCode != http.StatusOK || a.body != `{"id":"ch_1"}` || a.Header.Get(dropin.HeaderEffect) != "" {
			t.Errorf("answer = %d %v %s, want the provider's", a.StatusCode, a.Header, a.body)
		}
	}
	b.mustPost(t, t.Context(), "/v1/charges", "amount=1") // unnamed
	got := b.received()
	want := delivered{"POST", "/v1/charges", "chosen", "Bearer sdk", "", "sdk/1", "b=1&a=2"}
	if len(got) != 3 || got[0] != want || got[1] != want || b.transport.Unnamed() != 1 {
		t.Errorf("received %+v, %d unnamed, want all as they came", got, b.transport.Unnamed())
	}
	status, err := b.client.Status(t.Context(), outbound.Command{ID: "cmd_1"}, "charge.create")
	if err != nil || status.State != recordstore.Succeeded || status.Reply.ExternalRef != "ch_1" {
		t.Errorf("status = %+v, %v, want the shadowed call recorded", status, err)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := dropin.New(nil, nil); err == nil {
		t.Error("New took no client")
	}
	c, err := outbound.New(bare{newBench(t, setting{}, ok).client.Adapter()}, memory.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dropin.New(c, nil); err == nil || !strings.Contains(err.Error(), "bare") {
		t.Errorf("error = %v, want the adapter's type named", err)
	}
}

// bare is an adapter that is not httpadapter's.
type bare struct{ outbound.Adapter }

// The end of the caller's context is the Go error; everything else is an answer.
func TestCallerGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(named(t.Context(), "cmd_1"))
	b := newBench(t, setting{}, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := b.post(t, ctx, "/v1/charges", "amount=1")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
	status, err := b.client.Status(t.Context(), outbound.Command{ID: "cmd_1"}, "charge.create")
	if err != nil || status.State != recordstore.Uncertain {
		t.Errorf("status = %+v, %v, want uncertain", status, err)
	}
}

func TestBodyCannotBeRead(t *testing.T) {
	b := newBench(t, setting{}, ok)
	body := &broken{}
	r, err := http.NewRequestWithContext(named(t.Context(), "cmd_1"), http.MethodPost, b.provider.URL+"/v1/charges", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	answer{resp, ""}.want(t, http.StatusBadRequest, outbound.ErrInvalid, outbound.EffectUnknown)
	if !body.closed || len(b.received()) != 0 {
		t.Errorf("closed %t, %d requests, want a closed body and none", body.closed, len(b.received()))
	}
}

type broken struct{ closed bool }

func (*broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (b *broken) Close() error           { b.closed = true; return nil }

func TestRead(t *testing.T) {
	if label, err := dropin.Read(http.Header{}); label != "" || err != nil {
		t.Errorf("Read of nothing = %q, %v", label, err)
	}
	h := http.Header{}
	h.Set(dropin.HeaderError, "in_flight")
	h.Set(dropin.HeaderRetryAfter, "7")
	_, err := dropin.Read(h)
	if d, again := outbound.RetryAfter(err); !errors.Is(err, outbound.ErrInFlight) || d != 7*time.Second || !again || outbound.EffectOf(err) != outbound.EffectUnknown {
		t.Errorf("Read = %v, want in flight, again in 7 s", err)
	}
}
