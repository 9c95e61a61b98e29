package httpadapter

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// judge is the codec of a provider that says what it did by status alone.
type judge struct{}

func (judge) Judge(x *Exchange) outbound.Verdict {
	var a struct{ ID, Code string }
	if err := json.Unmarshal(x.Body, &a); err != nil {
		return outbound.Verdict{Err: err}
	}
	v := outbound.Verdict{ExternalRef: a.ID, ProviderCode: a.Code}
	switch {
	case x.Status < 300:
		v.Effect = outbound.EffectApplied
	case x.Status == http.StatusUnauthorized:
		v.Effect, v.Code = outbound.EffectNone, outbound.ErrAuth
	case x.Status == http.StatusTooManyRequests:
		v.Effect, v.Code, v.Again = outbound.EffectNone, outbound.ErrRateLimited, true
	case x.Status < 500:
		v.Effect, v.Code = outbound.EffectNone, outbound.ErrRejected
	default:
		v.Again = true
	}
	return v
}

func fact() []rs.Fact {
	return []rs.Fact{{States: "made up for tests", URL: "https://example.com", Read: "2026-11-30"}}
}

var (
	charge = rs.Operation{
		Name: "charge.create", Method: "POST", Path: "/v1/charges",
		Keys: []rs.Place{rs.Header("Idempotency-Key")}, Resend: rs.Original, Facts: fact(),
		Marks:     []rs.Place{rs.Form("metadata[mark]")},
		Volatile:  []rs.Place{rs.Form("trace")},
		Unordered: []rs.Place{rs.Form("expand")},
		Sensitive: []rs.Place{rs.Form("card[number]")},
		Codes:     []rs.Place{rs.Form("card[cvc]")},
	}
	capture = rs.Operation{
		Name: "charge.capture", Method: "POST", Path: "/v1/charges/{id}/capture",
		Keys: []rs.Place{rs.Header("Idempotency-Key")}, Resend: rs.Original, Facts: fact(),
	}
	order = rs.Operation{
		Name: "order.create", Method: "POST", Path: "/v2/orders",
		Keys: []rs.Place{rs.JSON("/request/id")}, Resend: rs.Latest, Facts: fact(),
		Marks:     []rs.Place{rs.JSON("/units/*/mark"), rs.JSON("/note/mark")},
		Volatile:  []rs.Place{rs.JSON("/at")},
		Unordered: []rs.Place{rs.JSON("/tags"), rs.JSON("/units/*/items")},
		Sensitive: []rs.Place{rs.JSON("/card/number")},
		Codes:     []rs.Place{rs.JSON("/card/cvc")},
	}
	payout = rs.Operation{
		Name: "payout.create", Method: "POST", Path: "/v1/payouts",
		Keys: []rs.Place{rs.Form("request_id")}, Resend: rs.Latest, Facts: fact(),
	}
	void = rs.Operation{Name: "charge.void", Method: "POST", Path: "/v1/charges/{id}/void", Facts: fact()} // no key
)

func config(baseURL string) Config {
	return Config{
		Provider: "test", Account: "A1", Mode: "test", BaseURL: baseURL,
		Operations: []rs.Operation{charge, capture, order, payout, void},
		Frozen:     []string{"API-Version", "Prefer", "If-Match"},
		Authorize: func(_ context.Context, _ string, own []outbound.Field, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer secret")
			for _, f := range own {
				r.Header.Set(f.Name, f.Value)
			}
			return nil
		},
	}
}

func adapter(t testing.TB, cfg Config) *Adapter {
	t.Helper()
	a := New(judge{}, cfg)
	if _, err := a.Profile(); err != nil {
		t.Fatal(err)
	}
	return a
}

func key(t testing.TB) keyderive.Key {
	t.Helper()
	k, err := keyderive.Secret{}.Derive(keyderive.Input{Provider: "test", Account: "A1/test", Operation: "charge.create", CommandID: "cmd_1"})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// delivery orders one call, frozen, with short waits.
func delivery(t testing.TB, a *Adapter, call outbound.Call) *outbound.Delivery {
	t.Helper()
	if call.Err != nil {
		t.Fatal(call.Err)
	}
	op, ok := rs.Find(a.cfg.Operations, call.Operation)
	if !ok {
		t.Fatalf("no operation %q", call.Operation)
	}
	frozen, err := a.Freeze(op, call.Message, key(t).Mark())
	if err != nil {
		t.Fatal(err)
	}
	d := &outbound.Delivery{
		Operation: op, Account: "A1", Message: frozen.Message, MaxBody: 1 << 20,
		Retry: outbound.Retry{Attempts: 4, MinWait: time.Millisecond, MaxWait: 4 * time.Millisecond, MaxRetryAfter: 20 * time.Second, AttemptTimeout: 20 * time.Second},
	}
	if op.HasKey() {
		d.Key = key(t)
	}
	return d
}

// delivered is one request as a provider received it.
type delivered struct {
	method, target, key, authorization, contentType, body string
	conn                                                  string
}

// provider is a server that logs what it receives.
type provider struct {
	*httptest.Server
	mu  sync.Mutex
	got []delivered
}

// serve starts a provider; answer gets the number of the request, from 1.
func serve(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, n int)) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.got = append(p.got, delivered{
			r.Method, r.RequestURI, r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization"),
			r.Header.Get("Content-Type"), string(body), r.RemoteAddr,
		})
		n := len(p.got)
		p.mu.Unlock()
		answer(w, r, n)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) received() []delivered {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]delivered(nil), p.got...)
}

func ok(w http.ResponseWriter) { io.WriteString(w, `{"id":"ch_1"}`) }

// deadAddress is an address that nobody listens on.
func deadAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
