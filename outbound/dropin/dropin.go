// Package dropin puts a samekey client under the SDK that a service has already:
// it is the transport of the SDK's own http.Client.
//
//	transport, err := dropin.New(payments, nil)
//	sc := stripe.NewClient(key, stripe.WithBackends(stripe.NewBackendsWithConfig(
//		&stripe.BackendConfig{HTTPClient: transport.Client()})))
//
//	ctx = outbound.WithCommand(ctx, outbound.Command{ID: refund.ID}) // the only new line at a call
//	r, err := sc.V1Refunds.Create(ctx, params)
//	label, _ := dropin.Read(r.LastResponse.Header)
//
// Services without an SDK call outbound.Client.Do and need nothing of this.
package dropin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// maxBody bounds what is read of a request before outbound.Options.MaxBody is
// asked, and what is judged of an answer in Shadow; in bytes.
const maxBody = 64 << 20

// maxTrusted bounds what is set aside for a body before any of it was read.
const maxTrusted = 64 << 10

// Options are the optional settings of a Transport.
type Options struct {
	// Strict refuses every write whose context carries no command. Defaults to
	// false: operations of class Money are refused, others and writes that are no
	// operation pass and are counted.
	Strict bool

	// Only limits samekey to these operations; every other request passes as if
	// samekey were not there. Defaults to all.
	Only []string

	// Shadow sends every request as the SDK made it, with the SDK's own key, and
	// records and reports what samekey would have done. Nothing is refused and
	// nothing is replayed. One provider's window of it makes a safe cut-over.
	// Defaults to false.
	Shadow bool
}

// Transport is an http.RoundTripper over the adapter's own transport. It never
// follows a redirect and, the end of the caller's context apart, answers a
// refusal with a response in the provider's shape: SDKs retry a Go error
// blindly. It is safe for concurrent use.
//
// Writes that are operations of the table end in outbound.Client.Do, under the
// command that outbound.WithCommand or outbound.Track put into the request's
// context. A random key that the SDK made is overwritten; one that the caller
// chose is refused, unless it is the key that samekey derives for the command.
// Reads and token fetches pass untouched.
type Transport struct {
	client  *outbound.Client
	adapter *httpadapter.Adapter
	opts    Options
	unnamed atomic.Int64
}

// New returns an error if client's adapter is no *httpadapter.Adapter, or if
// Only names what is no operation. opts may be nil.
func New(client *outbound.Client, opts *Options) (*Transport, error) {
	if client == nil {
		return nil, errors.New("dropin: New needs a client")
	}
	a, ok := client.Adapter().(*httpadapter.Adapter)
	if !ok {
		return nil, fmt.Errorf("dropin: the client's adapter is a %T: a drop-in needs an *httpadapter.Adapter", client.Adapter())
	}
	t := &Transport{client: client, adapter: a}
	if opts != nil {
		t.opts = *opts
		t.opts.Only = slices.Clone(opts.Only)
	}
	profile, err := a.Profile()
	if err != nil {
		return nil, fmt.Errorf("dropin: %w", err)
	}
	for _, name := range t.opts.Only {
		if _, known := replaysemantics.Find(profile.Operations, name); !known {
			return nil, fmt.Errorf("dropin: Options.Only: %s has no operation %q", profile.Provider, name)
		}
	}
	return t, nil
}

// Client returns an http.Client on t, for SDKs that want one. It follows no
// redirects, those of reads included.
func (t *Transport) Client() *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Unnamed is how many writes have passed without samekey so far: without a
// command, or, in Shadow, because nothing could be recorded of them.
func (t *Transport) Unnamed() int64 { return t.unnamed.Load() }

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isWrite(r.Method) || t.adapter.Untouched(r) {
		return t.pass(r)
	}
	op, known := t.adapter.Match(r)
	slashed := false
	if !known {
		op, slashed = t.matchTrimmed(r)
	}
	if len(t.opts.Only) > 0 && !slices.Contains(t.opts.Only, op.Name) {
		return t.pass(r)
	}
	cmd, named := outbound.CommandFrom(r.Context())
	if t.opts.Shadow {
		if !known || !named || r.ContentLength > maxBody {
			return t.passUnnamed(r, op.Name)
		}
		return t.shadow(r, op, cmd)
	}
	switch {
	case !named && (t.opts.Strict || (known || slashed) && op.Class == replaysemantics.Money):
		return t.refuseUnread(r, outbound.Call{Operation: op.Name}, errUnnamed)
	case !named:
		return t.passUnnamed(r, op.Name)
	case slashed:
		return t.refuseUnread(r, outbound.Call{Command: cmd, Operation: op.Name}, errSlashed)
	case !known:
		return t.refuseUnread(r, outbound.Call{Command: cmd}, unknownRoute(r))
	}
	return t.do(r, op, cmd)
}

var errUnnamed = errors.New("the write carries no command: make its context with outbound.WithCommand(ctx, outbound.Command{ID: …})")

var errSlashed = errors.New("the path ends with a slash, and the operation's does not: take the slash away")

