package dropin_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// What nobody knows is a 500 in the provider's shape, never a 4xx and never what
// an SDK sends again blindly. A redirect is such an answer: SDKs take 3xx for
// success.
func TestUnknownEffects(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"server error": with(500, `{}`),
		"HTML":         with(200, `<html>`),
		"redirect":     func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/v1/elsewhere", http.StatusFound) },
		"lost answer":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, setting{}, handler)
			a := b.mustPost(t, named(t.Context(), "cmd_1"), "/v1/charges", "amount=1")
			a.want(t, http.StatusInternalServerError, outbound.ErrUncertain, outbound.EffectUnknown)
			if a.Header.Get("Should-Retry") != "false" || !strings.HasPrefix(a.body, `{"fault":`) || a.Header.Get(dropin.HeaderLabel) != "" {
				t.Errorf("answer = %v %s, want the provider's shape and no label", a.Header, a.body)
			}
			for _, d := range b.received() {
				if d.path != "/v1/charges" {
					t.Errorf("a redirect was followed to %s", d.path)
				}
			}
		})
	}
}

// What the provider decided reaches the SDK in its own words; C13: with what
// samekey knows of it.
func TestProvidersOwnAnswers(t *testing.T) {
	for code, status := range map[outbound.Code]int{
		outbound.ErrRejected: 400, outbound.ErrAuth: 401, outbound.ErrRefused: 402, outbound.ErrRateLimited: 429,
	} {
		b := newBench(t, setting{}, with(status, `{"code":"own_words"}`))
		ctx := named(t.Context(), "cmd_1")
		a := b.mustPost(t, ctx, "/v1/charges", "amount=1")
		a.want(t, status, code, outbound.EffectNone)
		if a.body != `{"code":"own_words"}` {
			t.Errorf("%s: body = %s, want the provider's", code, a.body)
		}
		if code == outbound.ErrRefused {
			a = b.mustPost(t, ctx, "/v1/charges", "amount=1")
			a.want(t, status, code, outbound.EffectNone)
			if a.body != `{"code":"own_words"}` || a.Header.Get(dropin.HeaderOrigin) != "ledger" || a.Header.Get(dropin.HeaderLabel) != string(outbound.OriginalReplay) || len(b.received()) != 1 {
				t.Errorf("replayed refusal = %v %s, want the original from the ledger", a.Header, a.body)
			}
		}
	}
}

// C07: drifting parameters under one command are a conflict before the wire.
func TestConflict(t *testing.T) {
	b := newBench(t, setting{}, ok)
	ctx := named(t.Context(), "cmd_1")
	b.mustPost(t, ctx, "/v1/charges", "amount=1")
	b.mustPost(t, ctx, "/v1/charges", "amount=4711").want(t, http.StatusBadRequest, outbound.ErrFingerprintConflict, outbound.EffectApplied)
	if n := len(b.received()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// C10: of two requests at the same instant one is sent; the other is a 409.
func TestInFlight(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	b := newBench(t, setting{}, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		ok(w, r)
	})
	ctx := named(t.Context(), "cmd_1")
	first := make(chan answer)
	go func() {
		a, err := b.post(t, ctx, "/v1/charges", "amount=1")
		if err != nil {
			t.Error(err)
		}
		first <- a
	}()
	<-arrived
	a := b.mustPost(t, ctx, "/v1/charges", "amount=1")
	a.want(t, http.StatusConflict, outbound.ErrInFlight, outbound.EffectUnknown)
	if a.Header.Get(dropin.HeaderRetryAfter) == "" {
		t.Error("a 409 does not say when to come back")
	}
	close(release)
	if got := <-first; got.Response != nil {
		got.want(t, http.StatusOK, "", outbound.EffectApplied)
	}
	if n := len(b.received()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestNothingSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + l.Addr().String()
	l.Close()
	b := newBench(t, setting{baseURL: dead}, ok)
	b.mustPost(t, named(t.Context(), "cmd_1"), "/v1/charges", "amount=1").want(t, http.StatusServiceUnavailable, outbound.ErrUnavailable, outbound.EffectNone)

	b = newBench(t, setting{ledger: down{memory.New(nil)}}, ok)
	b.mustPost(t, named(t.Context(), "cmd_1"), "/v1/charges", "amount=1").want(t, http.StatusServiceUnavailable, outbound.ErrStore, outbound.EffectUnknown)

	late := outbound.WithCommand(t.Context(), outbound.Command{ID: "cmd_1", NotAfter: time.Unix(1, 0)})
	b = newBench(t, setting{}, ok)
	a := b.mustPost(t, late, "/v1/charges", "amount=1")
	if _, err := dropin.Read(a.Header); a.StatusCode != http.StatusBadRequest || !errors.Is(err, outbound.ErrExpired) {
		t.Errorf("past NotAfter: %d %v, want 400 and %s", a.StatusCode, err, outbound.ErrExpired)
	}
	if n := len(b.received()); n != 0 {
		t.Errorf("%d requests, want 0", n)
	}
}

// down is a ledger that cannot be asked.
type down struct{ recordstore.Store }

func (down) Claim(context.Context, recordstore.Claim) (recordstore.Claimed, error) {
	return recordstore.Claimed{}, errors.New("connection refused")
}

// An applied effect is never "not done": without its recorded answer it is a 503
// that says applied.
func TestAppliedWithoutBody(t *testing.T) {
	b := newBench(t, setting{options: outbound.Options{Bodies: outbound.NoBodies()}}, ok)
	ctx := named(t.Context(), "cmd_1")
	b.mustPost(t, ctx, "/v1/charges", "amount=1").want(t, http.StatusOK, "", outbound.EffectApplied)
	b.mustPost(t, ctx, "/v1/charges", "amount=1").want(t, http.StatusServiceUnavailable, outbound.ErrStore, outbound.EffectApplied)
	if n := len(b.received()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}
