package providertest

import (
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// A dialect teaches the fakes' engine one provider: its routes, where its key
// stands, what its answers look like. The engine does the rest: keys and their
// windows, in-flight conflicts, mismatches, replays, faults, the clock, and the
// count of what really happened. JSONDialect makes a dialect of a description;
// the types below are for providers that need more. They are those of the
// engine, under names that packages outside of this module can use.
type (
	// Dialect is one provider's language and state machine:
	//
	//	RequestID(n uint64) string                      // the provider's id of the n-th request
	//	Recognise(r *Received) Call                     // what a request asks for, and with which key
	//	Execute(tx *Tx, c *Call) Answer                 // performs it
	//	Replay(tx *Tx, c *Call, saved Saved) Answer     // answers a repeated key inside its window
	//	Refuse(c *Call, why Refusal) Answer             // words an answer that the engine decided on
	//	Finish(d Delivery, h http.Header)               // adds the headers that stand on every answer
	//
	// The engine calls RequestID, Recognise, Refuse and Finish from many goroutines
	// at once; they must not touch the provider's objects. It calls Execute, Replay
	// and Seed one at a time, so these may read and change objects without a lock.
	//
	// Recognise executes nothing. An answer that needs neither key nor objects (bad
	// credentials, unknown route, malformed body) goes into Call.Answer. Execute
	// checks everything before it changes anything, and calls Tx.Effect once if it
	// really changed something; a decline has no effect. Replay answers with
	// saved.Answer where the provider stores first answers, or with the object's
	// present state. Refuse has an answer for every Refusal.
	Dialect = fakeprovider.Dialect

	// Namer is a Dialect that knows its operations: Operations() []string. With it a
	// fault for another operation fails the test, since it would never strike.
	Namer = fakeprovider.Namer

	// Seeder is a Dialect whose objects can be put in place without a request:
	// Seed(tx *Tx, object any) (id string, err error), and Seeds() map[string]any,
	// a zero value of every type that Seed takes, by name.
	Seeder = fakeprovider.Seeder

	// Notifier is a Dialect whose provider delivers webhooks. The engine calls
	// Webhook from many goroutines at once:
	//
	//	Register(e *Endpoint, random func(n int, alphabet string) string) error // fills in ID, and Secret or Authority
	//	Webhook(e Event, to Endpoint, at time.Time) (Webhook, error)            // makes and signs one delivery
	Notifier = fakeprovider.Notifier

	// Received is a request as it arrived, read to its end: ID (by RequestID), Host,
	// Method, Path, Query, Header, Body.
	Received = fakeprovider.Request

	// Call is a recognised request:
	//
	//	Operation     string        // as the adapter's row names it, "refund.create"; reads have names too
	//	Write         bool          // a fault without an operation matches only writes
	//	Key           string        // raw, "" for none
	//	KeyScope      string        // what the provider separates keys by, as its account; the key is unique in it
	//	Account       string        // whose objects the call is about
	//	Window        time.Duration // how long the key is remembered, from its first execution
	//	Fingerprint   string        // another value under a known key is a Mismatch; "": the provider does not compare
	//	TakesKey      bool          // a strict fake refuses the call without a key
	//	KeepsFailures bool          // lets Fault.Stored save a failure under the key
	//	Answer        *Answer       // given at once, before the key is looked at; nil: none
	//	Request       *Received     // set by the engine
	//	Args          any           // whatever Recognise wants Execute to have
	Call = fakeprovider.Call

	// Answer is a response before it is sent or lost: Status; Header, which may be
	// nil (Content-Type defaults to application/json); Body; Keep, whether the key
	// remembers it (otherwise the same key runs the operation again); Object, the
	// id of what it is about, for Replay.
	Answer = fakeprovider.Answer

	// Saved is what a key remembers: Answer, and of the first execution its time At,
	// on the provider's clock, and its RequestID.
	Saved = fakeprovider.Saved

	// Delivery is what Finish knows of one answered request: Call, RequestID,
	// Status, Original (the id of the request that executed, "" where nothing did)
	// and Replayed.
	Delivery = fakeprovider.Delivery

	// Tx is one execution, valid inside the method it was given to: Now (the
	// provider's clock), RequestID, and methods.
	//
	//	Effect(object string)                            // the call really changed this object: counted
	//	Event(id, typ string, object json.RawMessage)    // publishes an event about it
	//	Events() []Event                                 // what was published, oldest first
	//	Token(n int, alphabet string) string             // random characters that follow from the seed
	Tx = fakeprovider.Tx

	// Event is something the provider tells its users: ID, Type, At, Object (JSON, as
	// it was then), RequestID, Key and Account.
	Event = fakeprovider.Event

	// Refusal is a reason that the engine has for not executing a call.
	Refusal = fakeprovider.Refusal
)

// The reasons of the engine. A dialect has an answer for each.
const (
	InFlightConflict   = fakeprovider.InFlightConflict   // The key's request is still running.
	Mismatch           = fakeprovider.Mismatch           // The key was used with other parameters.
	RateLimited        = fakeprovider.RateLimited        // 429.
	LockTimedOut       = fakeprovider.LockTimedOut       // 429 at Stripe: the object is locked.
	NotAuthenticated   = fakeprovider.NotAuthenticated   // 401.
	Internal           = fakeprovider.Internal           // 500.
	Unavailable        = fakeprovider.Unavailable        // 503.
	FailedDependency   = fakeprovider.FailedDependency   // 424.
	TooLarge           = fakeprovider.TooLarge           // The request's body is over the engine's limit.
	MemoryFull         = fakeprovider.MemoryFull         // The fake holds as many keys as it may.
	UnreadableEncoding = fakeprovider.UnreadableEncoding // A Content-Encoding that the engine does not read.
	KeyMissing         = fakeprovider.KeyMissing         // The fake is strict and the call has no key.
)

// New starts a fake that speaks the dialect which newDialect makes; it is called
// again at each Reset, for empty state. Options.Lenient, Stripe and PayPal are
// not for it.
func New(tb testing.TB, newDialect func() Dialect, opts *Options) *Fake {
	tb.Helper()
	return start(tb, valueOf(opts), newDialect)
}
