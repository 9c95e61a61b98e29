package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// JSONDialect returns a constructor of dialects with empty state, for Kit.Provider
// and New. What p lacks or cannot mean is a panic, since it is the test's own
// mistake.
func JSONDialect(p JSONProvider) func() Dialect {
	if len(p.Operations) == 0 {
		panic("providertest: JSONProvider.Operations is empty: name the routes of the provider")
	}
	for _, op := range p.Operations {
		if op.Name == "" || !strings.HasPrefix(op.Path, "/") {
			panic(fmt.Sprintf("providertest: the operation %q of a JSONProvider needs a Name and a Path as /v1/payments", op.Name))
		}
	}
	switch p.Key.Kind {
	case "", rs.InHeader, rs.InJSON:
	default:
		panic(fmt.Sprintf("providertest: JSONProvider.Key is %q: a header or a JSON pointer is read; for others write a Dialect", p.Key.Kind))
	}
	if p.Window <= 0 {
		p.Window = 24 * time.Hour
	}
	return func() Dialect { return &jsonDialect{provider: &p} }
}

// jsonDialect is a Dialect made of a description. provider never changes; the
// engine's lock guards objects.
type jsonDialect struct {
	provider *JSONProvider
	objects  []*JSONObject
}

var (
	_ Dialect  = (*jsonDialect)(nil)
	_ Namer    = (*jsonDialect)(nil)
	_ Seeder   = (*jsonDialect)(nil)
	_ Notifier = (*jsonDialect)(nil)
)

// lowerDigits are the characters of ids.
const lowerDigits = "abcdefghijklmnopqrstuvwxyz0123456789"

// create puts an object in place.
func (d *jsonDialect) create(tx *Tx, op *JSONOperation, fields map[string]any) *JSONObject {
	o := &JSONObject{
		ID:        orDefault(op.Prefix, "obj_") + tx.Token(16, lowerDigits),
		Operation: op.Name, At: tx.Now, Fields: map[string]any{"status": "done"},
	}
	maps.Copy(o.Fields, fields)
	o.Fields["id"] = o.ID
	d.objects = append(d.objects, o)
	return o
}

func (d *jsonDialect) Seed(tx *Tx, object any) (string, error) {
	seed, ok := object.(JSONSeed)
	if !ok {
		return "", fmt.Errorf("seed %T: a JSONProvider takes a JSONSeed", object)
	}
	for i := range d.provider.Operations {
		if op := &d.provider.Operations[i]; op.Name == seed.Operation {
			o := d.create(tx, op, seed.Fields)
			o.Key = seed.Key
			return o.ID, nil
		}
	}
	return "", fmt.Errorf("seed: the provider has no operation %q", seed.Operation)
}

func (d *jsonDialect) Seeds() map[string]any { return map[string]any{"object": JSONSeed{}} }

func (d *jsonDialect) object(id string) *JSONObject {
	for _, o := range d.objects {
		if o.ID == id {
			return o
		}
	}
	return nil
}

func (d *jsonDialect) Operations() (names []string) {
	for _, op := range d.provider.Operations {
		names = append(names, op.Name)
	}
	return names
}

func (d *jsonDialect) RequestID(n uint64) string { return fmt.Sprintf("req_%08d", n) }

// asked is what Recognise found out, for Execute.
type asked struct {
	operation *JSONOperation
	ids       []string
	body      map[string]any
}

func (d *jsonDialect) Recognise(r *Received) Call {
	p := d.provider
	c := Call{Window: p.Window, KeepsFailures: p.KeepsFailures}
	reject := func(status int, code string) Call {
		a := encodeAnswer(JSONAnswer{Status: status, Body: p.errorBody(JSONError{status, code})})
		c.Answer = &a
		return c
	}
	body, malformed := parseObject(r.Body)
	op, ids := p.route(r, body)
	if op == nil {
		return reject(http.StatusNotFound, "no_such_route")
	}
	c.Operation, c.Write, c.Args = op.Name, !op.Read, &asked{op, ids, body}
	if c.Write {
		c.Key, c.TakesKey = p.keyOf(r, body), p.Key.Kind != ""
	}
	switch credential := r.Header.Get(orDefault(p.Credential, "Authorization")); {
	case credential == "" || p.Token != "" && credential != p.Token:
		a := d.Refuse(&c, NotAuthenticated)
		c.Answer = &a
		return c
	case malformed:
		return reject(http.StatusBadRequest, "malformed")
	}
	if c.Write && p.Key.Kind != "" {
		if wrong := p.wrongKey(r, &c); wrong != "" {
			return reject(http.StatusBadRequest, wrong)
		}
	}
	if p.Compare {
		c.Fingerprint = p.meaning(r, body)
	}
	return c
}

// route finds the operation that a request asks for.
func (p *JSONProvider) route(r *Received, body map[string]any) (*JSONOperation, []string) {
	for i := range p.Operations {
		op := &p.Operations[i]
		method := op.Method
		if method == "" {
			method = http.MethodPost
			if op.Read {
				method = http.MethodGet
			}
		}
		ids, ok := match(op.Path, r.Path)
		if ok && method == r.Method && (op.Match == nil || op.Match(body)) {
			return op, ids
		}
	}
	return nil, nil
}

// match reads what stands for the {…} of a pattern.
func match(pattern, path string) (ids []string, ok bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	for i, segment := range want {
		switch {
		case strings.HasPrefix(segment, "{") && got[i] != "":
			ids = append(ids, got[i])
		case segment != got[i]:
			return nil, false
		}
	}
	return ids, true
}

