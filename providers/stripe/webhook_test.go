package stripe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// The signatures of testdata/webhooks/refund_created.json, computed by OpenSSL:
//
//	(printf '1796000301.'; cat refund_created.json) | openssl dgst -sha256 -hmac whsec_golden_old
const (
	signedAt  = 1796000301
	signedOld = "ef2f360f3421e10958656ef1b7bbbece92b3ee8f01402fc6df183a6a266b2394" // with whsec_golden_old
	signedNew = "663efdd187e63d158f4da4c7ef1f9f397134d6d316a9282d062c5d4a3bb8796c" // with whsec_golden_new
	eventKey  = "511b9f3a-7c21-8d4e-9a10-0123456789ab"
	eventMark = "511b00112233445566778899aabbccddeeff"
)

func golden(t testing.TB) []byte {
	t.Helper()
	body, err := os.ReadFile("testdata/webhooks/refund_created.json")
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// at runs test at a second of the golden event's time.
func at(t *testing.T, second int64, test func()) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		time.Sleep(time.Until(time.Unix(second, 0)))
		test()
	})
}

// TestVerify holds which signatures count: any v1 of any secret, inside the
// tolerance in both directions, of the very bytes.
func TestVerify(t *testing.T) {
	t.Parallel()
	body := golden(t)
	header := fmt.Sprintf("t=%d,v1=%s", signedAt, signedNew)
	both := []string{"whsec_golden_new", "whsec_golden_old"}
	for _, c := range []struct {
		name, header string
		body         []byte
		secrets      []string
		later        time.Duration
		want         string // part of the error; "" for none
	}{
		{"genuine", header, body, both[:1], 0, ""},
		{"the old secret of two", fmt.Sprintf("t=%d,v1=%s", signedAt, signedOld), body, both, 0, ""},
		{"two signatures", fmt.Sprintf("t=%d,v1=%s,v1=%s,v0=00", signedAt, strings.Repeat("0", 64), signedNew), body, both[:1], 0, ""},
		{"blanks", fmt.Sprintf("t=%d, v1=%s", signedAt, signedNew), body, both[:1], 0, ""},
		{"at the tolerance", header, body, both, 5 * time.Minute, ""},
		{"before its time", header, body, both, -5 * time.Minute, ""},

		{"too old", header, body, both, 5*time.Minute + time.Second, "signed 5m1s ago"},
		{"in the future", header, body, both, -5*time.Minute - time.Second, "in the future"},
		{"another secret", header, body, []string{"whsec_golden_old"}, 0, "no signature fits"},
		{"another body", header, append(slices.Clone(body), ' '), both, 0, "no signature fits"},
		{"another time", fmt.Sprintf("t=%d,v1=%s", signedAt+1, signedNew), body, both, 0, "no signature fits"},
		{"only v0", fmt.Sprintf("t=%d,v0=%s", signedAt, signedNew), body, both, 0, "scheme v1"},
		{"half a signature", fmt.Sprintf("t=%d,v1=%s", signedAt, signedNew[:32]), body, both, 0, "no signature fits"},
		{"no hex", fmt.Sprintf("t=%d,v1=xyz", signedAt), body, both, 0, "malformed"},
		{"no time", "v1=" + signedNew, body, both, 0, "malformed"},
		{"two times", fmt.Sprintf("t=%d,t=%d,v1=%s", signedAt, signedAt, signedNew), body, both, 0, "malformed"},
		{"a negative time", "t=-1,v1=" + signedNew, body, both, 0, "malformed"},
		{"no pairs", "hello", body, both, 0, "malformed"},
		{"not signed", "", body, both, 0, "not signed"},
		{"a long header", header + strings.Repeat(",v0=00", 1000), body, both, 0, "more than 4096 bytes"},
		{"many signatures", fmt.Sprintf("t=%d%s", signedAt, strings.Repeat(",v1="+signedNew, 17)), body, both, 0, "malformed"},
		{"a long body", header, make([]byte, 1<<20+1), both, 0, "more than 1048576 bytes"},
		{"no secret", header, body, nil, 0, "signing secrets"},
		{"an empty secret", header, body, []string{"whsec_golden_new", ""}, 0, "signing secrets"},
	} {
		at(t, signedAt+int64(c.later/time.Second), func() {
			err := stripe.Verify(c.body, c.header, 5*time.Minute, c.secrets...)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "golden") || strings.Contains(err.Error(), signedNew)) {
				t.Errorf("%s: the error shows what it must not: %v", c.name, err)
			}
		})
	}
	if err := stripe.Verify(body, header, 0, both...); err == nil || !strings.Contains(err.Error(), "tolerance") {
		t.Errorf("without a tolerance: %v", err)
	}
}

