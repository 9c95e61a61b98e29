package httpadapter

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Inbound is a request of a caller's own SDK, read for package dropin.
type Inbound struct {
	Message     outbound.Message // With the frozen headers; never with credentials or a key in a header.
	Account     string           // "" for the default one.
	Credentials []outbound.Field
	Key         string // What the request carries where the row puts the key; "" if nothing.
}

// Match returns the row of a request: by method and path below the base URL, or
// on another of the adapter's hosts. A literal path wins over one with a
// parameter.
func (a *Adapter) Match(r *http.Request) (rs.Operation, bool) {
	l, err := a.locateURL(r.URL)
	if err != nil {
		return rs.Operation{}, false
	}
	return a.routes.match(r.Method, l.path)
}

// Untouched reports whether the author declared that a write is no operation.
func (a *Adapter) Untouched(r *http.Request) bool {
	if len(a.cfg.Untouched) == 0 {
		return false
	}
	l, err := a.locateURL(r.URL)
	return err == nil && slices.Contains(a.cfg.Untouched, r.Method+" "+l.path)
}

// Inbound reads a request that Match found, and its body, as a message. r is not
// changed, and its own body is not read.
func (a *Adapter) Inbound(op rs.Operation, r *http.Request, body []byte) (Inbound, error) {
	l, err := a.locateURL(r.URL)
	if err != nil {
		return Inbound{}, err
	}
	in := Inbound{Message: outbound.Message{Method: r.Method, Target: l.target(), Body: body}}
	in.Message.Header = make([]outbound.Field, 0, len(r.Header))
	for name, values := range r.Header {
		if !a.frozen[name] && !isMark(op, name) || isKey(op, name) {
			continue
		}
		for _, v := range values {
			in.Message.Header = append(in.Message.Header, outbound.Field{Name: name, Value: v})
		}
	}
	slices.SortStableFunc(in.Message.Header, func(x, y outbound.Field) int { return cmp.Compare(x.Name, y.Name) })
	for _, name := range a.cfg.Credentials {
		for _, v := range r.Header.Values(name) {
			in.Credentials = append(in.Credentials, outbound.Field{Name: http.CanonicalHeaderKey(name), Value: v})
		}
	}
	if a.cfg.AccountOf != nil {
		if in.Account, err = a.cfg.AccountOf(r.Header); err != nil {
			return Inbound{}, err
		}
	}
	in.Key, err = a.keyIn(op, r.Header, in.Message)
	return in, err
}

// keyIn returns the key that a request carries already.
func (a *Adapter) keyIn(op rs.Operation, header http.Header, m outbound.Message) (string, error) {
	for _, place := range op.Keys {
		if place.Kind == rs.InHeader {
			if key := fromHeader(place, header.Get(place.Name)); key != "" {
				return key, nil
			}
			continue
		}
		c, err := readContent(fieldValue(m.Header, "Content-Type"), m.Body)
		if err != nil {
			return "", err
		}
		if key := c.value(place); key != "" {
			return key, nil
		}
	}
	return "", nil
}

// RoundTripper is the adapter's transport: no key, no credentials, no retries.
func (a *Adapter) RoundTripper() http.RoundTripper { return a.transport }

// Relay sends a caller's request as it is, once, and says what its answer
// teaches. body is r's body, read before; r is not changed. The answer reaches
// the caller as it came, also where it could not be judged. Answers up to limit
// bytes are judged.
func (a *Adapter) Relay(op rs.Operation, r *http.Request, body []byte, limit int64) (*http.Response, outbound.Verdict, error) {
	var c connections
	sent := r.WithContext(c.trace(r.Context()))
	if r.Body != nil && r.Body != http.NoBody {
		sent.Body = io.NopCloser(bytes.NewReader(body))
	}
	x := &Exchange{Operation: op}
	resp, err := a.transport.RoundTrip(sent)
	if err != nil {
		w := wire{err: cleanError(r.Context(), err), deliveries: c.deliveries(a.traced, false)}
		return nil, a.judge(w, x), err
	}
	w := wire{status: resp.StatusCode, header: resp.Header, deliveries: c.deliveries(a.traced, true)}
	read, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		w.err = errors.New("the answer was not read whole")
	case int64(len(read)) > limit:
		w.err = errors.New("the answer is longer than what is judged")
	default:
		w.body = read
	}
	resp.Body = rereadable(read, err, resp.Body)
	x.Status, x.Header, x.Body = w.status, w.header, w.body
	v := a.judge(w, x)
	if v.Answer != nil {
		v.Answer = answerOf(v.Answer.Status, w.header, v.Answer.Body, "")
	}
	a.conceal(&v, r, a.secretsIn(op, r, body)...)
	return resp, v, nil
}

// rereadable gives back what was read of rest, and then what is left of it or
// the error that reading met.
func rereadable(read []byte, err error, rest io.ReadCloser) io.ReadCloser {
	after := io.Reader(rest)
	if err != nil {
		after = failing{err}
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), after), rest}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
