package keyderive

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// minSecret is the shortest secret, in bytes.
const minSecret = 32

// Secret keeps guessable command IDs from being confirmed by somebody who sees
// keys. One ledger has one secret, or none, for ever: it is never rotated, since
// another secret makes other keys. The zero value derives without a secret.
//
// Printing, formatting and marshalling a Secret give its fingerprint, and so do
// structs that hold one. It is safe for concurrent use.
type Secret struct {
	raw *string // behind a pointer, because fmt does not follow one in an unexported field
}

// NewSecret returns the secret with these bytes, at least 32 random ones. It
// keeps no reference to b.
func NewSecret(b []byte) (Secret, error) {
	if len(b) < minSecret {
		return Secret{}, fmt.Errorf("%w: a secret needs at least %d random bytes, this one has %d; the zero Secret stands for none", ErrInvalid, minSecret, len(b))
	}
	raw := string(b)
	return Secret{raw: &raw}, nil
}

// IsZero reports whether s is no secret.
func (s Secret) IsZero() bool { return s.raw == nil }

// Fingerprint tells secrets apart without showing them: 16 hex digits, or "none"
// for no secret. A ledger pins it at its first use.
func (s Secret) Fingerprint() string {
	if s.IsZero() {
		return "none"
	}
	h := s.hash()
	io.WriteString(h, "samekey secret fingerprint") // a hash never returns an error
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// hash returns HMAC-SHA256 under s, and SHA-256 without a secret.
func (s Secret) hash() hash.Hash {
	if s.IsZero() {
		return sha256.New()
	}
	return hmac.New(sha256.New, []byte(*s.raw))
}

// String returns the fingerprint.
func (s Secret) String() string { return "secret:" + s.Fingerprint() }

// Format prints String, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText returns String, so that JSON and slog show no secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
