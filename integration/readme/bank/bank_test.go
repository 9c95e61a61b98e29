package bank_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/integration/readme/bank"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
)

// server executes each key once and counts; answers tells how the n-th request is
// answered: 0 executes and answers, 1 executes and loses the answer, else a status
// without executing.
type server struct {
	mu      sync.Mutex
	n       int
	answers []int
	done    map[string]bool
	bodies  []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	how := 0
	if s.n < len(s.answers) {
		how = s.answers[s.n]
	}
	s.n++
	s.bodies = append(s.bodies, string(body))
	if how > 1 {
		w.WriteHeader(how)
		fmt.Fprint(w, `{"error":"no"}`)
		return
	}
	s.done[r.Header.Get("Idempotency-Key")] = true
	if how == 1 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{"id":"tr_1","status":"done"}`)
}

// The walkthrough's adapter against a server that counts (docs/adding-a-provider.md, 5).
func TestBank(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers []int
		code    outbound.Code
		label   outbound.Label
		effects int
		sent    int
	}{
		"a first answer":                 {nil, "", outbound.NewExecution, 1, 1},
		"a lost answer is resent":        {[]int{1, 0}, "", outbound.LatestStatus, 1, 2},
		"in flight on a first delivery":  {[]int{409, 409, 409, 409}, outbound.ErrUncertain, "", 0, 4},
		"429 on a resend proves nothing": {[]int{1, 429, 429, 429}, outbound.ErrUncertain, "", 1, 4},
		"a decline":                      {[]int{422}, outbound.ErrRefused, "", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{answers: tt.answers, done: make(map[string]bool)}
			web := httptest.NewServer(s)
			defer web.Close()
			client, err := outbound.New(bank.New(bank.Config{Account: "C1", Token: "t", BaseURL: web.URL}), memory.New(nil),
				&outbound.Options{Retry: outbound.Retry{MinWait: time.Millisecond, MaxWait: time.Millisecond}})
			if err != nil {
				t.Fatal(err)
			}
			reply, err := client.Do(t.Context(), bank.TransferCreate(outbound.Command{ID: "c1"}, bank.Transfer{To: "x", Cents: 100, Currency: "EUR"}))
			switch {
			case tt.code != "" && !errors.Is(err, tt.code):
				t.Errorf("error %v, want %s", err, tt.code)
			case tt.code == "" && (err != nil || reply.Label != tt.label || reply.ExternalRef != "tr_1"):
				t.Errorf("got %+v, %v; want label %q", reply, err, tt.label)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.done) != tt.effects || s.n != tt.sent {
				t.Errorf("%d effects of %d requests, want %d of %d", len(s.done), s.n, tt.effects, tt.sent)
			}
			for _, body := range s.bodies {
				if body != s.bodies[0] {
					t.Errorf("deliveries differ: %q and %q", s.bodies[0], body)
				}
			}
		})
	}
}
