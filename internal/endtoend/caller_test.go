package endtoend

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/dropin"
)

// caller makes requests as a provider's SDK does: with its own credentials, a
// body that can be read once, and at Stripe a random key for every request.
type caller struct {
	provider string
	base     string
	http     *http.Client
	serial   atomic.Int64

	mu    sync.Mutex
	token string // PayPal's
}

// answered is what one request came to: the response that the SDK saw, and what
// outbound.Track tells beside it.
type answered struct {
	status int
	header http.Header
	body   []byte
	reply  *outbound.Reply
	err    error
}

// send sends call's message under its command. The error is that of the
// http.Client.
func (c *caller) send(ctx context.Context, call outbound.Call, headers ...outbound.Field) (answered, error) {
	ctx, tracked := outbound.Track(ctx, call.Command)
	r, err := http.NewRequestWithContext(ctx, call.Message.Method, c.base+call.Message.Target, once(call.Message.Body))
	if err != nil {
		return answered{}, err
	}
	for _, f := range call.Message.Header {
		r.Header.Add(f.Name, f.Value)
	}
	if c.provider == "stripe" {
		r.Header.Set("Authorization", "Bearer "+stripeSecret)
		r.Header.Set("Idempotency-Key", fmt.Sprintf("1700000000%09d_AbC-_1", c.serial.Add(1)))
	} else {
		token, err := c.bearer(ctx)
		if err != nil {
			return answered{}, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, f := range headers {
		r.Header.Set(f.Name, f.Value)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return answered{}, err
	}
	defer resp.Body.Close()
	a := answered{status: resp.StatusCode, header: resp.Header}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return answered{}, err
	}
	a.reply, a.err = tracked.Result()
	return a, nil
}

// once is a body that can be read once, of unknown length, as from a stream.
func once(body []byte) io.Reader {
	if len(body) == 0 {
		return nil
	}
	return io.MultiReader(bytes.NewReader(body))
}

// bearer fetches PayPal's token over the drop-in, as the SDK does, and keeps it.
func (c *caller) bearer(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != "" {
		return c.token, nil
	}
	form := url.Values{"grant_type": {"client_credentials"}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/oauth2/token", strings.NewReader(form))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(paypalClient, paypalSecret)
	resp, err := c.http.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var t struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&t); err != nil {
		return "", fmt.Errorf("the token's answer, %d, came unreadable through the drop-in: %w", resp.StatusCode, err)
	}
	if t.Token == "" {
		return "", fmt.Errorf("no token came through the drop-in, but %d", resp.StatusCode)
	}
	c.token = t.Token
	return c.token, nil
}

// consistent holds that the response tells an SDK what Track tells its caller,
// and that an effect that may have happened is never answered with a 4xx but
// that of a call in flight.
func (a answered) consistent() error {
	label, err := dropin.Read(a.header)
	switch {
	case a.reply == nil && a.err == nil:
		return errors.New("Track knows nothing of a request that was answered")
	case a.reply != nil:
		if err != nil || label != a.reply.Label || a.status/100 != 2 || !bytes.Equal(a.body, a.reply.Body) {
			return fmt.Errorf("the response says %d, %q, %q; Track says %q", a.status, label, fmt.Sprint(err), a.reply.Label)
		}
		return nil
	}
	e, ok := errors.AsType[*outbound.Error](a.err)
	read, is := errors.AsType[*outbound.Error](err)
	if !ok || !is || read.Code != e.Code || read.Effect != e.Effect {
		return fmt.Errorf("the response says %d, %q; Track says %w", a.status, fmt.Sprint(err), a.err)
	}
	if e.Answer != nil && label != e.Answer.Label {
		return fmt.Errorf("the response is labelled %q; Track says %q", label, e.Answer.Label)
	}
	if a.status < 400 || !json.Valid(a.body) {
		return fmt.Errorf("a failure was answered with %d and the body %q", a.status, a.body)
	}
	if e.Sent && e.Effect == outbound.EffectUnknown && a.status < 500 {
		return fmt.Errorf("the effect is unknown, and the response says %d", a.status)
	}
	return nil
}

// wire keeps what was sent.
type wire struct {
	base http.RoundTripper
	mu   sync.Mutex
	sent []sent
}

type sent struct {
	method, path string
	header       http.Header
	body         string
}

// RoundTrip notes a request and hands it on. It leaves a missing body missing:
// net/http sends only such requests again by itself.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil && r.Body != http.NoBody {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	w.mu.Lock()
	w.sent = append(w.sent, sent{r.Method, r.URL.EscapedPath(), r.Header.Clone(), string(body)})
	w.mu.Unlock()
	return w.base.RoundTrip(r)
}

// to returns the requests of a method to a path.
func (w *wire) to(method, path string) (list []sent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sent {
		if s.method == method && s.path == path {
			list = append(list, s)
		}
	}
	return list
}

// readable is a response's body.
func readable(body string) io.ReadCloser { return io.NopCloser(strings.NewReader(body)) }

// hashOf is how the fake notes a raw key.
func hashOf(raw string) [32]byte { return sha256.Sum256([]byte(raw)) }

// keyOf is the raw key that was sent, wherever the provider wants it.
func keyOf(s sent) string {
	for _, name := range []string{"Idempotency-Key", "Paypal-Request-Id"} {
		if v := s.header.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// rawKeys are all keys that went over the wire.
func (w *wire) rawKeys() (keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sent {
		if k := keyOf(s); k != "" && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}
