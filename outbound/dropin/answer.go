package dropin

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

// maxCause bounds HeaderCause, in bytes.
const maxCause = 1000

// Headers that samekey adds to answers; a provider's own of these names are
// removed.
const (
	HeaderLabel      = "Samekey-Label"
	HeaderEvidence   = "Samekey-Evidence"
	HeaderOrigin     = "Samekey-Origin"
	HeaderEffect     = "Samekey-Effect"
	HeaderError      = "Samekey-Error"       // an outbound.Code
	HeaderRetryAfter = "Samekey-Retry-After" // seconds
	HeaderCause      = "Samekey-Cause"       // of an invalid call: what is wrong, one line
)

// Read returns what samekey says in an answer's header: SDKs hand it out as
// LastResponse.Header or Response.Header. err is an *outbound.Error with Code,
// Effect and RetryAfter. Both are zero for an answer that did not come through
// Do.
func Read(h http.Header) (label outbound.Label, err error) {
	label = outbound.Label(h.Get(HeaderLabel))
	code := h.Get(HeaderError)
	if code == "" {
		return label, nil
	}
	e := &outbound.Error{Code: outbound.Code(code)}
	if cause := h.Get(HeaderCause); cause != "" {
		e.Err = reported(cause)
	}
	switch h.Get(HeaderEffect) {
	case outbound.EffectNone.String():
		e.Effect = outbound.EffectNone
	case outbound.EffectApplied.String():
		e.Effect = outbound.EffectApplied
	}
	if seconds, err := strconv.ParseUint(h.Get(HeaderRetryAfter), 10, 31); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return label, e
}

// reported is a cause that came by a header.
type reported string

func (r reported) Error() string { return string(r) }

// Reported tells outbound.Error that this is about a call, whose names no header has.
func (reported) Reported() {}

func removeOurs(h http.Header) {
	for _, name := range []string{HeaderLabel, HeaderEvidence, HeaderOrigin, HeaderEffect, HeaderError, HeaderRetryAfter, HeaderCause} {
		h.Del(name)
	}
}

// applied makes a response of a reply. A reply without its answer cannot be
// shown in the provider's shape: the SDK gets a 503 that says applied.
func (t *Transport) applied(r *http.Request, reply *outbound.Reply) *http.Response {
	if reply.StatusCode == 0 {
		return t.failed(r, &outbound.Error{
			Code: outbound.ErrStore, Effect: outbound.EffectApplied,
			Operation: reply.Operation, Command: reply.Command, RequestID: reply.RequestID,
			Err: errors.New("the effect was applied by an earlier call; only its recorded answer is gone"),
		})
	}
	resp := response(r, reply.StatusCode, reply.Header, reply.Body)
	describe(resp.Header, reply)
	resp.Header[HeaderEffect] = []string{outbound.EffectApplied.String()}
	return resp
}

// failed makes a response of an error: the provider's own answer where it is the
// reason, else one in its shape.
func (t *Transport) failed(r *http.Request, e *outbound.Error) *http.Response {
	status, providers := statusOf(e.Code)
	var resp *http.Response
	if a := e.Answer; providers && a != nil && a.StatusCode != 0 && json.Valid(a.Body) { // SDKs retry what is no JSON
		resp = response(r, a.StatusCode, a.Header, a.Body)
	} else {
		answer := t.shape(e, status)
		resp = response(r, answer.Status, answer.Header, answer.Body)
	}
	if e.Answer != nil {
		describe(resp.Header, e.Answer)
	}
	resp.Header.Set(HeaderError, string(e.Code))
	resp.Header.Set(HeaderEffect, e.Effect.String())
	if e.Code == outbound.ErrInvalid && e.Err != nil {
		resp.Header.Set(HeaderCause, strings.ToValidUTF8(e.Err.Error()[:min(len(e.Err.Error()), maxCause)], ""))
	}
	if wait, again := outbound.RetryAfter(e); again && e.RetryAfter > 0 {
		seconds := (wait + time.Second - 1) / time.Second
		resp.Header.Set(HeaderRetryAfter, strconv.FormatInt(int64(seconds), 10))
	}
	return resp
}

// statusOf is the status to answer an error with. In flight apart, an effect
// that may have happened is never a 4xx, which SDKs and their callers take for
// "not done". providers says that the provider's own answer may stand instead.
func statusOf(code outbound.Code) (status int, providers bool) {
	switch code {
	case outbound.ErrInFlight:
		return http.StatusConflict, false
	case outbound.ErrInvalid, outbound.ErrFingerprintConflict, outbound.ErrExpired, outbound.ErrAbandoned:
		return http.StatusBadRequest, false
	case outbound.ErrForbidden:
		return http.StatusForbidden, false
	case outbound.ErrStore, outbound.ErrOverloaded, outbound.ErrNewerRecord, outbound.ErrUnavailable:
		return http.StatusServiceUnavailable, false
	case outbound.ErrRejected:
		return http.StatusBadRequest, true
	case outbound.ErrRefused:
		return http.StatusPaymentRequired, true
	case outbound.ErrAuth:
		return http.StatusUnauthorized, true
	case outbound.ErrRateLimited:
		return http.StatusTooManyRequests, true
	}
	return http.StatusInternalServerError, false // nobody knows: uncertain, review, forgotten
}

// shape answers in the provider's shape.
func (t *Transport) shape(e *outbound.Error, status int) outbound.Answer {
	if refuser, ok := t.adapter.Codec().(httpadapter.Refuser); ok {
		if a := refuser.Refuse(e, status); a != nil {
			return *a
		}
	}
	type refusal struct {
		Code    outbound.Code `json:"code"`
		Message string        `json:"message"`
	}
	body, err := json.Marshal(map[string]refusal{"error": {e.Code, e.Error()}})
	if err != nil {
		body = []byte(`{"error":{}}`)
	}
	return outbound.Answer{Status: status, Header: []outbound.Field{{Name: "Content-Type", Value: "application/json"}}, Body: body}
}

// describe says what an answer is.
func describe(h http.Header, reply *outbound.Reply) {
	values := [...]string{string(reply.Label), string(reply.Evidence), string(reply.Origin)}
	for i, name := range [...]string{HeaderLabel, HeaderEvidence, HeaderOrigin} {
		if values[i] != "" {
			h[name] = values[i : i+1 : i+1]
		}
	}
}

// response makes a response to r. Request is set: SDKs look at it in their error
// texts.
func response(r *http.Request, status int, header []outbound.Field, body []byte) *http.Response {
	h := make(http.Header, len(header)+6)
	values := make([]string, len(header)) // most names have one value
	for i, f := range header {
		name := http.CanonicalHeaderKey(f.Name)
		switch {
		case name == "Content-Length":
		case h[name] != nil:
			h.Add(name, f.Value)
		default:
			values[i] = f.Value
			h[name] = values[i : i+1 : i+1]
		}
	}
	removeOurs(h)
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	answer := &http.Response{
		Status:     "200 OK",
		StatusCode: status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        h,
		Body:          newPayload(body),
		ContentLength: int64(len(body)),
		Request:       r,
	}
	if status != http.StatusOK {
		answer.Status = strconv.Itoa(status) + " " + http.StatusText(status)
	}
	return answer
}

// payload is an answer's body.
type payload struct{ bytes.Reader }

func newPayload(body []byte) *payload {
	p := &payload{}
	p.Reset(body)
	return p
}

// Close does nothing: there is nothing to release.
func (*payload) Close() error { return nil }
