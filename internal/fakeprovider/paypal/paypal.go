// Package paypal teaches fakeprovider PayPal's REST APIs: OAuth, Orders v2,
// Payments v2, Payouts v1, Subscriptions with their plans and products, Vault
// v3, Invoicing v2 and Transaction Search v1.
//
// What it does follows PayPal's documentation and OpenAPI files (Orders 2.32
// and Payments 2.12 of August 2026, the others of February 2024). Names,
// issues, header names and statuses are PayPal's; messages are worded here.
// What PayPal does not say is a switch in Config, and its zero value is the
// answer that is harder on a client. The fake has one merchant; every pair of
// credentials is an app of that merchant, and all apps see the same objects.
//
// It is for tests only: do not import it outside of them.
package paypal

import (
	"fmt"
	"net/http"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// Config are the settings of the fake. Its zero value is fine.
type Config struct {
	// ClientID and Secret are the only credentials that get a token. Defaults to
	// any that are not empty.
	ClientID, Secret string
	// MerchantID is the merchant's payer id. Defaults to "FAKEMERCHANT1".
	MerchantID string
	// TokenLifetime is what expires_in says, on the provider's clock. Defaults to
	// 9 hours (32400 seconds).
	TokenLifetime time.Duration
	// OrderWindow is how long Orders v2 remembers a request id. Defaults to 6
	// hours; PayPal gives up to 72 by arrangement.
	OrderWindow time.Duration
	// MaxObjects is how many objects are held; further writes get a 503. Defaults
	// to 200,000.
	MaxObjects int

	// KeepRefusals makes a request id remember a 422, so that a resend gets the
	// same refusal. Unknown of PayPal; by default a refused request runs again.
	KeepRefusals bool
	// CompareBodies refuses a known request id with another body on Orders and
	// Payments too. Unknown of PayPal; by default the first result comes back.
	CompareBodies bool
	// MerchantKeys makes the apps of the merchant share their request ids.
	// Unknown of PayPal; by default each client id has its own.
	MerchantKeys bool
	// Replay200 makes every replay of a creation answer 200. By default a replayed
	// authorization capture answers 201, as PayPal's guide shows against its own
	// specification, and so do reauthorizations, subscriptions, plans and
	// products, for which PayPal names no signal.
	Replay200 bool

	// Lenient accepts any bearer token or none, any Content-Type, and a
	// reauthorization within the honor period.
	Lenient bool
}

func (c Config) withDefaults() Config {
	if c.MerchantID == "" {
		c.MerchantID = "FAKEMERCHANT1"
	}
	if c.TokenLifetime <= 0 {
		c.TokenLifetime = 9 * time.Hour
	}
	if c.OrderWindow <= 0 {
		c.OrderWindow = 6 * time.Hour
	}
	if c.MaxObjects <= 0 {
		c.MaxObjects = 200_000
	}
	return c
}

// New returns the constructor that fakeprovider.New takes.
func New(cfg Config) func() fakeprovider.Dialect {
	cfg = cfg.withDefaults()
	table, signs := routes(cfg), &signer{}
	return func() fakeprovider.Dialect {
		return &dialect{cfg: cfg, routes: table, signer: signs, state: newState()}
	}
}

// dialect is PayPal. cfg and routes never change; the engine's lock guards state.
type dialect struct {
	cfg    Config
	routes []route
	signer *signer
	state  *state
}

var (
	_ fakeprovider.Dialect  = (*dialect)(nil)
	_ fakeprovider.Seeder   = (*dialect)(nil)
	_ fakeprovider.Namer    = (*dialect)(nil)
	_ fakeprovider.Notifier = (*dialect)(nil)
)

// Operations implements fakeprovider.Namer.
func (d *dialect) Operations() []string {
	names := []string{"webhook.certificate"}
	for i := range d.routes {
		names = append(names, d.routes[i].op)
	}
	return names
}

// RequestID has the form of PayPal's debug ids: 13 hexadecimal digits. The
// factor is odd, so no two requests share one.
func (d *dialect) RequestID(n uint64) string {
	return fmt.Sprintf("%013x", n*0x9e3779b97f4a7&(1<<52-1))
}

// exec is one execution or replay. Its readers note what is malformed in err,
// so that an operation reads everything first and asks once.
type exec struct {
	*request
	call   *fakeprovider.Call
	cfg    Config
	signer *signer
	s      *state
	tx     *fakeprovider.Tx
	err    *failure
}

// reply is a success. Its body is what the route shows of the object, unless
// the operation brings its own.
type reply struct {
	id     string
	status int // defaults to the route's
	body   object
}

// Execute performs a recognised call.
func (d *dialect) Execute(tx *fakeprovider.Tx, c *fakeprovider.Call) fakeprovider.Answer {
	x := d.exec(tx, c)
	if f := x.authenticate(); f != nil {
		return x.failed(f)
	}
	if x.route.write && d.state.size() >= d.cfg.MaxObjects {
		return x.failed(full())
	}
	var out reply
	f := x.mocked()
	if f == nil {
		out, f = x.route.do(x)
	}
	if f != nil {
		a := x.failed(f)
		a.Keep = d.cfg.KeepRefusals && f.status == http.StatusUnprocessableEntity
		return a
	}
	status, body := out.status, out.body
	if status == 0 {
		status = x.route.status
	}
	if body == nil && status != http.StatusNoContent {
		body = x.route.view(x, out.id)
	}
	a := x.answer(status, body)
	a.Keep, a.Object = true, out.id
	return a
}

// Replay answers a repeated request id with the latest state of what the first
// request made. PayPal does not store its answers.
func (d *dialect) Replay(tx *fakeprovider.Tx, c *fakeprovider.Call, saved fakeprovider.Saved) fakeprovider.Answer {
	x := d.exec(tx, c)
	if f := x.authenticate(); f != nil {
		return x.failed(f)
	}
	if saved.Answer.Object == "" {
		return saved.Answer // a refusal that the key remembers
	}
	if x.route.key == keyBatchID {
		return x.failed(duplicateBatch(x.link("/v1/payments/payouts/"+saved.Answer.Object, "self", "GET")))
	}
	status := x.route.replay
	if d.cfg.Replay200 && status == http.StatusCreated {
		status = http.StatusOK
	}
	if status == http.StatusNoContent && x.full {
		status = http.StatusOK
	}
	if status == http.StatusNoContent {
		return x.answer(status, nil)
	}
	return x.answer(status, x.route.view(x, saved.Answer.Object))
}

func (d *dialect) exec(tx *fakeprovider.Tx, c *fakeprovider.Call) *exec {
	return &exec{request: c.Args.(*request), call: c, cfg: d.cfg, signer: d.signer, s: d.state, tx: tx}
}

// Finish adds the header that every answer of PayPal has.
func (d *dialect) Finish(v fakeprovider.Delivery, h http.Header) {
	h.Set("Paypal-Debug-Id", v.RequestID)
}

// answer writes a success. Its Date is the provider's clock, as are the times
// in its body.
func (x *exec) answer(status int, body object) fakeprovider.Answer {
	a := fakeprovider.Answer{Status: status, Header: http.Header{"Date": {x.tx.Now.Format(http.TimeFormat)}}}
	if body != nil {
		a.Body = encode(body)
	}
	return a
}

func (x *exec) failed(f *failure) fakeprovider.Answer {
	a := f.answer(x.tx.RequestID)
	a.Header = http.Header{"Date": {x.tx.Now.Format(http.TimeFormat)}}
	return a
}

// publish tells the provider's users what happened to an object.
func (x *exec) publish(typ string, resource object) {
	x.tx.Event("WH-"+x.tx.Token(17, upperDigits)+"-"+x.tx.Token(17, upperDigits), typ, encode(resource))
}

// encode writes what came out of a JSON body or was made here.
func encode(v any) []byte { return fakeprovider.JSON(v) }
