package outbound

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-6b5e302b/samekey/recordstore"
)

// EffectOfRecord is what a record of the ledger says of its command's effect.
// lostBefore is when the ledger was restored from a backup, as recordstore.Restorer
// remembers it; zero: never.
func EffectOfRecord(rec recordstore.Record, lostBefore time.Time) Effect {
	return effectOf(rec, lostBefore)
}

// SealKeyID returns the ID of the SealKey that sealed a field of a record, and
// false where a Sealer of another kind did, or nothing is sealed.
func SealKeyID(sealed []byte) (string, bool) {
	if len(sealed) < 2 || sealed[0] != sealVersion {
		return "", false
	}
	n, rest := int(sealed[1]), sealed[2:]
	if n < 1 || n > 64 || len(rest) < n+12+16 { // nonce and tag of AES-256-GCM
		return "", false
	}
	if _, err := decodeMessage(sealed[1:]); err == nil { // PlainBodies: a request begins as an ID does
		return "", false
	}
	return string(rest[:n]), oneLine(string(rest[:n]), 64)
}

// Opened is what the sealed fields of a record say. Bodies hold what the caller and
// the provider wrote: show them only to those who may see it.
type Opened struct {
	Request *Message // As it was frozen, without key and credentials; nil: none is kept.
	Header  []Field  // Of the recorded answer.
	Body    []byte
}

// OpenRecord opens the sealed fields of a record, for tools that show records to
// people. The error says which field cannot be opened and holds nothing of it.
func OpenRecord(rec recordstore.Record, with Sealer) (Opened, error) {
	var o Opened
	b := bodies{with}
	var errs []error
	read := func(field string, sealed []byte, take func([]byte) error) {
		if len(sealed) == 0 {
			return
		}
		plain, err := b.open(rec.ID, field, sealed)
		if err == nil {
			err = take(plain)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("the record's %s cannot be opened: %w", field, err))
		}
	}
	read("request", rec.Request, func(plain []byte) error {
		m, err := decodeMessage(plain)
		o.Request = &m
		return err
	})
	read("header", rec.ResponseHeader, func(plain []byte) (err error) { o.Header, err = decodeFields(plain); return err })
	read("body", rec.ResponseBody, func(plain []byte) error { o.Body = plain; return nil })
	return o, errors.Join(errs...)
}
