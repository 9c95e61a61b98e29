package keyderive

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/google/uuid"
)

// Key is a derived key. The zero value is no key; equal keys compare equal.
// Printing, formatting and marshalling it give a short hash, never the key, so
// that it may stand in a log line by accident, and so do structs that hold one.
// Only Raw gives the key away.
type Key struct {
	// Under the mask, because fmt prints an unexported field without asking its
	// methods.
	masked [keyLength]byte
}

// keyLength is the length of a key's text: a UUID.
const keyLength = 36

// mask hides the keys of this process from what prints structs by itself.
var mask = newMask()

func newMask() (m [keyLength]byte) {
	rand.Read(m[:]) // never fails
	return m
}

// keyOf returns the key whose text is raw: a UUID in lower case.
func keyOf(raw string) Key { return Key{masked: masked([keyLength]byte([]byte(raw)))} }

// masked puts text under the mask, and takes it out again.
func masked(text [keyLength]byte) [keyLength]byte {
	for i := range text {
		text[i] ^= mask[i]
	}
	return text
}

// Raw is what goes to the provider: 36 characters, a UUID of version 8; "" for
// the zero value. Never store or log it.
func (k Key) Raw() string {
	if k.IsZero() {
		return ""
	}
	text := masked(k.masked)
	return string(text[:])
}

// IsZero reports whether k is no key.
func (k Key) IsZero() bool { return k == Key{} }

// Hash is what a ledger stores in place of the key.
func (k Key) Hash() [16]byte {
	raw := masked(k.masked)
	if k.IsZero() {
		return hashOf(nil)
	}
	return hashOf(raw[:])
}

func hashOf(raw []byte) [16]byte {
	var text [64]byte
	sum := sha256.Sum256(append(append(text[:0], "samekey key hash\x00"...), raw...))
	return [16]byte(sum[:16])
}

// Day is the command's UTC day in days since 1970, which the key's first 16
// bits carry; 0 if the command carries none.
func (k Key) Day() int32 {
	if k.IsZero() {
		return 0
	}
	var b [2]byte
	raw := masked(k.masked)
	_, _ = hex.Decode(b[:], raw[:4]) // hex by construction
	return int32(binary.BigEndian.Uint16(b[:]))
}

// Mark is what is stamped on the object at the provider, so that a later
// search finds it: 36 lower-case hex digits, the day and the key's hash; "" for
// the zero value.
func (k Key) Mark() string {
	if k.IsZero() {
		return ""
	}
	return MarkOf(k.Day(), k.Hash())
}

// MarkOf is the mark of the record with this day and key hash.
func MarkOf(day int32, hash [16]byte) string {
	var b [18]byte
	binary.BigEndian.PutUint16(b[:], uint16(day))
	copy(b[2:], hash[:])
	var text [36]byte
	hex.Encode(text[:], b[:])
	return string(text[:])
}

// ParseMark reads a mark back: day and hash are the record's identity.
func ParseMark(mark string) (day int32, hash [16]byte, err error) {
	b, err := hex.DecodeString(mark)
	if err != nil || len(b) != 18 || hex.EncodeToString(b) != mark {
		return 0, hash, fmt.Errorf("%w: a mark has 36 lower-case hex digits; pass it as it was stamped", ErrInvalid)
	}
	return int32(binary.BigEndian.Uint16(b)), [16]byte(b[2:]), nil
}

// Parse reads a key that a provider sent back, as Stripe's events do. With Day
// and Hash it leads to its record. Text of another form than Raw's is an error:
// somebody else chose that key.
func Parse(raw string) (Key, error) {
	u, err := uuid.Parse(raw)
	if err != nil || u.String() != raw || u.Version() != 8 || u.Variant() != uuid.RFC4122 {
		return Key{}, fmt.Errorf("%w: not a derived key; pass what Key.Raw gave, unchanged", ErrInvalid)
	}
	return keyOf(raw), nil
}

// String returns a short hash of the key, the first digits of Hash.
func (k Key) String() string {
	if k.IsZero() {
		return "key:none"
	}
	h := k.Hash()
	return "key:" + hex.EncodeToString(h[:4])
}

// Format prints String, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { io.WriteString(f, k.String()) }

// MarshalText returns String, so that JSON and slog show no key.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
