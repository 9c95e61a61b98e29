package providertest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/providers/providertest"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// exchange is one request to a JSON provider and the answer that is wanted.
type exchange struct {
	method, path, body string
	header             map[string]string
	status             int
	code               string // of the error
	id                 string // "new", "same" as the last one, "" for any
}

// talk starts a fake of p and holds it to its answers.
func talk(t *testing.T, p providertest.JSONProvider, list ...exchange) *providertest.Fake {
	t.Helper()
	fake := providertest.New(t, providertest.JSONDialect(p), nil)
	last := ""
	for i, x := range list {
		header := map[string]string{"Authorization": "Bearer t"}
		for name, value := range x.header {
			header[name] = value
		}
		if x.method == "" {
			x.method = http.MethodPost
		}
		status, object := send(t.Context(), t, fake.Client(), x.method, fake.URL+x.path, x.body, header)
		problem, _ := object["error"].(map[string]any)
		code, _ := problem["code"].(string)
		id, _ := object["id"].(string)
		if status != x.status || code != x.code {
			t.Errorf("exchange %d: status %d, code %q; want %d, %q", i, status, code, x.status, x.code)
		}
		if x.id == "new" && (id == "" || id == last) || x.id == "same" && id != last {
			t.Errorf("exchange %d: the id is %q after %q, want a %s one", i, id, last, x.id)
		}
		last = id
	}
	return fake
}

func pay() []providertest.JSONOperation {
	return []providertest.JSONOperation{{Name: "payment.create", Path: "/pay", Prefix: "pay_"}}
}

func keyed(key string) map[string]string { return map[string]string{"Key": key} }

func TestJSONKeyInTheHeader(t *testing.T) {
	p := providertest.JSONProvider{
		Operations: pay(), Key: rs.Header("Key"), KeyMin: 2, KeyMax: 4, KeyRequired: true, Compare: true, Window: time.Hour, Token: "Bearer t",
	}
	fake := talk(t, p,
		exchange{path: "/pay", body: `{"a":1,"b":2}`, header: keyed("k1"), status: 200, id: "new"},
		exchange{path: "/pay", body: `{"b":2, "a":1}`, header: keyed("k1"), status: 200, id: "same"},
		exchange{path: "/pay", body: `{"a":2}`, header: keyed("k1"), status: 422, code: "mismatch"},
		exchange{path: "/pay", body: `{"a":1}`, header: keyed("k2"), status: 200, id: "new"},
		exchange{path: "/pay", body: `{"a":1}`, status: 400, code: "key_missing"},
		exchange{path: "/pay", body: `{"a":1}`, header: keyed("k"), status: 400, code: "key_length"},
		exchange{path: "/pay", body: `{"a":1}`, header: keyed("key-5"), status: 400, code: "key_length"},
		exchange{path: "/pay", body: `{"a":`, header: keyed("k3"), status: 400, code: "malformed"},
		exchange{path: "/pay", body: `{"a":1}{}`, header: keyed("k3"), status: 400, code: "malformed"},
		exchange{path: "/nothing", body: `{"a":1}`, header: keyed("k3"), status: 404, code: "no_such_route"},
		exchange{path: "/pay", header: map[string]string{"Key": "k3", "Authorization": "Bearer other"}, status: 401, code: "unauthorized"},
	)
	if got := fake.Effects("payment.create"); got != 2 {
		t.Errorf("effects = %d, want 2", got)
	}
}

func TestJSONKeyInTheBody(t *testing.T) {
	p := providertest.JSONProvider{Operations: pay(), Key: rs.JSON("/meta/key"), Compare: true, ReplayHeader: "Replayed", EchoHeader: "Echo"}
	talk(t, p,
		exchange{path: "/pay", body: `{"meta":{"key":"k1","x":1}}`, status: 200, id: "new"},
		exchange{path: "/pay", body: `{"meta":{"key":"k1","x":1}}`, status: 200, id: "same"},
		exchange{path: "/pay", body: `{"meta":{"key":"k1","x":2}}`, status: 422, code: "mismatch"},
		exchange{path: "/pay", body: `{"meta":{"x":1}}`, status: 200, id: "new"},
		exchange{path: "/pay", body: ``, status: 200, id: "new"},
	)
}

