// Package carriers makes one adapter of several: for a provider whose operations
// are offered over REST, GraphQL and gRPC. Whichever way a command goes, it has one
// key, one record, one fingerprint and one answer.
//
//	incidents := carriers.New(carriers.Config{
//		Carriers: []carriers.Carrier{
//			{Name: "rest", Adapter: rest, Encode: carriers.Body},
//			{Name: "graphql", Adapter: graphql, Encode: open.Encode, Decode: open.Decode},
//		},
//	})
//	call := carriers.Call("incident.create", cmd, alert)
//
// A call holds the operation's parameters; the carrier makes its own request of
// them. A caller who has one way to the provider needs no carriers.
package carriers

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Carrier is one way to the provider.
type Carrier struct {
	Name    string           // Required, as "rest". Never changed: records name it.
	Adapter outbound.Adapter // Required. Its table has the operations that go this way.

	// Encode makes the carrier's request of an operation's parameters, which are
	// JSON. Required. It is a pure function: equal parameters give equal requests.
	Encode func(op rs.Operation, parameters []byte) (outbound.Message, error)

	// Decode makes the operation's result, as JSON, of the answer to an effect that
	// was applied, so that all carriers give one answer. Defaults to the answer's
	// body.
	Decode func(op rs.Operation, a *outbound.Answer) ([]byte, error)
}

// Config is what an author states about a provider with several carriers.
type Config struct {
	// Carriers are the ways to the provider, the preferred one first: new commands
	// go there. Required.
	Carriers []Carrier

	// SharedKeys is the source which shows that a key is the same key by every
	// carrier, and that its parameters are compared, not a request's bytes. Defaults
	// to none, and so does a fact that nobody has shown (Unverified): each carrier
	// then remembers keys for itself, and a command that may have been sent by one of
	// them is never sent by another.
	SharedKeys *rs.Fact

	// Parameters says which parameters do not count like others, by operation.
	Parameters map[string]Parameters

	// Before names the carrier whose adapter was used alone before, over the same
	// ledger: its records are read as that carrier's. It needs stored requests.
	// Defaults to none.
	Before string
}

// Parameters are places in an operation's parameters, JSON pointers all of them.
// Their meaning is that of an Operation's fields.
type Parameters struct{ Volatile, Unordered, Sensitive, Codes []rs.Place }

// Adapter is an outbound.Adapter and outbound.Finder made of several. It is safe
// for concurrent use.
type Adapter struct {
	cfg      Config
	profile  outbound.Profile
	rows     map[string]map[string]rs.Operation // by carrier and operation
	meaning  *httpadapter.Adapter               // reads parameters
	problems error
}

var (
	_ outbound.Adapter = (*Adapter)(nil)
	_ outbound.Finder  = (*Adapter)(nil)
)

// New returns the adapter that cfg makes. What is wrong with cfg comes out of
// Profile, and so of outbound.New.
func New(cfg Config) *Adapter {
	a := &Adapter{cfg: cfg, rows: make(map[string]map[string]rs.Operation)}
	if a.problems = a.readCarriers(); a.problems != nil {
		return a
	}
	a.meaning = httpadapter.New(httpadapter.WithFind(httpadapter.Plain{}, nil), httpadapter.Config{
		Provider: a.profile.Provider, Account: a.profile.Account, Mode: a.profile.Mode,
		BaseURL: "https://parameters.test", Operations: a.readable(),
	})
	_, err := a.meaning.Profile()
	a.problems = errors.Join(err, rs.Check(a.profile.Operations))
	return a
}

// readable are the rows by which parameters are read: they are looked up elsewhere.
func (a *Adapter) readable() []rs.Operation {
	rows := slices.Clone(a.profile.Operations)
	for i := range rows {
		rows[i].Lookup, rows[i].Absence, rows[i].ResendAfterAbsence = "", "", false
	}
	return rows
}

// shared reports whether a key is the same key by every carrier.
func (a *Adapter) shared() bool {
	return a.cfg.SharedKeys != nil && a.cfg.SharedKeys.Grade != rs.Unverified
}

// canonicalVersion is the version of Canonical that this build writes. Lower ones
// are those of adapters alone.
const canonicalVersion = 101

// readCarriers makes one profile of the carriers'.
func (a *Adapter) readCarriers() error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, c := range a.cfg.Carriers {
		switch {
		case httpadapter.Word(c.Name) == "":
			refuse("a carrier needs a Name of letters and digits, as \"rest\"")
		case a.rows[c.Name] != nil:
			refuse("two carriers are named %q", c.Name)
		case c.Adapter == nil || c.Encode == nil:
			refuse("carrier %s needs an Adapter and an Encode", c.Name)
		default:
			if err := a.readCarrier(c); err != nil {
				refuse("carrier %s: %w", c.Name, err)
			}
		}
	}
	if len(a.cfg.Carriers) == 0 {
		refuse("Config.Carriers is empty")
	}
	a.profile.Canonicals = []int{canonicalVersion}
	if a.cfg.Before != "" {
		before, known := a.carrier(a.cfg.Before)
		if !known {
			refuse("Config.Before: no carrier is named %q", a.cfg.Before)
		} else if p, err := before.Adapter.Profile(); err == nil {
			a.profile.Canonicals = append(a.profile.Canonicals, p.Canonicals...)
		}
	}
	a.profile.Recorded = !a.shared() // with one carrier too: there may be more after the next deploy
	if a.shared() {
		for i := range a.profile.Operations {
			a.profile.Operations[i].Facts = append(a.profile.Operations[i].Facts, *a.cfg.SharedKeys)
		}
	}
	return errors.Join(problems...)
}

