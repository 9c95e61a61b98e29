package fakeprovider_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// Whatever the admin API is sent, it answers with a 2xx or with a 4xx and a
// reason, and a refusal arms nothing.
func FuzzAdmin(f *testing.F) {
	for _, s := range []struct{ method, path, body string }{
		{"POST", "/faults", `{"kind":"drop_after_apply","operation":"order.create","times":1,"skip":0,"chance":0.2,"delay":"5s"}`},
		{"POST", "/faults", `[{"kind":"429","retry_after":"2s"},{"kind":"redirect","location":"/x"}]`},
		{"POST", "/faults", `[{"kind":"oversized","size":1073741825},null]`},
		{"POST", "/faults", `null`},
		{"POST", "/advance", `{"duration":"25h"}`},
		{"POST", "/advance", `{"duration":"9223372036854775807ns"}`},
		{"POST", "/seed", `{"type":"orders","object":{"n":2}}`},
		{"POST", "/seed", `{"type":"orders","object":null}`},
		{"PATCH", "/settings", `{"strict":true}`},
		{"POST", "/webhooks", `{"url":"http://[::1]:1/","base":"http://x","events":["*"],"repeat":2,"attempts":3,"hold":true}`},
		{"POST", "/deliver", `{"order":"shuffled"}`},
		{"POST", "/deliver", `{"event":"evt_order_1","times":3}`},
		{"GET", "/requests?operation=order.create&limit=2", ``},
		{"GET", "/effects/log?limit=-9223372036854775808", ``},
		{"POST", "/reset", ``},
		{"DELETE", "/faults", `[`},
		{"PUT", "//../%2e", "\x00\xff"},
	} {
		f.Add(s.method, s.path, s.body)
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		fake := fakeprovider.New(newShop, &fakeprovider.Options{Webhooks: &receiver{}})
		defer fake.Close()
		r := httptest.NewRequest("POST", "http://fake.test/", strings.NewReader(body))
		where, query, _ := strings.Cut(path, "?")
		r.Method, r.URL.Path, r.URL.RawQuery = method, where, query
		w := httptest.NewRecorder()
		fake.Admin().ServeHTTP(w, r)
		var e struct{ Error string }
		switch {
		case w.Code == 200 && json.Valid(w.Body.Bytes()), w.Code == 204 && w.Body.Len() == 0:
			return
		case w.Code/100 != 4 || json.Unmarshal(w.Body.Bytes(), &e) != nil || e.Error == "" || strings.Contains(e.Error, "\n"):
			t.Fatalf("%d: %q", w.Code, w.Body)
		case len(fake.Faults()) != 0 || len(fake.Endpoints()) != 0 || fake.Strict():
			t.Fatalf("%d, and yet it changed something", w.Code)
		}
	})
}