func TestJSONQuotedKey(t *testing.T) {
	p := providertest.JSONProvider{Operations: pay(), Key: rs.Header("Key"), Quoted: true}
	talk(t, p,
		exchange{path: "/pay", header: keyed(`"k1"`), status: 200, id: "new"},
		exchange{path: "/pay", header: keyed(`"k1"`), status: 200, id: "same"},
		exchange{path: "/pay", header: keyed(`k1`), status: 400, code: "key_not_quoted"},
	)
}

// A strict fake refuses a write without a key, of a provider that takes one.
func TestJSONStrict(t *testing.T) {
	for name, c := range map[string]struct {
		key    rs.Place
		status int
	}{"header": {rs.Header("Key"), 400}, "body": {rs.JSON("/key"), 400}, "no keys": {rs.Place{}, 200}} {
		p := providertest.JSONProvider{Operations: pay(), Key: c.key}
		fake := providertest.New(t, providertest.JSONDialect(p), &providertest.Options{Strict: true})
		header := map[string]string{"Authorization": "Bearer t"}
		status, _ := send(t.Context(), t, fake.Client(), "POST", fake.URL+"/pay", "{}", header)
		if effects := fake.Effects(""); status != c.status || effects != map[int]int{200: 1}[c.status] {
			t.Errorf("%s: status %d with %d effects, want %d", name, status, effects, c.status)
		}
		header["Key"] = "k1"
		if status, _ := send(t.Context(), t, fake.Client(), "POST", fake.URL+"/pay", `{"key":"k1"}`, header); status != 200 {
			t.Errorf("%s: status %d with a key, want 200", name, status)
		}
	}
}

// What a repeated key gives: the first answer, the present state, or an error.
func TestJSONReplays(t *testing.T) {
	operations := append(pay(), providertest.JSONOperation{
		Name: "payment.cancel", Path: "/pay/{id}/cancel", Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
			o := c.Object(c.IDs[0])
			if o == nil {
				return c.Reject(http.StatusNotFound, "no_payment")
			}
			o.Fields["status"] = "canceled"
			return c.Changed(o)
		},
	})
	for name, tt := range map[string]struct {
		provider providertest.JSONProvider
		status   int
		state    string
	}{
		"first":  {providertest.JSONProvider{}, 200, "done"},
		"latest": {providertest.JSONProvider{Latest: true}, 200, "canceled"},
		"conflict": {providertest.JSONProvider{Conflict: func(o *providertest.JSONObject) providertest.JSONAnswer {
			return providertest.JSONAnswer{Status: 409, Body: map[string]any{"status": o.Fields["status"]}}
		}}, 409, "canceled"},
	} {
		tt.provider.Operations, tt.provider.Key = operations, rs.Header("Key")
		fake := providertest.New(t, providertest.JSONDialect(tt.provider), nil)
		ask := func(path, key string) (int, map[string]any) {
			return send(t.Context(), t, fake.Client(), "POST", fake.URL+path, "{}", map[string]string{"Authorization": "t", "Key": key})
		}
		_, first := ask("/pay", "k1")
		if status, _ := ask("/pay/"+first["id"].(string)+"/cancel", "k2"); status != 200 {
			t.Errorf("%s: the cancelling is answered with %d", name, status)
		}
		seeded := fake.Seed(providertest.JSONSeed{Operation: "payment.create", Key: "k9", Fields: map[string]any{"status": "open"}})
		if status, got := ask("/pay/"+seeded+"/cancel", "k4"); status != 200 || got["id"] != seeded || got["status"] != "canceled" {
			t.Errorf("%s: cancelling what was seeded is answered with %d, %v", name, status, got)
		}
		if status, _ := ask("/pay/none/cancel", "k3"); status != 404 {
			t.Errorf("%s: the cancelling of nothing is answered with %d", name, status)
		}
		if status, again := ask("/pay", "k1"); status != tt.status || again["status"] != tt.state {
			t.Errorf("%s: got %d, %v; want %d, %s", name, status, again, tt.status, tt.state)
		}
		if got := fake.Effects(""); got != 3 {
			t.Errorf("%s: effects = %d, want 3", name, got)
		}
	}
}

