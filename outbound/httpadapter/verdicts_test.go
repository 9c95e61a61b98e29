package httpadapter

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// A status proves something only where RFC 9110 says that nothing was done.
func TestByStatus(t *testing.T) {
	proofs := map[int]outbound.Code{
		400: outbound.ErrRejected, 401: outbound.ErrAuth, 402: outbound.ErrRefused, 403: outbound.ErrRejected,
		404: outbound.ErrRejected, 405: outbound.ErrRejected, 406: outbound.ErrRejected, 412: outbound.ErrRejected,
		413: outbound.ErrRejected, 415: outbound.ErrRejected, 429: outbound.ErrRateLimited,
	}
	for status := 300; status < 600; status++ {
		want := outbound.Verdict{Again: true}
		if code, proof := proofs[status]; proof {
			want = outbound.Verdict{Effect: outbound.EffectNone, Code: code, Again: status == 429}
		}
		if got := ByStatus(status); got != want {
			t.Errorf("%d: %+v, want %+v", status, got, want)
		}
	}
}

func TestWord(t *testing.T) {
	for s, want := range map[string]string{
		"CARD_DECLINED": "CARD_DECLINED", "a.b:c-1": "a.b:c-1", "": "", "two words": "", "{\"a\":1}": "", "ü": "", "a\nb": "",
		strings.Repeat("x", 255): strings.Repeat("x", 255), strings.Repeat("x", 256): "",
	} {
		if got := Word(s); got != want {
			t.Errorf("Word(%q) = %q", s, got)
		}
	}
	var got struct{ A, B, C, D, E, F JSONWord }
	if err := json.Unmarshal([]byte(`{"a":"x1","b":704,"c":null,"d":{"e":1},"e":["x"],"f":"with \u0022 quotes"}`), &got); err != nil {
		t.Fatal(err)
	}
	if got.A != "x1" || got.B != "704" || got.C != "" || got.D != "" || got.E != "" || got.F != "" {
		t.Errorf("%+v", got)
	}
}

func TestPlain(t *testing.T) {
	p := Plain{NoBody: []string{"charge.void"}}
	for _, c := range []struct {
		operation string
		status    int
		body      string
		want      outbound.Verdict
	}{
		{"charge.create", 201, `{"id":7,"status":"open"}`, outbound.Verdict{Effect: outbound.EffectApplied, ExternalRef: "7", ObjectStatus: "open"}},
		{"charge.create", 202, `{}`, outbound.Verdict{Effect: outbound.EffectApplied, Outcome: outbound.Pending}},
		{"charge.create", 200, ``, outbound.Verdict{Again: true}},
		{"charge.create", 200, `[]`, outbound.Verdict{Again: true}},
		{"charge.void", 204, ``, outbound.Verdict{Effect: outbound.EffectApplied}},
		{"charge.void", 200, `<html>`, outbound.Verdict{Again: true}},
		{"charge.create", 400, `{"code":"bad","id":"x"}`, outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRejected, ProviderCode: "bad"}},
		{"charge.create", 502, `<html>`, outbound.Verdict{Again: true}},
	} {
		op := charge
		op.Name = c.operation
		c.want.RequestID = "r-1"
		got := p.Judge(&Exchange{Operation: op, Status: c.status, Header: http.Header{"X-Request-Id": {"r-1"}}, Body: []byte(c.body)})
		if got != c.want {
			t.Errorf("%s %d %s: %+v, want %+v", c.operation, c.status, c.body, got, c.want)
		}
	}
}

// A look-up's object that proves nothing is the zero finding.
func TestFound(t *testing.T) {
	body := []byte(`{"id":"ch_1","status":"paid"}`)
	f := Found(Plain{}, charge, body)
	if f.Effect != outbound.EffectApplied || f.ExternalRef != "ch_1" || f.ObjectStatus != "paid" || f.Answer == nil || f.Answer.Status != 200 || string(f.Answer.Body) != string(body) {
		t.Errorf("%+v", f)
	}
	if f := Found(Plain{}, charge, []byte(`?`)); f.Effect != outbound.EffectUnknown || f.Answer != nil {
		t.Errorf("unreadable: %+v", f)
	}
}

// The ability to look up comes with a function, and not without one.
func TestWithFind(t *testing.T) {
	if _, able := WithFind(judge{}, nil).(Finder); able {
		t.Error("a codec without a function is a Finder")
	}
	if _, able := WithFind(judge{}, FindFunc(nil)).(Finder); able {
		t.Error("a codec with no function is a Finder")
	}
}
