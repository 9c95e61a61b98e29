package httpadapter

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/internal/limit"
)

// wire is what one RoundTrip taught. The answer's body is whole, or err says
// why it is not.
type wire struct {
	status     int // 0: no answer
	header     http.Header
	body       []byte
	deliveries int
	err        error
}

// exchange sends r once and reads its answer whole, within limit bytes. r's
// context bounds it.
func (a *Adapter) exchange(rt http.RoundTripper, r *http.Request, limit int64) wire {
	var c connections
	resp, err := rt.RoundTrip(r.WithContext(c.trace(r.Context())))
	if err != nil {
		return wire{err: cleanError(r.Context(), err), deliveries: c.deliveries(a.traced, false)}
	}
	defer resp.Body.Close()
	w := wire{status: resp.StatusCode, header: resp.Header}
	w.body, w.err = readBody(r.Context(), resp.Body, resp.ContentLength, limit)
	w.deliveries = c.deliveries(a.traced, true)
	return w
}

// readBody reads a body whole. length is what its header says, negative where that
// says nothing.
func readBody(ctx context.Context, r io.Reader, length, limit int64) ([]byte, error) {
	body := make([]byte, 0, max(512, min(length, maxTrusted)+1)) // one more, so that the end shows itself
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > limit:
			return nil, fmt.Errorf("the answer has more than %d bytes", limit)
		case err == io.EOF: // a wrapped EOF is a body that was cut off
			return body, nil
		case err != nil:
			return nil, fmt.Errorf("the answer was not read whole: %w", cleanError(ctx, err))
		}
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
	}
}

// maxTrusted bounds what is set aside for a body before any of it was read.
const maxTrusted = 64 << 10

// connections counts the deliveries of one RoundTrip. net/http resends a keyed
// request by itself when a kept connection dies, and each try takes a
// connection. That one was taken proves that the request may have arrived;
// nothing that happens to it later proves that it did not.
type connections struct {
	asked, got atomic.Int32
	hooks      httptrace.ClientTrace
}

func (c *connections) trace(ctx context.Context) context.Context {
	c.hooks.GetConn = func(string) { c.asked.Add(1) }
	c.hooks.GotConn = func(httptrace.GotConnInfo) { c.got.Add(1) }
	return httptrace.WithClientTrace(ctx, &c.hooks)
}

// deliveries is how many requests may have reached the wire. A transport that
// does not report its connections, or may not, counts as one that had one.
func (c *connections) deliveries(traced, answered bool) int {
	switch got := int(c.got.Load()); {
	case got > 0:
		return got
	case answered:
		return 1
	case traced || c.asked.Load() > 0:
		return 0
	}
	return 1
}

// cleanError drops what an error may show of request and answer: the URL, since
// a query may hold what nobody should read, and an answer that is no HTTP. Where
// ctx ended, that is the error.
func cleanError(ctx context.Context, err error) error {
	for {
		wrapped, ok := errors.AsType[*url.Error](err)
		if !ok {
			break
		}
		err = wrapped.Err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return cause
	}
	if strings.Contains(err.Error(), "malformed") {
		return errors.New("the answer is malformed HTTP") // net/http's error quotes it
	}
	return err
}

