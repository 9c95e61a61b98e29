package httpadapter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const defaultMaxBody = 8 << 20 // bytes of an answer, where nobody said otherwise

// Config is what an author states about a provider.
type Config struct {
	Provider   string   // Required. Never changed: it is part of every key.
	Account    string   // Required: the provider's own id of the default account.
	Mode       string   // Required: "live", "test", "sandbox".
	BaseURL    string   // Required: https, or http that stays on the machine. Its path, if it has one, stands before every target.
	Hosts      []string // Further hosts of the provider, "files.stripe.com". Credentials go to these and BaseURL's host only.
	Operations []rs.Operation

	// The kinds of headers. A header in no list is dropped: not stored, not sent.
	Frozen      []string // Stored and sent at every delivery, beside Content-Type and conditions (If-Match and the like).
	Credentials []string // Never stored. Defaults to Authorization.

	// Defaults are headers that are frozen into every message in which the caller
	// gave none of the name, as the provider's version: a resend after a deploy
	// carries what the first delivery carried. A look-up of a message that lacks
	// them asks with them too. They do not count in the fingerprint.
	Defaults []outbound.Field

	// Untouched are writes that are no operations, "POST /v1/oauth2/token": a
	// drop-in passes them on, under a command too.
	Untouched []string

	// AccountOf reads the account from headers of a caller's request, as
	// Stripe-Account; "" for the default one. Defaults to always the default.
	AccountOf func(h http.Header) (string, error)

	// Authorize sets credentials and account headers of one attempt. own are the
	// credentials that the caller's request brought, nil if there are none. It
	// changes r's header only. An error for which errors.Is(err, outbound.ErrInvalid)
	// says that these credentials can never serve this adapter, as those of another
	// mode; one for which errors.Is(err, outbound.ErrAuth) that they are refused; any
	// other is taken as a passing one. nil: no credentials of its own, and the
	// caller's are sent as they came.
	Authorize func(ctx context.Context, account string, own []outbound.Field, r *http.Request) error

	// BodyCredential is the credential of a provider that wants it in the body of
	// every write. Defaults to none.
	BodyCredential *BodyCredential

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

	// Transport sends. Defaults to DefaultTransport. Of an
	// *http.Transport, without protocols registered beside its own, it is known that
	// an attempt without a connection wrote nothing; of another one only if it
	// reports to net/http/httptrace.
	Transport http.RoundTripper

	// MaxBody bounds what is read of an answer, in bytes, where outbound says nothing;
	// a Client's Options.MaxBody and Options.MaxLookup go before it. Defaults to 8 MiB.
	MaxBody int64
}

// Adapter is an outbound.Adapter and outbound.BatchFinder made of a Codec and a
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
}

var (
	_ outbound.Adapter     = (*Adapter)(nil)
	_ outbound.Finder      = (*Adapter)(nil)
	_ outbound.BatchFinder = (*Adapter)(nil)
)

// New returns the adapter that c and cfg make. What is wrong with cfg comes out
// of Profile, and so of outbound.New.
func New(c Codec, cfg Config) *Adapter {
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = defaultMaxBody
	}
	if len(cfg.Credentials) == 0 {
		cfg.Credentials = []string{"Authorization"}
	}
	a := &Adapter{
		codec: c, cfg: cfg,
		hosts:   make(map[string]bool),
		frozen:  map[string]bool{"Content-Type": true},
		refresh: make(chan struct{}, 1),
	}
	for _, name := range slices.Concat(conditions(), cfg.Frozen) {
		a.frozen[http.CanonicalHeaderKey(name)] = true
	}
	for _, f := range cfg.Defaults {
		a.frozen[http.CanonicalHeaderKey(f.Name)] = true
	}
	problems := append([]error{cfg.SettingsErr}, a.readHosts()...)
	var routing []error
	a.routes, routing = newRoutes(cfg.Operations)
	a.setTransport()
	a.problems = errors.Join(append(append(problems, routing...), a.checkSettings()...)...)
	return a
}

// conditions are the headers that make a write conditional. They are frozen
// whatever the author lists: a write that loses one executes where it should not.
func conditions() []string {
	return []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}
}

// With returns an adapter that knows further operations: those of the provider
// that the author's table leaves out. A name is never changed or reused, since
// it is part of every key.
func (a *Adapter) With(rows ...rs.Operation) *Adapter {
	cfg := a.cfg
	cfg.Operations = slices.Concat(cfg.Operations, rows)
	return New(a.codec, cfg)
}

// Codec returns the codec that a was made with.
func (a *Adapter) Codec() Codec { return a.codec }

// readHosts reads the base URL and the further hosts.
func (a *Adapter) readHosts() (problems []error) {
	base, err := url.Parse(a.cfg.BaseURL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http":
		return []error{errors.New("Config.BaseURL is no absolute URL, as https://api.example.com")}
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return []error{errors.New("Config.BaseURL holds more than scheme, host and path")}
	case base.Scheme == "http" && !staysHere(base.Hostname()):
		return []error{errors.New("Config.BaseURL: credentials would travel in clear: use https")}
	}
	base.Path, base.RawPath = strings.TrimSuffix(base.Path, "/"), strings.TrimSuffix(base.RawPath, "/")
	a.base = base
	a.hosts[hostKey(base.Scheme, base.Host)] = true
	for _, host := range a.cfg.Hosts {
		if host == "" || strings.ContainsAny(host, "/@?# ") {
			problems = append(problems, fmt.Errorf("Config.Hosts: %q is no host, as files.example.com", host))
			continue
		}
		a.hosts[hostKey("https", host)] = true
	}
	return problems
}