// A decline is remembered where the provider keeps failures, a rejection never.
func TestJSONFailures(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		tries := 0
		p := providertest.JSONProvider{Key: rs.Header("Key"), KeepsFailures: keeps, Operations: []providertest.JSONOperation{{
			Name: "payment.create", Path: "/pay", Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
				if tries++; c.Body["wrong"] == true {
					return c.Reject(http.StatusBadRequest, "wrong")
				}
				return c.Refuse(http.StatusPaymentRequired, "declined")
			},
		}}}
		declined := exchange{path: "/pay", body: "{}", header: keyed("k1"), status: 402, code: "declined"}
		rejected := exchange{path: "/pay", body: `{"wrong":true}`, header: keyed("k2"), status: 400, code: "wrong"}
		fake := talk(t, p, declined, declined, rejected, rejected)
		want := 4
		if keeps {
			want = 3
		}
		if tries != want || fake.Effects("") != 0 {
			t.Errorf("keeps %t: it ran %d times with %d effects, want %d and none", keeps, tries, fake.Effects(""), want)
		}
	}
}

// Operations of one route are told apart by their body, and errors have the
// provider's own shape and status, as in GraphQL.
func TestJSONMatch(t *testing.T) {
	query := func(name string) func(map[string]any) bool {
		return func(body map[string]any) bool { return body["query"] == name }
	}
	p := providertest.JSONProvider{
		Operations: []providertest.JSONOperation{
			{Name: "a.create", Path: "/graphql", Match: query("a")},
			{Name: "b.list", Method: "POST", Path: "/graphql", Read: true, Match: query("b"),
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					return c.Answer(map[string]any{"n": len(c.Objects())})
				}},
		},
		Errors: map[providertest.Refusal]providertest.JSONError{providertest.RateLimited: {Status: 200, Code: "THROTTLED"}},
		ErrorBody: func(e providertest.JSONError) any {
			return map[string]any{"errors": []any{map[string]any{"code": e.Code}}}
		},
	}
	fake := talk(t, p,
		exchange{path: "/graphql", body: `{"query":"a"}`, status: 200, id: "new"},
		exchange{path: "/graphql", body: `{"query":"b"}`, status: 200},
		exchange{path: "/graphql", body: `{"query":"c"}`, status: 404},
	)
	fake.Inject(providertest.Fault{Kind: providertest.RateLimit, Operation: "a.create"})
	status, object := send(t.Context(), t, fake.Client(), "POST", fake.URL+"/graphql", `{"query":"a"}`, map[string]string{"Authorization": "t"})
	errs, _ := object["errors"].([]any)
	if status != 200 || len(errs) != 1 || errs[0].(map[string]any)["code"] != "THROTTLED" {
		t.Errorf("got %d, %v; want the provider's own shape", status, object)
	}
	if got := fake.Effects("a.create"); got != 1 {
		t.Errorf("effects = %d, want 1", got)
	}
}

// A description that cannot mean anything is the test's mistake.
func TestJSONProviderIsChecked(t *testing.T) {
	for name, p := range map[string]providertest.JSONProvider{
		"no operations": {},
		"no name":       {Operations: []providertest.JSONOperation{{Path: "/pay"}}},
		"no path":       {Operations: []providertest.JSONOperation{{Name: "payment.create", Path: "pay"}}},
		"a form field":  {Operations: pay(), Key: rs.Form("key")},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nobody minds", name)
				}
			}()
			providertest.JSONDialect(p)
		}()
	}
}
