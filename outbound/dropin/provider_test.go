package dropin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/recordstore"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// codec is that of a provider that says what it did by status alone.
type codec struct{}

func (codec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	var a struct{ ID, Code string }
	if err := json.Unmarshal(x.Body, &a); err != nil {
		return outbound.Verdict{Err: err}
	}
	v := outbound.Verdict{ExternalRef: a.ID, ProviderCode: a.Code}
	none := func(code outbound.Code) outbound.Verdict {
		v.Effect, v.Code = outbound.EffectNone, code
		return v
	}
	switch x.Status {
	case http.StatusOK:
		v.Effect = outbound.EffectApplied
		return v
	case http.StatusBadRequest:
		return none(outbound.ErrRejected)
	case http.StatusUnauthorized:
		return none(outbound.ErrAuth)
	case http.StatusPaymentRequired:
		return none(outbound.ErrRefused)
	case http.StatusTooManyRequests:
		return none(outbound.ErrRateLimited)
	}
	return v
}

func (codec) RandomKey(key string) bool { return strings.HasPrefix(key, "random-") }

func (codec) Refuse(e *outbound.Error, status int) *outbound.Answer {
	body, err := json.Marshal(map[string]string{"fault": e.Error()})
	if err != nil {
		return nil
	}
	return &outbound.Answer{Status: status, Body: body, Header: []outbound.Field{
		{Name: "Content-Type", Value: "application/json"}, {Name: "Should-Retry", Value: "false"}, {Name: dropin.HeaderLabel, Value: "forged"},
	}}
}

// plain is a codec without abilities.
type plain struct{}

func (plain) Judge(x *httpadapter.Exchange) outbound.Verdict { return codec{}.Judge(x) }

func rows() []rs.Operation {
	fact := []rs.Fact{{States: "made up for tests", URL: "https://example.com", Read: "2026-11-30"}}
	key := []rs.Place{rs.Header("Idempotency-Key")}
	return []rs.Operation{
		{Name: "charge.create", Method: "POST", Path: "/v1/charges", Keys: key, Resend: rs.Original, Window: 24 * time.Hour, Failures: rs.Stored, Facts: fact},
		{Name: "customer.create", Method: "POST", Path: "/v1/customers", Class: rs.Object, Keys: key, Resend: rs.Original, Window: 24 * time.Hour, Facts: fact},
	}
}

// delivered is a request as the provider received it.
type delivered struct{ method, path, key, authorization, account, agent, body string }

// bench is a provider, a ledger and a transport between them.
type bench struct {
	provider  *httptest.Server
	baseURL   string // that the SDK is set to
	client    *outbound.Client
	transport *dropin.Transport

	mu  sync.Mutex
	got []delivered
}

type setting struct {
	codec   httpadapter.Codec
	ledger  recordstore.Store
	options outbound.Options
	dropin  *dropin.Options
	baseURL string
}

func newBench(t *testing.T, s setting, answer http.HandlerFunc) *bench {
	t.Helper()
	b := &bench{}
	b.provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		b.got = append(b.got, delivered{
			r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization"),
			r.Header.Get("Account"), r.Header.Get("User-Agent"), string(body),
		})
		b.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(b.provider.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := httpadapter.Config{
		Provider: "test", Account: "A1", Mode: "test", BaseURL: b.provider.URL, Operations: rows(), Transport: transport,
		Untouched: []string{"POST /v1/token"},
		AccountOf: func(h http.Header) (string, error) { return h.Get("Account"), nil },
		Authorize: func(_ context.Context, account string, own []outbound.Field, r *http.Request) error {
			for _, f := range own {
				r.Header.Set(f.Name, f.Value)
			}
			if account != "A1" {
				r.Header.Set("Account", account)
			}
			return nil
		},
		NeedsCaller: true,
	}
	if s.baseURL != "" {
		cfg.BaseURL = s.baseURL
	}
	b.baseURL = cfg.BaseURL
	if s.codec == nil {
		s.codec = codec{}
	}
	if s.ledger == nil {
		s.ledger = memory.New(nil)
	}
	if s.options.Retry.Attempts == 0 {
		s.options.Retry.Attempts = 1
	}
	var err error
	if b.client, err = outbound.New(httpadapter.New(s.codec, cfg), s.ledger, &s.options); err != nil {
		t.Fatal(err)
	}
	if b.transport, err = dropin.New(b.client, s.dropin); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) received() []delivered {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// answer is what an SDK sees.
type answer struct {
	*http.Response
	body string
}

// post makes the request that an SDK would make.
func (b *bench) post(t *testing.T, ctx context.Context, path, body string, header ...string) (answer, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.baseURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer sdk")
	r.Header.Set("User-Agent", "sdk/1")
	r.Header.Set("Idempotency-Key", "random-1")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	before := r.Header.Clone()
	resp, err := b.transport.Client().Do(r)
	for name := range before {
		if before.Get(name) != r.Header.Get(name) {
			t.Errorf("the SDK's request was changed: %s", name)
		}
	}
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Request == nil {
		t.Error("the answer has no Request, which SDKs look at")
	}
	return answer{resp, string(read)}, nil
}

func (b *bench) mustPost(t *testing.T, ctx context.Context, path, body string, header ...string) answer {
	t.Helper()
	a, err := b.post(t, ctx, path, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// want compares what samekey says in an answer's header.
func (a answer) want(t *testing.T, status int, code outbound.Code, effect outbound.Effect) {
	t.Helper()
	_, err := dropin.Read(a.Header)
	var gotCode outbound.Code
	if e, ok := errors.AsType[*outbound.Error](err); ok {
		gotCode = e.Code
	}
	if a.StatusCode != status || gotCode != code || outbound.EffectOf(err) != effect || a.Header.Get(dropin.HeaderEffect) != effect.String() {
		t.Errorf("answer %d %q effect %q: %s; want %d %q %v", a.StatusCode, gotCode, a.Header.Get(dropin.HeaderEffect), a.body, status, code, effect)
	}
}

func named(ctx context.Context, id string) context.Context {
	return outbound.WithCommand(ctx, outbound.Command{ID: id})
}

func ok(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set(dropin.HeaderLabel, "forged")
	w.Header().Set("Request-Id", "req_1")
	io.WriteString(w, `{"id":"ch_1"}`)
}

func with(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set(dropin.HeaderEffect, "applied")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}
