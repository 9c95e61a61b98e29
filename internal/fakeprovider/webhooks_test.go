package fakeprovider_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// receiver is a service's webhook endpoint, as a transport.
type receiver struct {
	mu     sync.Mutex
	status []int // of the answers in turn, then 200; 0 is no answer
	bodies []string
	header http.Header
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies, r.header = append(r.bodies, string(body)), req.Header
	status := 200
	if len(r.status) > 0 {
		status, r.status = r.status[0], r.status[1:]
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Request: req}, nil
}

func (r *receiver) got() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.bodies, " ")
}

// hooked serves a shop in a bubble whose webhooks go to the receiver.
func hooked(t *testing.T, r *receiver, e fakeprovider.Endpoint) (*fakeprovider.Fake, *client) {
	t.Helper()
	f := fakeprovider.New(newShop, &fakeprovider.Options{Webhooks: r, MaxLog: 4})
	s := fakeprovider.InMemory(f)
	t.Cleanup(s.Close)
	e.URL, e.Base = "http://127.0.0.1:9/hook", s.URL
	if _, err := f.AddEndpoint(e); err != nil {
		t.Fatal(err)
	}
	return f, &client{s.URL, noRedirects(s.Transport())}
}

func order(t *testing.T, c *client, keys ...string) {
	t.Helper()
	for _, key := range keys {
		c.post(t.Context(), key, "a").want(t, 201, false)
	}
	synctest.Wait()
}

func TestWebhookIsDeliveredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		f, c := hooked(t, r, fakeprovider.Endpoint{})
		order(t, c, "k", "l")
		c.post(t.Context(), "k", "a").want(t, 201, true) // a replay makes no event
		synctest.Wait()
		if got := r.got(); got != "evt_order_1 evt_order_2" {
			t.Errorf("got %q", got)
		}
		if r.header.Get("Sent") != time.Now().UTC().Format(time.RFC3339) || r.header.Get("To") != f.Endpoints()[0].ID {
			t.Errorf("the dialect's header is %v", r.header)
		}
	})
}

// A delivery without a 2xx is tried again, later each time, on the provider's
// clock; others overtake it meanwhile.
func TestWebhookIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{status: []int{500, 200, 0, 302}}
		f, c := hooked(t, r, fakeprovider.Endpoint{Attempts: 4})
		order(t, c, "k", "l")
		if got := r.got(); got != "evt_order_1 evt_order_2" {
			t.Errorf("at once: %q", got)
		}
		time.Sleep(6 * time.Second) // the bubble's clock, by which the second attempt is due
		synctest.Wait()
		f.Advance(2 * time.Minute) // the third
		synctest.Wait()
		f.Advance(time.Hour) // the fourth
		synctest.Wait()
		f.Advance(100 * time.Hour)
		synctest.Wait()
		if got := r.got(); got != "evt_order_1 evt_order_2 evt_order_1 evt_order_1 evt_order_1" {
			t.Errorf("in the end: %q", got)
		}
		log := f.Deliveries()
		if len(log) != 4 || log[1].Error == "" || log[1].Attempt != 2 || log[2].Status != 302 || log[3].Attempt != 4 || log[3].Status != 200 {
			t.Errorf("log %+v", log)
		}
	})
}

func TestWebhookGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{status: []int{500, 500, 500}}
		f, c := hooked(t, r, fakeprovider.Endpoint{Attempts: 2})
		order(t, c, "k")
		f.Advance(1000 * time.Hour)
		synctest.Wait()
		f.Advance(1000 * time.Hour)
		synctest.Wait()
		if got := r.got(); got != "evt_order_1 evt_order_1" {
			t.Errorf("got %q", got)
		}
	})
}

func TestWebhooksOutOfOrderAndRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		f, c := hooked(t, r, fakeprovider.Endpoint{Hold: true, Repeat: 2})
		order(t, c, "k", "l")
		if got := r.got(); got != "" {
			t.Errorf("held back, and yet %q was delivered", got)
		}
		if n := f.Deliver(fakeprovider.NewestFirst); n != 4 {
			t.Errorf("%d are due, want 4", n)
		}
		synctest.Wait()
		if n, err := f.DeliverAgain("evt_order_1", 3); n != 3 || err != nil {
			t.Errorf("%d deliveries again, %v", n, err)
		}
		synctest.Wait()
		if got := r.got(); got != "evt_order_2 evt_order_2 evt_order_1 evt_order_1 evt_order_1 evt_order_1 evt_order_1" {
			t.Errorf("got %q", got)
		}
	})
}

func TestWebhooksShuffled(t *testing.T) {
	run := func() (got string) {
		synctest.Test(t, func(t *testing.T) {
			r := &receiver{}
			f, c := hooked(t, r, fakeprovider.Endpoint{Hold: true})
			order(t, c, "k", "l", "m", "n")
			f.Deliver(fakeprovider.Shuffled)
			synctest.Wait()
			got = r.got()
		})
		return got
	}
	first := run()
	parts := strings.Fields(first)
	if first != run() || slices.IsSorted(parts) || len(parts) != 4 {
		t.Errorf("the seed's order is %q", first)
	}
}

func TestWebhooksAreNarrowedBoundedAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		f, c := hooked(t, r, fakeprovider.Endpoint{Events: []string{"refund.*"}})
		order(t, c, "k")
		if got := r.got(); got != "" {
			t.Errorf("another type was delivered: %q", got)
		}
		f.RemoveEndpoints()
		e := fakeprovider.Endpoint{URL: "http://localhost:9/", Base: "http://x", Events: []string{"order.*"}, Hold: true}
		if _, err := f.AddEndpoint(e); err != nil {
			t.Fatal(err)
		}
		order(t, c, "l", "m", "n", "o", "p")
		var list []struct{ Waiting, Dropped int }
		admin(t, f, "GET", "/webhooks", "", &list)
		if len(list) != 1 || list[0].Waiting != 4 || list[0].Dropped != 1 {
			t.Errorf("%+v, want 4 waiting, 1 dropped", list)
		}
		f.Reset()
		if n := f.Deliver(fakeprovider.OldestFirst); n != 0 || len(f.Endpoints()) != 1 {
			t.Errorf("after a reset %d wait for %d endpoints, want 0 for 1", n, len(f.Endpoints()))
		}
	})
}

func TestEndpointsAreBounded(t *testing.T) {
	f := fakeprovider.New(newShop, nil)
	t.Cleanup(f.Close)
	e := fakeprovider.Endpoint{URL: "http://[::1]:9/", Base: "http://x"}
	for range 16 {
		if _, err := f.AddEndpoint(e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.AddEndpoint(e); err == nil {
		t.Error("a seventeenth endpoint was taken")
	}
}
