package stripe

import (
	"maps"
	"strconv"
	"strings"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// Stripe's limits on metadata.
const (
	maxMetadata      = 50
	maxMetadataKey   = 40
	maxMetadataValue = 500
)

// maxAmount is eight digits, as Stripe's currencies have.
const maxAmount = 99_999_999

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// exec is one execution. Its readers note the first malformed parameter in err,
// so that an operation reads everything first and asks once.
type exec struct {
	d       *dialect
	s       *state
	tx      *fakeprovider.Tx
	p       params
	ids     []string
	path    string
	account string
	live    bool
	version string
	quiet   bool // publishes no events
	err     *failure
}

// bad notes a failure unless there is an earlier one.
func (x *exec) bad(f *failure) {
	if x.err == nil {
		x.err = f
	}
}

func (x *exec) now() int64 { return x.tx.Now.Unix() }

// need returns a required text.
func (x *exec) need(name string) string {
	s := x.p.str(name)
	if s == "" {
		x.bad(missing(name))
	}
	return s
}

// oneOf returns a text that must be among the given ones, the first by default.
func (x *exec) oneOf(name string, allowed ...string) string {
	s := x.p.str(name)
	if s == "" {
		return allowed[0]
	}
	for _, a := range allowed {
		if s == a {
			return s
		}
	}
	x.bad(invalid(name, name+" must be one of "+strings.Join(allowed, ", ")+"."))
	return s
}

// number returns a whole number and whether it was given.
func (x *exec) number(name string) (int64, bool) {
	return x.numberIn(x.p, name, name)
}

func (x *exec) numberIn(p params, name, param string) (int64, bool) {
	s := p.str(name)
	if s == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		x.bad(&failure{status: 400, typ: invalidRequest, code: "parameter_invalid_integer", param: param,
			message: param + " must be an integer."})
		return 0, false
	}
	return n, true
}

// amount returns a positive amount in the currency's smallest unit.
func (x *exec) amount(name string) (int64, bool) {
	n, ok := x.number(name)
	switch {
	case ok && n < 1:
		x.bad(invalid(name, name+" must be at least 1."))
	case ok && n > maxAmount:
		x.bad(&failure{status: 400, typ: invalidRequest, code: "amount_too_large", param: name,
			message: name + " must be no more than 99999999."})
	}
	return n, ok
}

func (x *exec) needAmount(name string) int64 {
	n, ok := x.amount(name)
	if !ok {
		x.bad(missing(name))
	}
	return n
}

func (x *exec) flag(name string) bool {
	switch x.p.str(name) {
	case "", "false":
		return false
	case "true":
		return true
	}
	x.bad(invalid(name, name+" must be true or false."))
	return false
}

func (x *exec) currency() string {
	c := strings.ToLower(x.need("currency"))
	if c != "" && len(c) != 3 {
		x.bad(invalid("currency", "currency must have three letters."))
	}
	return c
}

// metadata returns old with the request's metadata merged in.
func (x *exec) metadata(old object) object {
	out := object{}
	maps.Copy(out, old)
	if s, cleared := x.p["metadata"].(string); cleared {
		if s != "" {
			x.bad(invalid("metadata", "metadata must be a set of names and values."))
		}
		return object{}
	}
	for k, v := range x.p.sub("metadata") {
		s, text := v.(string)
		switch {
		case !text:
			x.bad(invalid("metadata", "A metadata value must be a string."))
		case len([]rune(k)) > maxMetadataKey:
			x.bad(invalid("metadata", "A metadata key has more than 40 characters."))
		case len([]rune(s)) > maxMetadataValue:
			x.bad(invalid("metadata", "A metadata value has more than 500 characters."))
		case s == "":
			delete(out, k)
		default:
			out[k] = s
		}
	}
	if len(out) > maxMetadata {
		x.bad(invalid("metadata", "There are more than 50 metadata keys."))
	}
	return out
}

// ref returns the object that a parameter names, or nil if it names none.
func (x *exec) ref(kind, name string) object {
	id := x.p.str(name)
	if id == "" {
		return nil
	}
	o := x.s.get(kind, id)
	if o == nil {
		x.bad(notFound(kind, name))
	}
	return o
}

// target returns the object that the path names.
func (x *exec) target(kind string) (object, *failure) {
	o := x.s.get(kind, x.ids[0])
	if o == nil {
		return nil, notFound(kind, "id")
	}
	return o, nil
}

// fields copies texts that Stripe gives back as they came; absent ones are null.
func (x *exec) fields(o object, names ...string) {
	for _, n := range names {
		if s := x.p.str(n); s != "" {
			o[n] = s
		} else if _, set := o[n]; !set {
			o[n] = nil
		}
	}
}

// fresh returns a new object of a kind, not yet stored.
func (x *exec) fresh(kind, prefix string) object {
	o := make(object, ordinary) // it need not grow with each member that is added
	o["id"], o["object"], o["created"], o["livemode"] = prefix+"_"+x.tx.Token(24, base62), kind, x.now(), x.live
	return o
}

// ordinary is about how many members an object has.
const ordinary = 40

// store puts a new object into the account's state.
func (x *exec) store(o object) object {
	x.s.add(o)
	x.d.objects++
	return o
}

// emit publishes an event with the object's present state.
func (x *exec) emit(typ string, o object) {
	if x.quiet {
		return
	}
	x.tx.Event("evt_"+x.tx.Token(24, base62), typ, x.encode(o))
}

// expanded returns o with the ids that the request asks to expand replaced by
// the objects they name. o itself stays as it is.
func (x *exec) expanded(o object) object {
	for _, path := range x.p.strings("expand") {
		o = x.s.expand(o, strings.Split(path, "."))
	}
	return o
}
