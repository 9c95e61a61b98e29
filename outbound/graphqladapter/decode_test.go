package graphqladapter_test

import (
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// R29: what a carrier hands on is the object, and not GraphQL's wrapping.
func TestEncodeAndDecode(t *testing.T) {
	m := mutation()
	message, err := m.Encode(m.Row, []byte(`{"alert":"a"}`))
	if err != nil || message.Target != "/graphql" {
		t.Fatalf("%+v, %v", message, err)
	}
	if _, err := adapter(m).Freeze(m.Row, message, ""); err != nil {
		t.Errorf("what Encode makes cannot be frozen: %v", err)
	}
	if _, err := m.Encode(m.Row, []byte(`{`)); err == nil {
		t.Error("parameters that are no JSON were encoded")
	}
	for body, want := range map[string]string{
		`{"data":{"createIncident":{"incident":{"id":"i1"}}}}`: `{"id":"i1"}`,
		`{"data":{"createIncident":{"incident":null}}}`:        "",
		`{"data":null}`: "",
		`[`:             "",
	} {
		got, err := m.Decode(m.Row, &outbound.Answer{Body: []byte(body)})
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
}
