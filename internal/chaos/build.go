package chaos

import (
	"crypto/sha256"
	"io"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// build is what tells a worker's program from one that is deployed beside it: what
// it reads and writes in the ledger.
type build struct {
	Canonicals []int    // Versions of fingerprints that it reads; the first is written. Defaults to both.
	Seals      []string // IDs of seal keys that it has; the first seals. Defaults to both.
}

const (
	lastYear = "2025"
	thisYear = "2026"
)

// The builds of a deploy, in the order in which they follow each other: each reads
// what the next one writes.
var (
	oldBuild  = build{[]int{1}, []string{lastYear}}
	middle    = build{[]int{1, 2}, []string{lastYear, thisYear}}
	nextBuild = build{[]int{2, 1}, []string{thisYear, lastYear}}
)

func (b build) orDefault() build {
	if len(b.Canonicals) == 0 {
		b.Canonicals = middle.Canonicals
	}
	if len(b.Seals) == 0 {
		b.Seals = middle.Seals
	}
	return b
}

// sealer is the ring of b's keys. A real key comes from a secret store.
func (b build) sealer() outbound.Sealer {
	var keys []outbound.SealKey
	for _, id := range b.orDefault().Seals {
		secret := sha256.Sum256([]byte(id))
		keys = append(keys, outbound.SealKey{ID: id, Bytes: secret[:]})
	}
	return outbound.Seal(keys[0], keys[1:]...)
}

// versioned is an adapter with the fingerprint versions of a build. Version 2 is
// made up: it says the same in other bytes, as a change of the rules would.
type versioned struct {
	*httpadapter.Adapter
	canonicals []int
}

// Profile implements outbound.Adapter.
func (a versioned) Profile() (outbound.Profile, error) {
	p, err := a.Adapter.Profile()
	p.Canonicals = a.canonicals
	return p, err
}

// Canonical implements outbound.Adapter.
func (a versioned) Canonical(w io.Writer, version int, op rs.Operation, m outbound.Message, sensitive bool) error {
	if version == 2 {
		if _, err := io.WriteString(w, "version 2\n"); err != nil {
			return err
		}
		version = 1
	}
	return a.Adapter.Canonical(w, version, op, m, sensitive)
}