// readCarrier adds one carrier's profile.
func (a *Adapter) readCarrier(c Carrier) error {
	p, err := c.Adapter.Profile()
	if err != nil {
		return err
	}
	whole := &a.profile
	switch {
	case len(a.rows) == 0:
		whole.Provider, whole.Account, whole.Mode, whole.Credentials = p.Provider, p.Account, p.Mode, p.Credentials
	case p.Provider != whole.Provider || p.Account != whole.Account || p.Mode != whole.Mode:
		return errors.New("its Provider, Account and Mode are not those of the other carriers: they are part of every key")
	}
	whole.Credentials = whole.Credentials && p.Credentials
	a.rows[c.Name] = make(map[string]rs.Operation)
	for _, row := range p.Operations {
		a.rows[c.Name][row.Name] = row
		first, known := rs.Find(whole.Operations, row.Name)
		if !known {
			whole.Operations = append(whole.Operations, a.neutral(row))
		} else if wrong := differs(first, row); wrong != "" {
			return fmt.Errorf("operation %s: its %s is not that of the other carriers: state the weaker one for all of them", row.Name, wrong)
		}
	}
	return nil
}

// neutral is a carrier's row without what belongs to the carrier.
func (a *Adapter) neutral(row rs.Operation) rs.Operation {
	p := a.cfg.Parameters[row.Name]
	row.Method, row.Path, row.Selector = http.MethodPost, "/"+row.Name, ""
	row.Marks = nil
	row.Volatile, row.Unordered, row.Sensitive, row.Codes = p.Volatile, p.Unordered, p.Sensitive, p.Codes
	row.Facts = slices.Clone(row.Facts)
	if row.HasKey() {
		row.Keys = []rs.Place{rs.Header("Idempotency-Key")}
	}
	return row
}

// differs names what two carriers' rows state differently of one operation, and
// the core goes by.
func differs(x, y rs.Operation) string {
	switch {
	case x.Class != y.Class:
		return "Class"
	case x.HasKey() != y.HasKey():
		return "having a key"
	case x.Window != y.Window:
		return "Window"
	case x.Resend != y.Resend:
		return "Resend"
	case x.Failures != y.Failures:
		return "Failures"
	case x.Horizon != y.Horizon:
		return "Horizon"
	case (x.Lookup == "") != (y.Lookup == "") || (x.Absence == "") != (y.Absence == ""):
		return "Lookup"
	case x.ResendAfterAbsence != y.ResendAfterAbsence:
		return "ResendAfterAbsence"
	case !slices.Equal(x.ConclusiveEventTypes, y.ConclusiveEventTypes):
		return "ConclusiveEventTypes"
	}
	return ""
}

// carrier returns the carrier of this name, the preferred one for "".
func (a *Adapter) carrier(name string) (Carrier, bool) {
	name = cmp.Or(name, a.cfg.Carriers[0].Name)
	i := slices.IndexFunc(a.cfg.Carriers, func(c Carrier) bool { return c.Name == name })
	if i < 0 {
		return Carrier{}, false
	}
	return a.cfg.Carriers[i], true
}

// preferred returns the first carrier that has the operation.
func (a *Adapter) preferred(operation string) (Carrier, rs.Operation, bool) {
	for _, c := range a.cfg.Carriers {
		if row, known := a.rows[c.Name][operation]; known {
			return c, row, true
		}
	}
	return Carrier{}, rs.Operation{}, false
}

// Profile returns what the carriers state together, or everything that is wrong
// with them.
func (a *Adapter) Profile() (outbound.Profile, error) {
	if a.problems != nil {
		return outbound.Profile{}, a.problems
	}
	p := a.profile
	p.Operations = slices.Clone(p.Operations)
	return p, nil
}

// Call makes the Call of an operation. parameters are what encoding/json encodes.
// Whatever carrier takes it, the same parameters are the same request.
func Call(operation string, cmd outbound.Command, parameters any) outbound.Call {
	return httpadapter.JSONCall(rs.Operation{Name: operation, Method: http.MethodPost, Path: "/" + operation}, cmd, nil, parameters)
}

// Body is the Encode of a REST carrier whose body is the parameters. Every other
// form of request needs an Encode of its own.
func Body(op rs.Operation, parameters []byte) (outbound.Message, error) {
	return outbound.Message{
		Method: op.Method, Target: op.Path, Body: parameters,
		Header: []outbound.Field{{Name: "Content-Type", Value: "application/json"}},
	}, nil
}
