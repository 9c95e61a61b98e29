package paypal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// tokenServer answers token requests after latency, with one token after the
// other, and counts them.
type tokenServer struct {
	latency time.Duration
	life    int64
	fail    atomic.Bool

	mu      sync.Mutex
	fetched []string // client ids, in order
}

func (s *tokenServer) RoundTrip(r *http.Request) (*http.Response, error) {
	id, secret, _ := r.BasicAuth()
	body, err := io.ReadAll(r.Body)
	if err != nil || string(body) != "grant_type=client_credentials" || r.URL.Path != "/v1/oauth2/token" || secret != "secret-of-"+id {
		return reply(r, 401, `{"error":"invalid_client"}`), nil
	}
	s.mu.Lock()
	s.fetched = append(s.fetched, id)
	n := len(s.fetched)
	s.mu.Unlock()
	select {
	case <-time.After(s.latency):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if s.fail.Load() {
		return reply(r, 503, `{"name":"SERVICE_UNAVAILABLE"}`), nil
	}
	return reply(r, 200, fmt.Sprintf(`{"access_token":"A21-%d","token_type":"Bearer","expires_in":%d}`, n, s.life)), nil
}

func (s *tokenServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.fetched)
}

func reply(r *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

func app(id string) client { return client{id, "secret-of-" + id} }

func newSource(s *tokenServer) *tokenSource { return newTokenSource("https://api.example.test", s) }

func want(t *testing.T, s *tokenSource, c client, token string) {
	t.Helper()
	if got, err := s.token(t.Context(), c); err != nil || got != token {
		t.Errorf("token = %q, %v; want %q", got, err, token)
	}
}

func TestTokenOneFetchForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &tokenServer{latency: time.Second, life: 32400}
		source := newSource(server)
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() { want(t, source, app("a"), "A21-1") })
		}
		group.Wait()
		want(t, source, app("b"), "A21-2") // another app has its own token
		want(t, source, app("a"), "A21-1")
		if got := server.count(); got != 2 {
			t.Errorf("fetches = %d, want one for each client id", got)
		}
	})
}

// A token is renewed before it ends; callers go on with it meanwhile, and with
// one that ended they wait.
func TestTokenRenewedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &tokenServer{latency: time.Second, life: 32400}
		source := newSource(server)
		want(t, source, app("a"), "A21-1")
		time.Sleep(32400*time.Second - renewMargin - 2*time.Second)
		want(t, source, app("a"), "A21-1")
		if got := server.count(); got != 1 {
			t.Fatalf("fetches = %d before the margin, want 1", got)
		}
		time.Sleep(2 * time.Second)
		want(t, source, app("a"), "A21-1") // in the margin: this one starts the renewal
		want(t, source, app("a"), "A21-1") // and this one does not
		time.Sleep(2 * time.Second)
		want(t, source, app("a"), "A21-2")
		time.Sleep(10 * time.Hour)
		want(t, source, app("a"), "A21-3") // ended: waits
		if got := server.count(); got != 3 {
			t.Errorf("fetches = %d, want 3", got)
		}
	})
}

// A token that is still good serves while PayPal's token endpoint is down.
func TestTokenOutlivesFailedRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &tokenServer{life: 32400}
		source := newSource(server)
		want(t, source, app("a"), "A21-1")
		server.fail.Store(true)
		time.Sleep(32400*time.Second - renewMargin)
		want(t, source, app("a"), "A21-1")
		synctest.Wait()
		want(t, source, app("a"), "A21-1")
		synctest.Wait()
		time.Sleep(renewMargin)
		if _, err := source.token(t.Context(), app("a")); err == nil {
			t.Error("an ended token was given")
		}
		server.fail.Store(false)
		want(t, source, app("a"), "A21-5")
	})
}

