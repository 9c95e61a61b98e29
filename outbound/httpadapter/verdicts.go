package httpadapter

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// ByStatus is the verdict on an error of a provider that uses statuses as RFC 9110
// defines them; a codec judges first what means more to its provider. 422 proves
// nothing here: some answer it to a key that was used for something else.
func ByStatus(status int) outbound.Verdict {
	none := func(code outbound.Code) outbound.Verdict {
		return outbound.Verdict{Effect: outbound.EffectNone, Code: code, Again: code == outbound.ErrRateLimited}
	}
	switch status {
	case http.StatusPaymentRequired:
		return none(outbound.ErrRefused)
	case http.StatusUnauthorized:
		return none(outbound.ErrAuth)
	case http.StatusTooManyRequests:
		return none(outbound.ErrRateLimited)
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusNotAcceptable, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType:
		return none(outbound.ErrRejected)
	}
	return outbound.Verdict{Again: true}
}

// Word returns s if it has the form of a code or an id (letters, digits and
// ".:_-", at most 255 of them), and "" else. What a verdict says in clear goes
// through it, so that text which may repeat the request is none. The key and
// credentials are taken out later.
func Word(s string) string {
	other := func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune(".:_-", r)
	}
	if len(s) > 255 || strings.ContainsFunc(s, other) {
		return ""
	}
	return s
}

// Plain is a Codec for services of no particular provider: statuses mean what RFC
// 9110 says, a success is a JSON object, with "id" and "status" where it has
// them, and an error may have a "code".
type Plain struct {
	// NoBody names the operations whose success may come without a body. Of the
	// others such an answer proves nothing.
	NoBody []string
}

// Judge says what one answer teaches, taken alone. 202 is pending.
func (p Plain) Judge(x *Exchange) outbound.Verdict {
	var a struct{ ID, Status, Code JSONWord }
	malformed := json.Unmarshal(x.Body, &a) != nil
	bare := len(x.Body) == 0 && slices.Contains(p.NoBody, x.Operation.Name)
	v := ByStatus(x.Status)
	switch {
	case x.Status < 300 && malformed && !bare:
		v = outbound.Verdict{Again: true}
	case x.Status < 300:
		v = outbound.Verdict{Effect: outbound.EffectApplied, ExternalRef: string(a.ID), ObjectStatus: string(a.Status)}
		if x.Status == http.StatusAccepted {
			v.Outcome = outbound.Pending
		}
	default:
		v.ProviderCode = string(a.Code)
	}
	v.RequestID = Word(x.Header.Get("X-Request-Id"))
	return v
}

// JSONWord is a Word in a JSON answer: a string or a number of its form, and "" for
// anything else.
type JSONWord string

// UnmarshalJSON reads any value; there are no errors.
func (w *JSONWord) UnmarshalJSON(b []byte) error {
	if *w = JSONWord(Word(strings.Trim(string(b), `"`))); *w == "null" {
		*w = ""
	}
	return nil
}

// FindFunc looks one effect up, as Finder does.
type FindFunc func(ctx context.Context, get Get, l *outbound.Lookup) (outbound.Finding, error)

// Find calls f.
func (f FindFunc) Find(ctx context.Context, get Get, l *outbound.Lookup) (outbound.Finding, error) {
	return f(ctx, get, l)
}

// WithFind returns c with f as its ability to look up; c itself where f is nil. Of
// other abilities c has none there.
func WithFind(c Codec, f FindFunc) Codec {
	if f == nil {
		return c
	}
	return struct {
		Codec
		FindFunc
	}{c, f}
}

// Found is what c finds out from an object that a look-up has read; body has the
// shape of the operation's own success.
func Found(c Codec, op rs.Operation, body []byte) outbound.Finding {
	v := c.Judge(&Exchange{Operation: op, Status: http.StatusOK, Header: http.Header{}, Body: body})
	if v.Effect == outbound.EffectUnknown {
		return outbound.Finding{}
	}
	return outbound.Finding{
		Effect: v.Effect, Code: v.Code, Outcome: v.Outcome,
		ExternalRef: v.ExternalRef, ObjectStatus: v.ObjectStatus, ProviderCode: v.ProviderCode,
		Answer: &outbound.Answer{
			Status: http.StatusOK, Header: []outbound.Field{{Name: "Content-Type", Value: jsonType}}, Body: body,
		},
	}
}
