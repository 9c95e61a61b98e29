package outbound

import (
	"context"
	"io"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Adapter speaks to one provider. For HTTP, implement httpadapter.Codec instead.
// Implementations are safe for concurrent use.
type Adapter interface {
	// Profile is called once, by New. An error says what is wrong with the
	// adapter's settings.
	Profile() (Profile, error)

	// Freeze fixes what is sent at every delivery of a command: it checks the
	// message, drops what does not belong to it (credentials, key, trace headers)
	// and stamps mark where the row says and the caller left the place free.
	Freeze(op replaysemantics.Operation, m Message, mark string) (Frozen, error)

	// Canonical writes what a message means to w, for the fingerprint: equal bytes
	// for equal meanings, without credentials, key, volatile fields and security
	// codes. Sensitive fields count only if sensitive is true. m is as the caller
	// gave it, without marks. A version's output never changes.
	Canonical(w io.Writer, version int, op replaysemantics.Operation, m Message, sensitive bool) error

	// Send delivers one or more times and returns what each attempt taught, in
	// order; at least one verdict. All deliveries carry the same bytes and key.
	Send(ctx context.Context, d *Delivery) []Verdict
}

// Profile is what an Adapter states about itself.
type Profile struct {
	Provider    string // "stripe". Never changed: it is part of every key.
	Account     string // The provider's own id of the account that calls default to.
	Mode        string // "live", "test", "sandbox".
	Operations  []replaysemantics.Operation
	Canonicals  []int // Versions of Canonical that this build reads; the first is written.
	Credentials bool  // Can send without a caller's request.

	// Recorded says that a record which was claimed before may be sent with the
	// request that it holds and no other, as where the ways to the provider do not
	// share their keys. A request that cannot be stored is then refused.
	Recorded bool
}

// Message is a request: as a caller gives it or, once frozen, never with a
// credential or the key, which are added at each delivery.
type Message struct {
	Method string // HTTP method, or "" for a gRPC unary call.
	Target string // Path and query below the adapter's base URL ("/v1/refunds"), an absolute URL on another of its hosts, or a gRPC full method.
	Header []Field
	Body   []byte
}

// Field is one header field.
type Field struct{ Name, Value string }

// Frozen is a message that is ready to be stored and sent.
type Frozen struct {
	Message   Message
	Sensitive bool // Fills a sensitive field: it is never stored, sealed or not.
}

// Delivery is the order to send.
type Delivery struct {
	Operation   replaysemantics.Operation
	Account     string // The provider's id, without the mode.
	Message     Message
	Key         keyderive.Key // Zero for an operation without a key.
	Credentials []Field       // The caller's own, for a drop-in; never stored. None: the adapter's.
	Resend      bool          // An earlier delivery of the command has an unknown effect.
	Retry       Retry
	MaxBody     int64 // Bytes of an answer.

	// Allow is asked right before each attempt, and refuses when lease or window
	// no longer live for a whole attempt. Its error ends the sending.
	Allow func() error
}

// Verdict is what one attempt teaches. The zero value is: unknown, nothing
// proved. Adapters judge each answer alone; the core folds verdicts, so that a
// None after an unknown delivery stays unknown.
type Verdict struct {
	// None counts as a proof only with the Code of one: Rejected, Refused, Auth,
	// RateLimited, Unavailable or Invalid.
	Effect Effect
	Code   Code // What kind of failure; "" when applied, and for unknown without more.

	// Evidence is set only where the provider gives a signal, and fixes the label.
	// Else the core labels by what it knows of other deliveries. A Label without
	// Evidence makes it give the weaker one.
	Label    Label
	Evidence Evidence

	Outcome      Outcome // Of an applied effect. Defaults to Done; a word that is none of ours is Pending.
	ExternalRef  string
	ObjectStatus string
	ProviderCode string
	RequestID    string
	RetryAfter   time.Duration
	Again        bool // Worth another attempt now.
	Look         bool // A resend teaches nothing more (already done, mismatch, replayed unknown): look up.

	Answer     *Answer // nil if none was read whole.
	Deliveries int     // Requests that may have reached the wire, net/http's hidden ones included; 0 beside None proves that nothing was written.
	Err        error
}

// Answer is a provider's answer as it came.
type Answer struct {
	Status int // HTTP or gRPC.
	Header []Field
	Body   []byte
}

// Finder is an optional ability of an Adapter.
type Finder interface {
	// Find looks the effect up by anything but a resend. An error is unknown.
	Find(ctx context.Context, l *Lookup) (Finding, error)
}

// BatchFinder is an optional ability of a Finder: one list of the provider answers
// many look-ups.
type BatchFinder interface {
	// FindAll looks up several effects of one operation and account. It returns one
	// finding for each look-up, in order; the zero Finding where it cannot tell. An
	// error is unknown for all.
	FindAll(ctx context.Context, ls []*Lookup) ([]Finding, error)
}

// Lookup is the order to find an effect.
type Lookup struct {
	Operation   replaysemantics.Operation
	Account     string
	Message     Message // Frozen; zero if it is not known any more.
	Key         keyderive.Key
	Mark        string
	ExternalRef string
	Answer      *Answer // The answer that led here, as one that links to the existing object; may be nil.
	Code        string  // Its ProviderCode.
	Credentials []Field
	FirstSentAt time.Time
	SentUntil   time.Time     // No request of ours was written after it.
	Horizon     time.Duration // One that was may be applied so long after SentUntil.
	MaxBody     int64         // Bytes of one answer.

	ahead time.Duration
	turns *turns
}

// Now is the ledger's time, by which FirstSentAt and SentUntil are told. Where
// nothing is known of the ledger's clock it is this machine's.
func (l *Lookup) Now() time.Time { return time.Now().Add(l.ahead).Round(0) }

// Turn waits until the reconciler's rate for the account allows one more request.
// An adapter calls it right before each request that a look-up makes; httpadapter
// does so for its codecs. In FindAll any one of the look-ups takes the turn of a
// request that serves many. An error, which comes too when no turn is left while the
// lease lives, ends the look-up as unknown. It is safe for concurrent use.
func (l *Lookup) Turn(ctx context.Context) error { return l.turns.take(ctx) }

// Objected tells that the provider wants to be asked less, as by a 429 or a 5xx:
// the rate is halved, and no turn comes before retryAfter is over. httpadapter
// calls it for its codecs. It is safe for concurrent use.
func (l *Lookup) Objected(retryAfter time.Duration) {
	if l.turns != nil {
		l.turns.objected(retryAfter)
	}
}

// Finding is a look-up's answer. The zero value is unknown.
//
// Absent is a proof only if the list was complete and consistent and included
// cancelled objects, the objects can neither be deleted nor lose the mark, and the
// credential was checked to be the record's account and mode. The core adds the
// rest: the last possible delivery is older than the operation's horizon, and no
// answer was a stored 500. Found needs our mark or key; a state without a mark
// counts only where the state itself is the goal.
type Finding struct {
	Effect       Effect   // Applied: found. None: absent, a proof; with Code ErrRefused: found in a final state that is not the goal.
	Code         Code     //
	Evidence     Evidence // ByLookup or ByStateGuard. Defaults to ByLookup.
	Outcome      Outcome
	ExternalRef  string
	ObjectStatus string
	ProviderCode string
	RequestID    string
	Answer       *Answer // In the shape of the operation's own success answer.
}

// Outcome is what the provider made of an applied effect. Applied is not paid.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Pending Outcome = "pending"
	Partial Outcome = "partial"
)
