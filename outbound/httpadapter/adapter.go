package httpadapter

import (
	"context"
	"net/http"
	"net/url"
	"sync"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// defaultMaxBody bounds bodies where nobody said otherwise.
const defaultMaxBody = 4 << 20

// Config is what an author states about a provider.
type Config struct {
	Provider   string   // Required. Never changed: it is part of every key.
	Account    string   // Required: the provider's own id of the default account.
	Mode       string   // Required: "live", "test", "sandbox".
	BaseURL    string   // Required. Its path, if it has one, stands before every target.
	Hosts      []string // Further hosts of the provider, "files.stripe.com". Credentials go to these and BaseURL's host only.
	Operations []replaysemantics.Operation

	// The kinds of headers. A header in no list is dropped: not stored, not sent.
	Frozen      []string // Stored and sent at every delivery, beside Content-Type.
	Credentials []string // Never stored. Defaults to Authorization.

	// AccountOf reads the account from headers of a caller's request, as
	// Stripe-Account; "" for the default one. Defaults to always the default.
	AccountOf func(h http.Header) (string, error)

	// Authorize sets credentials and account headers of one attempt. own are the
	// credentials that the caller's request brought, nil if there are none. It
	// changes r's header only. An error for which errors.Is(err, outbound.ErrAuth)
	// is a refusal of the credentials; any other is taken as a passing one. nil: no
	// credentials of its own, and the caller's are sent as they came.
	Authorize func(ctx context.Context, account string, own []outbound.Field, r *http.Request) error

	// NeedsCaller says that Authorize has no credentials of its own: it serves
	// requests that bring theirs, and nothing in the background.
	NeedsCaller bool

	// Refresh is called on a 401, once for each call, and the attempt repeated with
	// the same bytes and key. rejected carries the refused credentials. Calls run
	// one at a time for each adapter, so that of many callers with one stale token
	// the first renews it, and the others find that the token is no longer the
	// rejected one and return nil. Defaults to never.
	Refresh func(ctx context.Context, account string, rejected *http.Request) error

	// SettingsErr is what is wrong with the author's own settings; outbound.New
	// returns it.
	SettingsErr error

	// Transport sends. Defaults to a clone of http.DefaultTransport. Of an
	// *http.Transport it is known that an attempt without a connection wrote
	// nothing; of another one only if it reports to net/http/httptrace.
	Transport http.RoundTripper

	MaxBody int64 // Bytes of a request and of a look-up's answer. Defaults to 4 MiB.
}

// Adapter is an outbound.Adapter and outbound.Finder made of a Codec and a
// Config. It is safe for concurrent use.
type Adapter struct {
	codec Codec
	cfg   Config

	base      *url.URL
	hosts     map[string]bool // Lower case, with the port where it is not the scheme's own.
	frozen    map[string]bool // Canonical header names.
	routes    *routes
	transport http.RoundTripper
	fresh     http.RoundTripper // A new connection for each request.
	traced    bool              // transport always reports its connections.
	refresh   chan struct{}     // Held while Refresh runs.

	problems error // What is wrong with cfg, for Profile.
	checkRow sync.Once
}

var (
	_ outbound.Adapter = (*Adapter)(nil)
	_ outbound.Finder  = (*Adapter)(nil)
)

// New returns the adapter that c and cfg make. What is wrong with cfg comes out
// of Profile, and so of outbound.New.
func New(c Codec, cfg Config) *Adapter {
	return &Adapter{codec: c, cfg: cfg}
}

// Profile returns what the adapter states about itself, or what is wrong with
// its settings.
func (a *Adapter) Profile() (outbound.Profile, error) { return outbound.Profile{}, nil }

func (a *Adapter) Freeze(op replaysemantics.Operation, m outbound.Message, mark string) (outbound.Frozen, error) {
	return outbound.Frozen{}, nil
}

func (a *Adapter) Send(ctx context.Context, d *outbound.Delivery) []outbound.Verdict { return nil }

func (a *Adapter) Find(ctx context.Context, l *outbound.Lookup) (outbound.Finding, error) {
	return outbound.Finding{}, nil
}
