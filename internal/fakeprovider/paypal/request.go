package paypal

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// request is what Recognise reads out of a request.
type request struct {
	route  *route
	ids    []string   // what the wildcards of the path stand for
	query  url.Values // of the URL
	form   url.Values // of a form body
	json   any        // nil for an empty body and for null
	bearer string     // the access token
	app    string     // the client id
	base   string     // the fake's own URL, for links
	full   bool       // the whole object is wanted, not the minimal one
	mock   string     // the code in PayPal-Mock-Response
}

// Recognise finds the route, the key and the body. It looks at no object, so
// whether the token is still good is for Execute.
func (d *dialect) Recognise(r *fakeprovider.Request) fakeprovider.Call {
	c := fakeprovider.Call{Request: r, Account: d.cfg.MerchantID}
	refuse := func(f *failure) fakeprovider.Call {
		a := f.answer(r.ID)
		c.Answer = &a
		return c
	}
	if id, found := strings.CutPrefix(r.Path, certificatePath); found && r.Method == http.MethodGet {
		a := d.certificate(id)
		c.Answer, c.Operation = &a, "webhook.certificate"
		return c
	}
	rt, ids := d.find(r.Method, r.Path)
	if rt == nil {
		return refuse(notFound(""))
	}
	c.Operation, c.Write, c.Window = rt.op, rt.write, rt.window
	c.KeepsFailures = d.cfg.KeepRefusals
	q := &request{route: rt, ids: ids, query: r.Query, base: "http://" + r.Host}
	q.full = r.Method == http.MethodGet || prefersRepresentation(r.Header)
	c.Args = q
	if rt.op == "token" {
		q.app, _ = d.cfg.readBasic(r.Header)
		q.form = parseForm(r.Body)
		return c
	}
	q.bearer, q.app = readBearer(r.Header)
	if q.bearer == "" && !d.cfg.Lenient {
		return refuse(unauthenticated())
	}
	if f := q.readBody(r, d.cfg.Lenient); f != nil {
		return refuse(f)
	}
	if f := q.readMock(r.Header); f != nil {
		return refuse(f)
	}
	if f := d.readKey(&c, q, r.Header.Get("PayPal-Request-Id")); f != nil {
		return refuse(f)
	}
	return c
}

func prefersRepresentation(h http.Header) bool {
	for _, v := range h.Values("Prefer") {
		for p := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(p), "return=representation") {
				return true
			}
		}
	}
	return false
}

