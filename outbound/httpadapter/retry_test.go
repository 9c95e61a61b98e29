package httpadapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// scripted answers from a list of header sets, in memory, so that a bubble's
// clock moves; the last one again and again.
func scripted(status int, headers ...http.Header) (http.RoundTripper, *[]time.Time) {
	var at []time.Time
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		h := headers[min(len(at), len(headers)-1)]
		at = append(at, time.Now())
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(`{}`)), Request: r}, nil
	}), &at
}

func TestRetryAfterIsObeyedAndBounded(t *testing.T) {
	inSeconds := func(s string) http.Header { return http.Header{"Retry-After": {s}} }
	tests := map[string]struct {
		header   http.Header
		attempts int
		least    time.Duration // between attempts
		most     time.Duration
		after    time.Duration // of the last verdict
	}{
		"seconds":              {inSeconds("7"), 3, 7 * time.Second, 8 * time.Second, 7 * time.Second},
		"zero":                 {inSeconds("0"), 3, 500 * time.Millisecond, 3 * time.Second, 0},
		"at the bound":         {inSeconds("20"), 3, 20 * time.Second, 20 * time.Second, 20 * time.Second},
		"beyond the bound":     {inSeconds("21"), 1, 0, 0, 21 * time.Second},
		"huge":                 {inSeconds("18446744073709551615"), 1, 0, 0, 365 * 24 * time.Hour},
		"no number":            {inSeconds("soon"), 3, 500 * time.Millisecond, 3 * time.Second, 0},
		"negative":             {inSeconds("-5"), 3, 500 * time.Millisecond, 3 * time.Second, 0},
		"date, provider clock": {http.Header{"Retry-After": {"Mon, 30 Nov 2026 10:00:09 GMT"}, "Date": {"Mon, 30 Nov 2026 10:00:00 GMT"}}, 3, 9 * time.Second, 10 * time.Second, 9 * time.Second},
		"date in the past":     {http.Header{"Retry-After": {"Mon, 30 Nov 2026 09:00:00 GMT"}, "Date": {"Mon, 30 Nov 2026 10:00:00 GMT"}}, 3, 500 * time.Millisecond, 3 * time.Second, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := config("https://api.test")
				var at *[]time.Time
				cfg.Transport, at = scripted(http.StatusTooManyRequests, tt.header)
				a := adapter(t, cfg)
				d := delivery(t, a, chargeCall())
				d.Retry = outbound.Retry{Attempts: 3, MinWait: time.Second, MaxWait: 3 * time.Second, MaxRetryAfter: 20 * time.Second}
				v := a.Send(t.Context(), d)
				if len(v) != tt.attempts || len(*at) != tt.attempts {
					t.Fatalf("%d verdicts, %d requests, want %d", len(v), len(*at), tt.attempts)
				}
				if got := v[len(v)-1].RetryAfter; got != tt.after {
					t.Errorf("RetryAfter = %v, want %v", got, tt.after)
				}
				for i := 1; i < len(*at); i++ {
					if gap := (*at)[i].Sub((*at)[i-1]); gap < tt.least || gap > tt.most {
						t.Errorf("pause %d = %v, want between %v and %v", i, gap, tt.least, tt.most)
					}
				}
			})
		})
	}
}

// Back-off grows, is jittered, and is capped.
func TestBackOff(t *testing.T) {
	s := &sending{retry: withDefaults(outbound.Retry{MinWait: time.Second, MaxWait: 5 * time.Second})}
	for round, most := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 5 * time.Second, 40: 5 * time.Second, 1000: 5 * time.Second} {
		s.rounds = round
		seen := map[time.Duration]bool{}
		for range 50 {
			w := s.wait(0)
			seen[w] = true
			if w < most/2 || w > most {
				t.Fatalf("round %d: pause %v, want between %v and %v", round, w, most/2, most)
			}
		}
		if len(seen) < 2 {
			t.Errorf("round %d: the pause is not jittered", round)
		}
	}
}

// A pause that the call does not outlive is not begun.
func TestNoPauseBeyondTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config("https://api.test")
		cfg.Transport, _ = scripted(http.StatusTooManyRequests, http.Header{"Retry-After": {"10"}})
		a := adapter(t, cfg)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		v := a.Send(ctx, delivery(t, a, chargeCall()))
		if len(v) != 1 || time.Since(began) != 0 || v[0].RetryAfter != 10*time.Second {
			t.Errorf("verdicts = %+v after %v, want one at once with its RetryAfter", v, time.Since(began))
		}
	})
}

// Options that are not set mean what outbound.Retry documents.
func TestRetryDefaults(t *testing.T) {
	got := withDefaults(outbound.Retry{})
	want := outbound.Retry{Attempts: 4, MinWait: 500 * time.Millisecond, MaxWait: 10 * time.Second, MaxRetryAfter: 20 * time.Second, AttemptTimeout: 20 * time.Second}
	if got != want {
		t.Errorf("defaults = %+v, want %+v", got, want)
	}
}

