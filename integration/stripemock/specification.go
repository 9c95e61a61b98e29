package stripemock

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stripe/stripe-mock/embedded"
)

// Specification is Stripe's own OpenAPI description of API v1, as stripe-mock
// carries it. It is safe for concurrent use.
type Specification struct {
	paths   []specPath
	objects openapi3.Schemas // by the object's name, as "charge"
}

// specPath is one path of the specification, cut at its slashes.
type specPath struct {
	segments []string // "{charge}" stands for any one segment
	item     *openapi3.PathItem
}

// Load reads the specification, in about a second. Objects may have only the
// members that it names: a fake that makes up a member is wrong too.
func Load() (*Specification, error) {
	doc, err := openapi3.NewLoader().LoadFromData(embedded.OpenAPISpec)
	if err != nil {
		return nil, fmt.Errorf("read stripe-mock's specification: %w", err)
	}
	for _, ref := range doc.Components.Schemas {
		closeObjects(ref, map[*openapi3.Schema]bool{})
	}
	s := &Specification{objects: doc.Components.Schemas}
	for path, item := range doc.Paths.Map() {
		s.paths = append(s.paths, specPath{strings.Split(path, "/"), item})
	}
	return s, nil
}

// closeObjects forbids members that a schema does not name, in it and in the
// schemas that stand inside it. Referenced schemas are closed by themselves.
func closeObjects(ref *openapi3.SchemaRef, seen map[*openapi3.Schema]bool) {
	if ref == nil || ref.Value == nil || seen[ref.Value] {
		return
	}
	schema := ref.Value
	seen[schema] = true
	extra := schema.AdditionalProperties
	if len(schema.Properties) > 0 && extra.Has == nil && extra.Schema == nil {
		no := false
		schema.AdditionalProperties.Has = &no
	}
	inner := []*openapi3.SchemaRef{schema.Items, extra.Schema}
	for _, property := range schema.Properties {
		inner = append(inner, property)
	}
	inner = append(append(append(inner, schema.AnyOf...), schema.OneOf...), schema.AllOf...)
	for _, next := range inner {
		if next != nil && next.Ref == "" {
			closeObjects(next, seen)
		}
	}
}

// Check compares an answer with the schema that the specification has for the
// method, path and status. It returns nil where they agree, and where the
// specification has no such API: v2.
func (s *Specification) Check(method, path string, status int, body []byte) error {
	if strings.HasPrefix(path, "/v2/") {
		return nil
	}
	operation := s.find(method, path)
	if operation == nil {
		return fmt.Errorf("%s %s is not in Stripe's specification", method, path)
	}
	response := operation.Responses.Value(strconv.Itoa(status))
	if response == nil {
		response = operation.Responses.Default() // an error
	}
	content := response.Value.Content.Get("application/json")
	if content == nil {
		return fmt.Errorf("%s %s: the specification has no JSON for status %d", method, path, status)
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return fmt.Errorf("%s %s: %d: %w", method, path, status, err)
	}
	if err := errors.Join(conforms(content.Schema.Value, value), s.events(value)); err != nil {
		return fmt.Errorf("%s %s: %d: %w", method, path, status, err)
	}
	return nil
}

// events checks the objects inside an event or a list of events, which the
// schema of an event leaves open.
func (s *Specification) events(value any) error {
	o, _ := value.(map[string]any)
	switch o["object"] {
	case "event":
		data, _ := o["data"].(map[string]any)
		inside, _ := data["object"].(map[string]any)
		name, _ := inside["object"].(string)
		schema := s.objects[name]
		if schema == nil {
			return fmt.Errorf("the event %v has an object of kind %q", o["type"], name)
		}
		return conforms(schema.Value, inside)
	case "list":
		members, _ := o["data"].([]any)
		var all []error
		for _, member := range members {
			all = append(all, s.events(member))
		}
		return errors.Join(all...)
	}
	return nil
}

func conforms(schema *openapi3.Schema, value any) error {
	return schema.VisitJSON(value, openapi3.MultiErrors(), openapi3.SetSchemaErrorMessageCustomizer(reason))
}

// reason says what is wrong in a line; the library would print the schema too.
func reason(e *openapi3.SchemaError) string {
	return "/" + strings.Join(e.JSONPointer(), "/") + ": " + e.Reason
}

// find returns the operation of a path. A literal segment wins over one that
// stands for any.
func (s *Specification) find(method, path string) *openapi3.Operation {
	got := strings.Split(path, "/")
	var best *openapi3.Operation
	fewest := len(got) + 1
	for _, p := range s.paths {
		wild, ok := match(p.segments, got)
		if operation := operationOf(p.item, method); ok && operation != nil && wild < fewest {
			best, fewest = operation, wild
		}
	}
	return best
}

func operationOf(item *openapi3.PathItem, method string) *openapi3.Operation {
	switch method {
	case http.MethodGet:
		return item.Get
	case http.MethodPost:
		return item.Post
	case http.MethodDelete:
		return item.Delete
	}
	return nil
}

// match reports whether a path has a template's form, and how many of its
// segments the template leaves open.
func match(template, path []string) (wild int, ok bool) {
	if len(template) != len(path) {
		return 0, false
	}
	for i, segment := range template {
		switch {
		case strings.HasPrefix(segment, "{") && path[i] != "":
			wild++
		case segment != path[i]:
			return 0, false
		}
	}
	return wild, true
}
