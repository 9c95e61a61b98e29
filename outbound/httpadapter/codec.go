// Package httpadapter is for authors of HTTP adapters: a table of operations
// and a Codec make an outbound.Adapter. To put samekey under an SDK, use dropin.
package httpadapter

import (
	"context"
	"net/http"
	"net/url"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Codec reads a provider's answers. It is all an author must write.
// Implementations are safe for concurrent use.
type Codec interface {
	// Judge says what one answer teaches, taken alone. It never sees a truncated,
	// oversized or redirected answer: those are unknown before a codec is asked.
	Judge(x *Exchange) outbound.Verdict
}

// Exchange is one delivery and its answer. Body is complete and bounded.
type Exchange struct {
	Operation replaysemantics.Operation
	Resend    bool // An earlier delivery of the command has an unknown effect.
	Status    int
	Header    http.Header
	Body      []byte
}

// The optional abilities of a Codec, found by assertion once, at New.
type (
	// KeyPlacer puts the key where replaysemantics.Place cannot say (Custom),
	// in the place of one that the body may carry already.
	KeyPlacer interface {
		PlaceKey(op replaysemantics.Operation, body []byte, key string) ([]byte, error)
	}

	// Marker stamps the mark where replaysemantics.Place cannot say (Custom). It
	// returns body unchanged where the caller has filled the place.
	Marker interface {
		PlaceMark(op replaysemantics.Operation, body []byte, mark string) ([]byte, error)
	}

	// Checker refuses a message that the provider would take but nobody should
	// send, as a PayPal refund without an amount. Its error says what to do.
	Checker interface {
		Check(op replaysemantics.Operation, m outbound.Message) error
	}

	// Refuser shapes what package dropin answers in place of the provider, in the
	// provider's own shape, so that its SDK understands it. status is the HTTP
	// status to answer with.
	Refuser interface {
		Refuse(e *outbound.Error, status int) *outbound.Answer
	}

	// KeyRecogniser tells an SDK's random key, which package dropin overwrites,
	// from one that the caller chose, which it refuses loudly.
	KeyRecogniser interface {
		RandomKey(key string) bool
	}

	// Finder looks effects up, of the operations whose row has a Lookup. get is a
	// bounded, authorised GET.
	Finder interface {
		Find(ctx context.Context, get Get, l *outbound.Lookup) (outbound.Finding, error)
	}

	// BatchFinder is a Finder that answers many look-ups with few requests.
	BatchFinder interface {
		Finder

		// FindAll looks up effects of one operation, account and credentials; get asks
		// with the frozen headers that their messages share. It returns one finding for
		// each look-up, in order, and the zero Finding where it cannot tell. An error is
		// unknown for all.
		FindAll(ctx context.Context, get Get, ls []*outbound.Lookup) ([]outbound.Finding, error)
	}
)

// Get asks the provider for one resource. target is a path below the base URL
// or an absolute URL on one of the adapter's hosts; anything else is an error.
// Answers of every status are returned; an answer that was not read whole is an
// error.
// Redirects are answers: they are not followed. It is safe for concurrent use.
type Get func(ctx context.Context, target string, query url.Values) (*Exchange, error)
