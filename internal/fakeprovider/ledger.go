package fakeprovider

import (
	"crypto/sha256"
	"maps"
	"slices"
	"time"
)

// Effect is one thing that really happened at the provider.
type Effect struct {
	At        time.Time
	Operation string
	Object    string   // the id of what was created or changed
	KeyHash   [32]byte // SHA-256 of the key; zero for none
}

// Report is the ledger in one look.
type Report struct {
	Effects    map[string]int // by operation
	Total      int
	Duplicates int // effects beyond the first of one operation under one key
	Requests   int
}

// LogEntry is one request as the provider saw it. It holds no key and no body.
type LogEntry struct {
	At        time.Time
	Method    string
	Path      string
	Operation string
	KeyHash   [32]byte // SHA-256 of the key; zero for none
	BodyHash  [32]byte // SHA-256 of the body's bytes
	Delivery  int      // 1 for the first request with this key; 0 without a key
	RequestID string
	Status    int // of the answer; 0 while there is none, and for a dropped connection
	Replayed  bool
	Fault     Kind // "" for none
}

// keyCount is what the ledger knows of one key.
type keyCount struct {
	deliveries int
	effects    map[string]int // by operation
}

// ledger counts what happened. It is guarded by the fake's lock.
type ledger struct {
	byOperation map[string]int
	arrived     map[string]int
	total       int
	duplicates  int
	requests    int
	byKey       map[[32]byte]*keyCount
	keyOrder    []([32]byte) // oldest first, so that byKey stays bounded
	maxKeys     int
	effects     ring[Effect]
	log         ring[*LogEntry]
}

func newLedger(maxKeys, maxLog int) *ledger {
	return &ledger{
		byOperation: map[string]int{},
		arrived:     map[string]int{},
		byKey:       map[[32]byte]*keyCount{},
		maxKeys:     maxKeys,
		effects:     ring[Effect]{max: maxLog},
		log:         ring[*LogEntry]{max: maxLog},
	}
}

func hashKey(key string) (h [32]byte) {
	if key == "" {
		return h
	}
	return sha256.Sum256([]byte(key))
}

func (l *ledger) key(h [32]byte) *keyCount {
	k := l.byKey[h]
	if k == nil {
		if len(l.keyOrder) >= l.maxKeys {
			delete(l.byKey, l.keyOrder[0])
			l.keyOrder = l.keyOrder[1:]
		}
		k = &keyCount{}
		l.byKey[h] = k
		l.keyOrder = append(l.keyOrder, h)
	}
	return k
}

func (l *ledger) arrive(e *LogEntry, keyed bool) {
	l.requests++
	l.arrived[e.Operation]++
	if keyed {
		k := l.key(e.KeyHash)
		k.deliveries++
		e.Delivery = k.deliveries
	}
	l.log.add(e)
}

func (l *ledger) effect(tx *Tx, object string) {
	if tx.call == nil {
		return // seeding is no effect
	}
	op := tx.call.Operation
	h := hashKey(tx.call.Key)
	l.total++
	l.byOperation[op]++
	if tx.call.Key != "" {
		k := l.key(h)
		if k.effects == nil {
			k.effects = make(map[string]int, 1)
		}
		if k.effects[op]++; k.effects[op] > 1 {
			l.duplicates++
		}
	}
	l.effects.add(Effect{At: tx.Now, Operation: op, Object: object, KeyHash: h})
}

// Effects returns how many effects operation has had; "" counts all.
func (f *Fake) Effects(operation string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if operation == "" {
		return f.ledger.total
	}
	return f.ledger.byOperation[operation]
}

// EffectsOfKey returns how many effects a raw key has had in all operations.
// The oldest keys are forgotten beyond Options.MaxKeys.
func (f *Fake) EffectsOfKey(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	if k := f.ledger.byKey[hashKey(key)]; k != nil {
		for _, c := range k.effects {
			n += c
		}
	}
	return n
}

// EffectList returns the last effects, oldest first, at most Options.MaxLog.
func (f *Fake) EffectList() []Effect {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ledger.effects.all())
}

// Requests returns the last requests of operation, oldest first, at most
// Options.MaxLog over all operations. "" returns all.
func (f *Fake) Requests(operation string) []LogEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []LogEntry
	for _, e := range f.ledger.log.all() {
		if operation == "" || e.Operation == operation {
			out = append(out, *e)
		}
	}
	return out
}

// Events returns the events that are still kept, oldest first.
func (f *Fake) Events() []Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events.all())
}

// Report returns the counts of the ledger.
func (f *Fake) Report() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.ledger
	return Report{Effects: maps.Clone(l.byOperation), Total: l.total, Duplicates: l.duplicates, Requests: l.requests}
}

// ring keeps the last max items.
type ring[T any] struct {
	items []T
	max   int
}

func (r *ring[T]) add(item T) {
	if len(r.items) >= 2*r.max {
		r.items = slices.Clone(r.items[len(r.items)-r.max+1:])
	}
	r.items = append(r.items, item)
}

func (r *ring[T]) all() []T {
	return r.items[max(0, len(r.items)-r.max):]
}
