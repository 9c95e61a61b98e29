// Package keyderive turns a command into the key a provider deduplicates by.
//
// It talks to nothing and can be used alone: a service that only wants stable
// keys under its present SDK needs this package and no ledger.
//
//	key, err := keyderive.Derive(keyderive.Input{
//		Provider: "stripe", Account: "acct_1Nv0FG/live",
//		Operation: "refund.create", CommandID: refund.CommandID,
//	})
//	params.SetIdempotencyKey(key.Raw())
//
// Derivation is deterministic and never changes: two processes, two regions
// and two ledgers that do not know of each other make the same key for the
// same command.
package keyderive

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Version names the derivation that Derive uses. A ledger stores it beside
// every record and pins it, so that a later derivation is noticed.
const Version = "1"

// ErrInvalid is wrapped by every error of this package: the input has to be
// corrected, trying again changes nothing.
var ErrInvalid = errors.New("keyderive: invalid")

// Input names one side effect. Two different inputs never give one key.
type Input struct {
	Scope     string // Owner of the resource (tenant, merchant); "" where there is only one.
	Provider  string // Required, as "stripe".
	Account   string // Required: the provider's own account id and, after the last slash, its mode: "acct_1Nv0FG/live".
	Operation string // Required: the name of the operation's row, as "refund.create".
	CommandID string // Required: 1 to 255 bytes, with a step as "ID/step"; compared byte for byte.
}

// Derive returns the key of in without a secret. The error wraps ErrInvalid and
// names the field that has to be corrected, never its value.
func Derive(in Input) (Key, error) { return Secret{}.Derive(in) }

// Derive returns the key of in under s. The error wraps ErrInvalid and names the
// field that has to be corrected, never its value.
func (s Secret) Derive(in Input) (Key, error) {
	key, err := s.Rederive(in, ScopeHash(in.Scope))
	if err != nil {
		return Key{}, err
	}
	if err := CheckID(in.CommandID); err != nil {
		return Key{}, err
	}
	return key, nil
}

// ScopeHash is what a ledger stores of a scope.
func ScopeHash(scope string) [32]byte { return sha256.Sum256([]byte(scope)) }

// Rederive makes the key of a stored record again, which holds only the hash of
// its scope. in.Scope is ignored. White space around the command ID, which Derive
// refuses, is taken as it was stored.
func (s Secret) Rederive(in Input, scope [32]byte) (Key, error) {
	account, mode, err := in.check()
	if err != nil {
		return Key{}, err
	}
	day, err := Day(in.CommandID)
	if err != nil {
		return Key{}, err
	}
	u := uuid.NewHash(s.hash(), uuid.Nil, lengthPrefixed(
		Version, string(scope[:]), in.Provider, account, mode, in.Operation, in.CommandID), 8)
	binary.BigEndian.PutUint16(u[:2], uint16(day))
	return keyOf(u.String()), nil
}

// check returns the account's id and its mode. The id may hold slashes, as the
// path of a Stripe-Context does.
func (in Input) check() (account, mode string, err error) {
	for _, f := range [...]struct{ name, value string }{
		{"Provider", in.Provider}, {"Account", in.Account}, {"Operation", in.Operation},
	} {
		if strings.TrimSpace(f.value) == "" || len(f.value) > 255 || !printable(f.value) {
			return "", "", fmt.Errorf("%w: Input.%s needs 1 to 255 bytes of UTF-8, not blank and without control characters", ErrInvalid, f.name)
		}
	}
	i := strings.LastIndexByte(in.Account, '/')
	if strings.TrimSpace(in.Account[:max(i, 0)]) == "" || strings.TrimSpace(in.Account[i+1:]) == "" {
		return "", "", fmt.Errorf("%w: Input.Account needs the provider's account id and a mode, as acct_1Nv0FG/live", ErrInvalid)
	}
	return in.Account[:i], in.Account[i+1:], checkStored(in.CommandID)
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// lengthPrefixed joins parts so that no two lists of parts give the same bytes.
func lengthPrefixed(parts ...string) []byte {
	n := 0
	for _, p := range parts {
		n += 4 + len(p)
	}
	b := make([]byte, 0, n)
	for _, p := range parts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}
