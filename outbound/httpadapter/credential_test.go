package httpadapter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const integrationKey = "integration-key-0f3a91"

// bodyConfig is of a provider that takes its credential in the body.
func bodyConfig(baseURL string, value func(context.Context, string) (string, error)) Config {
	cfg := config(baseURL)
	cfg.Authorize = nil
	cfg.BodyCredential = &BodyCredential{Place: rs.JSON("/auth/key"), Value: value}
	return cfg
}

func theKey(context.Context, string) (string, error) { return integrationKey, nil }

func orderCall(body any) outbound.Call {
	return JSONCall(order, outbound.Command{ID: "cmd_1"}, nil, body)
}

// A credential in the body is put in at each attempt; what a caller put there is
// neither stored nor sent, and is no other request.
func TestBodyCredential(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		ok(w)
	})
	a := adapter(t, bodyConfig(p.URL, theKey))
	call := orderCall(map[string]any{"auth": map[string]any{"key": "callers-own-key"}})
	d := delivery(t, a, call)
	if strings.Contains(string(d.Message.Body), "key\":\"") {
		t.Errorf("the frozen body is %s", d.Message.Body)
	}
	if v := a.Send(t.Context(), d); len(v) != 2 || v[1].Effect != outbound.EffectApplied {
		t.Fatalf("%+v", v)
	}
	for i, got := range p.received() {
		if strings.Count(got.body, integrationKey) != 1 || strings.Contains(got.body, "callers-own-key") {
			t.Errorf("attempt %d carries %s", i+1, got.body)
		}
	}
	var with, without bytes.Buffer
	if err := errors.Join(a.Canonical(&with, 1, order, call.Message, true), a.Canonical(&without, 1, order, orderCall(map[string]any{}).Message, true)); err != nil {
		t.Fatal(err)
	}
	if with.String() != without.String() {
		t.Errorf("the credential counts:\n%s\n%s", with.String(), without.String())
	}
	if profile, err := a.Profile(); err != nil || !profile.Credentials {
		t.Errorf("the profile says credentials %v, %v", profile.Credentials, err)
	}
}

// What cannot be authorised, or cannot carry its credential, is not sent.
func TestBodyCredentialMissing(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { ok(w) })
	vaultDown := errors.New("the vault is down")
	for _, c := range []struct {
		value string
		err   error
		want  outbound.Code
	}{
		{"", nil, outbound.ErrInvalid},
		{"", vaultDown, outbound.ErrUnavailable},
		{"", outbound.ErrAuth, outbound.ErrAuth},
	} {
		a := adapter(t, bodyConfig(p.URL, func(context.Context, string) (string, error) { return c.value, c.err }))
		d := delivery(t, a, orderCall(map[string]any{}))
		d.Retry.Attempts = 1
		v := a.Send(t.Context(), d)
		if len(v) != 1 || v[0].Effect != outbound.EffectNone || v[0].Code != c.want || c.err != nil && !errors.Is(v[0].Err, c.err) {
			t.Errorf("%q, %v: %+v, want %s", c.value, c.err, v, string(c.want))
		}
	}
	if n := len(p.received()); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
	a := adapter(t, bodyConfig(p.URL, theKey))
	if _, err := a.Freeze(void, outbound.Message{Method: "POST", Target: "/v1/charges/1/void", Body: []byte("text")}, ""); err == nil || !strings.Contains(err.Error(), "the credential found no place") {
		t.Errorf("a body without a place for it: %v", err)
	}
}

func TestBodyCredentialSettings(t *testing.T) {
	for says, b := range map[string]*BodyCredential{
		"needs a Value":              {Place: rs.JSON("/key")},
		"Place is one of a form or":  {Place: rs.Header("X-Key"), Value: theKey},
		"Place is one of a form or ": {Place: rs.JSON("/*/key"), Value: theKey},
	} {
		cfg := config("https://api.example.com")
		cfg.BodyCredential = b
		if _, err := New(judge{}, cfg).Profile(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", b.Place, err, says)
		}
	}
}

// R14: a provider that repeats key or credential in what is logged and stored in
// clear is not believed there, wherever they stood in the request.
func TestConcealsWhatBodiesHold(t *testing.T) {
	echo := func(secret func(body string) string) func(w http.ResponseWriter, r *http.Request, n int) {
		return func(w http.ResponseWriter, r *http.Request, _ int) {
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"id":"`+secret(string(body))+`","code":"code-`+secret(string(body))+`"}`)
		}
	}
	raw := key(t).Raw()
	for name, secret := range map[string]string{"key": raw, "credential": integrationKey} {
		p := serve(t, echo(func(string) string { return secret }))
		a := adapter(t, bodyConfig(p.URL, theKey))
		v := a.Send(t.Context(), delivery(t, a, orderCall(map[string]any{})))
		if v[0].Effect != outbound.EffectNone || v[0].ProviderCode != "" || v[0].ExternalRef != "" {
			t.Errorf("%s: %+v", name, v[0])
		}
		body := `{"auth":{"key":"` + integrationKey + `"},"request":{"id":"` + raw + `"}}`
		r, err := http.NewRequestWithContext(t.Context(), "POST", p.URL+"/v2/orders", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, relayed, err := a.Relay(order, r, []byte(body), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if relayed.ProviderCode != "" || relayed.ExternalRef != "" {
			t.Errorf("%s, of a caller's request: %+v", name, relayed)
		}
	}
}

// IETF's draft wants the key as a structured-field string.
func TestQuotedKey(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { ok(w) })
	quoted := charge
	quoted.Keys = []rs.Place{rs.QuotedHeader("idempotency-key")}
	cfg := config(p.URL)
	cfg.Operations = []rs.Operation{quoted}
	a := adapter(t, cfg)
	a.Send(t.Context(), delivery(t, a, chargeCall()))
	if got := p.received(); len(got) != 1 || got[0].key != `"`+key(t).Raw()+`"` {
		t.Errorf("received %+v", got)
	}
	for value, want := range map[string]string{`"chosen"`: "chosen", "chosen": "chosen", `"`: `"`, `""`: ""} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", p.URL+"/v1/charges", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", value)
		if in, err := a.Inbound(quoted, r, nil); err != nil || in.Key != want {
			t.Errorf("%s is read as %q, %v", value, in.Key, err)
		}
	}
}

// A caller's own credentials go before the adapter's.
func TestCredential(t *testing.T) {
	own := []outbound.Field{{Name: "Authorization", Value: "Bearer own"}}
	for _, c := range []struct {
		secret string
		own    []outbound.Field
		want   []string
	}{{"s", nil, []string{"Bearer s"}}, {"s", own, []string{"Bearer own"}}, {"", own, []string{"Bearer own"}}, {"", nil, nil}} {
		r := &http.Request{Header: http.Header{}}
		err := Credential("Authorization", "Bearer ", c.secret)(t.Context(), "A1", c.own, r)
		if got := r.Header.Values("Authorization"); !slices.Equal(got, c.want) || (err != nil) != (c.want == nil) || err != nil && !errors.Is(err, outbound.ErrInvalid) {
			t.Errorf("%q, %v: %v, %v", c.secret, c.own, got, err)
		}
	}
}