// matchTrimmed finds the operation of a path without the slash at its end: a
// provider may take both for the same, so that it is no unknown route.
func (t *Transport) matchTrimmed(r *http.Request) (replaysemantics.Operation, bool) {
	path := strings.TrimRight(r.URL.Path, "/")
	if path == r.URL.Path {
		return replaysemantics.Operation{}, false
	}
	u := *r.URL
	u.Path, u.RawPath = path, strings.TrimRight(r.URL.RawPath, "/")
	return t.adapter.Match(&http.Request{Method: r.Method, URL: &u})
}

// unknownRoute shows the line that registers a route. The path's segments may be
// ids and are not shown.
func unknownRoute(r *http.Request) error {
	return fmt.Errorf("this %s is no operation of the adapter's table: register it with adapter.With(replaysemantics.Operation{"+
		"Name: …, Method: %q, Path: …, Keys: …, Resend: …, Facts: …}) before outbound.New, or make the request without a command", r.Method, r.Method)
}

func isWrite(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return true
}

// pass hands a request on as it is.
func (t *Transport) pass(r *http.Request) (*http.Response, error) {
	resp, err := t.adapter.RoundTripper().RoundTrip(r)
	if resp != nil {
		removeOurs(resp.Header)
	}
	return resp, err
}

func (t *Transport) passUnnamed(r *http.Request, operation string) (*http.Response, error) {
	t.client.Unnamed(r.Context(), operation)
	t.unnamed.Add(1)
	return t.pass(r)
}

// do makes the request's effect happen at most once.
func (t *Transport) do(r *http.Request, op replaysemantics.Operation, cmd outbound.Command) (*http.Response, error) {
	call := outbound.Call{Command: cmd, Operation: op.Name}
	body, err := readBody(r)
	if err != nil {
		return t.refuse(r, call, err)
	}
	in, err := t.adapter.Inbound(op, r, body)
	if err != nil {
		return t.refuse(r, call, err)
	}
	call.Account, call.Message, call.Credentials = in.Account, in.Message, in.Credentials
	if err := t.checkKey(in, call); err != nil {
		return t.refuse(r, call, err)
	}
	return t.answer(r, call)
}

// checkKey refuses a key that the caller chose: overwriting it would be a second
// key for what may have been sent under the first.
func (t *Transport) checkKey(in httpadapter.Inbound, call outbound.Call) error {
	if in.Key == "" {
		return nil
	}
	if r, ok := t.adapter.Codec().(httpadapter.KeyRecogniser); ok && r.RandomKey(in.Key) {
		return nil
	}
	if derived, err := t.client.Key(call.Command, call.Operation, call.Account); err == nil && derived.Raw() == in.Key {
		return nil
	}
	return errors.New("the request carries a key that its caller chose, and samekey would send another: " +
		"take the key out, or cut over with dropin.Options Shadow for one window of the provider")
}

// refuseUnread refuses a request whose body was not read.
func (t *Transport) refuseUnread(r *http.Request, call outbound.Call, why error) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return t.refuse(r, call, why)
}

// refuse lets Do report and count what is wrong; nothing is sent.
func (t *Transport) refuse(r *http.Request, call outbound.Call, why error) (*http.Response, error) {
	call.Err = why
	return t.answer(r, call)
}

func (t *Transport) answer(r *http.Request, call outbound.Call) (*http.Response, error) {
	ctx := r.Context()
	reply, err := t.client.Do(ctx, call)
	if err == nil {
		return t.applied(r, reply), nil
	}
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return nil, err
	}
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok {
		return nil, err
	}
	return t.failed(r, e), nil
}

// shadow sends the request as it is and lets the client watch.
func (t *Transport) shadow(r *http.Request, op replaysemantics.Operation, cmd outbound.Command) (resp *http.Response, err error) {
	call := outbound.Call{Command: cmd, Operation: op.Name}
	body, failed := readBody(r)
	if failed != nil {
		return nil, failed
	}
	in, failed := t.adapter.Inbound(op, r, body)
	call.Account, call.Message, call.Credentials, call.Err = in.Account, in.Message, in.Credentials, failed
	t.client.Shadow(r.Context(), call, func(context.Context) (v outbound.Verdict) {
		resp, v, err = t.adapter.Relay(op, r, body, maxBody) //nolint:bodyclose // the SDK closes it
		return v
	})
	if resp != nil {
		removeOurs(resp.Header)
	}
	return resp, err
}

// readBody reads a request's body whole and closes it.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	defer r.Body.Close()
	body := make([]byte, 0, min(max(r.ContentLength+1, 512), maxTrusted)) // one more, so that the end shows itself
	for {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > maxBody:
			return nil, fmt.Errorf("the request's body has more than %d bytes", maxBody)
		case err == io.EOF: // a wrapped EOF is a body that was cut off
			return body, nil
		case err != nil:
			return nil, fmt.Errorf("the request's body could not be read: %w", err)
		}
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
	}
}
