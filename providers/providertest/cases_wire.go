package providertest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// What is sent: key, bytes, marks, and nothing that does not belong there.
func wireCases() []testCase {
	return []testCase{
		{
			name: "wire/key", needs: keyed, run: wireKey,
			why:  "the key that the provider reads is what makes a resend harmless; one that stands elsewhere, or is another one, makes every resend a second payment (R2, R3)",
			mend: "Keys of the row name every place where the provider reads the key, KeyMax its limit; the key goes there as it is given, nothing added and nothing cut off",
		},
		{
			name: "wire/same_key", needs: keyed, run: wireSameKey,
			why:  "a new key at a further attempt is a new payment (R8, C29)",
			mend: "the key of the Delivery goes into every attempt; nothing makes a key of its own, in a transport neither",
		},
		{
			name: "wire/same_bytes", needs: keyed, run: wireSameBytes,
			why:  "a provider that compares refuses other bytes under a known key, and one that does not would hide the change (C02, C12)",
			mend: "the message of the Delivery is sent as it is: no time, nonce or attempt number is added after Freeze",
		},
		{
			name: "wire/takeover", needs: windowed, run: wireTakeover,
			why:  "after a crash another process resends, perhaps of another build: the same key and bytes, or it pays twice (R8, C09)",
			mend: "nothing that is sent depends on the process or the adapter's instance; what must be fixed is fixed by Freeze",
		},
		{
			name: "wire/mark", needs: marked, run: wireMark,
			why:  "an effect whose answer was lost is found by its mark; a request without it leaves nothing to search for",
			mend: "Marks of the row name places that the provider keeps and a caller may leave free; Freeze stamps them",
		},
		{
			name: "wire/frozen", run: wireFrozen,
			why:  "the frozen message is stored and resent later: a credential in it leaks and grows old, a key in it is a second one",
			mend: "Freeze keeps the headers that Config.Frozen names, and neither key nor credentials; those are put in at each attempt",
		},
		{
			name: "fingerprint/headers", needs: keyed, run: fingerprintHeaders,
			why:  "a retry comes with another trace id and perhaps another token; a conflict there turns an honest retry away (R23, C08)",
			mend: "Canonical counts method, target, meaningful parameters and body, and no header that speaks of the transport, the trace or the caller's credentials",
		},
	}
}

// keyFrom reads what stands in a place of a request.
func keyFrom(r *Received, place rs.Place) (value string, readable bool) {
	switch place.Kind {
	case rs.InHeader:
		value = r.Header.Get(place.Name)
		if n := len(value); n > 2 && value[0] == '"' && value[n-1] == '"' { // a structured-field string
			value = value[1 : n-1]
		}
		return value, true
	case rs.InForm:
		form, err := url.ParseQuery(string(r.Body))
		return form.Get(place.Name), err == nil
	case rs.InJSON:
		body, malformed := parseObject(r.Body)
		value, _ = valueAt(body, place.Name).(string)
		return value, !malformed
	}
	return "", false
}

func wireKey(tr *trial) {
	p := tr.process(settings{})
	p.do(tr.Context())
	arrived := tr.spy.of(tr.row.Name)
	if len(arrived) == 0 {
		tr.Fatalf("no request of %s arrived at the provider; it saw %s", tr.row.Name, tr.sawInstead())
	}
	call := tr.sample.Call(command, tr.seed)
	key, err := p.Key(command, tr.row.Name, call.Account)
	if err != nil {
		tr.Fatalf("the command has no key: %v", err)
	}
	want := key.Raw()
	for _, place := range tr.row.Keys {
		if got, readable := keyFrom(arrived[0].Received, place); readable && got != want {
			tr.Errorf("%s %s holds %s, want the derived key", place.Kind, place.Name, length(got))
		}
	}
	if got := arrived[0].key; got != want {
		tr.Errorf("the provider reads %s as the key, want the derived one", length(got))
	}
	if tr.row.KeyMax > 0 && len(arrived[0].key) > tr.row.KeyMax {
		tr.Errorf("the key has %d characters, the row allows %d", len(arrived[0].key), tr.row.KeyMax)
	}
}

// length describes a value without showing it.
func length(s string) string {
	if s == "" {
		return "nothing"
	}
	return fmt.Sprintf("another value of %d characters", len(s))
}

// sawInstead names the operations that the fake saw.
func (tr *trial) sawInstead() string {
	var names []string
	for _, r := range tr.spy.all() {
		names = append(names, fmt.Sprintf("%s %s (%q)", r.Method, r.Path, r.operation))
	}
	if len(names) == 0 {
		return "nothing at all"
	}
	return strings.Join(names, ", ")
}

// deliverThrice makes three deliveries of one call: two are lost on their way.
func deliverThrice(tr *trial) []seen {
	tr.inject(Fault{Kind: DropBeforeApply, Times: 2})
	o := tr.process(settings{attempts: 3}).do(tr.Context())
	arrived := tr.spy.of(tr.row.Name)
	if len(arrived) != 3 {
		tr.Errorf("%d requests of three attempts arrived, two of which were lost without an answer: %s", len(arrived), o.say())
	}
	return arrived
}