// readBody decodes a JSON body as far as the route takes one.
func (q *request) readBody(r *fakeprovider.Request, lenient bool) *failure {
	if q.route.body == noBody || len(bytes.TrimSpace(r.Body)) == 0 {
		return nil // a missing body is the operation's to refuse
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !lenient && (err != nil || kind != "application/json") {
		return &failure{status: http.StatusUnsupportedMediaType, name: "UNSUPPORTED_MEDIA_TYPE",
			message: "The body must be application/json."}
	}
	dec := json.NewDecoder(bytes.NewReader(r.Body))
	dec.UseNumber() // a number that PayPal gives back stays as it came
	err = dec.Decode(&q.json)
	if err == nil {
		_, err = dec.Token()
	}
	if !errors.Is(err, io.EOF) {
		return issue("MALFORMED_REQUEST_JSON", "/", "The body is not one JSON value.")
	}
	switch q.json.(type) {
	case nil:
		return nil
	case object:
		if q.route.body != arrayBody {
			return nil
		}
	case []any:
		if q.route.body == arrayBody {
			return nil
		}
	}
	return issue("MALFORMED_REQUEST_JSON", "/", "The body is JSON of another type than the operation takes.")
}

// readMock reads the sandbox's header for negative testing. The code stands in
// a string or in a list, of which the first counts.
func (q *request) readMock(h http.Header) *failure {
	text := h.Get("PayPal-Mock-Response")
	if text == "" || !q.route.write {
		return nil
	}
	var one struct {
		Codes string `json:"mock_application_codes"`
	}
	var many struct {
		Codes []string `json:"mock_application_codes"`
	}
	if json.Unmarshal([]byte(text), &one) == nil && one.Codes != "" {
		q.mock = one.Codes
		return nil
	}
	if json.Unmarshal([]byte(text), &many) == nil && len(many.Codes) > 0 && many.Codes[0] != "" {
		q.mock = many.Codes[0]
		return nil
	}
	return issue("INVALID_PARAMETER_VALUE", "PayPal-Mock-Response",
		`The header must be {"mock_application_codes":"CODE"}.`)
}

// readKey puts the key and what it is unique within into the call: the call
// type, and the app unless the merchant's apps share their keys.
func (d *dialect) readKey(c *fakeprovider.Call, q *request, header string) *failure {
	rt := q.route
	c.TakesKey = rt.key != keyNone
	switch rt.key {
	case keyNone:
		return nil
	case keyHeader:
		c.Key = header
	case keyBatchID:
		// PayPal's payouts take a batch id from the body only.
		body, _ := q.json.(object)
		head, _ := body["sender_batch_header"].(object)
		c.Key = text(head, "sender_batch_id")
	}
	if len(header) > rt.keyMax {
		return issue("INVALID_PARAMETER_VALUE", "PayPal-Request-Id", "The PayPal-Request-Id is too long.")
	}
	c.KeyScope = rt.op
	if !d.cfg.MerchantKeys && rt.key == keyHeader {
		c.KeyScope += " " + q.app
	}
	if c.Key != "" && rt.key == keyHeader && (rt.compares || d.cfg.CompareBodies) {
		c.Fingerprint = c.Request.Path + "\n" + string(encode(q.json))
	}
	return nil
}

// fields reads the members of one JSON object. path is where it stands.
type fields struct {
	x    *exec
	o    object // nil reads as empty
	path string
}

// body returns the request's body.
func (x *exec) body() fields {
	o, _ := x.json.(object)
	return fields{x: x, o: o}
}

// bad notes an issue. Those of the first one's status stand in one answer.
func (x *exec) bad(name, field, description string) {
	f := issue(name, field, description)
	switch {
	case x.err == nil:
		x.err = f
	case x.err.status == f.status && len(x.err.details) < 20:
		x.err.details = append(x.err.details, f.details...)
	}
}

func (f fields) bad(name, member, description string) { f.x.bad(name, f.path+"/"+member, description) }

// has reports whether a member is there and not null.
func (f fields) has(name string) bool { return f.o[name] != nil }

// text returns an optional text of at most limit bytes.
func (f fields) text(name string, limit int) string {
	v := f.o[name]
	if v == nil {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		f.bad("INVALID_PARAMETER_SYNTAX", name, "The value must be a string.")
		return ""
	}
	if len(s) > limit {
		f.bad("INVALID_STRING_MAX_LENGTH", name, "The value is too long.")
		return ""
	}
	return s
}

// need returns a required text.
func (f fields) need(name string, limit int) string {
	s := f.text(name, limit)
	if _, isText := f.o[name].(string); s == "" && (isText || !f.has(name)) {
		f.bad("MISSING_REQUIRED_PARAMETER", name, "A required value is missing.")
	}
	return s
}

// oneOf returns a text that must be among the given ones, the first by default.
func (f fields) oneOf(name string, allowed ...string) string {
	s := f.text(name, 255)
	for _, a := range allowed {
		if s == a {
			return s
		}
	}
	if s != "" {
		f.bad("INVALID_PARAMETER_VALUE", name, "The value must be one of "+strings.Join(allowed, ", ")+".")
	}
	return allowed[0]
}

func (f fields) flag(name string) bool {
	b, ok := f.o[name].(bool)
	if !ok && f.has(name) {
		f.bad("INVALID_PARAMETER_SYNTAX", name, "The value must be true or false.")
	}
	return b
}

// sub returns an object inside this one, empty where there is none.
func (f fields) sub(name string) fields {
	o, ok := f.o[name].(object)
	if !ok && f.has(name) {
		f.bad("INVALID_PARAMETER_SYNTAX", name, "The value must be an object.")
	}
	return fields{x: f.x, o: o, path: f.path + "/" + name}
}

// list returns the objects of an array, of which there must be 1 to limit.
func (f fields) list(name string, limit int) []fields {
	if !f.has(name) {
		f.bad("MISSING_REQUIRED_PARAMETER", name, "A required array is missing.")
		return nil
	}
	items, ok := f.o[name].([]any)
	switch {
	case !ok:
		f.bad("INVALID_PARAMETER_SYNTAX", name, "The value must be an array.")
		return nil
	case len(items) == 0:
		f.bad("INVALID_ARRAY_MIN_ITEMS", name, "The array must not be empty.")
		return nil
	case len(items) > limit:
		f.bad("INVALID_ARRAY_MAX_ITEMS", name, "The array has too many items.")
		return nil
	}
	out := make([]fields, 0, len(items))
	for i, item := range items {
		path := f.path + "/" + name + "/" + itoa(i)
		o, ok := item.(object)
		if !ok {
			f.x.bad("INVALID_PARAMETER_SYNTAX", path, "The item must be an object.")
			return nil
		}
		out = append(out, fields{x: f.x, o: o, path: path})
	}
	return out
}

// amount returns the amount in an object member, and whether it was given.
// currencyName is "currency_code", in Payouts "currency".
func (f fields) amount(name, currencyName string) (money, bool) {
	if !f.has(name) {
		return money{}, false
	}
	a := f.sub(name)
	if a.o == nil {
		return money{}, true
	}
	currency, value := a.need(currencyName, 3), a.need("value", 32)
	if currency == "" || value == "" {
		return money{}, true
	}
	m, problem := parseMoney(value, currency)
	if problem != "" {
		field := "value"
		if problem == "CURRENCY_NOT_SUPPORTED" {
			field = currencyName
		}
		a.bad(problem, field, "The amount is not one that PayPal takes.")
	}
	return m, true
}
