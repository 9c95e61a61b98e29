package paypal

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
)

const (
	tokenTimeout = 10 * time.Second
	tokenMaxBody = 64 << 10
	tokenMaxLife = 24 * time.Hour // Longer promises are not believed.
	renewMargin  = 5 * time.Minute
)

// client is one REST app of PayPal.
type client struct{ id, secret string }

// tokenSource fetches access tokens (POST /v1/oauth2/token) and keeps one for
// each client id. It is safe for concurrent use: many callers without a token
// wait for one fetch. A failed fetch is not kept.
type tokenSource struct {
	endpoint string
	http     *http.Client

	mu      sync.Mutex
	clients map[string]*clientToken

	// foreign are the callers' own tokens that PayPal refused, as hashes: an SDK
	// that keeps sending one would cost a refused attempt at each call.
	foreign [32][sha256.Size]byte
	next    int
}

type clientToken struct {
	value              string
	renewAt, expiresAt time.Time
	fetch              *tokenFetch // nil if none is under way
}

type tokenFetch struct {
	done  chan struct{} // closed when value and err are set
	value string
	err   error
}

func newTokenSource(baseURL string, transport http.RoundTripper) *tokenSource {
	return &tokenSource{
		endpoint: strings.TrimSuffix(baseURL, "/") + "/v1/oauth2/token",
		http: &http.Client{
			Transport:     transport,
			Timeout:       tokenTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		clients: make(map[string]*clientToken),
	}
}

// token returns an access token for c. Near its end a token is renewed while
// callers go on with it. ctx ending frees this caller only, not the fetch that
// others wait for.
func (s *tokenSource) token(ctx context.Context, c client) (string, error) {
	s.mu.Lock()
	t, now := s.of(c.id), time.Now()
	if t.value != "" && now.Before(t.renewAt) {
		defer s.mu.Unlock()
		return t.value, nil
	}
	f := t.fetch
	if f == nil {
		f = &tokenFetch{done: make(chan struct{})}
		t.fetch = f
		go s.renew(context.WithoutCancel(ctx), c, f)
	}
	if t.value != "" && now.Before(t.expiresAt) {
		defer s.mu.Unlock()
		return t.value, nil
	}
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return "", fmt.Errorf("paypal: waiting for an access token: %w", ctx.Err())
	}
}

// of returns the state of one client id. The lock is held.
func (s *tokenSource) of(id string) *clientToken {
	t := s.clients[id]
	if t == nil {
		t = &clientToken{}
		s.clients[id] = t
	}
	return t
}

func (s *tokenSource) renew(ctx context.Context, c client, f *tokenFetch) {
	asked := time.Now()
	value, life, err := s.askSafely(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.of(c.id)
	t.fetch = nil
	if f.value, f.err = value, err; err == nil {
		t.value, t.expiresAt = value, asked.Add(life)
		t.renewAt = t.expiresAt.Add(-min(renewMargin, life/10))
	}
	close(f.done)
}

// reject notes that PayPal refused token, which was sent for client id. A token
// that was replaced meanwhile is not thrown away with its predecessor.
func (s *tokenSource) reject(id, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.of(id); t.value == token {
		t.value = ""
		return
	}
	if sum := sha256.Sum256([]byte(token)); !s.knows(sum) {
		s.foreign[s.next] = sum
		s.next = (s.next + 1) % len(s.foreign)
	}
}

// rejected reports whether PayPal refused this token of a caller before.
func (s *tokenSource) rejected(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.knows(sha256.Sum256([]byte(token)))
}

func (s *tokenSource) knows(sum [sha256.Size]byte) bool {
	for _, known := range s.foreign {
		if known == sum {
			return true
		}
	}
	return false
}

// askSafely turns a panic of the transport into an error: the fetch has a
// goroutine of its own, where nobody else could, and callers wait for its end.
func (s *tokenSource) askSafely(ctx context.Context, c client) (token string, life time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("paypal: the transport panicked with a %T while an access token was fetched", p)
		}
	}()
	return s.ask(ctx, c)
}

// ask fetches a token. Its errors hold neither the secret nor the answer.
func (s *tokenSource) ask(ctx context.Context, c client) (token string, life time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, strings.NewReader("grant_type=client_credentials"))
	if err != nil {
		return "", 0, errors.New("paypal: the address of the access tokens is unusable: check Config.BaseURL")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	r.SetBasicAuth(c.id, c.secret)
	resp, err := s.http.Do(r)
	if err != nil {
		return "", 0, fmt.Errorf("paypal: fetching an access token: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, tokenMaxBody+1))
	if err != nil {
		return "", 0, fmt.Errorf("paypal: reading an access token: %w", err)
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int64  `json:"expires_in"`
		Error       string `json:"error"`
	}
	if len(body) > tokenMaxBody || json.Unmarshal(body, &answer) != nil {
		return "", 0, fmt.Errorf("paypal: the answer %d to the request for an access token is unreadable", resp.StatusCode)
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusBadRequest:
		return "", 0, fmt.Errorf("%w: paypal: no access token (%d%s): check ClientID, Secret and Sandbox", outbound.ErrAuth, resp.StatusCode, errorWord(answer.Error))
	case resp.StatusCode != http.StatusOK:
		return "", 0, fmt.Errorf("paypal: no access token (%d%s)", resp.StatusCode, errorWord(answer.Error))
	case answer.AccessToken == "" || !strings.EqualFold(answer.TokenType, "Bearer"):
		return "", 0, errors.New("paypal: the answer to the request for an access token holds none")
	}
	seconds := min(max(answer.ExpiresIn, 0), int64(tokenMaxLife/time.Second))
	return answer.AccessToken, time.Duration(seconds) * time.Second, nil
}

var errorWords = regexp.MustCompile(`^[a-z_]{1,40}$`)

// errorWord is the OAuth error, if it is one word.
func errorWord(s string) string {
	if !errorWords.MatchString(s) {
		return ""
	}
	return " " + s
}
