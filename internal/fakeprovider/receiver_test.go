package fakeprovider_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// A handler is asked as a server's is: at the URL's path, again after it failed, and
// Close waits for it.
func TestWebhooksToAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var path, body string
		calls := 0
		var slow, left atomic.Bool
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			read, err := io.ReadAll(r.Body)
			if path, body = r.RequestURI, string(read); err != nil {
				t.Error(err)
			}
			if calls++; calls == 1 {
				panic(http.ErrAbortHandler)
			}
			if slow.Load() {
				<-r.Context().Done()
				left.Store(true)
			}
		})
		f := fakeprovider.New(newShop, nil)
		s := fakeprovider.InMemory(f)
		t.Cleanup(s.Close)
		e, err := f.AddEndpoint(fakeprovider.Endpoint{Handler: handler, Base: s.URL})
		if err != nil || e.URL != "http://127.0.0.1/webhooks" {
			t.Fatalf("the endpoint is %+v, %v", e, err)
		}
		c := &client{s.URL, noRedirects(s.Transport())}
		order(t, c, "k")
		f.Advance(5 * time.Second)
		synctest.Wait()
		log := f.Deliveries()
		if len(log) != 2 || log[0].Status != 0 || log[1].Status != http.StatusOK || path != "/webhooks" || body != "evt_order_1" {
			t.Errorf("deliveries %+v of %q to %s, want one that broke off and one that went well", log, body, path)
		}
		slow.Store(true)
		order(t, c, "l")
		s.Close()
		if !left.Load() {
			t.Error("Close did not wait for the handler")
		}
	})
}
