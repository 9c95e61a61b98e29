package fakeprovider

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Dialect is one provider's language and state machine. The engine calls
// RequestID, Recognise, Refuse and Finish from many goroutines at once; they
// must not touch the provider's objects. It calls Execute, Replay and Seed one
// at a time, so these may read and change objects without a lock of their own.
type Dialect interface {
	// RequestID formats the provider's id of the n-th request, such as "req_…".
	RequestID(n uint64) string

	// Recognise reads what a request asks for and with which key. It executes
	// nothing. An answer that needs neither key nor objects (bad credentials,
	// unknown route, malformed body) is given in Call.Answer.
	Recognise(r *Request) Call

	// Execute performs a call against the objects and says in Answer.Keep
	// whether the key remembers the answer. It checks everything before it
	// changes anything, and calls Tx.Effect once if it really changed something.
	// A decline or refusal has no effect.
	Execute(tx *Tx, c *Call) Answer

	// Replay answers a repeated key inside its window: with saved.Answer where
	// the provider stores first answers, or with the object's present state.
	Replay(tx *Tx, c *Call, saved Saved) Answer

	// Refuse words an answer that the engine decided on.
	Refuse(c *Call, why Refusal) Answer

	// Finish adds the headers that stand on every answer. The header is never nil.
	Finish(d Delivery, h http.Header)
}

// Seeder is a Dialect whose objects can be put in place without a request.
type Seeder interface {
	// Seed creates object and returns its id. It has no effect in the ledger.
	Seed(tx *Tx, object any) (id string, err error)
	// Seeds returns a zero value of every type that Seed takes, by the name the
	// admin handler knows it by.
	Seeds() map[string]any
}

// Namer is a Dialect that knows the names of all its operations: a fault for
// another one is refused, since it would never strike.
type Namer interface {
	// Operations returns the names that Recognise puts into Call.Operation.
	Operations() []string
}

// Request is a request as it arrived, read to its end.
type Request struct {
	ID     string // the provider's id of the request, as Dialect.RequestID words it
	Host   string // what the client called the provider, for links to itself
	Method string
	Path   string
	Query  url.Values
	Header http.Header
	Body   []byte
}

// Call is a recognised request.
type Call struct {
	// Operation is the name that faults, effects and the request log use:
	// "refund.create". Reads and token fetches have names too; a fault with no
	// operation matches only writes.
	Operation string
	Write     bool

	// Key is the raw idempotency key, "" for none. It is unique within KeyScope:
	// the account, the API or the call type that the provider separates keys by.
	Key      string
	KeyScope string
	// Account is whose objects the call is about; Event carries it.
	Account string
	// Window is how long the key is remembered, counted from its first execution.
	Window time.Duration
	// Fingerprint is compared when the key is repeated: another value is refused
	// as Mismatch. "" means that the provider does not compare. It may be as long
	// as the request; the engine keeps a hash.
	Fingerprint string
	// TakesKey says that the operation deduplicates by a key: a strict fake refuses
	// the call without one.
	TakesKey bool
	// KeepsFailures lets Fault.Stored save a failure under the key.
	KeepsFailures bool

	// Answer, where set, is given at once, before the key is looked at.
	Answer *Answer
	// Request is the request as it arrived.
	Request *Request
	// Args is whatever Recognise wants Execute to have.
	Args any
}

// Answer is a response before the engine sends it or lets it be lost.
type Answer struct {
	Status int
	Header http.Header // may be nil; Content-Type defaults to application/json
	Body   []byte      // never changed after it was returned
	// Keep says that the key remembers this answer. Otherwise the same key runs
	// the operation again.
	Keep bool
	// Object is the id of what the answer is about, for Replay.
	Object string
}

// Saved is what a key remembers.
type Saved struct {
	Answer    Answer
	At        time.Time // of the first execution, on the provider's clock
	RequestID string    // of the first execution
}

// Delivery is what Finish knows of one answered request.
type Delivery struct {
	Call      *Call
	RequestID string
	Status    int
	// Original is the id of the request that executed: RequestID itself for a
	// first execution, the first one's for a replay, "" where nothing executed.
	Original string
	Replayed bool
}

// Refusal is a reason that the engine has for not executing a call.
type Refusal string

// The reasons. A dialect has an answer for each.
const (
	InFlightConflict   Refusal = "in_flight"            // the key's request is still running
	Mismatch           Refusal = "mismatch"             // the key was used with other parameters
	RateLimited        Refusal = "rate_limit"           // 429
	LockTimedOut       Refusal = "lock_timeout"         // 429 at Stripe: the object is locked
	NotAuthenticated   Refusal = "unauthorized"         // 401
	Internal           Refusal = "internal"             // 500
	Unavailable        Refusal = "unavailable"          // 503
	FailedDependency   Refusal = "failed_dependency"    // 424
	TooLarge           Refusal = "too_large"            // the request's body is over the limit
	MemoryFull         Refusal = "memory_full"          // the fake holds as many keys as it may
	UnreadableEncoding Refusal = "unsupported_encoding" // a Content-Encoding the fake does not read
	KeyMissing         Refusal = "key_missing"          // the fake is strict and the call has no key
)

// Tx is one execution. It is valid only inside the method it was given to.
type Tx struct {
	// Now is the provider's clock.
	Now time.Time
	// RequestID is the provider's id of the executing request; "" when seeding.
	RequestID string

	fake *Fake
	call *Call
}

// Effect notes that the call really changed something: created object, moved
// money, sent a message. The engine counts it for the call's operation and key.
func (tx *Tx) Effect(object string) { tx.fake.ledger.effect(tx, object) }

// Event publishes an event about object, which must not change afterwards. The
// engine adds the time, the request and its key.
func (tx *Tx) Event(id, typ string, object json.RawMessage) {
	e := Event{ID: id, Type: typ, At: tx.Now, Object: object, RequestID: tx.RequestID}
	if tx.call != nil {
		e.Key, e.Account = tx.call.Key, tx.call.Account
	}
	tx.fake.publish(e)
}

// Events returns the published events that are still kept, oldest first. The
// slice must not be changed.
func (tx *Tx) Events() []Event { return tx.fake.events.all() }

// Token returns n random characters of alphabet. The sequence follows from the
// fake's seed.
func (tx *Tx) Token(n int, alphabet string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[tx.fake.rand.IntN(len(alphabet))]
	}
	return string(b)
}

// Event is something the provider tells its users.
type Event struct {
	ID        string
	Type      string
	At        time.Time
	Object    json.RawMessage // the object as it was then
	RequestID string
	Key       string // the raw key of the request, "" for none
	Account   string // the call's Account
}
