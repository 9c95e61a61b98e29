package replaysemantics

import "time"

// Resend says what the same key gives a second time. The zero value is the
// cautious one: a row that states nothing is never sent twice.
type Resend string

// What a resend gives.
const (
	Never            Resend = ""                   // No key, or not known: at most once.
	Original         Resend = "original"           // The stored first answer.
	Latest           Resend = "latest"             // The object's present state.
	LatestOrRunAgain Resend = "latest_or_rerun"    // The present state after success, a new run after failure.
	ConflictWithLink Resend = "conflict_with_link" // An error that names the existing object.
)

// Failures says what a resend gives after a failure. The zero value is the
// cautious one: an operation whose failures are not known to be stored counts
// as run again, so that a decline on a resend is not final.
type Failures string

// What becomes of failures.
const (
	RunAgain Failures = ""
	Stored   Failures = "stored"
)

// Class decides how long records are kept. The zero value keeps longest.
type Class string

// The classes of risk.
const (
	Money        Class = "" // Charge, capture, refund, payout, transfer.
	Object       Class = "object"
	Notification Class = "notification"
)

// String returns the class's name; "money" for the zero value.
func (c Class) String() string {
	if c == Money {
		return "money"
	}
	return string(c)
}

// Place is where something stands in a message: a key, or the mark by which a
// later search finds the object.
type Place struct {
	Kind   PlaceKind
	Name   string
	Quoted bool // Of a key's header: the value is a structured-field string, in quotes (RFC 9651, section 3.3.3).
}

// PlaceKind says how a Place's name is read.
type PlaceKind string

// The kinds of places.
const (
	InHeader PlaceKind = "header"
	InForm   PlaceKind = "form"
	InJSON   PlaceKind = "json"
	InCustom PlaceKind = "custom"
)

// Header is a header field.
func Header(name string) Place { return Place{Kind: InHeader, Name: name} }

// QuotedHeader is a header field whose value stands in quotes, as IETF's draft of
// Idempotency-Key wants it. It is for keys.
func QuotedHeader(name string) Place { return Place{Kind: InHeader, Name: name, Quoted: true} }

// Form is a form field, as "metadata[samekey_command]".
func Form(field string) Place { return Place{Kind: InForm, Name: field} }

// JSON is a JSON pointer (RFC 6901), as "/sender_batch_header/sender_batch_id".
// A "*" stands for every element of an array.
func JSON(pointer string) Place { return Place{Kind: InJSON, Name: pointer} }

// Custom leaves the placing to the codec, as for GraphQL variables.
func Custom(name string) Place { return Place{Kind: InCustom, Name: name} }

// Operation is one row: everything that differs between providers, as data.
// Names are never changed or reused, since they are part of every key.
type Operation struct {
	Name   string // Required, as "refund.create".
	Class  Class  // Decides retention. Defaults to Money.
	Method string // "POST"; "" for a gRPC unary call.
	Path   string // Required: "/v1/refunds/{id}", or a gRPC full method; drop-in routes are matched with it.

	// Selector tells rows apart that share a route: the root field of a GraphQL
	// mutation, as "createIncident". A drop-in knows no row that has one.
	Selector string

	Keys     []Place       // Where the key goes, all of them. None: the operation has no key and Resend is Never.
	KeyMax   int           // Longest key the provider takes, in characters. Defaults to 255.
	Window   time.Duration // How long the provider keeps the key. 0 means unpublished: resent inside one Do only.
	Resend   Resend        // What the same key gives after a success.
	Failures Failures      // What the same key gives after a failure.

	Horizon              time.Duration // How long after the last possible delivery a look-up that finds nothing proves nothing. Defaults to 15 minutes.
	Lookup               string        // How the effect is found when the answer is lost, in words; "" means it cannot be.
	Absence              string        // What a look-up that finds nothing needs, to prove that there is no effect, in words; "" means that it proves nothing.
	ResendAfterAbsence   bool          // Without a key: a caller may ask for a resend after a proof of absence.
	ConclusiveEventTypes []string      // Webhook event types that settle a record without a look-up.

	Marks     []Place // Stamped at freezing, each only where the caller left it free.
	Volatile  []Place // Do not count in the fingerprint.
	Unordered []Place // JSON arrays or form lists whose order does not count in the fingerprint.
	Sensitive []Place // Card numbers and the like: a request that fills one is never stored, and it counts in the fingerprint only where the ledger has a secret.
	Codes     []Place // Security codes: sensitive, and never counted in the fingerprint.

	Facts []Fact // Required: where each fact was read.
}

// HasKey reports whether the provider deduplicates this operation by a key.
func (o Operation) HasKey() bool { return len(o.Keys) > 0 }

// Fact is the source of what a row states.
type Fact struct {
	States string // Required: what the source shows, as "window 24h".
	URL    string // Required: the source's https address.
	Read   string // Required: the day it was read, as 2026-11-30.
	Grade  Grade  // How it is known. Defaults to Unverified.
}

// Grade says how a fact is known.
type Grade string

// The grades, weakest first.
const (
	Unverified Grade = ""      // Nobody has shown it: a switch, never asserted.
	Reported   Grade = "issue" // A public thread.
	Documented Grade = "doc"   // The provider's documentation.
	Specified  Grade = "spec"  // The provider's published specification.
	SourceCode Grade = "src"   // Read in source code.
	Wire       Grade = "wire"  // A published exchange.
	Measured   Grade = "run"   // Measured by running it.
)
