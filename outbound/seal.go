package outbound

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Sealer protects bodies before the ledger sees them. A Tink AEAD is one.
// Implementations are safe for concurrent use.
type Sealer interface {
	// Encrypt seals plaintext and binds it to associatedData.
	Encrypt(plaintext, associatedData []byte) ([]byte, error)

	// Decrypt opens what Encrypt sealed with the same associatedData; anything
	// else is an error.
	Decrypt(ciphertext, associatedData []byte) ([]byte, error)
}

// SealKey is one AES-256 key of a sealer; ID is stored beside what it sealed.
type SealKey struct {
	ID    string // 1 to 64 bytes, in clear.
	Bytes []byte // 32.
}

// String returns the key's ID, never its bytes.
func (k SealKey) String() string { return fmt.Sprintf("seal key %q", k.ID) }

// Format prints String, whatever the verb.
func (k SealKey) Format(f fmt.State, _ rune) { io.WriteString(f, k.String()) }

// MarshalText returns String, so that JSON and slog show no key.
func (k SealKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Seal seals with current (AES-256-GCM) and opens what older sealed. A key of
// another length is an error of New, which tries every sealer once.
func Seal(current SealKey, older ...SealKey) Sealer {
	r := &ring{current: current.ID, keys: make(map[string]cipher.AEAD)}
	for _, k := range append([]SealKey{current}, older...) {
		if k.ID == "" || len(k.ID) > 64 || len(k.Bytes) != 32 {
			r.err = errors.Join(r.err, fmt.Errorf("SealKey %q needs an ID of 1 to 64 bytes and 32 bytes of key, it has %d", k.ID, len(k.Bytes)))
			continue
		}
		if r.keys[k.ID] != nil {
			r.err = errors.Join(r.err, fmt.Errorf("two SealKeys have the ID %q", k.ID))
			continue
		}
		block, err := aes.NewCipher(k.Bytes)
		if err == nil {
			r.keys[k.ID], err = cipher.NewGCM(block)
		}
		r.err = errors.Join(r.err, err)
	}
	return r
}

// ring writes: length of the key's ID, ID, nonce, ciphertext.
type ring struct {
	current string
	keys    map[string]cipher.AEAD
	err     error
}

func (r *ring) Encrypt(plaintext, associatedData []byte) ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	return r.appendSealed(nil, plaintext, associatedData), nil
}

// appendSealed is Encrypt behind b, for a ring without errors.
func (r *ring) appendSealed(b, plaintext, associatedData []byte) []byte {
	aead := r.keys[r.current]
	head := len(b) + 1 + len(r.current) + aead.NonceSize()
	out := slices.Grow(b, head-len(b)+len(plaintext)+aead.Overhead())
	out = append(append(out, byte(len(r.current))), r.current...)
	nonce := out[len(out):head]
	rand.Read(nonce) // never fails
	return aead.Seal(out[:head], nonce, plaintext, associatedData)
}

func (r *ring) Decrypt(ciphertext, associatedData []byte) ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	if len(ciphertext) == 0 || len(ciphertext) < 1+int(ciphertext[0]) {
		return nil, errNotSealed
	}
	id, rest := string(ciphertext[1:1+ciphertext[0]]), ciphertext[1+ciphertext[0]:]
	aead := r.keys[id]
	if aead == nil {
		return nil, fmt.Errorf("no SealKey with the ID %q was given", id)
	}
	if len(rest) < aead.NonceSize() {
		return nil, errNotSealed
	}
	return aead.Open(nil, rest[:aead.NonceSize()], rest[aead.NonceSize():], associatedData)
}

var errNotSealed = errors.New("not sealed by this sealer")

// PlainBodies keeps bodies readable in the ledger.
func PlainBodies() Sealer { return plainBodies{} }

type plainBodies struct{}

func (plainBodies) Encrypt(b, _ []byte) ([]byte, error) { return b, nil }
func (plainBodies) Decrypt(b, _ []byte) ([]byte, error) { return b, nil }

// NoBodies keeps none: then only a caller with the same input can resend, and a
// replay is a look-up.
func NoBodies() Sealer { return noBodies{} }

type noBodies struct{}

func (noBodies) Encrypt(_, _ []byte) ([]byte, error) { return nil, errNotSealed }
func (noBodies) Decrypt(_, _ []byte) ([]byte, error) { return nil, errNotSealed }

// sealVersion is the format of sealed fields: this byte, then what the Sealer
// made. A build that meets a higher one leaves the record alone.
const sealVersion = 1

// bodies seals and opens the fields of records.
type bodies struct{ sealer Sealer } // nil: none are kept

