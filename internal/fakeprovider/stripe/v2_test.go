package stripe_test

import (
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

const destination = `{"name":"n","type":"webhook_endpoint","event_payload":"thin","enabled_events":["a"],
	"webhook_endpoint":{"url":"https://example.com"}}`

// R12: v2 answers a repeated key with the object's present state, without a
// replay header.
func TestV2ReplayIsTheLatestState(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	first := a.post("/v2/core/event_destinations", destination, key("k")).ok()
	path := "/v2/core/event_destinations/" + first.id()
	a.post(path, `{"name":"renamed","metadata":{"a":"1"}}`, key("u")).ok()
	again := a.post("/v2/core/event_destinations", destination, key("k")).ok()
	if again.id() != first.id() || again.str("name") != "renamed" || again.replayed() {
		t.Errorf("replay: id %q, name %q, header %v", again.id(), again.str("name"), again.replayed())
	}
	a.effects("v2.event_destination.create", 1)

	loud := newAPI(t, stripe.Config{V2ReplayHeader: true})
	loud.post("/v2/core/event_destinations", destination, key("k")).ok()
	if !loud.post("/v2/core/event_destinations", destination, key("k")).ok().replayed() {
		t.Error("V2ReplayHeader gives no header")
	}
}

func TestV2DeleteTakesAKey(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	path := "/v2/core/event_destinations/" + a.seed(stripe.EventDestination{})
	a.call("DELETE", path, "", key("k")).ok()
	a.call("DELETE", path, "", key("k")).ok()
	a.call("DELETE", path, "", key("other")).failed(404, "invalid_request_error", "resource_missing")
	a.effects("v2.event_destination.delete", 1)
}

func TestV2FailureRunsAgain(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	id := a.seed(stripe.Account{})
	a.post("/v2/core/accounts/"+id+"/close", "{}", key("c")).ok()
	closed := a.post("/v2/core/accounts/"+id, `{"display_name":"x"}`, key("k")).failed(400, "invalid_request_error", "")
	again := a.post("/v2/core/accounts/"+id, `{"display_name":"x"}`, key("k")).failed(400, "invalid_request_error", "")
	if closed.header.Get("Original-Request") == again.header.Get("Original-Request") {
		t.Error("the failure was answered from the key instead of running again")
	}
}

func TestV2WindowAndVersion(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	a.post("/v2/core/accounts", `{"display_name":"x"}`, key("k"), header("Stripe-Version", "")).failed(400, "invalid_request_error", "")
	first := a.post("/v2/core/accounts", `{"display_name":"x"}`, key("k")).ok().id()
	a.fake.Advance(29 * 24 * time.Hour)
	if got := a.post("/v2/core/accounts", `{"display_name":"x"}`, key("k")).ok().id(); got != first {
		t.Error("the key was forgotten within 30 days")
	}
	a.fake.Advance(2 * 24 * time.Hour)
	if got := a.post("/v2/core/accounts", `{"display_name":"x"}`, key("k")).ok().id(); got == first {
		t.Error("the key was remembered for more than 30 days")
	}
	a.effects("v2.account.create", 2)
}

func TestV2BodyComparisonIsASwitch(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	a.post("/v2/core/accounts", `{"display_name":"x","metadata":{"a":"1","b":"2"}}`, key("k")).ok()
	a.post("/v2/core/accounts", `{"metadata":{"b":"2","a":"1"}, "display_name":"x"}`, key("k")).ok()
	a.post("/v2/core/accounts", `{"display_name":"y"}`, key("k")).failed(400, "idempotency_error", "")
	blind := newAPI(t, stripe.Config{V2IgnoresBody: true})
	blind.post("/v2/core/accounts", `{"display_name":"x"}`, key("k")).ok()
	blind.post("/v2/core/accounts", `{"display_name":"y"}`, key("k")).ok()
	blind.effects("v2.account.create", 1)
}

// v1 and v2 remember keys apart.
func TestV1AndV2KeysAreApart(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	a.post("/v1/customers", "name=a", key("k")).ok()
	a.post("/v2/core/accounts", `{"display_name":"x"}`, key("k")).ok()
	a.effects("", 2)
}

func TestV2ListPages(t *testing.T) {
	a := newAPI(t, stripe.Config{})
	var ids []string
	for range 5 {
		ids = append(ids, a.seed(stripe.Account{}))
	}
	page := a.get2("/v2/core/accounts?limit=3")
	if len(page.data()) != 3 || page.data()[0].(map[string]any)["id"] != ids[4] {
		t.Errorf("first page has %d accounts", len(page.data()))
	}
	rest := a.get2(page.str("next_page_url"))
	if len(rest.data()) != 2 || rest.json["next_page_url"] != nil {
		t.Errorf("second page has %d accounts, next %v", len(rest.data()), rest.json["next_page_url"])
	}
}

func (a *api) get2(path string) answer {
	a.t.Helper()
	return a.call("GET", path, "").ok()
}
