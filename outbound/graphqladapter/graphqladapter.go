// Package graphqladapter adapts services that offer operations as GraphQL mutations
// to package outbound. The key is a field of the mutation's input, and errors stand
// inside an answer of status 200.
//
//	open := graphqladapter.Mutation{
//		Row:      graphqladapter.Operation("incident.create", "createIncident", "idempotencyKey", 24*time.Hour, facts...),
//		Document: "mutation Create($input: CreateIncidentInput!) { createIncident(input: $input) { id status } }",
//	}
//	adapter := graphqladapter.New(cfg, open)
//	call := open.Call(cmd, alert)
package graphqladapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Mutation is one operation of a service.
type Mutation struct {
	Row rs.Operation // Required, as Operation makes it.

	// Document is the whole GraphQL document, with one mutation whose input is the
	// variable $input. Required. Only this document is sent for the operation, so that
	// its text does not count in the fingerprint and may change.
	Document string

	// Object is a JSON pointer below the answer's data to the object that is there if
	// the effect is. Defaults to the mutation's field: "/createIncident". A service
	// whose field holds errors beside the object needs "/createIncident/incident".
	Object string

	// UserErrors is a JSON pointer below the answer's data to a list of errors that the
	// service returns as data, each with a "code". Defaults to none.
	UserErrors string

	// Errors says what an error's code (extensions.code) means, where the service
	// documents it: ErrRejected, ErrRefused, ErrAuth, ErrRateLimited and ErrInvalid say
	// that nothing was executed; ErrInFlight and ErrFingerprintConflict speak of the
	// key. A code that is not here proves nothing, nor does an error without a code.
	Errors map[string]outbound.Code
}

// Operation is the row of a mutation at /graphql, to which a class, a look-up and the
// like can be added. field is the mutation's root field, key the input field in which
// the key stands, and window how long the service keeps a key; 0 is not known. Rows
// whose service has another path change Path.
func Operation(name, field, key string, window time.Duration, facts ...rs.Fact) rs.Operation {
	return rs.Operation{
		Name: name, Method: http.MethodPost, Path: "/graphql", Selector: field,
		Keys: []rs.Place{rs.JSON("/variables/input/" + key)}, Window: window, Resend: rs.Original,
		Volatile: []rs.Place{rs.JSON("/query")},
		Facts:    facts,
	}
}

// New returns an adapter; cfg.Operations are the mutations' rows and need not be
// given. find looks up the operations whose row has a Lookup; nil: none has one.
// What is wrong is an error of outbound.New.
func New(cfg httpadapter.Config, find httpadapter.FindFunc, mutations ...Mutation) *httpadapter.Adapter {
	c := codec{mutations: make(map[string]Mutation, len(mutations))}
	for _, m := range mutations {
		cfg.Operations = append(cfg.Operations[:len(cfg.Operations):len(cfg.Operations)], m.Row)
		c.mutations[m.Row.Name] = m
		cfg.SettingsErr = errors.Join(cfg.SettingsErr, m.fault())
	}
	if find == nil {
		return httpadapter.New(c, cfg)
	}
	return httpadapter.New(finding{c, find}, cfg)
}

// fault says what is wrong with the mutation; nil if nothing is.
func (m Mutation) fault() error {
	wrong := ""
	switch {
	case m.Row.Selector == "":
		wrong = "its row needs a Selector, the mutation's root field"
	case !strings.Contains(m.Document, m.Row.Selector):
		wrong = "its Document does not call the field " + m.Row.Selector
	case !strings.Contains(m.Document, "$input"):
		wrong = "its Document needs the variable $input"
	case m.Object != "" && m.Object[0] != '/' || m.UserErrors != "" && m.UserErrors[0] != '/':
		wrong = "Object and UserErrors are JSON pointers, as /createIncident"
	}
	if wrong == "" {
		return nil
	}
	return fmt.Errorf("operation %q: %s", m.Row.Name, wrong)
}

type request struct {
	Query     string                     `json:"query"`
	Variables map[string]json.RawMessage `json:"variables"`
}

// Call makes the Call of the mutation. input is what encoding/json encodes to the
// mutation's input, without its key.
func (m Mutation) Call(cmd outbound.Command, input any) outbound.Call {
	return httpadapter.JSONCall(m.Row, cmd, nil, struct {
		Query     string         `json:"query"`
		Variables map[string]any `json:"variables"`
	}{m.Document, map[string]any{"input": input}})
}

// Encode makes the mutation's request of the operation's parameters, for a carrier
// (package carriers).
func (m Mutation) Encode(op rs.Operation, parameters []byte) (outbound.Message, error) {
	body, err := json.Marshal(request{m.Document, map[string]json.RawMessage{"input": parameters}})
	if err != nil {
		return outbound.Message{}, errors.New("the parameters are no JSON")
	}
	return outbound.Message{
		Method: op.Method, Target: op.Path, Body: body,
		Header: []outbound.Field{{Name: "Content-Type", Value: "application/json"}},
	}, nil
}

// Decode returns the object of an answer, for a carrier (package carriers).
func (m Mutation) Decode(_ rs.Operation, a *outbound.Answer) ([]byte, error) {
	r, err := readAnswer(a.Body)
	if err != nil {
		return nil, err
	}
	object := below(r.Data, m.object())
	if !isObject(object) {
		return nil, errors.New("the answer has no object")
	}
	return object, nil
}

func (m Mutation) object() string {
	if m.Object != "" {
		return m.Object
	}
	return "/" + m.Row.Selector
}
