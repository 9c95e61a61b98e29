package outbound

import (
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
)

// Observation is what a provider reported by itself, as in a webhook: evidence,
// not an outcome. Provider packages make it of a verified event.
type Observation struct {
	Provider string // "stripe".
	Account  string // The provider's own account id; "" for the client's.
	Mode     string // "live", "test", "sandbox"; "" where the event does not say.

	// One of Key, Mark and Command leads to the record. Command needs Operations to
	// name one.
	Key     keyderive.Key
	Mark    string
	Command Command

	// Operations are those that an event of this type can be about; a record of
	// another operation is not touched.
	Operations []string

	EventID      string
	EventType    string // "refund.updated".
	ExternalRef  string // The object's id.
	ObjectStatus string // In the provider's words.
	Effect       Effect // What the event says of the effect: Applied; None for a refusal.
	Outcome      Outcome
	ProviderCode string // Of a refusal.
	At           time.Time
}
