package stripe

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// bodies are answers, of which encoding/json is the judge.
var bodies = []string{
	`{"id":"re_1","object":"refund","status":"succeeded","amount":500,"metadata":{},"list":[1,-2.5e+3,"\u00e9\n",true,false,null,[],{"a":{"b":[{}]}}]}`,
	" {\n\t\"id\" : \"pi_1\" , \"amount_received\" : 1250, \"last_payment_error\" : null }\r\n",
	`{}`, `{"id":null,"status":null,"amount_received":null}`, `{"amount_received":0}`, `{"amount_received":-5}`,
	`{"amount_received":1e3}`, `{"amount_received":1.5}`, `{"amount_received":"5"}`, `{"amount_received":007}`,
	`{"amount_received":99999999999999999999}`, `{"amount_received":999999999999999999}`,
	`{"id":"a","id":"b"}`, `{"id":"a","id":null}`, `{"ID":"a"}`, `{"Id":"a","id":"b"}`, "{\"\u017ftatus\":\"a\"}", `{"\u0069d":"a"}`,
	`{"id":"r\u0065"}`, `{"id":"é"}`, "{\"id\":\"\xff\"}", "{\"id\":\"a\x01\"}", `{"id":5}`, `{"id":{}}`, `{"status":["a"]}`,
	`{"error":{"type":"card_error","code":"card_declined"}}`, `{"error":null}`, `{"error":5}`,
	`{"last_setup_error":{"code":"x"},"last_payment_error":{"type":"y"}}`,
	`{"failure_code":"account_closed","failure_reason":"lost_or_stolen_card"}`,
	``, ` `, `null`, `5`, `"a"`, `[]`, `{`, `{"id"`, `{"id":`, `{"id":"re_1"`, `{"id":"re_1",}`, `{"id":"re_1"}x`, `{"id":"re_1"}{}`,
	`{,}`, `{"a":}`, `{"a":[1,]}`, `{"a":[,1]}`, `{"a":{"b"}}`, `{"a":{"b":1,}}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":+1}`,
	`{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\`, `{"a":tru}`, `{"a":nul}`, `{"a":trueish}`, "{\"a\":\"\t\"}", "{\"a\":\"\x7f\"}", `{"a" "b"}`, `{a:1}`,
	`{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
}

// What is read in one pass is what encoding/json reads (R5): an answer that it does
// not take whole proves nothing.
func FuzzAnswer(f *testing.F) {
	for _, body := range bodies {
		f.Add([]byte(body))
		f.Add([]byte(strings.ReplaceAll(body, "\"", "\" ")))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got, want answer
		gotErr, wantErr := got.decode(body), json.Unmarshal(body, &want)
		if (gotErr == nil) != (wantErr == nil) || wantErr == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%.200q: %+v, %v; encoding/json reads %+v, %v", body, got, gotErr, want, wantErr)
		}
		if scanned := new(answer); scanned.scan(body) && wantErr != nil {
			t.Errorf("%.200q: taken for plain, and encoding/json says %v", body, wantErr)
		}
	})
}

// The ordinary answer is read in one pass, which is what costs little.
func TestOrdinaryAnswersArePlain(t *testing.T) {
	for _, body := range bodies[:3] {
		if !new(answer).scan([]byte(body)) {
			t.Errorf("%s is not read in one pass", body)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	body := []byte(bodies[0])
	for _, w := range []struct {
		name string
		read func(*answer) error
	}{
		{"scanned", func(a *answer) error { return a.decode(body) }},
		{"encoding_json", func(a *answer) error { return json.Unmarshal(body, a) }},
	} {
		b.Run(w.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := w.read(&answer{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
