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

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
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
	w.body, w.err = readBody(r.Context(), resp.Body, limit)
	w.deliveries = c.deliveries(a.traced, true)
	return w
}

// readBody reads a body whole.
func readBody(ctx context.Context, r io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer was not read whole: %w", cleanError(ctx, err))
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("the answer has more than %d bytes", limit)
	}
	return body, nil
}

// connections counts the deliveries of one RoundTrip. net/http resends a keyed
// request by itself when a kept connection dies, and each try takes a
// connection. That one was taken proves that the request may have arrived;
// nothing that happens to it later proves that it did not.
type connections struct{ asked, got atomic.Int32 }

func (c *connections) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { c.asked.Add(1) },
		GotConn: func(httptrace.GotConnInfo) { c.got.Add(1) },
	})
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
func answerOf(status int, header http.Header, body []byte, key keyderive.Key) *outbound.Answer {
	dropped := []string{
		"Connection", "Content-Length", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection",
		"Set-Cookie", "Set-Cookie2", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	}
	for _, listed := range header.Values("Connection") {
		for name := range strings.SplitSeq(listed, ",") {
			dropped = append(dropped, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	names := make([]string, 0, len(header))
	for name := range header {
		if !slices.Contains(dropped, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	answer := &outbound.Answer{Status: status, Body: body}
	size := 0
	for _, name := range names {
		for _, value := range header[name] {
			echoed := !key.IsZero() && strings.Contains(value, key.Raw())
			if echoed || size+len(name)+len(value) > maxHeader {
				continue
			}
			size += len(name) + len(value)
			answer.Header = append(answer.Header, outbound.Field{Name: name, Value: value})
		}
	}
	return answer
}

// conceal drops the provider's words that repeat the key or a credential of r:
// they are logged, and stored in clear.
func (a *Adapter) conceal(v *outbound.Verdict, op rs.Operation, r *http.Request) {
	var secrets []string
	for _, place := range op.Keys {
		if place.Kind == rs.InHeader {
			secrets = append(secrets, r.Header.Values(place.Name)...)
		}
	}
	for _, name := range a.cfg.Credentials {
		for _, value := range r.Header.Values(name) {
			_, token, _ := strings.Cut(value, " ") // behind the scheme
			secrets = append(secrets, cmp.Or(token, value))
		}
	}
	for _, word := range []*string{&v.ProviderCode, &v.ExternalRef, &v.ObjectStatus, &v.RequestID} {
		if slices.ContainsFunc(secrets, func(s string) bool { return len(s) >= 8 && strings.Contains(*word, s) }) {
			*word = ""
		}
	}
}

// newRequest makes one request. GetBody stays unset, which would allow net/http
// to send the body again by itself.
func newRequest(ctx context.Context, method string, to *url.URL, header []outbound.Field, body []byte) *http.Request {
	r := (&http.Request{
		Method: method, URL: to, Host: to.Host, Header: make(http.Header),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	for _, f := range header {
		r.Header.Add(f.Name, f.Value)
	}
	setBody(r, body)
	return r
}

func setBody(r *http.Request, body []byte) {
	r.GetBody, r.Body, r.ContentLength = nil, http.NoBody, 0
	if len(body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
}

// authorize sets credentials, and holds the author's code to the header: where
// the request goes and what it says is not its to change.
func (a *Adapter) authorize(account string, own []outbound.Field, r *http.Request, body []byte) error {
	to, host, method := *r.URL, r.Host, r.Method
	if len(own) == 0 {
		own = nil
	}
	if a.cfg.Authorize != nil {
		if err := a.cfg.Authorize(r.Context(), account, own, r); err != nil {
			return cleanError(r.Context(), err)
		}
	} else {
		for _, f := range own {
			r.Header.Set(f.Name, f.Value)
		}
	}
	r.URL, r.Host, r.Method = &to, host, method
	setBody(r, body)
	return nil
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

// limited bounds one attempt.
func limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, errNoAnswer(d))
}
