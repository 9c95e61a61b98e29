package fakeprovider

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// document is what these tests read of openapi.json.
type document struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	Summary    string `json:"summary"`
	Parameters []struct {
		Name, In string
	} `json:"parameters"`
	RequestBody *content           `json:"requestBody"`
	Responses   map[string]content `json:"responses"`
}

type content struct {
	Content map[string]struct {
		Schema schema `json:"schema"`
	} `json:"content"`
}

type schema struct {
	Ref                  string            `json:"$ref"`
	Type                 string            `json:"type"`
	Description          string            `json:"description"`
	Enum                 []string          `json:"enum"`
	OneOf                []schema          `json:"oneOf"`
	Items                *schema           `json:"items"`
	Required             []string          `json:"required"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties any               `json:"additionalProperties"`
}

func readDocument(t *testing.T) document {
	t.Helper()
	var d document
	if err := json.Unmarshal(OpenAPI(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Every route of the handler is in the document with its parameters and bodies,
// and the document has no other. One way a name is compared, the other counted.
func TestOpenAPIRoutes(t *testing.T) {
	d := readDocument(t)
	documented, used := 0, map[string]bool{"Error": true}
	for _, operations := range d.Paths {
		documented += len(operations)
	}
	routes := adminRoutes()
	if documented != len(routes) {
		t.Errorf("the document has %d operations, the handler %d", documented, len(routes))
	}
	for _, r := range routes {
		at := r.method + " " + r.path
		op, ok := d.Paths[r.path][strings.ToLower(r.method)]
		if !ok {
			t.Errorf("%s is not in the document", at)
			continue
		}
		var query []string
		for _, p := range op.Parameters {
			query = append(query, p.Name)
		}
		if !slices.Equal(query, r.query) {
			t.Errorf("%s: the document has the parameters %q, the handler %q", at, query, r.query)
		}
		if op.Summary == "" {
			t.Errorf("%s has no summary", at)
		}
		none := reflect.TypeFor[none]()
		if (op.RequestBody != nil) != (r.in != none) {
			t.Errorf("%s: a body in one of document and handler only", at)
		} else if r.in != none {
			d.compare(t, at+" takes", r.in, op.RequestBody.Content["application/json"].Schema, used)
		}
		success := "200"
		if r.out == none {
			success = "204"
		}
		answer, ok := op.Responses[success]
		if _, refusal := op.Responses["4XX"]; !ok || !refusal || len(op.Responses) != 2 {
			t.Errorf("%s: the document has not just %s and 4XX", at, success)
		}
		if r.out != none {
			d.compare(t, at+" answers", r.out, answer.Content["application/json"].Schema, used)
		}
	}
	d.compareObject(t, "errors", reflect.TypeFor[errorJSON](), d.Components.Schemas["Error"], used)
	if len(used) != len(d.Components.Schemas) {
		t.Errorf("the document has schemas that no route uses: %d of %d are used", len(used), len(d.Components.Schemas))
	}
}

// compare holds a Go type against its schema.
func (d document) compare(t *testing.T, at string, typ reflect.Type, s schema, used map[string]bool) {
	t.Helper()
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		used[name] = true
		s = d.Components.Schemas[name]
	}
	if len(s.OneOf) == 2 { // one or more
		d.compare(t, at, typ.Elem(), s.OneOf[0], used)
		s = s.OneOf[1]
	}
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if want := jsonType(typ); s.Type != want {
		t.Errorf("%s: the document has type %q, the handler %q", at, s.Type, want)
		return
	}
	switch {
	case s.Type == "array":
		d.compare(t, at+"[]", typ.Elem(), *s.Items, used)
	case typ.Kind() == reflect.Struct && typ != reflect.TypeFor[time.Time]():
		d.compareObject(t, at, typ, s, used)
	case typ == reflect.TypeFor[Kind]() && !slices.Equal(s.Enum, texts(Kinds())):
		t.Errorf("%s: the document has the kinds %q", at, s.Enum)
	case typ == reflect.TypeFor[Order]() && !slices.Equal(s.Enum, texts([]Order{OldestFirst, NewestFirst, Shuffled})):
		t.Errorf("%s: the document has the orders %q", at, s.Enum)
	}
}

func (d document) compareObject(t *testing.T, at string, typ reflect.Type, s schema, used map[string]bool) {
	t.Helper()
	if s.AdditionalProperties != false {
		t.Errorf("%s: the document allows fields that it does not name", at)
	}
	fields := map[string]bool{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = true
		p, ok := s.Properties[name]
		if !ok {
			t.Errorf("%s: the document lacks the field %q", at, name)
			continue
		}
		if required := slices.Contains(s.Required, name); required == (options == "omitempty") {
			t.Errorf("%s: field %q is required %t in the document, omitted when empty %t in the handler", at, name, required, options == "omitempty")
		}
		d.compare(t, at+"."+name, f.Type, p, used)
	}
	for name := range maps.Keys(s.Properties) {
		if !fields[name] {
			t.Errorf("%s: the handler lacks the field %q", at, name)
		}
	}
}

func jsonType(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[duration](), t == reflect.TypeFor[time.Time](), t.Kind() == reflect.String:
		return "string"
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Map, t.Kind() == reflect.Struct:
		return "object"
	case t.Kind() == reflect.Slice:
		return "array"
	case t.Kind() == reflect.Bool:
		return "boolean"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return "integer"
	}
	return fmt.Sprintf("unknown %v", t)
}

func texts[T ~string](list []T) (out []string) {
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}

func TestOpenAPIIsServed(t *testing.T) {
	f := New(func() Dialect { return nil }, nil)
	w := httptest.NewRecorder()
	f.Admin().ServeHTTP(w, httptest.NewRequest("GET", "/openapi.json", nil))
	var served, embedded any
	if err := json.Unmarshal(w.Body.Bytes(), &served); err != nil || w.Code != 200 {
		t.Fatalf("%d, %v", w.Code, err)
	}
	if err := json.Unmarshal(OpenAPI(), &embedded); err != nil || !reflect.DeepEqual(served, embedded) {
		t.Errorf("another document than the embedded one is served: %v", err)
	}
}
