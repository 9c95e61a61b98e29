package httpadapter

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
)

func TestInbound(t *testing.T) {
	cfg := config("https://api.test/base")
	cfg.AccountOf = func(h http.Header) (string, error) {
		if h.Get("Account") == "bad" {
			return "", errors.New("two accounts")
		}
		return h.Get("Account"), nil
	}
	cfg.Untouched = []string{"POST /v1/token"}
	a := adapter(t, cfg)
	r, err := http.NewRequest("POST", "https://api.test/base/v1/charges?x=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer own", "Account": "A2", "Idempotency-Key": "k1", "Content-Type": formType,
		"Api-Version": "7", "User-Agent": "sdk", "Traceparent": "t",
	} {
		r.Header.Set(name, value)
	}
	got, err := a.Inbound(charge, r, []byte("a=1"))
	want := Inbound{
		Message:     outbound.Message{Method: "POST", Target: "/v1/charges?x=1", Header: fields("Api-Version", "7", "Content-Type", formType), Body: []byte("a=1")},
		Account:     "A2",
		Credentials: fields("Authorization", "Bearer own"),
		Key:         "k1",
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Inbound = %+v, %v, want %+v", got, err, want)
	}
	r.Header.Set("Account", "bad")
	if _, err := a.Inbound(charge, r, nil); err == nil {
		t.Error("an account that cannot be read was taken")
	}
	r.Header.Del("Account")
	for body, key := range map[string]string{`{"request":{"id":"k2"}}`: "k2", `{"request":5}`: "", ``: ""} {
		r.Header.Set("Content-Type", jsonType)
		if in, err := a.Inbound(order, r, []byte(body)); err != nil || in.Key != key {
			t.Errorf("key in %s = %q, %v, want %q", body, in.Key, err, key)
		}
	}
	if _, err := a.Inbound(order, r, []byte(`{`)); err == nil {
		t.Error("a body that is no JSON was read")
	}
	r.Header.Set("Content-Type", formType)
	if in, err := a.Inbound(payout, r, []byte("request_id=k3&a=1")); err != nil || in.Key != "k3" {
		t.Errorf("key in a form = %q, %v", in.Key, err)
	}
	for path, untouched := range map[string]bool{"/base/v1/token": true, "/v1/token": false, "/base/v1/tokens": false} {
		if got := a.Untouched(&http.Request{Method: "POST", URL: &url.URL{Scheme: "https", Host: "api.test", Path: path}}); got != untouched {
			t.Errorf("Untouched(%s) = %t", path, got)
		}
	}
}

// Relay changes nothing on the way, and judges what it saw.
func TestRelay(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("Set-Cookie", "s=1")
		switch n {
		case 2:
			io.WriteString(w, `{"id":"`+strings.Repeat("x", 100)+`"}`)
			return
		case 3:
			w.Header().Set("Content-Length", "100")
		}
		ok(w)
	})
	a := adapter(t, config(p.URL))
	send := func() (*http.Response, outbound.Verdict, string, error) {
		r, err := http.NewRequest("POST", p.URL+"/v1/charges", strings.NewReader("a=1"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "sdk")
		resp, v, err := a.Relay(charge, r, []byte("a=1"), 50)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp, v, string(body), err
	}
	resp, v, body, err := send()
	if err != nil || body != `{"id":"ch_1"}` || resp.Header.Get("Set-Cookie") == "" || v.Effect != outbound.EffectApplied || v.Deliveries != 1 {
		t.Errorf("relayed %q, %v, judged %+v", body, err, v)
	}
	if v.Answer == nil || string(v.Answer.Body) != body || fieldValue(v.Answer.Header, "Set-Cookie") != "" {
		t.Errorf("answer = %+v, want a copy without cookies", v.Answer)
	}
	if _, v, body, err = send(); err != nil || len(body) != 109 || v.Effect != outbound.EffectUnknown {
		t.Errorf("a long answer came as %d bytes, %v, judged %+v, want it whole and unknown", len(body), err, v)
	}
	if _, v, body, err = send(); !errors.Is(err, io.ErrUnexpectedEOF) || body != `{"id":"ch_1"}` || v.Effect != outbound.EffectUnknown {
		t.Errorf("a truncated answer came as %q, %v, judged %+v", body, err, v)
	}
	for _, d := range p.received() {
		if d.key != "sdk" || d.body != "a=1" || d.authorization != "" {
			t.Errorf("relayed as %+v, want it unchanged", d)
		}
	}
	cfg := config("http://" + deadAddress(t))
	a = adapter(t, cfg)
	r, err := http.NewRequest("POST", cfg.BaseURL+"/v1/charges", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, v, err := a.Relay(charge, r, nil, 50); err == nil || v.Effect != outbound.EffectNone || v.Deliveries != 0 {
		t.Errorf("nobody listens: %+v, %v", v, err)
	}
}
