package fakeprovider

import (
	"crypto/sha256"
	"time"
)

// keyID names a key inside the scope that the provider separates keys by.
type keyID struct{ scope, key string }

// keyEntry is what the provider knows of a key.
type keyEntry struct {
	fingerprint [32]byte // SHA-256, so that no parameters are kept
	running     bool
	saved       Saved
	expires     time.Time
}

// keys is the provider's key store. It is guarded by the fake's lock.
type keys struct {
	entries map[keyID]*keyEntry
	max     int
}

// get returns the entry of a key that is still remembered at now. A key whose
// request runs is remembered until that request ends.
func (k *keys) get(c *Call, now time.Time) *keyEntry {
	id := keyID{c.KeyScope, c.Key}
	e := k.entries[id]
	if e != nil && !e.running && !now.Before(e.expires) {
		delete(k.entries, id)
		return nil
	}
	return e
}

// differs reports whether a repeated key came with other parameters, where the
// provider compares them.
func (e *keyEntry) differs(c *Call) bool {
	return c.Fingerprint != "" && e.fingerprint != sha256.Sum256([]byte(c.Fingerprint))
}

// start notes that the key's request runs. It reports false when the store is
// full even without the keys that ran out.
func (k *keys) start(c *Call, now time.Time, requestID string) bool {
	if len(k.entries) >= k.max {
		k.prune(now)
		if len(k.entries) >= k.max {
			return false
		}
	}
	k.entries[keyID{c.KeyScope, c.Key}] = &keyEntry{
		fingerprint: sha256.Sum256([]byte(c.Fingerprint)),
		running:     true,
		saved:       Saved{At: now, RequestID: requestID},
		expires:     now.Add(c.Window),
	}
	return true
}

// finish saves the answer, or forgets the key where the answer is not kept.
func (k *keys) finish(c *Call, a Answer) {
	id := keyID{c.KeyScope, c.Key}
	if !a.Keep {
		delete(k.entries, id)
		return
	}
	if e := k.entries[id]; e != nil {
		e.running = false
		e.saved.Answer = a
	}
}

// overwrite makes the key remember a, whatever it remembered before. It reports
// false if the key's request is still running or the store is full.
func (k *keys) overwrite(c *Call, now time.Time, requestID string, a Answer) bool {
	e := k.get(c, now)
	if e == nil {
		if !k.start(c, now, requestID) {
			return false
		}
		e = k.entries[keyID{c.KeyScope, c.Key}]
	} else if e.running {
		return false
	}
	a.Keep = true
	e.running = false
	e.saved.Answer, e.saved.RequestID = a, requestID
	return true
}

func (k *keys) prune(now time.Time) {
	for id, e := range k.entries {
		if !e.running && !now.Before(e.expires) {
			delete(k.entries, id)
		}
	}
}
