package paypal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// api is a client of a fake that listens on a real socket. Only Advance moves
// the fake's clock.
type api struct {
	t     *testing.T
	f     *fakeprovider.Fake
	url   string
	http  *http.Client
	token string
}

func open(t *testing.T, cfg paypal.Config) *api {
	t.Helper()
	f := fakeprovider.New(paypal.New(cfg), &fakeprovider.Options{Seed: 7, Clock: func() time.Time { return start }})
	srv, err := fakeprovider.Listen(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	a := &api{t: t, f: f, url: srv.URL, http: &http.Client{Transport: srv.Transport(), Timeout: 30 * time.Second}}
	a.token = a.login("app", "secret").text("access_token")
	return a
}

func (a *api) login(id, secret string) answer {
	a.t.Helper()
	req, err := http.NewRequest(http.MethodPost, a.url+"/v1/oauth2/token",
		strings.NewReader(url.Values{"grant_type": {"client_credentials"}}.Encode()))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(id, secret)
	return a.send(req)
}

// as returns the same client with another app's token.
func (a *api) as(id string) *api {
	b := *a
	b.token = a.login(id, "secret").text("access_token")
	return &b
}

// answer is a response, read to its end.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	raw    string
	body   any
}

func (a *api) send(req *http.Request) answer {
	a.t.Helper()
	res, err := a.http.Do(req)
	if err != nil {
		a.t.Fatalf("%s %s: %v", req.Method, req.URL.Path, err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	out := answer{t: a.t, status: res.StatusCode, header: res.Header, raw: string(raw)}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out.body); err != nil {
			a.t.Fatalf("%s %s: the answer is not JSON: %v", req.Method, req.URL.Path, err)
		}
	}
	return out
}

// call sends JSON. A string body goes as it is; headers are names and values.
func (a *api) call(method, path, key string, body any, headers ...string) answer {
	a.t.Helper()
	var b []byte
	switch v := body.(type) {
	case nil:
	case string:
		b = []byte(v)
	default:
		b = encode(a.t, v)
	}
	req, err := http.NewRequest(method, a.url+path, bytes.NewReader(b))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Prefer", "return=representation")
	if key != "" {
		req.Header.Set("PayPal-Request-Id", key)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return a.send(req)
}

func (a *api) post(path, key string, body any, headers ...string) answer {
	a.t.Helper()
	return a.call(http.MethodPost, path, key, body, headers...)
}

func (a *api) get(path string) answer {
	a.t.Helper()
	return a.call(http.MethodGet, path, "", nil)
}

func (a *api) seed(object any) string {
	a.t.Helper()
	id, err := a.f.Seed(object)
	if err != nil {
		a.t.Fatal(err)
	}
	return id
}

// effects fails the test unless the operation has had so many.
func (a *api) effects(operation string, want int) {
	a.t.Helper()
	if got := a.f.Effects(operation); got != want {
		a.t.Errorf("%s had %d effects, want %d", operation, got, want)
	}
}

func (a *api) await(operation string, done func(fakeprovider.Snapshot) bool) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 20*time.Second)
	defer cancel()
	if err := a.f.Await(ctx, operation, done); err != nil {
		a.t.Fatal(err)
	}
}

// want fails the test unless the answer has the status and, for errors, the
// issue or else the name.
func (r answer) want(status int, issue ...string) answer {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("status %d, want %d: %s", r.status, status, r.raw)
	}
	if id := r.header.Get("Paypal-Debug-Id"); len(id) != 13 {
		r.t.Errorf("Paypal-Debug-Id %q is not 13 characters", id)
	}
	if status >= 400 && r.header.Get("Paypal-Debug-Id") != r.text("debug_id") && r.text("error") == "" {
		r.t.Errorf("debug_id %q is not the header's %q", r.text("debug_id"), r.header.Get("Paypal-Debug-Id"))
	}
	for _, name := range issue {
		if r.text("details/0/issue") != name && r.text("name") != name && r.text("error") != name {
			r.t.Fatalf("the answer does not say %s: %s", name, r.raw)
		}
	}
	return r
}

// at returns what stands at a path such as "purchase_units/0/amount".
func (r answer) at(path string) any {
	v := r.body
	for part := range strings.SplitSeq(path, "/") {
		switch x := v.(type) {
		case map[string]any:
			v = x[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

func (r answer) text(path string) string {
	s, _ := r.at(path).(string)
	return s
}

func (r answer) list(path string) []any {
	l, _ := r.at(path).([]any)
	return l
}

// says fails the test unless the text at path is want.
func (r answer) says(path, want string) answer {
	r.t.Helper()
	if got := r.text(path); got != want {
		r.t.Errorf("%s is %q, want %q: %s", path, got, want, r.raw)
	}
	return r
}

// link returns the address that a relation has in the answer.
func (r answer) link(rel string) string {
	for _, l := range r.list("links") {
		if m, ok := l.(map[string]any); ok && m["rel"] == rel {
			s, _ := m["href"].(string)
			return s
		}
	}
	return ""
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type m = map[string]any

func usd(value string) m { return m{"currency_code": "USD", "value": value} }

func orderBody(value string) m {
	return m{"intent": "CAPTURE", "purchase_units": []m{{"amount": usd(value), "custom_id": "mark-1"}}}
}

func payoutBody(batchID string) m {
	head := m{"email_subject": "Money"}
	if batchID != "" {
		head["sender_batch_id"] = batchID
	}
	return m{"sender_batch_header": head, "items": []m{
		{"recipient_type": "EMAIL", "receiver": "a@example.com", "amount": m{"currency": "USD", "value": "5.00"}, "sender_item_id": "i1"}}}
}