// keyOf reads the key; one that lacks its quotes has none.
func (p *JSONProvider) keyOf(r *Received, body map[string]any) string {
	switch p.Key.Kind {
	case rs.InHeader:
		value := r.Header.Get(p.Key.Name)
		if !p.Quoted {
			return value
		}
		if n := len(value); n > 2 && value[0] == '"' && value[n-1] == '"' {
			return value[1 : n-1]
		}
	case rs.InJSON:
		key, _ := valueAt(body, p.Key.Name).(string)
		return key
	}
	return ""
}

// wrongKey says what is wrong with a write's key, "" if nothing is.
func (p *JSONProvider) wrongKey(r *Received, c *Call) string {
	switch n := len(c.Key); {
	case n == 0 && p.Quoted && r.Header.Get(p.Key.Name) != "":
		return "key_not_quoted"
	case n == 0 && p.KeyRequired:
		return string(KeyMissing)
	case n > 0 && (n < p.KeyMin || p.KeyMax > 0 && n > p.KeyMax):
		return "key_length"
	}
	return ""
}

// meaning is what is compared under a repeated key: route and parameters,
// without the key itself.
func (p *JSONProvider) meaning(r *Received, body map[string]any) string {
	if p.Key.Kind == rs.InJSON {
		body = without(body, strings.Split(strings.TrimPrefix(p.Key.Name, "/"), "/"))
	}
	b, err := json.Marshal(body)
	if err != nil {
		return string(r.Body)
	}
	return r.Method + " " + r.Path + " " + string(b)
}

// without copies an object as far as needed to leave the value at path out.
func without(object map[string]any, path []string) map[string]any {
	out := make(map[string]any, len(object))
	for name, v := range object {
		out[name] = v
	}
	name := unescape(path[0])
	if inner, ok := object[name].(map[string]any); ok && len(path) > 1 {
		out[name] = without(inner, path[1:])
	} else {
		delete(out, name)
	}
	return out
}

// unescape reads one segment of a JSON pointer (RFC 6901).
func unescape(segment string) string {
	return strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
}

// valueAt returns what a JSON pointer leads to, nil for nothing. A "*" takes the
// first element of an array.
func valueAt(v any, pointer string) any {
	for segment := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch in := v.(type) {
		case map[string]any:
			v = in[unescape(segment)]
		case []any:
			i, err := strconv.Atoi(segment)
			if segment == "*" {
				i, err = 0, nil
			}
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// parseObject reads a body; numbers keep their digits.
func parseObject(b []byte) (object map[string]any, malformed bool) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil {
		return nil, true
	}
	_, err := decoder.Token()
	return object, err != io.EOF
}

func (d *jsonDialect) Execute(tx *Tx, c *Call) Answer {
	a := c.Args.(*asked)
	call := &JSONCall{
		IDs: a.ids, Query: c.Request.Query, Body: a.body, Key: c.Key, Now: tx.Now,
		operation: a.operation, dialect: d, tx: tx,
	}
	handle := a.operation.Handle
	if handle == nil {
		handle = func(c *JSONCall) JSONAnswer { return c.Create(nil) }
	}
	out := handle(call)
	answer := encodeAnswer(out)
	answer.Keep = out.success || out.refused && d.provider.KeepsFailures
	return answer
}

func (d *jsonDialect) Replay(tx *Tx, c *Call, saved Saved) Answer {
	o := d.object(saved.Answer.Object)
	switch {
	case o == nil:
		return saved.Answer
	case d.provider.Conflict != nil:
		return encodeAnswer(d.provider.Conflict(o))
	case d.provider.Latest:
		call := &JSONCall{operation: c.Args.(*asked).operation, dialect: d, tx: tx}
		return encodeAnswer(call.Show(o))
	}
	return saved.Answer
}

func (d *jsonDialect) Refuse(_ *Call, why Refusal) Answer {
	e, ok := d.provider.Errors[why]
	if !ok {
		e = JSONError{Code: string(why), Status: map[Refusal]int{
			InFlightConflict: 409, Mismatch: 422, RateLimited: 429, LockTimedOut: 429, NotAuthenticated: 401,
			Internal: 500, Unavailable: 503, MemoryFull: 503, FailedDependency: 424, TooLarge: 413, UnreadableEncoding: 415,
			KeyMissing: 400,
		}[why]}
	}
	return encodeAnswer(JSONAnswer{Status: e.Status, Body: d.provider.errorBody(e)})
}

func (p *JSONProvider) errorBody(e JSONError) any {
	if p.ErrorBody != nil {
		return p.ErrorBody(e)
	}
	return map[string]any{"error": map[string]any{"code": e.Code}}
}

func (d *jsonDialect) Finish(v Delivery, h http.Header) {
	p := d.provider
	h.Set(orDefault(p.RequestIDHeader, "Request-Id"), v.RequestID)
	if p.ReplayHeader != "" && v.Replayed {
		h.Set(p.ReplayHeader, "true")
	}
	if p.EchoHeader != "" && v.Call.Key != "" {
		h.Set(p.EchoHeader, v.Call.Key)
	}
}

// encodeAnswer makes the engine's answer.
func encodeAnswer(a JSONAnswer) Answer {
	out := Answer{Status: a.Status, Object: a.object}
	if a.Body != nil {
		out.Body = encode(a.Body)
	}
	return out
}

// encode encodes what the test's own description holds.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("providertest: a JSONAnswer's Body or a JSONObject's Fields do not encode: %v", err))
	}
	return slices.Clip(b)
}
