package fakeprovider_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

func admin(t *testing.T, f *fakeprovider.Fake, method, path, body string, into any) int {
	t.Helper()
	w := httptest.NewRecorder()
	f.Admin().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Errorf("%s %s: %v in %q", method, path, err, w.Body)
		}
	}
	return w.Code
}

func TestAdmin(t *testing.T) {
	f, c := serve(t, nil)
	var armed []map[string]any
	if code := admin(t, f, "POST", "/faults", `[{"kind":"drop_after_apply","operation":"order.create"},
		{"kind":"429","retry_after":"3s","times":2}]`, nil); code != 200 {
		t.Fatalf("POST /faults = %d", code)
	}
	if admin(t, f, "GET", "/faults", "", &armed); len(armed) != 2 || armed[1]["retry_after"] != "3s" {
		t.Errorf("armed = %v", armed)
	}
	if r := c.post(t.Context(), "k", "a"); r.err == nil {
		t.Errorf("got status %d, want a lost connection", r.status)
	}
	if got := c.post(t.Context(), "k", "a"); got.status != 429 || got.header.Get("Retry-After") != "3" {
		t.Errorf("got %d, Retry-After %q; want 429, 3", got.status, got.header.Get("Retry-After"))
	}
	admin(t, f, "DELETE", "/faults", "", nil)
	c.post(t.Context(), "k", "a").want(t, 201, true)

	var report struct {
		Effects                     map[string]int
		Total, Duplicates, Requests int
	}
	admin(t, f, "GET", "/effects", "", &report)
	if report.Effects["order.create"] != 1 || report.Total != 1 || report.Requests != 3 {
		t.Errorf("effects = %+v", report)
	}
	var now struct{ Now time.Time }
	before := f.Now()
	if admin(t, f, "POST", "/advance", `{"duration":"25h"}`, &now); now.Now.Sub(before) < 25*time.Hour {
		t.Errorf("the clock moved by %v", now.Now.Sub(before))
	}
	c.post(t.Context(), "k", "a").want(t, 201, false)
	admin(t, f, "GET", "/effects", "", &report)
	if report.Duplicates != 1 {
		t.Errorf("duplicates = %d, want 1", report.Duplicates)
	}
	var log []map[string]any
	if admin(t, f, "GET", "/requests?operation=order.create&limit=2", "", &log); len(log) != 2 || log[0]["replayed"] != true {
		t.Errorf("requests = %v", log)
	}
	if strings.Contains(strings.ToLower(mustJSON(t, log)), `"k"`) {
		t.Error("the request log shows a raw key")
	}
	var seed struct{ ID string }
	if admin(t, f, "POST", "/seed", `{"type":"orders","object":{"n":2}}`, &seed); seed.ID != "order_4" {
		t.Errorf("seeded %q, want order_4", seed.ID)
	}
	if code := admin(t, f, "POST", "/reset", "", nil); code != 204 || f.Effects("") != 0 {
		t.Errorf("reset = %d, effects %d", code, f.Effects(""))
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAdminRelease(t *testing.T) {
	f, c := serve(t, nil)
	admin(t, f, "POST", "/faults", `{"kind":"slow_apply"}`, nil)
	done := make(chan result, 1)
	go func() { done <- c.post(t.Context(), "k", "a") }()
	await(t, f, func(s fakeprovider.Snapshot) bool { return s.Held == 1 })
	admin(t, f, "POST", "/release", "", nil)
	(<-done).want(t, 201, false)
}

// Bad input to the admin API: 4xx with a reason, and nothing changes.
func TestAdminRefuses(t *testing.T) {
	f := fakeprovider.New(newShop, nil)
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/faults", `{"kind":"explode"}`, 400},
		{"POST", "/faults", `{"kind":"429","delay":5}`, 400},
		{"POST", "/faults", `{"kind":"429","delay":"soon"}`, 400},
		{"POST", "/faults", `{"kind":"429","sort":"x"}`, 400},
		{"POST", "/faults", `{"kind":"429"} trailing`, 400},
		{"POST", "/faults", ``, 400},
		{"POST", "/faults", `[`, 400},
		{"POST", "/faults", strings.Repeat(" ", 1<<20) + `{}`, 413},
		{"POST", "/advance", `{"duration":"-1h"}`, 400},
		{"POST", "/advance", `{}`, 400},
		{"POST", "/seed", `{"type":"nothing"}`, 400},
		{"POST", "/seed", `{"type":"orders","object":{"n":"x"}}`, 400},
		{"POST", "/seed", `{"type":"orders"}`, 400},
		{"POST", "/faults", `{"kind":"429","operation":"order.creat"}`, 400},
		{"POST", "/faults", `[{"kind":"429"},{"kind":"429","sort":"x"}]`, 400},
		{"POST", "/faults", `{"kind":"429","chance":1.5}`, 400},
		{"POST", "/advance", `{"duration":"2000000h"}`, 400},
		{"GET", "/requests?limit=0", ``, 400},
		{"GET", "/requests?sort=up", ``, 400},
		{"GET", "/requests?%zz", ``, 400},
		{"GET", "/requests?operation=order.creat", ``, 400},
		{"GET", "/effects/log?limit=x", ``, 400},
		{"PATCH", "/settings", `{}`, 400},
		{"POST", "/webhooks", `{"url":"http://203.0.113.1/hook"}`, 400},
		{"POST", "/webhooks", `{"url":"http://127.0.0.1:1/hook","repeat":1000}`, 400},
		{"POST", "/webhooks", `{"url":"http://127.0.0.1:1/hook","base":"there"}`, 400},
		{"POST", "/webhooks", `{"url":"http://127.0.0.1:1/hook","events":[""]}`, 400},
		{"POST", "/deliver", `{"event":"evt_none"}`, 400},
		{"POST", "/deliver", `{"times":2}`, 400},
		{"POST", "/deliver", `{"order":"by_size"}`, 400},
		{"GET", "/nothing", ``, 404},
		{"PUT", "/faults", ``, 405},
	} {
		w := httptest.NewRecorder()
		f.Admin().ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if w.Code != c.want {
			t.Errorf("%s %s %.40q = %d, want %d", c.method, c.path, c.body, w.Code, c.want)
		}
		var e struct{ Error string }
		if c.want/100 == 4 && (json.Unmarshal(w.Body.Bytes(), &e) != nil || e.Error == "") {
			t.Errorf("%s %s %.40q gives no reason: %q", c.method, c.path, c.body, w.Body)
		}
	}
	if len(f.Faults()) != 0 || f.Report().Requests != 0 || len(f.Endpoints()) != 0 || f.Strict() {
		t.Error("refused input changed the fake")
	}
}

// A fault for an operation that the provider does not have is refused with the
// names of those it has: it would never strike.
func TestUnknownOperationIsNamed(t *testing.T) {
	f := fakeprovider.New(newShop, nil)
	var e struct{ Error string }
	admin(t, f, "POST", "/faults", `{"kind":"429","operation":"order.creat"}`, &e)
	if !strings.Contains(e.Error, "order.create, order.list, refund.create") {
		t.Errorf("the refusal does not name the operations: %q", e.Error)
	}
	var names struct{ Operations []string }
	if admin(t, f, "GET", "/operations", "", &names); len(names.Operations) != 3 {
		t.Errorf("operations = %q", names.Operations)
	}
}

// A strict fake refuses writes without a key before they have an effect.
func TestStrict(t *testing.T) {
	f, c := serve(t, nil)
	admin(t, f, "PATCH", "/settings", `{"strict":true}`, nil)
	c.post(t.Context(), "", "a").want(t, 400, false)
	c.post(t.Context(), "k", "a").want(t, 201, false)
	admin(t, f, "POST", "/reset", "", nil)
	var settings struct{ Strict bool }
	if admin(t, f, "GET", "/settings", "", &settings); !settings.Strict {
		t.Error("a reset made the fake lenient")
	}
	admin(t, f, "PATCH", "/settings", `{"strict":false}`, nil)
	c.post(t.Context(), "", "a").want(t, 201, false)
	wantEffects(t, f, 1)
}

func TestFaultsAreBounded(t *testing.T) {
	f := fakeprovider.New(newShop, nil)
	list := make([]fakeprovider.Fault, 10_000)
	for i := range list {
		list[i].Kind = fakeprovider.RateLimit
	}
	inject(t, f, list...)
	if err := f.Inject(list[0]); err == nil || !strings.Contains(err.Error(), "10000") {
		t.Errorf("a further fault: %v", err)
	}
}

// Bad requests to the provider itself: refused in its own shape, no effect.
func TestUnreadableRequests(t *testing.T) {
	f, c := serve(t, &fakeprovider.Options{MaxBody: 100})
	c.post(t.Context(), "k", strings.Repeat("a", 101)).want(t, 413, false)
	req, err := http.NewRequestWithContext(t.Context(), "POST", c.url+"/orders", strings.NewReader("a"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Encoding", "gzip")
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 415 {
		t.Errorf("compressed body: %d, want 415", resp.StatusCode)
	}
	wantEffects(t, f, 0)
}