// tokens hands out credentials that the provider may stop to accept.
type tokens struct {
	mu        sync.Mutex
	current   string
	refreshes int
}

func (s *tokens) authorize(_ context.Context, _ string, _ []outbound.Field, r *http.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Header.Set("Authorization", "Bearer "+s.current)
	return nil
}

func (s *tokens) refresh(_ context.Context, _ string, rejected *http.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rejected.Header.Get("Authorization") != "Bearer "+s.current {
		return nil
	}
	s.refreshes++
	s.current = "new"
	return nil
}

// C21: the token is gone on the provider's side while many callers send: one
// refresh serves all, and each repeats the same bytes and key.
func TestOneRefreshForMany(t *testing.T) {
	const callers = 8
	var stale atomic.Int32
	allRejected := make(chan struct{})
	p := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.Header.Get("Authorization") == "Bearer new" {
			ok(w)
			return
		}
		if stale.Add(1) == callers {
			close(allRejected)
		}
		<-allRejected
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{}`)
	})
	s := &tokens{current: "old"}
	cfg := config(p.URL)
	cfg.Authorize, cfg.Refresh = s.authorize, s.refresh
	a := adapter(t, cfg)
	d := delivery(t, a, chargeCall())
	d.Retry.Attempts = 1 // the repetition is no attempt of the loop
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			v := a.Send(t.Context(), d)
			if len(v) != 2 || v[0].Code != outbound.ErrAuth || v[1].Effect != outbound.EffectApplied {
				t.Errorf("verdicts = %+v, want a 401 and an applied one", v)
			}
		})
	}
	done.Wait()
	if s.refreshes != 1 {
		t.Errorf("%d refreshes, want 1", s.refreshes)
	}
	got := p.received()
	for _, d := range got {
		if d.body != got[0].body || d.key != got[0].key {
			t.Errorf("a repetition differs: %+v", d)
		}
	}
	if len(got) != 2*callers {
		t.Errorf("%d requests, want %d", len(got), 2*callers)
	}
}

func TestRefreshOnceForACall(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{}`)
	})
	s := &tokens{current: "old"}
	cfg := config(p.URL)
	cfg.Authorize, cfg.Refresh = s.authorize, s.refresh
	a := adapter(t, cfg)
	v := a.Send(t.Context(), delivery(t, a, chargeCall()))
	if len(v) != 2 || v[1].Code != outbound.ErrAuth || s.refreshes != 1 {
		t.Errorf("verdicts = %+v after %d refreshes, want two refusals and one refresh", v, s.refreshes)
	}

	down := errors.New("token service down")
	cfg.Refresh = func(context.Context, string, *http.Request) error { return down }
	a = adapter(t, cfg)
	v = a.Send(t.Context(), delivery(t, a, chargeCall()))
	if len(v) != 1 || v[0].Effect != outbound.EffectNone || !errors.Is(v[0].Err, down) {
		t.Errorf("verdicts = %+v, want the 401 with the refresh's error", v)
	}
}

// Credentials that cannot be had are a proof that nothing was sent.
func TestAuthorizeFails(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { ok(w) })
	for name, tt := range map[string]struct {
		err  error
		code outbound.Code
	}{
		"refused": {outbound.ErrAuth, outbound.ErrAuth},
		"never":   {fmt.Errorf("%w: of another mode", outbound.ErrInvalid), outbound.ErrInvalid},
		"passing": {errors.New("token service down"), outbound.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(p.URL)
			cfg.Authorize = func(context.Context, string, []outbound.Field, *http.Request) error { return tt.err }
			a := adapter(t, cfg)
			v := a.Send(t.Context(), delivery(t, a, chargeCall()))
			if last := v[len(v)-1]; last.Effect != outbound.EffectNone || last.Code != tt.code || last.Deliveries != 0 || !errors.Is(last.Err, tt.err) {
				t.Errorf("verdicts = %+v, want code %s", v, tt.code)
			}
			if again := v[len(v)-1].Again; again != (tt.code == outbound.ErrUnavailable) {
				t.Errorf("worth another attempt: %t", again)
			}
		})
	}
	if n := len(p.received()); n != 0 {
		t.Errorf("%d requests were sent without credentials", n)
	}
}

// An author's Authorize changes headers and nothing else.
func TestAuthorizeCannotRedirect(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { ok(w) })
	cfg := config(p.URL)
	cfg.Authorize = func(_ context.Context, _ string, own []outbound.Field, r *http.Request) error {
		r.URL.Host, r.Host, r.Method, r.Body = deadAddress(t), "evil.test", "PUT", http.NoBody
		r.Header.Set("Idempotency-Key", "another")
		return nil
	}
	a := adapter(t, cfg)
	v := a.Send(t.Context(), delivery(t, a, chargeCall()))
	got := p.received()
	if len(v) != 1 || len(got) != 1 || got[0].method != "POST" || got[0].key != key(t).Raw() || got[0].body == "" {
		t.Errorf("verdicts = %+v, received %+v, want the request as it was frozen", v, got)
	}
}