// edited is the golden event with changes: names are paths of members, as
// "data.object.status"; nil takes a member away.
func edited(t *testing.T, changes map[string]any) []byte {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal(golden(t), &e); err != nil {
		t.Fatal(err)
	}
	for path, value := range changes {
		in, names := e, strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			in = in[name].(map[string]any)
		}
		if name := names[len(names)-1]; value == nil {
			delete(in, name)
		} else {
			in[name] = value
		}
	}
	body, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestEvent holds what an event is read as: by its request's key, else by the
// mark on its object, and as nothing where neither is ours.
func TestEvent(t *testing.T) {
	t.Parallel()
	key, err := keyderive.Parse(eventKey)
	if err != nil {
		t.Fatal(err)
	}
	seen, ok, err := stripe.Event(golden(t))
	want := outbound.Observation{
		Provider: "stripe", Account: "acct_seller", Mode: "live", Key: key, Operations: []string{"refund.create"},
		EventID: "evt_3Q0000000000000000000001", EventType: "refund.created", ExternalRef: "re_3Q000000000000000000000A",
		ObjectStatus: "pending", Effect: outbound.EffectApplied, Outcome: outbound.Pending, At: time.Unix(1796000300, 0).UTC(),
	}
	if err != nil || !ok || !reflect.DeepEqual(seen, want) {
		t.Errorf("got %+v, %t, %v", seen, ok, err)
	}

	foreign := map[string]any{"request.idempotency_key": "chosen-by-somebody"}
	for _, c := range []struct {
		name    string
		changes map[string]any
		ok      bool
		check   func(o outbound.Observation) bool
	}{
		{"by the mark", foreign, true, func(o outbound.Observation) bool {
			return o.Key.IsZero() && o.Mark == eventMark && slices.Equal(o.Operations, []string{"refund.create"}) && o.ExternalRef != ""
		}},
		{"an automatic event", map[string]any{"request": nil}, true, func(o outbound.Observation) bool { return o.Mark == eventMark }},
		{"an old version's request", map[string]any{"request": "req_1"}, true, func(o outbound.Observation) bool { return o.Mark == eventMark }},
		{"another request changed our object", map[string]any{"type": "refund.updated"}, true, func(o outbound.Observation) bool {
			return o.Key.IsZero() && o.Mark == eventMark
		}},
		{"a failed refund", map[string]any{"request": nil, "type": "refund.failed", "data.object.status": "failed", "data.object.failure_reason": "expired_or_canceled_card"}, true,
			func(o outbound.Observation) bool {
				return o.Effect == outbound.EffectNone && o.ProviderCode == "expired_or_canceled_card"
			}},
		{"our own account", map[string]any{"account": nil}, true, func(o outbound.Observation) bool { return o.Account == "" }},
		{"test mode", map[string]any{"livemode": false}, true, func(o outbound.Observation) bool { return o.Mode == "test" }},
		{"no mode", map[string]any{"livemode": nil}, true, func(o outbound.Observation) bool { return o.Mode == "" }},
		{"about the charge", map[string]any{"type": "charge.refunded", "data.object.object": "charge"}, true, func(o outbound.Observation) bool {
			return o.Key == key && o.ExternalRef == "" && o.ObjectStatus == ""
		}},

		{"nobody's", map[string]any{"request": nil, "data.object.metadata": nil}, false, nil},
		{"text in the mark's place", map[string]any{"request": nil, "data.object.metadata.samekey_command": "mine"}, false, nil},
		{"a mark on another kind of object", map[string]any{"request": nil, "data.object.object": "charge"}, false, nil},
		{"a mark on an object without a kind", map[string]any{"request": nil, "data.object.object": nil}, false, nil},
		{"an operation of nobody's", map[string]any{"type": "product.created", "data.object.object": "product"}, false, nil},
		{"metadata of another shape", map[string]any{"data.object.metadata": []string{"x"}}, false, nil},
	} {
		seen, ok, err := stripe.Event(edited(t, c.changes))
		if err != nil || ok != c.ok || ok && !c.check(seen) {
			t.Errorf("%s: got %+v, %t, %v", c.name, seen, ok, err)
		}
		if !ok && !reflect.DeepEqual(seen, outbound.Observation{}) {
			t.Errorf("%s: something came with it: %+v", c.name, seen)
		}
	}

	if _, ok, err := stripe.Event([]byte(`{"id":"evt_1","object":"v2.core.event","type":"v1.billing.meter.no_meter_found"}`)); ok || err != nil {
		t.Errorf("a thin event: %t, %v", ok, err)
	}
	for name, body := range map[string][]byte{
		"nothing": nil, "HTML": []byte("<html>"), "a list": []byte("[]"), "an object": []byte(`{"id":"re_1","object":"refund"}`),
		"no type": edited(t, map[string]any{"type": nil}), "too long": bytes.Repeat([]byte(" "), 1<<20+1),
	} {
		if _, ok, err := stripe.Event(body); ok || err == nil {
			t.Errorf("%s: got %t, %v, want an error", name, ok, err)
		}
	}
}