// staysHere reports whether requests to host never leave the machine, so that
// plain http does: a loopback address, localhost, or a name that the top level
// domain test keeps out of every public DNS. Source: RFC 6761, 6.2 and 6.3.
func staysHere(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || strings.HasSuffix(name, ".test")
}

// DefaultTransport returns a clone of http.DefaultTransport that keeps as many idle
// connections to one host as in all: a provider is one host, and many callers over
// HTTP/1.1 would else dial again for most requests. Where http.DefaultTransport was
// replaced by something else, it returns that.
func DefaultTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = t.MaxIdleConns
	return t
}

// setTransport prepares the two ways to send: over kept connections, and over a
// new one for each request, which net/http never resends by itself.
func (a *Adapter) setTransport() {
	rt := a.cfg.Transport
	if rt == nil {
		rt = DefaultTransport()
	}
	a.transport, a.fresh = rt, rt
	if t, ok := rt.(*http.Transport); ok {
		fresh := t.Clone()
		fresh.DisableKeepAlives = true
		fresh.ForceAttemptHTTP2 = false
		fresh.Protocols = nil
		fresh.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		a.fresh, a.traced = fresh, true
	}
}

// checkSettings says what is wrong with the settings.
func (a *Adapter) checkSettings() (problems []error) {
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if a.codec == nil {
		refuse("New needs a codec")
	}
	for _, required := range []struct{ name, value string }{
		{"Provider", a.cfg.Provider}, {"Account", a.cfg.Account}, {"Mode", a.cfg.Mode},
	} {
		if strings.TrimSpace(required.value) == "" {
			refuse("Config.%s is required", required.name)
		}
	}
	if len(a.cfg.Operations) == 0 {
		refuse("Config.Operations is empty")
	}
	if wrong := a.cfg.BodyCredential.fault(); wrong != "" {
		refuse("Config.BodyCredential: %s", wrong)
	}
	for _, name := range a.cfg.Credentials {
		if a.frozen[http.CanonicalHeaderKey(name)] {
			refuse("the header %s cannot be both frozen and a credential: credentials are never stored", name)
		}
	}
	for i, f := range a.cfg.Defaults {
		if wrong := a.checkDefault(i, f); wrong != "" {
			refuse("Config.Defaults: %q %s", f.Name, wrong)
		}
	}
	if err := rs.Check(a.cfg.Operations); err != nil {
		problems = append(problems, err)
	}
	for _, row := range a.cfg.Operations {
		problems = append(problems, a.checkRow(row)...)
	}
	return problems
}

// checkDefault says what is wrong with one of the defaults; "" if nothing is.
func (a *Adapter) checkDefault(i int, f outbound.Field) string {
	name := http.CanonicalHeaderKey(f.Name)
	same := func(d outbound.Field) bool { return http.CanonicalHeaderKey(d.Name) == name }
	switch {
	case f.Name == "" || strings.ContainsFunc(f.Name, notInName):
		return "is no header name"
	case name == "Content-Type" || slices.Contains(conditions(), name):
		return "belongs to one message and has no default"
	case f.Value == "" || hasControl(f.Value):
		return "needs a value without control characters"
	case slices.ContainsFunc(a.cfg.Defaults[:i], same):
		return "is there twice"
	case slices.ContainsFunc(a.cfg.Operations, func(op rs.Operation) bool { return isKey(op, name) }):
		return "holds the key"
	}
	return ""
}

// checkRow says what this package cannot do with a row that is sound in itself.
func (a *Adapter) checkRow(row rs.Operation) (problems []error) {
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("operation %s: "+format, append([]any{row.Name}, args...)...))
	}
	if row.Method == "" {
		refuse("an HTTP operation needs a method")
	}
	if _, ok := a.codec.(Finder); !ok && row.Lookup != "" {
		refuse("the row says how it is looked up, and the codec is no Finder")
	}
	if _, ok := a.codec.(KeyPlacer); !ok && holds(row.Keys, rs.InCustom) {
		refuse("the row's key is placed by the codec, and the codec is no KeyPlacer")
	}
	if _, ok := a.codec.(Marker); !ok && holds(row.Marks, rs.InCustom) {
		refuse("the row's mark is placed by the codec, and the codec is no Marker")
	}
	counted := slices.Concat(row.Volatile, row.Unordered, row.Sensitive, row.Codes)
	if holds(counted, rs.InCustom) {
		refuse("only keys and marks can be left to the codec")
	}
	for _, place := range slices.Concat(row.Keys, row.Marks, counted) {
		if place.Kind == rs.InHeader && slices.ContainsFunc(a.cfg.Credentials, func(c string) bool { return strings.EqualFold(c, place.Name) }) {
			refuse("the header %s holds credentials and nothing else", place.Name)
		}
	}
	for _, place := range row.Keys {
		if place.Kind != rs.InCustom && strings.Contains(place.Name, "*") {
			refuse("a key stands in one place, not in %q", place.Name)
		}
	}
	return problems
}

func holds(places []rs.Place, kind rs.PlaceKind) bool {
	return slices.ContainsFunc(places, func(p rs.Place) bool { return p.Kind == kind })
}

// Profile returns what the adapter states about itself, or everything that is
// wrong with its settings.
func (a *Adapter) Profile() (outbound.Profile, error) {
	if a.problems != nil {
		return outbound.Profile{}, a.problems
	}
	return outbound.Profile{
		Provider:    a.cfg.Provider,
		Account:     a.cfg.Account,
		Mode:        a.cfg.Mode,
		Operations:  slices.Clone(a.cfg.Operations),
		Canonicals:  []int{canonicalVersion},
		Credentials: (a.cfg.Authorize != nil || a.cfg.BodyCredential != nil) && !a.cfg.NeedsCaller,
	}, nil
}