func newBodies(s Sealer, ledger recordstore.Store) (bodies, error) {
	if s == nil {
		if isDurable(ledger) {
			return bodies{}, errors.New("a durable ledger needs a decision about bodies: set Options.Bodies to Seal(key), PlainBodies() or NoBodies()")
		}
		s = PlainBodies()
	}
	if _, none := s.(noBodies); none {
		return bodies{}, nil
	}
	b := bodies{s}
	sealed, err := b.seal(recordstore.ID{}, "probe", []byte("probe"))
	if err != nil {
		return b, fmt.Errorf("Options.Bodies cannot seal: %w", err)
	}
	if got, err := b.open(recordstore.ID{}, "probe", sealed); err != nil || string(got) != "probe" {
		return b, errors.New("Options.Bodies does not open what it sealed")
	}
	return b, nil
}

// seal returns nil where no bodies are kept.
func (b bodies) seal(id recordstore.ID, field string, plain []byte) (sealed []byte, err error) {
	if b.sealer == nil {
		return nil, nil
	}
	if r, ours := b.sealer.(*ring); ours && r.err == nil {
		return r.appendSealed([]byte{sealVersion}, plain, b.associated(id, field)), nil
	}
	defer spare("the sealer", &err)
	sealed, err = b.sealer.Encrypt(plain, b.associated(id, field))
	if err != nil {
		return nil, err
	}
	return append(append(make([]byte, 0, 1+len(sealed)), sealVersion), sealed...), nil
}

// sealEncoded is seal for what encode appends, which is not copied again where the
// ledger may read it.
func (b bodies) sealEncoded(id recordstore.ID, field string, size int, encode func([]byte) []byte) ([]byte, error) {
	if b.sealer == nil {
		return nil, nil
	}
	encoded := encode(append(make([]byte, 0, 1+size), sealVersion))
	if _, plain := b.sealer.(plainBodies); plain {
		return encoded, nil
	}
	return b.seal(id, field, encoded[1:])
}

func (b bodies) open(id recordstore.ID, field string, sealed []byte) (plain []byte, err error) {
	if b.sealer == nil || len(sealed) == 0 || sealed[0] != sealVersion {
		return nil, errNotSealed
	}
	defer spare("the sealer", &err)
	return b.sealer.Decrypt(sealed[1:], b.associated(id, field))
}

// associated binds a sealed field to its record and place, so that nobody can
// move it to another.
func (b bodies) associated(id recordstore.ID, field string) []byte {
	if _, plain := b.sealer.(plainBodies); plain {
		return nil // it looks at none
	}
	data := binary.BigEndian.AppendUint32(make([]byte, 0, 20+len(field)), uint32(id.Day))
	return append(append(data, id.KeyHash[:]...), field...)
}

// encodeFields and encodeMessage are the plaintexts: each part with its length.
func encodeFields(b []byte, fields []Field) []byte {
	b = binary.AppendUvarint(b, uint64(len(fields)))
	for _, f := range fields {
		b = appendPart(appendPart(b, f.Name), f.Value)
	}
	return b
}

// sizeOf is the most that fields take when encoded.
func sizeOf(fields []Field) int {
	size := binary.MaxVarintLen32
	for _, f := range fields {
		size += 2*binary.MaxVarintLen32 + len(f.Name) + len(f.Value)
	}
	return size
}

func encodeMessage(b []byte, m *Message) []byte {
	b = appendPart(appendPart(b, m.Method), m.Target)
	return appendPart(encodeFields(b, m.Header), m.Body)
}

// sizeOfMessage is the most that m takes when encoded.
func sizeOfMessage(m *Message) int {
	return 3*binary.MaxVarintLen32 + len(m.Method) + len(m.Target) + len(m.Body) + sizeOf(m.Header)
}

func appendPart[T string | []byte](b []byte, part T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// decoder reads what was encoded; after an error all it reads is empty.
type decoder struct {
	r   *bytes.Reader
	err error
}

func (d *decoder) number() int {
	n, err := binary.ReadUvarint(d.r)
	if err != nil || n > uint64(d.r.Len()) {
		d.err = errNotSealed
		return 0
	}
	return int(n)
}

func (d *decoder) part() []byte {
	b := make([]byte, d.number())
	if _, err := d.r.Read(b); err != nil && len(b) > 0 {
		d.err = errNotSealed
	}
	return b
}

func (d *decoder) fields() []Field {
	n := d.number()
	fields := make([]Field, 0, n)
	for range n {
		fields = append(fields, Field{string(d.part()), string(d.part())})
	}
	return fields
}

func decodeFields(b []byte) ([]Field, error) {
	d := decoder{r: bytes.NewReader(b)}
	return d.fields(), d.err
}

func decodeMessage(b []byte) (Message, error) {
	d := decoder{r: bytes.NewReader(b)}
	m := Message{Method: string(d.part()), Target: string(d.part()), Header: d.fields(), Body: d.part()}
	return m, d.err
}