// TestEventsOfEveryOperation holds that the provider's own events of each
// operation that leaves some lead to its record, by the key, and to no other
// command's.
func TestEventsOfEveryOperation(t *testing.T) {
	t.Parallel()
	silent := []string{ // leave no event, or none that names the key
		"customer_balance_transaction.create", "checkout_session.create", "subscription.cancel",
		"v2.account.create", "v2.account.update", "v2.account.close", "v2.event_destination.create", "v2.event_destination.update",
	}
	for _, st := range steps() {
		t.Run(st.operation, func(t *testing.T) {
			probing(t, nil, func(p *probe) {
				l, id := p.sent(st.call(p, outbound.Command{ID: "cmd_1"}))
				list := p.do("GET", "/v1/events?"+url.Values{"limit": {"100"}}.Encode(), nil)
				led := false
				for _, raw := range list["data"].([]any) {
					body, err := json.Marshal(raw)
					if err != nil {
						p.Fatal(err)
					}
					seen, ok, err := stripe.Event(body)
					if err != nil {
						p.Fatalf("%s: %v", body, err)
					}
					if !ok || seen.Key.IsZero() {
						continue
					}
					if seen.Key != l.Key || seen.Mode != "test" || seen.Effect != outbound.EffectApplied {
						p.Errorf("got %+v", seen)
					}
					if slices.Contains(seen.Operations, st.operation) {
						led = led || seen.ExternalRef == id || seen.ExternalRef == ""
					}
				}
				if led == slices.Contains(silent, st.operation) {
					p.Errorf("an event led to it: %t", led)
				}
			})
		})
	}
}

// TestMarksOfLaterCommands holds that an object with several marks is news of
// the later command.
func TestMarksOfLaterCommands(t *testing.T) {
	t.Parallel()
	later := strings.Replace(eventMark, "511b", "511c", 1)
	seen, ok, err := stripe.Event(edited(t, map[string]any{
		"request": nil, "type": "payment_intent.succeeded", "data.object.object": "payment_intent", "data.object.status": "succeeded",
		"data.object.metadata.samekey_capture": later,
	}))
	if err != nil || !ok || seen.Mark != later || !slices.Equal(seen.Operations, []string{"payment_intent.capture"}) || seen.Outcome != outbound.Done {
		t.Errorf("got %+v, %t, %v", seen, ok, err)
	}
	seen, ok, err = stripe.Event(edited(t, map[string]any{"request": nil, "type": "payout.paid", "data.object.object": "payout", "data.object.status": "paid"}))
	if err != nil || !ok || !slices.Equal(seen.Operations, []string{"payout.create", "payout.reverse"}) {
		t.Errorf("got %+v, %t, %v", seen, ok, err)
	}
}

func FuzzEvent(f *testing.F) {
	f.Add(golden(f))
	f.Add([]byte(`{"id":"evt_1","object":"event","type":"refund.created","data":{"object":null},"request":null}`))
	f.Add([]byte(`{"id":"evt_1","object":"event","type":"charge.captured","data":{"object":{"payment_intent":{"id":"pi_1"}}},"request":{"idempotency_key":"` + eventKey + `"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		seen, ok, err := stripe.Event(body)
		switch {
		case err != nil && ok:
			t.Error("an error, and ok")
		case ok && seen.Key.IsZero() == (seen.Mark == ""):
			t.Errorf("neither key nor mark, or both: %+v", seen)
		case ok && (len(seen.Operations) == 0 || seen.EventID == "" || seen.EventType == ""):
			t.Errorf("an observation of nothing: %+v", seen)
		}
	})
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte("{}"), "t=1796000301,v1="+signedNew)
	f.Add([]byte(""), "t=,v1=")
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		if err := stripe.Verify(body, header, time.Minute, "whsec_nobody_signed_with_it"); err == nil {
			t.Error("a forged event was taken")
		}
	})
}
