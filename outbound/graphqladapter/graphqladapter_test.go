package graphqladapter_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/graphqladapter"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

var fact = rs.Fact{States: "test", URL: "https://example.com", Read: "2026-12-01", Grade: rs.Measured}

func mutation() graphqladapter.Mutation {
	return graphqladapter.Mutation{
		Row:        graphqladapter.Operation("incident.create", "createIncident", "idempotencyKey", time.Hour, fact),
		Document:   "mutation M($input: In!) { createIncident(input: $input) { incident { id status } userErrors { code } } }",
		Object:     "/createIncident/incident",
		UserErrors: "/createIncident/userErrors",
		Errors: map[string]outbound.Code{
			"GRAPHQL_VALIDATION_FAILED": outbound.ErrRejected, "QUOTA": outbound.ErrRateLimited, "CLOSED": outbound.ErrRefused,
			"BUSY": outbound.ErrInFlight, "REUSED": outbound.ErrFingerprintConflict,
		},
	}
}

func adapter(mutations ...graphqladapter.Mutation) *httpadapter.Adapter {
	return graphqladapter.New(httpadapter.Config{Provider: "p", Account: "a", Mode: "test", BaseURL: "https://api.example.com"}, nil, mutations...)
}

// R12: an error inside a 200 proves nothing unless the service says what its code means.
func TestJudge(t *testing.T) {
	m := mutation()
	codec := adapter(m).Codec()
	with := func(codes ...string) string {
		var list []string
		for _, c := range codes {
			list = append(list, `{"message":"m","extensions":{"code":"`+c+`"}}`)
		}
		return `{"data":null,"errors":[` + strings.Join(list, ",") + `]}`
	}
	data := func(inner string) string { return `{"data":{"createIncident":` + inner + `}}` }
	for name, c := range map[string]struct {
		status int
		body   string
		effect outbound.Effect
		code   outbound.Code
		again  bool
		look   bool
	}{
		"done":                          {200, data(`{"incident":{"id":"i1","status":"open"},"userErrors":[]}`), outbound.EffectApplied, "", false, false},
		"done, beside an error":         {200, `{"data":{"createIncident":{"incident":{"id":"i1","status":null}}},"errors":[{"message":"m","path":["createIncident","incident","status"]}]}`, outbound.EffectApplied, "", false, false},
		"validation, documented":        {400, with("GRAPHQL_VALIDATION_FAILED"), outbound.EffectNone, outbound.ErrRejected, false, false},
		"validation in a 200":           {200, with("GRAPHQL_VALIDATION_FAILED"), outbound.EffectNone, outbound.ErrRejected, false, false},
		"400 with another code":         {400, with("OTHER"), outbound.EffectUnknown, "", true, false},
		"400 without errors":            {400, `{}`, outbound.EffectUnknown, "", true, false},
		"error without code":            {200, `{"data":null,"errors":[{"message":"m"}]}`, outbound.EffectUnknown, "", true, false},
		"code that is no word":          {200, with("a b"), outbound.EffectUnknown, "", true, false},
		"two of one meaning":            {200, with("QUOTA", "QUOTA"), outbound.EffectNone, outbound.ErrRateLimited, true, false},
		"two of two meanings":           {200, with("QUOTA", "CLOSED"), outbound.EffectUnknown, "", true, false},
		"a known and an unknown":        {200, with("CLOSED", "OTHER"), outbound.EffectUnknown, "", true, false},
		"refused":                       {200, with("CLOSED"), outbound.EffectNone, outbound.ErrRefused, false, false},
		"in flight":                     {200, with("BUSY"), outbound.EffectUnknown, "", true, false},
		"key used otherwise":            {200, with("REUSED"), outbound.EffectUnknown, "", false, true},
		"errors as data":                {200, data(`{"incident":null,"userErrors":[{"code":"CLOSED"}]}`), outbound.EffectNone, outbound.ErrRefused, false, false},
		"errors as data, unknown":       {200, data(`{"incident":null,"userErrors":[{"code":"OTHER"}]}`), outbound.EffectUnknown, "", true, false},
		"nothing at all":                {200, data(`{"incident":null,"userErrors":[]}`), outbound.EffectUnknown, "", true, false},
		"null":                          {200, `{"data":null}`, outbound.EffectUnknown, "", true, false},
		"no JSON":                       {200, `<html>`, outbound.EffectUnknown, "", true, false},
		"object that is none":           {200, data(`{"incident":"i1"}`), outbound.EffectUnknown, "", true, false},
		"object with a status of 500":   {500, data(`{"incident":{"id":"i1"}}`), outbound.EffectUnknown, "", true, false},
		"500":                           {500, `{}`, outbound.EffectUnknown, "", true, false},
		"gateway's 401":                 {401, `denied`, outbound.EffectNone, outbound.ErrAuth, false, false},
		"gateway's 429":                 {429, ``, outbound.EffectNone, outbound.ErrRateLimited, true, false},
		"401 with errors nobody states": {401, with("OTHER"), outbound.EffectUnknown, "", true, false},
	} {
		v := codec.Judge(&httpadapter.Exchange{Operation: m.Row, Status: c.status, Header: http.Header{}, Body: []byte(c.body)})
		if v.Effect != c.effect || v.Code != c.code || v.Again != c.again || v.Look != c.look {
			t.Errorf("%s: effect %v, code %q, again %v, look %v", name, v.Effect, v.Code, v.Again, v.Look)
		}
		if c.effect == outbound.EffectApplied && v.ExternalRef != "i1" {
			t.Errorf("%s: the object's id is %q", name, v.ExternalRef)
		}
	}
}

