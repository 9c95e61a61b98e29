package httpadapter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Credential is a Config.Authorize for a provider that wants a secret in one
// header: "Authorization", behind the prefix "Bearer ". A caller's own credentials
// go before it. Without a secret, calls that bring none are refused: see
// Config.NeedsCaller.
func Credential(header, prefix, secret string) func(context.Context, string, []outbound.Field, *http.Request) error {
	return func(_ context.Context, _ string, own []outbound.Field, r *http.Request) error {
		if own == nil && secret == "" {
			return fmt.Errorf("%w: the adapter has no credentials", outbound.ErrInvalid)
		}
		if own == nil {
			r.Header.Set(header, prefix+secret)
		}
		for _, f := range own {
			r.Header.Set(f.Name, f.Value)
		}
		return nil
	}
}

// BodyCredential is a credential that stands in the body of every write. It is put
// in at each attempt and stored nowhere; what a caller has put there is taken out,
// and does not count in the fingerprint. Look-ups do not carry it.
type BodyCredential struct {
	Place rs.Place // Of a form or of JSON.

	// Value returns the credential of an account; "" is none, which is an
	// outbound.ErrInvalid. Its errors are read as those of Config.Authorize.
	Value func(ctx context.Context, account string) (string, error)
}

// fault says what is wrong with b, "" if nothing is.
func (b *BodyCredential) fault() string {
	switch {
	case b == nil:
		return ""
	case b.Value == nil:
		return "it needs a Value"
	case b.Place.Kind != rs.InForm && b.Place.Kind != rs.InJSON || strings.Contains(b.Place.Name, "*"):
		return "its Place is one of a form or of JSON"
	}
	return ""
}

// placeCredential puts the credential into a body.
func (a *Adapter) placeCredential(account string, r *http.Request, body []byte) (with []byte, secret string, err error) {
	b := a.cfg.BodyCredential
	if secret, err = b.Value(r.Context(), account); err != nil {
		return nil, "", cleanError(r.Context(), err)
	}
	if secret == "" {
		return nil, "", fmt.Errorf("%w: the adapter has no credentials", outbound.ErrInvalid)
	}
	if with, err = placeInBody(r.Header.Get("Content-Type"), body, b.Place, secret); err != nil {
		return nil, "", errors.New("the credential found no place")
	}
	return with, secret, nil
}

// neverStored are the places of a body that are filled at each attempt.
func (a *Adapter) neverStored(op rs.Operation) []rs.Place {
	if a.cfg.BodyCredential == nil {
		return op.Keys
	}
	return append(slices.Clone(op.Keys), a.cfg.BodyCredential.Place)
}

// secretsIn are the key and the credential in the body of a caller's own request,
// which is not read where it is malformed.
func (a *Adapter) secretsIn(op rs.Operation, r *http.Request, body []byte) (secrets []string) {
	m := outbound.Message{Header: []outbound.Field{{Name: "Content-Type", Value: r.Header.Get("Content-Type")}}, Body: body}
	if key, err := a.keyIn(op, r.Header, m); err == nil {
		secrets = append(secrets, key)
	}
	if b := a.cfg.BodyCredential; b != nil {
		if c, err := readContent(m.Header[0].Value, body); err == nil {
			secrets = append(secrets, c.value(b.Place))
		}
	}
	return secrets
}

// inHeader is a key as a header carries it. A key holds neither quotes nor
// backslashes, which a structured-field string would escape.
func inHeader(place rs.Place, key string) string {
	if place.Quoted {
		return `"` + key + `"`
	}
	return key
}

// fromHeader is the key that a header carries.
func fromHeader(place rs.Place, value string) string {
	if n := len(value); place.Quoted && n >= 2 && value[0] == '"' && value[n-1] == '"' {
		return value[1 : n-1]
	}
	return value
}