// answerOf is the answer as it is kept: without cookies, without what speaks of
// the connection, and without the key, which some providers echo.
func answerOf(status int, header http.Header, body []byte, key string) *outbound.Answer {
	var listed []string // by the connection itself
	for _, names := range header.Values("Connection") {
		for name := range strings.SplitSeq(names, ",") {
			listed = append(listed, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	fields := make([]outbound.Field, 0, len(header))
	for name, values := range header {
		if ofConnection(name) || slices.Contains(listed, name) {
			continue
		}
		for _, value := range values {
			if key == "" || !strings.Contains(value, key) {
				fields = append(fields, outbound.Field{Name: name, Value: value})
			}
		}
	}
	slices.SortStableFunc(fields, func(x, y outbound.Field) int { return strings.Compare(x.Name, y.Name) })
	size := 0
	fields = slices.DeleteFunc(fields, func(f outbound.Field) bool {
		if size+len(f.Name)+len(f.Value) > maxHeader {
			return true
		}
		size += len(f.Name) + len(f.Value)
		return false
	})
	return &outbound.Answer{Status: status, Header: fields, Body: body}
}

// ofConnection reports whether a header is a cookie, or speaks of the connection.
func ofConnection(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection",
		"Set-Cookie", "Set-Cookie2", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// conceal drops the provider's words that repeat a secret of r, which is the key
// or a credential: they are logged, and stored in clear.
func (a *Adapter) conceal(v *outbound.Verdict, r *http.Request, secrets ...string) {
	hide := func(secret string) {
		for _, word := range [...]*string{&v.ProviderCode, &v.ExternalRef, &v.ObjectStatus, &v.RequestID} {
			if len(secret) >= 8 && strings.Contains(*word, secret) {
				*word = ""
			}
		}
	}
	for _, secret := range secrets {
		hide(secret)
	}
	for _, name := range a.cfg.Credentials {
		for _, value := range r.Header.Values(name) {
			_, token, _ := strings.Cut(value, " ") // behind the scheme
			hide(cmp.Or(token, value))
		}
	}
}

// newRequest makes one request. GetBody stays unset, which would allow net/http
// to send the body again by itself.
func newRequest(ctx context.Context, method string, to *url.URL, header []outbound.Field, body []byte) *http.Request {
	r := (&http.Request{
		Method: method, URL: to, Host: to.Host, Header: make(http.Header, len(header)+credentialHeaders),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	values := make([]string, len(header))
	for i, f := range header {
		name := http.CanonicalHeaderKey(f.Name)
		if values[i] = f.Value; r.Header[name] == nil {
			r.Header[name] = values[i : i+1 : i+1]
			continue
		}
		r.Header.Add(name, f.Value)
	}
	setBody(r, body)
	return r
}

// credentialHeaders is how many headers an attempt usually adds to the frozen ones:
// credentials, an account and the key.
const credentialHeaders = 3

// setBody makes the body one that net/http knows to be in memory: it then goes out
// with the headers in one write.
func setBody(r *http.Request, body []byte) {
	r.GetBody, r.ContentLength = nil, int64(len(body))
	if len(body) == 0 {
		r.Body = http.NoBody
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
}

// authorize sets credentials, and holds the author's code to the header: where
// the request goes and what it says is not its to change. It returns the
// credential that stands in the body; "" for none.
func (a *Adapter) authorize(account string, own []outbound.Field, r *http.Request, body []byte) (secret string, err error) {
	at, to, host, method := r.URL, *r.URL, r.Host, r.Method
	if len(own) == 0 {
		own = nil
	}
	if a.cfg.Authorize != nil {
		if err := a.cfg.Authorize(r.Context(), account, own, r); err != nil {
			return "", cleanError(r.Context(), err)
		}
	} else {
		for _, f := range own {
			r.Header.Set(f.Name, f.Value)
		}
	}
	if *at != to {
		*at = to
	}
	r.URL, r.Host, r.Method = at, host, method
	if a.cfg.BodyCredential != nil && method != http.MethodGet {
		if body, secret, err = a.placeCredential(account, r, body); err != nil {
			return "", err
		}
	}
	setBody(r, body)
	return secret, nil
}

// renew lets Refresh replace refused credentials, one caller at a time.
func (a *Adapter) renew(ctx context.Context, account string, rejected *http.Request) error {
	select {
	case a.refresh <- struct{}{}:
		defer func() { <-a.refresh }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	refused := &http.Request{Method: rejected.Method, URL: rejected.URL, Host: rejected.Host, Header: rejected.Header}
	if err := a.cfg.Refresh(ctx, account, refused.WithContext(ctx)); err != nil {
		return cleanError(ctx, err)
	}
	return nil
}

// errNoAnswer is why an attempt ended by its own limit. It is no context error,
// so that it is not taken for the caller's.
type errNoAnswer time.Duration

func (e errNoAnswer) Error() string { return "no answer within " + time.Duration(e).String() }

// limited bounds one attempt. Its End must be called.
func limited(ctx context.Context, d time.Duration) *limit.Context {
	return limit.After(ctx, d, errNoAnswer(d))
}
