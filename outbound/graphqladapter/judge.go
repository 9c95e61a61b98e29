package graphqladapter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

type codec struct{ mutations map[string]Mutation }

// finding is codec with a look-up.
type finding struct {
	codec
	find httpadapter.FindFunc
}

// Find looks one effect up.
func (f finding) Find(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	return f.find(ctx, get, l)
}

// Check refuses a document that is not the operation's own.
func (c codec) Check(op rs.Operation, m outbound.Message) error {
	var r request
	if err := json.Unmarshal(m.Body, &r); err != nil {
		return errors.New(op.Name + ": the body is no GraphQL request")
	}
	if r.Query != c.mutations[op.Name].Document {
		return errors.New(op.Name + ": the query is not the operation's Document: make the call with Mutation.Call")
	}
	if !isObject(r.Variables["input"]) {
		return errors.New(op.Name + ": the variable input is no object")
	}
	return nil
}

// answer is a GraphQL answer. Source: GraphQL specification, October 2021,
// section 7.1.
type answer struct {
	Data   json.RawMessage
	Errors []fault
}

type fault struct {
	Code       httpadapter.JSONWord
	Extensions struct{ Code httpadapter.JSONWord }
}

func (f fault) code() string {
	if f.Extensions.Code != "" {
		return string(f.Extensions.Code)
	}
	return string(f.Code)
}

func readAnswer(body []byte) (a answer, err error) {
	if json.Unmarshal(body, &a) != nil {
		return a, errors.New("the answer is no GraphQL answer")
	}
	return a, nil
}

// Judge says what one answer teaches, taken alone.
//
//   - The object is there: applied, also beside errors. Those are of fields that were
//     resolved after the mutation had run.
//   - The object is not there: what the codes of all errors mean, if the mutation
//     says it of each of them and the same; else unknown. A status of 200 proves
//     nothing, nor does data of null: a mutation can fail after its effect.
//   - No errors that can be read: statuses that a server gives before it reads a
//     request mean what they say. 400 is not among them: it has errors, and their
//     codes decide.
func (c codec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	m := c.mutations[x.Operation.Name]
	a, err := readAnswer(x.Body)
	object := below(a.Data, m.object())
	v := outbound.Verdict{Again: true}
	switch {
	case err == nil && x.Status < 300 && isObject(object):
		var o struct{ ID, Status httpadapter.JSONWord }
		_ = json.Unmarshal(object, &o)
		v = outbound.Verdict{Effect: outbound.EffectApplied, ExternalRef: string(o.ID), ObjectStatus: string(o.Status)}
	case err == nil && len(a.Errors) > 0:
		v = m.meaning(a.Errors)
	case err == nil && m.UserErrors != "" && x.Status < 300:
		var list []fault
		_ = json.Unmarshal(below(a.Data, m.UserErrors), &list)
		v = m.meaning(list)
	case early(x.Status):
		v = httpadapter.ByStatus(x.Status)
	}
	v.RequestID = httpadapter.Word(x.Header.Get("X-Request-Id"))
	return v
}

// early reports whether a status is given before a request is read as GraphQL.
func early(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusNotAcceptable, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusTooManyRequests:
		return true
	}
	return false
}

// meaning is what errors say together: nothing, unless the mutation says what each
// of them means and they mean the same.
func (m Mutation) meaning(faults []fault) outbound.Verdict {
	v := outbound.Verdict{Again: true}
	for i, f := range faults {
		means, known := m.Errors[f.code()]
		if !known {
			return outbound.Verdict{Again: true, ProviderCode: f.code()}
		}
		one := outbound.VerdictOf(means)
		one.ProviderCode = f.code()
		if i > 0 && (one.Effect != v.Effect || one.Code != v.Code || one.Look != v.Look) {
			return outbound.Verdict{Again: true, ProviderCode: f.code()}
		}
		v = one
	}
	return v
}

// below returns the value at a JSON pointer; nil if there is none.
func below(data json.RawMessage, pointer string) json.RawMessage {
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		var members map[string]json.RawMessage
		if json.Unmarshal(data, &members) != nil {
			return nil
		}
		data = members[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return data
}

func isObject(value json.RawMessage) bool {
	value = bytes.TrimSpace(value)
	return len(value) > 0 && value[0] == '{'
}
