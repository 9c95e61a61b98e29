package fakeprovider_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// shop is the smallest honest dialect: POST /orders creates an order, a body of
// "decline" is refused and kept, one of "invalid" is refused and not kept.
type shop struct{ orders int }

const window = time.Hour

func newShop() fakeprovider.Dialect { return &shop{} }

func (*shop) RequestID(n uint64) string { return fmt.Sprintf("r%d", n) }

func (*shop) Recognise(r *fakeprovider.Request) fakeprovider.Call {
	c := fakeprovider.Call{Window: window, KeepsFailures: true}
	switch {
	case r.Method == http.MethodPost && r.Path == "/orders":
		c.Operation, c.Write, c.Key = "order.create", true, r.Header.Get("Idempotency-Key")
		c.TakesKey = true
		c.Fingerprint = string(r.Body)
	case r.Method == http.MethodGet && r.Path == "/orders":
		c.Operation = "order.list"
	default:
		c.Answer = &fakeprovider.Answer{Status: http.StatusNotFound, Body: []byte(`{"error":"route"}`)}
	}
	return c
}

func (s *shop) Execute(tx *fakeprovider.Tx, c *fakeprovider.Call) fakeprovider.Answer {
	switch body := string(c.Request.Body); {
	case !c.Write:
		return answer(200, fmt.Sprintf(`{"orders":%d}`, s.orders), false)
	case body == "decline":
		return answer(402, `{"error":"declined"}`, true)
	case body == "invalid":
		return answer(400, `{"error":"invalid"}`, false)
	}
	s.orders++
	id := fmt.Sprintf("order_%d", s.orders)
	tx.Effect(id)
	tx.Event("evt_"+id, "order.created", []byte(`{}`))
	return answer(201, `{"id":"`+id+`"}`, true)
}

func (*shop) Replay(_ *fakeprovider.Tx, _ *fakeprovider.Call, saved fakeprovider.Saved) fakeprovider.Answer {
	return saved.Answer
}

func (*shop) Refuse(_ *fakeprovider.Call, why fakeprovider.Refusal) fakeprovider.Answer {
	status := map[fakeprovider.Refusal]int{
		fakeprovider.InFlightConflict: 409, fakeprovider.Mismatch: 422, fakeprovider.RateLimited: 429,
		fakeprovider.LockTimedOut: 429, fakeprovider.NotAuthenticated: 401, fakeprovider.Internal: 500,
		fakeprovider.Unavailable: 503, fakeprovider.FailedDependency: 424, fakeprovider.TooLarge: 413,
		fakeprovider.MemoryFull: 503, fakeprovider.UnreadableEncoding: 415, fakeprovider.KeyMissing: 400,
	}[why]
	return answer(status, `{"error":"`+string(why)+`"}`, false)
}

func (*shop) Finish(d fakeprovider.Delivery, h http.Header) {
	h.Set("Request-Id", d.RequestID)
	if d.Replayed {
		h.Set("Replayed", "true")
	}
}

func (s *shop) Seeds() map[string]any { return map[string]any{"orders": seeded{}} }

func (s *shop) Seed(_ *fakeprovider.Tx, object any) (string, error) {
	n, ok := object.(seeded)
	if !ok || n.N < 1 {
		return "", fmt.Errorf("seed %T: n must be at least 1", object)
	}
	s.orders += n.N
	return fmt.Sprintf("order_%d", s.orders), nil
}

func (*shop) Operations() []string { return []string{"order.create", "order.list", "refund.create"} }

func (*shop) Register(e *fakeprovider.Endpoint, random func(int, string) string) error {
	e.ID = "hook_" + random(4, "abc")
	return nil
}

func (*shop) Webhook(e fakeprovider.Event, to fakeprovider.Endpoint, at time.Time) (fakeprovider.Webhook, error) {
	return fakeprovider.Webhook{Body: []byte(e.ID), Header: http.Header{"To": {to.ID}, "Sent": {at.UTC().Format(time.RFC3339)}}}, nil
}

type seeded struct {
	N int `json:"n"`
}

func answer(status int, body string, keep bool) fakeprovider.Answer {
	return fakeprovider.Answer{Status: status, Body: []byte(body), Keep: keep}
}

// client is one client of a served fake.
type client struct {
	url  string
	http *http.Client
}

// serve starts a fake shop on a loopback socket.
func serve(t *testing.T, opts *fakeprovider.Options) (*fakeprovider.Fake, *client) {
	t.Helper()
	f := fakeprovider.New(newShop, opts)
	s, err := fakeprovider.Listen(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return f, &client{s.URL, noRedirects(s.Transport())}
}

func noRedirects(rt http.RoundTripper) *http.Client {
	return &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// result is what a client saw.
type result struct {
	status   int
	body     string
	replayed bool
	header   http.Header
	err      error
	writes   int // requests that net/http wrote
}

func (c *client) post(ctx context.Context, key, body string) result {
	var writes atomic.Int64
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { writes.Add(1) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/orders", strings.NewReader(body))
	if err != nil {
		return result{err: err}
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return result{err: err, writes: int(writes.Load())}
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return result{status: resp.StatusCode, body: string(b), replayed: resp.Header.Get("Replayed") == "true",
		header: resp.Header, err: err, writes: int(writes.Load())}
}

// want fails the test unless the client saw an answer of this kind.
func (r result) want(t *testing.T, status int, replayed bool) {
	t.Helper()
	if r.err != nil || r.status != status || r.replayed != replayed {
		t.Errorf("got status %d, replayed %v, error %v; want %d, %v", r.status, r.replayed, r.err, status, replayed)
	}
}

func inject(t *testing.T, f *fakeprovider.Fake, faults ...fakeprovider.Fault) {
	t.Helper()
	if err := f.Inject(faults...); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, f *fakeprovider.Fake, done func(fakeprovider.Snapshot) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := f.Await(ctx, "", done); err != nil {
		t.Fatal(err)
	}
}

func wantEffects(t *testing.T, f *fakeprovider.Fake, want int) {
	t.Helper()
	if got := f.Effects("order.create"); got != want {
		t.Errorf("effects = %d, want %d", got, want)
	}
}
