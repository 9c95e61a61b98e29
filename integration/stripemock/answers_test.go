package stripemock_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/integration/stripemock"
)

// The specification refuses what Stripe would not answer, and says what is
// wrong without the values.
func TestSpecificationRefuses(t *testing.T) {
	t.Parallel()
	spec, err := stripemock.Load()
	if err != nil {
		t.Fatal(err)
	}
	const good = `{"id":"re_1","object":"refund","amount":300,"charge":"ch_1","created":1,"currency":"eur","metadata":null,"status":"succeeded"}`
	list := func(member string) string {
		return `{"object":"list","url":"/v1/refunds","has_more":false,"data":[` + member + `]}`
	}
	event := func(inside string) string {
		return `{"id":"evt_1","object":"event","created":1,"livemode":false,"pending_webhooks":0,"request":null,"api_version":null,"type":"refund.created","data":{"object":` + inside + `}}`
	}
	for _, x := range []struct {
		method, path, body string
		status             int
		want               string // in the error; "" for none
	}{
		{"POST", "/v1/refunds", good, 200, ""},
		{"GET", "/v1/refunds/re_1", good, 200, ""},
		{"GET", "/v1/refunds", list(good), 200, ""},
		{"GET", "/v1/events/evt_1", event(good), 200, ""},
		{"POST", "/v1/refunds", `{"error":{"type":"idempotency_error","message":"x"}}`, 400, ""},
		{"POST", "/v2/core/accounts", `{}`, 200, ""}, // not in it
		{"POST", "/v1/refunds", strings.Replace(good, `"currency":"eur",`, "", 1), 200, `"currency" is missing`},
		{"POST", "/v1/refunds", strings.Replace(good, "300", `"300"`, 1), 200, "/amount"},
		{"POST", "/v1/refunds", strings.Replace(good, "{", `{"colour":"red",`, 1), 200, `"colour" is unsupported`},
		{"POST", "/v1/refunds", strings.Replace(good, `"ch_1"`, `{"id":"ch_1"}`, 1), 200, "/charge"},
		{"GET", "/v1/refunds", list(strings.Replace(good, "300", "null", 1)), 200, "/data/0/amount"},
		{"GET", "/v1/events/evt_1", event(strings.Replace(good, "300", "null", 1)), 200, "/amount"},
		{"GET", "/v1/events/evt_1", event(`{"object":"ghost"}`), 200, "ghost"},
		{"POST", "/v1/refunds", `{"error":{"type":"no_such_error"}}`, 400, "/error/type"},
		{"POST", "/v1/refunds", `{`, 200, "unexpected end"},
		{"POST", "/v1/ghosts", `{}`, 200, "not in Stripe's specification"},
		{http.MethodPut, "/v1/refunds", `{}`, 200, "not in Stripe's specification"},
	} {
		err := spec.Check(x.method, x.path, x.status, []byte(x.body))
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s %s %s: got %v, want %q", x.method, x.path, x.body, err, x.want)
		}
	}
}