func wireSameKey(tr *trial) {
	for i, r := range deliverThrice(tr) {
		if first := tr.spy.of(tr.row.Name)[0]; r.key != first.key {
			tr.Errorf("delivery %d has another key than the first", i+1)
		}
	}
}

func wireSameBytes(tr *trial) { tr.sameBytes(deliverThrice(tr)) }

// sameBytes compares bodies, targets and content types.
func (tr *trial) sameBytes(arrived []seen) {
	tr.Helper()
	for i, r := range arrived {
		first := arrived[0]
		switch {
		case !bytes.Equal(r.Body, first.Body):
			tr.Errorf("delivery %d has another body than the first: %d and %d bytes", i+1, len(r.Body), len(first.Body))
		case r.Method != first.Method || r.Path != first.Path || r.Query.Encode() != first.Query.Encode():
			tr.Errorf("delivery %d goes to another place than the first", i+1)
		case r.Header.Get("Content-Type") != first.Header.Get("Content-Type"):
			tr.Errorf("delivery %d has the content type %q, the first %q", i+1, r.Header.Get("Content-Type"), first.Header.Get("Content-Type"))
		}
	}
}

// wireTakeover: the first process dies with its request still on the way, which
// arrives after all once the second one has resent.
func wireTakeover(tr *trial) {
	tr.inject(Fault{Kind: LateApply})
	first := tr.process(settings{}).do(tr.Context())
	if first.err == nil {
		tr.Errorf("a call whose connection broke before an answer ended in %s", first.say())
	}
	tr.wait(lease + minWait)
	second := tr.process(settings{attempts: 2}).do(tr.Context())
	if second.err != nil {
		tr.Errorf("the second process, inside the key's window, ended in %s", second.say())
	}
	tr.fake.Release()
	tr.fake.AwaitRequests(tr.row.Name, 2)
	tr.wait(minWait)
	tr.wantEffects(1)
	tr.truthful(second)
	arrived := tr.spy.of(tr.row.Name)
	tr.sameBytes(arrived)
	for i, r := range arrived {
		if r.key != arrived[0].key {
			tr.Errorf("delivery %d, of another process, has another key", i+1)
		}
	}
}

func wireMark(tr *trial) {
	p := tr.process(settings{})
	p.do(tr.Context())
	arrived := tr.spy.of(tr.row.Name)
	if len(arrived) == 0 {
		tr.Fatalf("no request of %s arrived at the provider; it saw %s", tr.row.Name, tr.sawInstead())
	}
	key, err := p.Key(command, tr.row.Name, tr.sample.Call(command, tr.seed).Account)
	for _, place := range tr.row.Marks {
		value, readable := keyFrom(arrived[0].Received, place)
		switch {
		case !readable:
		case err == nil && value != key.Mark(), len(value) != 36:
			tr.Errorf("%s %s holds %s, want the command's mark; the sample's Call leaves the place free", place.Kind, place.Name, length(value))
		}
	}
}

func wireFrozen(tr *trial) {
	const canary = "kit-credential-0f3a91"
	call := tr.sample.Call(command, tr.seed)
	m := call.Message
	m.Header = append(append([]outbound.Field(nil), m.Header...),
		outbound.Field{Name: "Authorization", Value: "Bearer " + canary}, outbound.Field{Name: "Cookie", Value: "s=" + canary},
		outbound.Field{Name: "Traceparent", Value: "00-" + canary})
	for _, place := range tr.row.Keys {
		if place.Kind == rs.InHeader {
			m.Header = append(m.Header, outbound.Field{Name: place.Name, Value: canary})
		}
	}
	frozen, err := tr.adapter(tr.fake.Transport()).Freeze(tr.row, m, strings.Repeat("0", 36))
	if err != nil {
		tr.Fatalf("Freeze refuses the sample's call with the headers of a caller's request: %v", err)
	}
	for _, f := range frozen.Message.Header {
		if strings.Contains(f.Value, canary) {
			tr.Errorf("the frozen message holds the caller's header %s", f.Name)
		}
		for _, place := range tr.row.Keys {
			if place.Kind == rs.InHeader && strings.EqualFold(place.Name, f.Name) {
				tr.Errorf("the frozen message holds the key's header %s", f.Name)
			}
		}
	}
	if bytes.Contains(frozen.Message.Body, []byte(canary)) {
		tr.Errorf("the frozen body holds a header of the caller's request")
	}
}

func fingerprintHeaders(tr *trial) {
	tr.inject(Fault{Kind: RateLimit})
	p := tr.process(settings{})
	call := func(trace string) outbound.Call {
		c := tr.sample.Call(command, tr.seed)
		c.Message.Header = append(append([]outbound.Field(nil), c.Message.Header...),
			outbound.Field{Name: "Traceparent", Value: trace}, outbound.Field{Name: "X-Request-Id", Value: trace},
			outbound.Field{Name: http.CanonicalHeaderKey("user-agent"), Value: trace})
		return c
	}
	p.make(tr.Context(), call("one"))
	if again := p.make(tr.Context(), call("two")); again.is(outbound.ErrFingerprintConflict) {
		tr.Errorf("the same call with another trace id, request id and user agent is taken for another request: %s", again.say())
	}
}
