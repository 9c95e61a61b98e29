package providertest

import (
	"net/http"
	"net/url"
	"time"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// JSONProvider describes a provider that speaks JSON, for JSONDialect. Every
// field but Operations may stay zero.
type JSONProvider struct {
	// Operations are the provider's routes. Required.
	Operations []JSONOperation

	// Key is where a write carries its key: rs.Header("Idempotency-Key") or
	// rs.JSON("/idempotency_key"). The zero Place is a provider without keys.
	Key rs.Place
	// Quoted says that the header holds a structured-field string, in quotes, as
	// IETF's draft wants: a key without them is refused with 400.
	Quoted bool
	// KeyMin and KeyMax bound the key's length in characters; another one is refused
	// with 400. Default to no bounds.
	KeyMin, KeyMax int
	// KeyRequired refuses writes without a key with 400.
	KeyRequired bool
	// Window is how long a key is remembered. Defaults to 24 hours.
	Window time.Duration
	// Compare refuses a known key with another body or route, as Mismatch. Defaults
	// to giving the first result back.
	Compare bool
	// KeepsFailures makes a key remember JSONCall.Refuse. Defaults to running again.
	KeepsFailures bool
	// Latest answers a known key with the object's present state. Defaults to the
	// stored first answer.
	Latest bool
	// Conflict answers every known key, as with an error that links to o. Defaults
	// to none.
	Conflict func(o *JSONObject) JSONAnswer

	ReplayHeader    string // Set to "true" where the answer came from the key. Defaults to no signal.
	EchoHeader      string // Repeats the key on every answer, which proves nothing. Defaults to none.
	RequestIDHeader string // Defaults to "Request-Id".

	// Credential is the header that every request must bring, and Token its value;
	// otherwise it gets NotAuthenticated. Default to "Authorization" and any value.
	Credential, Token string

	// Errors words the engine's refusals. Those that it lacks are 409 in_flight, 422
	// mismatch, 429 rate_limit and lock_timeout, 401 unauthorized, 500 internal, 503
	// unavailable and memory_full, 424 failed_dependency, 413 too_large, 415
	// unsupported_encoding and 400 key_missing.
	Errors map[Refusal]JSONError
	// ErrorBody is the shape of an error's body. Defaults to {"error":{"code":…}}.
	ErrorBody func(e JSONError) any

	// Webhook makes and signs one delivery of an event of JSONOperation.Event.
	// Event.Object is the object's Fields, to.Secret the endpoint's secret, and at
	// the time of sending, on the clock of the test. It is called from many
	// goroutines at once. Defaults to a provider that sends no webhooks.
	Webhook func(e Event, to Endpoint, at time.Time) (Webhook, error)
}

// JSONError is an error of the provider.
type JSONError struct {
	Status int
	Code   string // In the provider's words.
}

// JSONOperation is one route of a JSONProvider.
type JSONOperation struct {
	Name   string // As the adapter's row names it. Reads have names too. Required.
	Method string // Defaults to POST, and to GET of a Read.
	Path   string // "/v2/payments/{id}/cancel"; each {…} is one segment. Required.
	// Match tells operations of one route apart, as in GraphQL. Defaults to all.
	Match func(body map[string]any) bool
	// Read says that it changes nothing and carries no key.
	Read bool
	// Status is that of a success. Defaults to 200.
	Status int
	// Prefix begins the ids of created objects. Defaults to "obj_".
	Prefix string
	// Shape is what an answer shows of an object, as {"payment": o.Fields}. Defaults
	// to its Fields.
	Shape func(o *JSONObject) any
	// Event is the type of the event that each effect publishes, "payment.created".
	// Defaults to no event.
	Event string
	// Handle does the work, one call at a time. Defaults to c.Create(nil).
	Handle func(c *JSONCall) JSONAnswer
}

// JSONAnswer is what a JSONOperation answers. Make one with the methods of
// JSONCall, and change it where the provider's shape is another.
type JSONAnswer struct {
	Status int
	Body   any // Encoded as JSON; nil is no body.

	object  string
	success bool
	refused bool // the provider decided: remembered where it keeps failures
}

// JSONObject is something that a JSONProvider created.
type JSONObject struct {
	ID        string
	Operation string         // That created it.
	Key       string         // The raw key of the request that created it, "" for none.
	At        time.Time      // On the provider's clock.
	Request   map[string]any // The body that created it.
	Fields    map[string]any // What an answer shows of it, "id" among them.
}

// JSONSeed seeds a JSONProvider with an object, as if the operation had created it
// before.
type JSONSeed struct {
	Operation string         // Its Prefix begins the id. Required.
	Key       string         // Of the request that created it; none is remembered for replays.
	Fields    map[string]any // As for JSONCall.Create.
}

// JSONCall is a request to a JSONOperation, inside Handle.
type JSONCall struct {
	IDs   []string       // What stood for the path's {…}.
	Query url.Values     // Never nil.
	Body  map[string]any // Numbers are json.Number. Nil without a body.
	Key   string         // The raw key, "" for none.
	Now   time.Time      // The provider's clock.

	operation *JSONOperation
	dialect   *jsonDialect
	tx        *Tx
}

// Create makes an object with these fields, "id" and, if it is not among them,
// "status": "done"; counts the effect, publishes its event, and answers with it.
func (c *JSONCall) Create(fields map[string]any) JSONAnswer {
	o := c.dialect.create(c.tx, c.operation, fields)
	o.Key, o.Request = c.Key, c.Body
	return c.Changed(o)
}

// Changed counts an effect on an object whose fields the operation has changed,
// publishes its event, and answers with it.
func (c *JSONCall) Changed(o *JSONObject) JSONAnswer {
	c.tx.Effect(o.ID)
	if c.operation.Event != "" {
		c.tx.Event("evt_"+c.tx.Token(16, lowerDigits), c.operation.Event, encode(o.Fields))
	}
	return c.Show(o)
}

// Show answers with an object and counts nothing.
func (c *JSONCall) Show(o *JSONObject) JSONAnswer {
	var body any = o.Fields
	if c.operation.Shape != nil {
		body = c.operation.Shape(o)
	}
	a := c.Answer(body)
	a.object = o.ID
	return a
}

// Answer answers with anything that encodes as JSON and counts nothing.
func (c *JSONCall) Answer(body any) JSONAnswer {
	a := JSONAnswer{Status: c.operation.Status, Body: body, success: true}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	return a
}

// Refuse is the provider's decision against the call, as a declined card. The
// key remembers it where the provider keeps failures.
func (c *JSONCall) Refuse(status int, code string) JSONAnswer {
	a := c.Reject(status, code)
	a.refused = true
	return a
}

// Reject is the provider's validation: nothing was executed, and the key
// remembers nothing.
func (c *JSONCall) Reject(status int, code string) JSONAnswer {
	return JSONAnswer{Status: status, Body: c.dialect.provider.errorBody(JSONError{status, code})}
}

// Object returns the object with this id, nil if there is none.
func (c *JSONCall) Object(id string) *JSONObject { return c.dialect.object(id) }

// Objects returns all objects, oldest first.
func (c *JSONCall) Objects() []*JSONObject { return c.dialect.objects }

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}
