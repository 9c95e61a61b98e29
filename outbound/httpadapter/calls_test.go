package httpadapter

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

func TestCallsFillTheMessage(t *testing.T) {
	cmd := outbound.Command{ID: "cmd_1", Scope: "t"}
	type body struct {
		Amount int64  `json:"amount"`
		Note   string `json:"note,omitempty"`
	}
	two := rs.Operation{Name: "x.y", Method: "PUT", Path: "/a/{a}/b/{b}"}
	for _, tt := range []struct {
		call                      outbound.Call
		method, target, typ, body string
	}{
		{JSONCall(order, cmd, nil, body{Amount: 5, Note: "<&>"}), "POST", "/v2/orders", jsonType, `{"amount":5,"note":"<&>"}`},
		{JSONCall(order, cmd, nil, nil), "POST", "/v2/orders", jsonType, ""},
		{JSONCall(order, cmd, nil, (*body)(nil)), "POST", "/v2/orders", jsonType, ""},
		{JSONCall(order, cmd, nil, json.RawMessage(`{"rate":1.5}`)), "POST", "/v2/orders", jsonType, `{"rate":1.5}`},
		{JSONCall(order, cmd, nil, map[string]any{"at": time.Unix(0, 0).UTC(), "n": big.NewInt(7), "b": []byte("x")}), "POST", "/v2/orders", jsonType, `{"at":"1970-01-01T00:00:00Z","b":"eA==","n":7}`},
		{JSONCall(two, cmd, []string{"1 2", "a/b?c"}, nil), "PUT", "/a/1%202/b/a%2Fb%3Fc", jsonType, ""},
		{FormCall(charge, cmd, nil, url.Values{"b": {"2", "1"}, "a": {"x y"}}), "POST", "/v1/charges", formType, "a=x+y&b=2&b=1"},
		{FormCall(capture, cmd, []string{"ch_1"}, nil), "POST", "/v1/charges/ch_1/capture", formType, ""},
	} {
		m := tt.call.Message
		if tt.call.Err != nil || tt.call.Command != cmd || m.Method != tt.method || m.Target != tt.target || string(m.Body) != tt.body || fieldValue(m.Header, "Content-Type") != tt.typ {
			t.Errorf("call = %+v (body %s), want %s %s %s", tt.call, m.Body, tt.method, tt.target, tt.body)
		}
	}
}

func TestCallsRefuse(t *testing.T) {
	cmd := outbound.Command{ID: "cmd_1"}
	type price struct{ Amount float64 }
	type hidden struct {
		Skip float64 `json:"-"`
		n    float32
	}
	rate := 1.5
	for name, call := range map[string]outbound.Call{
		"empty id":       JSONCall(capture, cmd, []string{""}, nil),
		"dots":           FormCall(capture, cmd, []string{".."}, nil),
		"dots in a path": FormCall(capture, cmd, []string{"x/../y"}, nil),
		"backslash dots": FormCall(capture, cmd, []string{`x\..\y`}, nil),
		"control":        FormCall(capture, cmd, []string{"a\nb"}, nil),
		"missing id":     FormCall(capture, cmd, nil, nil),
		"too many ids":   FormCall(charge, cmd, []string{"ch_1"}, nil),
		"no JSON":        JSONCall(order, cmd, nil, map[string]any{"secret4111": func() {}}),
		"not a number":   JSONCall(order, cmd, nil, math.NaN()),
		"ambiguous":      JSONCall(order, cmd, nil, json.RawMessage(`{"a":4111,"a":2}`)),
	} {
		if call.Err == nil || strings.Contains(call.Err.Error(), "4111") || strings.Contains(call.Err.Error(), "\n") {
			t.Errorf("%s: error = %v, want one line without values", name, call.Err)
		}
	}
	for name, body := range map[string]any{
		"field":          price{12.5},
		"whole":          price{12},
		"pointer":        &price{12},
		"slice":          []price{{1}},
		"map":            map[string]any{"x": map[string]any{"y": 1.0}},
		"float32":        map[string]float32{"x": 1},
		"behind pointer": struct{ Rate *float64 }{&rate},
		"embedded":       struct{ price }{},
		"number":         map[string]any{"amount": json.Number("12.50")},
		"exponent":       map[string]any{"unit_amount": json.Number("1e3")},
		"raw":            json.RawMessage(`{"amount":{"Value":12.50}}`),
		"raw list":       json.RawMessage(`{"amounts":[1,2.5]}`),
	} {
		if call := JSONCall(order, cmd, nil, body); !errors.Is(call.Err, errFloat) {
			t.Errorf("%s: error = %v, want %v", name, call.Err, errFloat)
		}
	}
	for name, body := range map[string]any{
		"not encoded":    hidden{Skip: 1, n: 1},
		"decimal string": map[string]string{"amount": "12.50"},
		"integer":        map[string]any{"amount": 1250},
		"no amount":      json.RawMessage(`{"rate":1.5,"n":1e3}`),
		"nil pointer":    struct{ Rate *float64 }{},
	} {
		if call := JSONCall(order, cmd, nil, body); call.Err != nil {
			t.Errorf("%s: %v", name, call.Err)
		}
	}
}