// A caller who goes away frees itself only.
func TestTokenCancelledWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &tokenServer{latency: 3 * time.Second, life: 32400}
		source := newSource(server)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() { // the first one, whose call started the fetch
			begun := time.Now()
			if _, err := source.token(ctx, app("a")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("err = %v, want the context's", err)
			}
			if waited := time.Since(begun); waited != time.Second {
				t.Errorf("the cancelled waiter was held for %v", waited)
			}
		})
		synctest.Wait()
		group.Go(func() { want(t, source, app("a"), "A21-1") })
		group.Wait()
		if got := server.count(); got != 1 {
			t.Errorf("fetches = %d, want 1", got)
		}
	})
}

// C21: of many callers whose token was refused the first renews it; a refusal of
// the old token does not throw the new one away.
func TestTokenRejectedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &tokenServer{latency: time.Second, life: 32400}
		source := newSource(server)
		want(t, source, app("a"), "A21-1")
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				source.reject("a", "A21-1")
				want(t, source, app("a"), "A21-2")
			})
		}
		group.Wait()
		source.reject("a", "A21-1")
		want(t, source, app("a"), "A21-2")
		if got := server.count(); got != 2 {
			t.Errorf("fetches = %d, want 2", got)
		}
	})
}

// A failed fetch is not kept, ends by its own limit, and tells no secret.
func TestTokenFailures(t *testing.T) {
	t.Parallel()
	long := `{"access_token":"` + strings.Repeat("x", tokenMaxBody) + `","token_type":"Bearer"}`
	for name, c := range map[string]struct {
		status int
		body   string
		auth   bool
	}{
		"invalid client":   {401, `{"error":"invalid_client","error_description":"secret-of-a"}`, true},
		"invalid grant":    {400, `{"error":"unsupported_grant_type"}`, true},
		"error with value": {401, `{"error":"secret-of-a is wrong"}`, true},
		"down":             {503, `{"name":"SERVICE_UNAVAILABLE"}`, false},
		"page":             {502, htmlPage, false},
		"oversized":        {200, long, false},
		"no token":         {200, `{"token_type":"Bearer"}`, false},
		"other type":       {200, `{"access_token":"t","token_type":"mac"}`, false},
		"redirect":         {302, `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			source := newTokenSource("https://api.example.test", roundTrip(func(r *http.Request) (*http.Response, error) {
				if calls++; calls == 1 {
					return reply(r, c.status, c.body), nil
				}
				return reply(r, 200, `{"access_token":"good","token_type":"Bearer","expires_in":60}`), nil
			}))
			_, err := source.token(t.Context(), app("a"))
			if err == nil {
				t.Fatal("no error")
			}
			if errors.Is(err, outbound.ErrAuth) != c.auth {
				t.Errorf("%v: is a refusal of the credentials: %t, want %t", err, !c.auth, c.auth)
			}
			if strings.Contains(err.Error(), "secret-of-a") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error tells too much: %q", err)
			}
			want(t, source, app("a"), "good")
		})
	}
}

func TestTokenHangingFetchEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := newSource(&tokenServer{latency: time.Hour, life: 32400})
		begun := time.Now()
		if _, err := source.token(t.Context(), app("a")); err == nil {
			t.Error("no error")
		}
		if waited := time.Since(begun); waited != tokenTimeout {
			t.Errorf("waited %v, want %v", waited, tokenTimeout)
		}
	})
}

// A transport that panics ends one fetch, not the process.
func TestTokenTransportPanics(t *testing.T) {
	t.Parallel()
	source := newTokenSource("https://api.example.test", roundTrip(func(*http.Request) (*http.Response, error) { panic("secret-of-a") }))
	for range 2 {
		if _, err := source.token(t.Context(), app("a")); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("err = %v, want one without the panic's value", err)
		}
	}
}

// What PayPal promises about a token's life is bounded on both sides.
func TestTokenLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		endless := &tokenServer{life: 1 << 62}
		source := newSource(endless)
		want(t, source, app("a"), "A21-1")
		time.Sleep(tokenMaxLife)
		want(t, source, app("a"), "A21-2")

		none := &tokenServer{life: -5}
		source = newSource(none)
		want(t, source, app("a"), "A21-1")
		want(t, source, app("a"), "A21-2")
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
