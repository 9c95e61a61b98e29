// Package stripe is the Stripe dialect of fakeprovider: the idempotency rules of
// API v1 and v2, and enough state behind the usual payment operations that a
// real client library can work with it.
//
// What Stripe's documentation and published exchanges say is built in. What is
// not known is a field of Config. Error codes, types, statuses and header names
// are Stripe's; the messages are worded here.
//
// Reads have operation names too, for faults and the request log:
// "refund.get", "refund.list", "customer.search".
package stripe

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// Windows that a key is remembered for. Source: Stripe's pages "Idempotent
// requests" (v1) and "API v2 overview" (v2).
const (
	windowV1 = 24 * time.Hour
	windowV2 = 30 * 24 * time.Hour
)

// maxKey is the longest Idempotency-Key in characters.
const maxKey = 255

// Config holds what the fake cannot know of the real Stripe, and its limits. The
// zero value is the cautious choice.
type Config struct {
	// Account is the id of the account that the keys belong to. Defaults to
	// "acct_1FakeStripe".
	Account string
	// Lenient accepts parameters that the operation does not have.
	Lenient bool
	// KeysAcrossAccounts makes one key of the same key under two accounts or
	// modes. Defaults to separate keys for each.
	KeysAcrossAccounts bool
	// KeepNotFound makes a v1 key remember a 404. Defaults to running again.
	KeepNotFound bool
	// V2ReplayHeader puts Idempotent-Replayed on v2 replays too.
	V2ReplayHeader bool
	// V2IgnoresBody makes v2 answer a repeated key whatever the parameters are.
	// Defaults to refusing other parameters as v1 does.
	V2IgnoresBody bool
	// SearchLag is how old an object must be before a search finds it. Defaults
	// to one minute; negative is none.
	SearchLag time.Duration
	// MaxObjects is how many objects are held over all accounts; creating more is
	// refused with 503. Defaults to 400,000.
	MaxObjects int
}

// New returns a constructor of dialects with empty state, for fakeprovider.New.
func New(cfg Config) func() fakeprovider.Dialect {
	if cfg.Account == "" {
		cfg.Account = "acct_1FakeStripe"
	}
	if cfg.SearchLag == 0 {
		cfg.SearchLag = time.Minute
	}
	if cfg.MaxObjects <= 0 {
		cfg.MaxObjects = 400_000
	}
	table := newRouter(routes())
	return func() fakeprovider.Dialect {
		return &dialect{cfg: cfg, routes: table, accounts: map[string]*state{}}
	}
}

type dialect struct {
	cfg      Config
	routes   *router
	accounts map[string]*state // by account and mode
	objects  int               // over all accounts
	encoder  fakeprovider.Encoder
}

// parsed is what Recognise found out, for Execute.
type parsed struct {
	route  *route
	ids    []string // the path's wildcards
	params params
	live   bool
}

// Operations implements fakeprovider.Namer.
func (d *dialect) Operations() []string {
	var names []string
	for _, r := range routes() {
		names = append(names, r.op)
	}
	return names
}

func (d *dialect) RequestID(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	return "req_fake" + strings.Repeat("0", max(0, 12-len(digits))) + digits
}

func (d *dialect) Recognise(r *fakeprovider.Request) fakeprovider.Call {
	rt, ids := d.routes.find(r.Method, r.Path)
	v2 := strings.HasPrefix(r.Path, "/v2/")
	c := fakeprovider.Call{Window: windowV1, KeepsFailures: !v2}
	live, authentic := credential(r.Header.Get("Authorization"))
	c.Account = account(r.Header, live)
	if v2 {
		c.Window = windowV2
	}
	if rt != nil {
		c.Operation, c.Write = rt.op, rt.write()
	}
	if r.Method == http.MethodPost || v2 && r.Method == http.MethodDelete {
		c.TakesKey = true
		c.Key = r.Header.Get("Idempotency-Key")
	}
	c.KeyScope = d.keyScope(v2, c.Account)
	p := &parsed{route: rt, ids: ids, live: live}
	c.Args = p
	f := d.check(r, rt, authentic, v2)
	if f == nil {
		p.params, f = d.parameters(r, rt, v2)
	}
	if f != nil {
		a := f.answer(nil)
		c.Answer = &a
		return c
	}
	if c.Key != "" && !(v2 && d.cfg.V2IgnoresBody) {
		c.Fingerprint = r.Method + " " + r.Path + "?" + p.params.canonical()
	}
	return c
}

func (d *dialect) keyScope(v2 bool, account string) string {
	scope := "v1"
	if v2 {
		scope = "v2"
	}
	if d.cfg.KeysAcrossAccounts {
		return scope
	}
	return scope + "/" + account
}

// credential tells the mode of a secret or restricted key. Basic authentication
// carries it as the user's name, as curl -u does.
func credential(header string) (live, ok bool) {
	key, bearer := strings.CutPrefix(header, "Bearer ")
	if !bearer {
		r := http.Request{Header: http.Header{"Authorization": {header}}}
		key, _, _ = r.BasicAuth()
	}
	for _, kind := range []string{"sk_", "rk_"} {
		if rest, found := strings.CutPrefix(key, kind); found && len(rest) > 0 {
			return strings.HasPrefix(rest, "live_"), true
		}
	}
	return false, false
}

