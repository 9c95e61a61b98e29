package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// What nobody may see.
func secretCases() []testCase {
	return []testCase{
		{
			name: "secrets/told", run: secretsTold,
			why:  "logs, spans and errors are read by many and kept for long: a key there lets its reader send as us, a body there is personal data (R14)",
			mend: "ProviderCode, RequestID, ExternalRef and ObjectStatus are ids and words of the provider, checked for their form, never its messages; Err names no URL and no value of the request",
		},
		{
			name: "card/never_stored", gift: carded, run: cardNeverStored,
			why:  "a stored card number makes the ledger a card vault, and a stored security code is forbidden outright",
			mend: "Sensitive of the row names every place that may hold a card number, Codes those of security codes; Freeze reports Sensitive for a message that fills one",
		},
	}
}

// hunt is what a text may not hold, by kind.
func (tr *trial) hunt() map[string][]string {
	found := map[string][]string{}
	for i, s := range tr.kit.Secrets {
		found[fmt.Sprintf("Secrets[%d]", i)] = []string{s}
	}
	for _, r := range tr.spy.all() {
		if c := credential(r.Header); len(c) >= 8 {
			found["credential"] = append(found["credential"], c)
		}
		if r.key != "" {
			found["raw key"] = append(found["raw key"], r.key)
		}
		if len(r.Body) >= 8 && r.write {
			found["request's body"] = append(found["request's body"], string(r.Body))
		}
	}
	for kind, values := range found {
		slices.Sort(values)
		found[kind] = slices.Compact(values)
	}
	return found
}

// wantClean searches a text.
func (tr *trial) wantClean(where, text string, secrets map[string][]string) {
	tr.Helper()
	for kind, values := range secrets {
		for _, v := range values {
			if strings.Contains(text, v) {
				tr.Errorf("%s shows the %s", where, kind)
				break
			}
		}
	}
}

// secretsTold makes calls of many ends against a provider whose errors repeat
// the request.
func secretsTold(tr *trial) {
	var errs strings.Builder
	for i, what := range echoes() {
		tr.spy.repeat(what)
		p := tr.process(settings{})
		call := func(name string, sample func(outbound.Command, string) outbound.Call) {
			if sample == nil {
				return
			}
			cmd := outbound.Command{ID: fmt.Sprintf("kit-%d-%s", i, name)}
			if o := p.make(tr.Context(), sample(cmd, tr.seed)); o.err != nil {
				fmt.Fprintln(&errs, o.err)
			}
		}
		for _, kind := range []Kind{DropAfterApply, Truncate, Empty, Redirect, RateLimit, Unauthorized, Status500, Status503, InFlight} {
			tr.inject(Fault{Kind: kind, Times: -1, Location: "https://elsewhere.test/?a=b"})
			call(string(kind), tr.sample.Call)
			tr.fake.ClearFaults()
		}
		call("call", tr.sample.Call)
		call("other", tr.sample.Other)
		call("refused", tr.sample.Refused)
		call("rejected", tr.sample.Rejected)
		call("card", tr.sample.Card)
	}
	secrets := tr.hunt()
	tr.wantClean("an error", errs.String(), secrets)
	tr.wantClean("a log line or span", tr.told.String(), secrets)
	var inPlain, requests strings.Builder
	for _, rec := range tr.ledger.kept() {
		inPlain.WriteString(inClear(rec))
		requests.Write(rec.Request)
	}
	tr.wantClean("a column of the ledger that is in clear", inPlain.String(), secrets)
	delete(secrets, "request's body") // that is the column for it
	tr.wantClean("the ledger's copy of a request", requests.String(), secrets)
}

// inClear is what operators read of a record.
func inClear(rec recordstore.Record) string {
	return fmt.Sprintln(rec.Provider, rec.Account, rec.Operation, rec.CommandID, rec.Evidence, rec.Outcome,
		rec.ExternalRef, rec.ObjectStatus, rec.RequestID, rec.ErrorCode)
}

// cardNeverStored fills each sensitive place of the row, and takes the sample's
// own call with card data, and loses the answer, so that the record stays open.
func cardNeverStored(tr *trial) {
	for _, place := range append(append([]rs.Place(nil), tr.row.Sensitive...), tr.row.Codes...) {
		call := tr.sample.Call(command, tr.seed)
		if fill(&call.Message, place) {
			tr.loseCard(fmt.Sprintf("%s %s", place.Kind, place.Name), call)
		}
	}
	if tr.sample.Card != nil {
		tr.loseCard("Sample.Card", tr.sample.Card(command, tr.seed))
	}
}

func (tr *trial) loseCard(where string, call outbound.Call) {
	tr.Helper()
	t := newTrial(tr.TB, tr.kit, tr.sample)
	t.inject(Fault{Kind: DropAfterApply})
	p := t.process(settings{})
	p.make(t.Context(), call)
	t.wait(lease + minWait)
	p.make(t.Context(), call)
	for _, rec := range t.ledger.kept() {
		for _, stored := range [][]byte{rec.Request, rec.ResponseBody, rec.ResponseHeader, []byte(inClear(rec))} {
			if bytes.Contains(stored, []byte(CardNumber)) || bytes.Contains(stored, []byte(CardCode)) {
				tr.Errorf("card data in %s was stored", where)
				return
			}
		}
	}
}

// fill puts card data into a place of a message; false where it cannot be there.
func fill(m *outbound.Message, place rs.Place) bool {
	switch place.Kind {
	case rs.InForm:
		form, err := url.ParseQuery(string(m.Body))
		if err != nil {
			return false
		}
		form.Set(place.Name, CardNumber)
		m.Body = []byte(form.Encode())
		return true
	case rs.InJSON:
		body, malformed := parseObject(m.Body)
		if malformed {
			return false
		}
		filled, ok := withValue(body, strings.Split(strings.TrimPrefix(place.Name, "/"), "/"))
		encoded, err := json.Marshal(filled)
		if !ok || err != nil {
			return false
		}
		m.Body = encoded
		return true
	}
	return false
}

// withValue puts card data at the end of a path, and makes what is missing on
// the way.
func withValue(v any, path []string) (any, bool) {
	if len(path) == 0 {
		return CardNumber, true
	}
	if path[0] == "*" {
		list, ok := v.([]any)
		if v == nil || ok && len(list) == 0 {
			list, ok = []any{nil}, true
		}
		if !ok {
			return v, false
		}
		var filled bool
		list[0], filled = withValue(list[0], path[1:])
		return list, filled
	}
	object, ok := v.(map[string]any)
	if v == nil || ok && object == nil {
		object, ok = map[string]any{}, true
	}
	if !ok {
		return v, false
	}
	name := unescape(path[0])
	inner, filled := withValue(object[name], path[1:])
	object[name] = inner
	return object, filled
}