// R2, R5: the text of the document is not what the request means, the input is; and the
// key, which goes into the input, is no part of it.
func TestCanonicalIsTheInput(t *testing.T) {
	m := mutation()
	canonical := func(m graphqladapter.Mutation, input map[string]any) string {
		var b bytes.Buffer
		if err := adapter(m).Canonical(&b, 1, m.Row, m.Call(outbound.Command{ID: "c"}, input).Message, true); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	was := canonical(m, map[string]any{"alert": "a"})
	if canonical(m, map[string]any{"alert": "b"}) == was {
		t.Error("another input is the same request")
	}
	if canonical(m, map[string]any{"alert": "a", "idempotencyKey": "k"}) != was {
		t.Error("the key counts")
	}
	m.Document += " # reworded"
	if canonical(m, map[string]any{"alert": "a"}) != was {
		t.Error("the document's text counts")
	}
}

// Only the operation's own document is sent for it, and only with an input.
func TestFreezeRefusesOtherDocuments(t *testing.T) {
	m := mutation()
	other := m
	other.Document = "mutation Other($input: In!) { createIncident(input: $input) { id } deleteAll }"
	for name, c := range map[string]struct {
		call outbound.Call
		ok   bool
	}{
		"own document":     {m.Call(outbound.Command{ID: "c"}, map[string]any{"alert": "a"}), true},
		"another document": {other.Call(outbound.Command{ID: "c"}, map[string]any{"alert": "a"}), false},
		"no input":         {m.Call(outbound.Command{ID: "c"}, nil), false},
	} {
		frozen, err := adapter(m).Freeze(m.Row, c.call.Message, "")
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if c.ok && bytes.Contains(frozen.Message.Body, []byte("idempotencyKey")) {
			t.Errorf("%s: the frozen body holds a key: %s", name, frozen.Message.Body)
		}
	}
}

// Several mutations share a route; what cannot work is said by Profile.
func TestProfile(t *testing.T) {
	a, b := mutation(), mutation()
	b.Row.Name, b.Row.Selector, b.Document = "incident.close", "closeIncident", "mutation M($input: In!) { closeIncident(input: $input) { id } }"
	if _, err := adapter(a, b).Profile(); err != nil {
		t.Errorf("two mutations: %v", err)
	}
	for says, change := range map[string]func(*graphqladapter.Mutation){
		"needs a Selector":       func(m *graphqladapter.Mutation) { m.Row.Selector = "" },
		"does not call":          func(m *graphqladapter.Mutation) { m.Document = "mutation { other(input: $input) }" },
		"the variable $input":    func(m *graphqladapter.Mutation) { m.Document = "mutation { createIncident }" },
		"are JSON pointers":      func(m *graphqladapter.Mutation) { m.Object = "incident" },
		"is no name of a field":  func(m *graphqladapter.Mutation) { m.Row.Selector = "create incident" },
		"is that of \"incident.": func(m *graphqladapter.Mutation) { m.Row.Name = "incident.again" },
	} {
		m := mutation()
		change(&m)
		if _, err := adapter(mutation(), m).Profile(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