// account names whose state a request works on.
func account(h http.Header, live bool) string {
	mode := "test"
	if live {
		mode = "live"
	}
	for _, name := range []string{"Stripe-Account", "Stripe-Context"} {
		if v := h.Get(name); v != "" {
			return v + "/" + mode
		}
	}
	return mode
}

// check refuses what needs neither parameters nor objects to be refused.
func (d *dialect) check(r *fakeprovider.Request, rt *route, authentic, v2 bool) *failure {
	switch {
	case !authentic:
		return &failure{status: http.StatusUnauthorized, typ: invalidRequest, message: "Provide a secret or restricted API key as a bearer token."}
	case rt == nil:
		return &failure{status: http.StatusNotFound, typ: invalidRequest, message: "Unrecognized request URL (" + r.Method + ")."}
	case len(r.Header.Get("Idempotency-Key")) > maxKey:
		return invalid("", "The idempotency key is longer than 255 characters.")
	case v2 && r.Header.Get("Stripe-Version") == "":
		return invalid("", "API v2 needs the Stripe-Version header.")
	}
	return nil
}

// parameters reads the query of a read and the body of a write.
func (d *dialect) parameters(r *fakeprovider.Request, rt *route, v2 bool) (params, *failure) {
	var p params
	var f *failure
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch {
	case r.Method == http.MethodGet:
		p, f = parseForm(r.Query)
	case v2:
		if len(r.Body) > 0 && kind != "application/json" {
			return nil, invalid("", "API v2 takes a body of type application/json.")
		}
		p, f = parseJSON(r.Body)
	case len(r.Body) == 0:
		p, f = parseForm(r.Query)
	case kind != "application/x-www-form-urlencoded":
		return nil, invalid("", "API v1 takes a body of type application/x-www-form-urlencoded.")
	default:
		values, err := url.ParseQuery(string(r.Body))
		if err != nil {
			return nil, invalid("", "The body is not form encoded.")
		}
		p, f = parseForm(values)
	}
	if f == nil && !d.cfg.Lenient {
		f = rt.unknown(p)
	}
	return p, f
}

func (d *dialect) Execute(tx *fakeprovider.Tx, c *fakeprovider.Call) fakeprovider.Answer {
	p := c.Args.(*parsed)
	if p.route.creates() && d.objects >= d.cfg.MaxObjects {
		return d.Refuse(c, fakeprovider.MemoryFull)
	}
	x := &exec{d: d, s: d.state(c.Account), tx: tx, p: p.params, ids: p.ids, live: p.live,
		path: c.Request.Path, account: c.Account, version: c.Request.Header.Get("Stripe-Version")}
	o, f := p.route.do(x)
	if f != nil {
		a := f.answer(x)
		a.Keep = c.KeepsFailures && f.executed && (f.status != http.StatusNotFound || d.cfg.KeepNotFound)
		return a
	}
	id, _ := o["id"].(string)
	if p.route.write() {
		if id == "" {
			id, _ = o["identifier"].(string)
		}
		tx.Effect(id)
	}
	return fakeprovider.Answer{Status: http.StatusOK, Body: x.encode(x.expanded(o)), Keep: true, Object: id}
}

// Replay gives the stored answer in v1 and the object's present state in v2.
func (d *dialect) Replay(_ *fakeprovider.Tx, c *fakeprovider.Call, saved fakeprovider.Saved) fakeprovider.Answer {
	if strings.HasPrefix(c.KeyScope, "v2") {
		if o, ok := d.state(c.Account).index[saved.Answer.Object]; ok && saved.Answer.Status < 300 {
			return fakeprovider.Answer{Status: http.StatusOK, Body: encode(o), Object: saved.Answer.Object}
		}
	}
	return saved.Answer
}

func (d *dialect) Finish(del fakeprovider.Delivery, h http.Header) {
	h.Set("Request-Id", del.RequestID)
	c := del.Call
	if c.Request != nil {
		if v := c.Request.Header.Get("Stripe-Version"); v != "" {
			h.Set("Stripe-Version", v)
		}
	}
	if c.Key == "" {
		return
	}
	h.Set("Idempotency-Key", c.Key)
	if del.Original != "" {
		h.Set("Original-Request", del.Original)
	}
	v2 := strings.HasPrefix(c.KeyScope, "v2")
	if del.Replayed && (!v2 || d.cfg.V2ReplayHeader) {
		h.Set("Idempotent-Replayed", "true")
	}
	if del.Original == del.RequestID && del.Status == http.StatusOK {
		h.Set("Stripe-Should-Retry", "false")
	}
}

func (d *dialect) state(account string) *state {
	s := d.accounts[account]
	if s == nil {
		s = newState()
		d.accounts[account] = s
	}
	return s
}

// encode writes an object, or a list of them, as JSON. The engine's lock guards
// what is remembered of its kind.
func (x *exec) encode(o object) []byte { return x.d.encoder.JSON(text(o, "object"), o) }

// encode is for objects that need no exec.
func encode(o object) []byte { return fakeprovider.JSON(o) }
