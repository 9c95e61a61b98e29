package httpadapter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
)

func chargeCall() outbound.Call {
	return FormCall(charge, outbound.Command{ID: "cmd_1"}, nil, url.Values{"amount": {"1250"}, "note": {"a b&c"}})
}

func captureCall() outbound.Call {
	return FormCall(capture, outbound.Command{ID: "cmd_1"}, []string{"ch_1"}, nil)
}

func voidCall() outbound.Call {
	return JSONCall(void, outbound.Command{ID: "cmd_1"}, []string{"ch_1"}, nil)
}

// C02, C04, R8: every delivery carries the bytes and the key of the first.
func TestEveryAttemptIsTheSameRequest(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n < 3 {
			w.WriteHeader(http.StatusBadGateway)
			io.WriteString(w, `{}`)
			return
		}
		ok(w)
	})
	a := adapter(t, config(p.URL))
	verdicts := a.Send(t.Context(), delivery(t, a, chargeCall()))
	if len(verdicts) != 3 || verdicts[2].Effect != outbound.EffectApplied || verdicts[2].ExternalRef != "ch_1" {
		t.Fatalf("verdicts = %+v, want two unknown ones and an applied one", verdicts)
	}
	got := p.received()
	want := "amount=1250&note=a+b%26c&metadata%5Bmark%5D=" + key(t).Mark()
	for i, d := range got {
		d.conn = got[0].conn
		if d != got[0] || d.body != want || d.key != key(t).Raw() || d.authorization != "Bearer secret" {
			t.Errorf("delivery %d = %+v, want body %q and the derived key", i+1, d, want)
		}
	}
	for i, v := range verdicts {
		if v.Deliveries != 1 {
			t.Errorf("attempt %d: %d deliveries, want 1", i+1, v.Deliveries)
		}
	}
}

// dying answers the first request of its first connection, and closes it after
// the second arrived. Later connections live. It counts what arrived.
func dying(t *testing.T) (baseURL string, arrived func() []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var keys []string
	var conns sync.WaitGroup
	conns.Go(func() {
		for first := true; ; first = false {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for n := 1; ; n++ {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					mu.Lock()
					keys = append(keys, r.Header.Get("Idempotency-Key"))
					mu.Unlock()
					if first && n == 2 {
						return
					}
					io.WriteString(c, "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}")
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	return "http://" + l.Addr().String(), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), keys...)
	}
}

// C30: net/http sends a keyed request without a body again by itself when a kept
// connection dies. Both count, so that the answer to the second proves nothing
// of the first.
func TestHiddenResendIsCounted(t *testing.T) {
	baseURL, arrived := dying(t)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	cfg := config(baseURL)
	cfg.Transport = transport
	a := adapter(t, cfg)
	d := delivery(t, a, captureCall())
	d.Retry.Attempts = 1
	if v := a.Send(t.Context(), d); v[0].Deliveries != 1 {
		t.Fatalf("first send: %d deliveries, want 1", v[0].Deliveries)
	}
	v := a.Send(t.Context(), d)
	if got := arrived(); len(got) != 3 || got[1] != got[2] || got[1] != key(t).Raw() {
		t.Fatalf("%d requests arrived, want 3 with one key", len(got))
	}
	if len(v) != 1 || v[0].Deliveries != 2 || v[0].Code != outbound.ErrRateLimited {
		t.Errorf("verdicts = %+v, want one with 2 deliveries", v)
	}
}

// A request with a body is never sent again by net/http: it has no GetBody. What
// died is an attempt of its own, with the same key.
func TestBodyIsNotResentInsideAnAttempt(t *testing.T) {
	baseURL, arrived := dying(t)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	cfg := config(baseURL)
	cfg.Transport = transport
	a := adapter(t, cfg)
	d := delivery(t, a, chargeCall())
	d.Retry.Attempts = 1
	a.Send(t.Context(), d)
	d.Retry.Attempts = 2
	v := a.Send(t.Context(), d)
	if len(v) != 2 || v[0].Effect != outbound.EffectUnknown || v[0].Deliveries != 1 || v[1].Deliveries != 1 {
		t.Errorf("verdicts = %+v, want an unknown attempt and another one", v)
	}
	if got := len(arrived()); got != 3 {
		t.Errorf("%d requests arrived, want 3", got)
	}
}

// An operation without a key gets a connection of its own, and no second attempt
// once it may have been delivered.
func TestOperationWithoutKey(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if n == 3 {
			panic(http.ErrAbortHandler)
		}
		ok(w)
	})
	a := adapter(t, config(p.URL))
	for range 2 {
		if v := a.Send(t.Context(), delivery(t, a, voidCall())); len(v) != 1 || v[0].Effect != outbound.EffectApplied {
			t.Fatalf("verdicts = %+v, want one applied", v)
		}
	}
	v := a.Send(t.Context(), delivery(t, a, voidCall()))
	if len(v) != 1 || v[0].Effect != outbound.EffectUnknown || v[0].Deliveries != 1 {
		t.Errorf("verdicts after a lost answer = %+v, want one unknown", v)
	}
	got := p.received()
	if len(got) != 3 {
		t.Fatalf("%d requests arrived, want 3", len(got))
	}
	if got[0].conn == got[1].conn || got[1].conn == got[2].conn {
		t.Errorf("a connection was used twice: %v %v %v", got[0].conn, got[1].conn, got[2].conn)
	}
	if got[0].key != "" {
		t.Error("an operation without a key was sent with one")
	}
}

// Without a key, a proof that nothing happened allows another attempt.
func TestOperationWithoutKeyAfterProof(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{}`)
			return
		}
		ok(w)
	})
	a := adapter(t, config(p.URL))
	v := a.Send(t.Context(), delivery(t, a, voidCall()))
	if len(v) != 2 || v[1].Effect != outbound.EffectApplied {
		t.Errorf("verdicts = %+v, want a rate limit and an applied one", v)
	}
}

// Answers that nobody may judge are unknown, whatever their status.
func TestUnreadableAnswersAreUnknown(t *testing.T) {
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	for name, answer := range map[string]func(w http.ResponseWriter){
		"truncated": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"id":"ch_1"}`)
		},
		"oversized": func(w http.ResponseWriter) {
			fmt.Fprintf(w, `{"id":%q}`, strings.Repeat("x", 2<<20))
		},
		"bad compression": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, `{"id":"ch_1"}`)
		},
		"redirect 302": func(w http.ResponseWriter) {
			w.Header().Set("Location", other.URL)
			w.WriteHeader(http.StatusFound)
		},
		"redirect 307": func(w http.ResponseWriter) {
			w.Header().Set("Location", other.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"redirect nowhere": func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://%zz")
			w.WriteHeader(http.StatusSeeOther)
		},
		"not modified": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotModified) },
		"no HTTP": func(w http.ResponseWriter) {
			c, out, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			out.WriteString("4111111111111111 is no HTTP\r\n\r\n")
			out.Flush()
			c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { answer(w) })
			a := adapter(t, config(p.URL))
			d := delivery(t, a, chargeCall())
			d.Retry.Attempts = 2
			for _, v := range a.Send(t.Context(), d) {
				if v.Effect != outbound.EffectUnknown || v.Deliveries != 1 || v.Err == nil || v.Answer != nil {
					t.Errorf("verdict = %+v, want unknown with an error and no answer", v)
				}
				if v.Err != nil && strings.Contains(v.Err.Error(), "4111") {
					t.Errorf("the error shows the answer: %v", v.Err)
				}
			}
		})
	}
	if elsewhere > 0 {
		t.Errorf("%d requests followed a redirect, want none", elsewhere)
	}
}

// R9: nothing was written only where no connection was ever obtained.
func TestNothingWritten(t *testing.T) {
	a := adapter(t, config("http://"+deadAddress(t)))
	v := a.Send(t.Context(), delivery(t, a, chargeCall()))
	if len(v) != 4 {
		t.Fatalf("%d attempts, want 4", len(v))
	}
	for _, v := range v {
		if v.Effect != outbound.EffectNone || v.Code != outbound.ErrUnavailable || v.Deliveries != 0 {
			t.Errorf("verdict = %+v, want a proof that nothing was sent", v)
		}
	}
	// The same through a transport that reports its connections.
	cfg := config(a.cfg.BaseURL)
	cfg.Transport = roundTripper(http.DefaultTransport.RoundTrip)
	a = adapter(t, cfg)
	if v := a.Send(t.Context(), delivery(t, a, chargeCall())); v[0].Deliveries != 0 || v[0].Effect != outbound.EffectNone {
		t.Errorf("verdict through a wrapped transport = %+v, want a proof", v[0])
	}
}

// A transport that reports no connections proves nothing by failing, and its
// error shows neither URL nor what it holds.
func TestOpaqueTransport(t *testing.T) {
	cfg := config("https://api.test")
	cfg.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("sending: %w", &url.Error{Op: "Post", URL: "https://u:pw@api.test/v1?card=4111", Err: errors.New("broken")})
	})
	a := adapter(t, cfg)
	v := a.Send(t.Context(), delivery(t, a, chargeCall()))
	if v[0].Effect != outbound.EffectUnknown || v[0].Deliveries != 1 {
		t.Errorf("verdict = %+v, want unknown with one delivery", v[0])
	}
	if text := v[0].Err.Error(); strings.Contains(text, "4111") || strings.Contains(text, "pw") || !strings.Contains(text, "broken") {
		t.Errorf("error = %q, want the cause without the URL", text)
	}
}

func TestContextEnds(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { ok(w) })
		a := adapter(t, config(p.URL))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		v := a.Send(ctx, delivery(t, a, chargeCall()))
		if len(v) != 1 || v[0].Effect != outbound.EffectNone || v[0].Deliveries != 0 || !errors.Is(v[0].Err, context.Canceled) {
			t.Errorf("verdicts = %+v, want one that proves that nothing was sent", v)
		}
		if n := len(p.received()); n != 0 {
			t.Errorf("%d requests arrived, want 0", n)
		}
	})
	t.Run("after the write", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := serve(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
			cancel()
			<-r.Context().Done()
		})
		a := adapter(t, config(p.URL))
		v := a.Send(ctx, delivery(t, a, chargeCall()))
		if len(v) != 1 || v[0].Effect != outbound.EffectUnknown || v[0].Deliveries != 1 || !errors.Is(v[0].Err, context.Canceled) {
			t.Errorf("verdicts = %+v, want one unknown that is context.Canceled", v)
		}
	})
	t.Run("in the back-off", func(t *testing.T) {
		broken := errors.New("broken")
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cfg := config("https://api.test")
			cfg.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
				time.AfterFunc(100*time.Millisecond, cancel)
				return nil, broken
			})
			a := adapter(t, cfg)
			d := delivery(t, a, chargeCall())
			d.Retry.MinWait, d.Retry.MaxWait = time.Second, 2*time.Second
			v := a.Send(ctx, d)
			if len(v) != 1 || !errors.Is(v[0].Err, context.Canceled) || !errors.Is(v[0].Err, broken) {
				t.Errorf("verdicts = %+v, want one with both the attempt's error and the context's", v)
			}
		})
	})
}

// An attempt's own limit is not taken for the end of the caller's context.
func TestAttemptTimeout(t *testing.T) {
	p := serve(t, func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() })
	a := adapter(t, config(p.URL))
	d := delivery(t, a, chargeCall())
	d.Retry.Attempts, d.Retry.AttemptTimeout = 2, 50*time.Millisecond
	v := a.Send(t.Context(), d)
	if len(v) != 2 {
		t.Fatalf("%d attempts, want 2", len(v))
	}
	for _, v := range v {
		if v.Effect != outbound.EffectUnknown || v.Deliveries != 1 || errors.Is(v.Err, context.DeadlineExceeded) {
			t.Errorf("verdict = %+v, want unknown, and no context error", v)
		}
		if !strings.Contains(v.Err.Error(), "no answer within 50ms") {
			t.Errorf("error = %q, want the limit named", v.Err)
		}
	}
}

// Allow is asked before every attempt; after an unknown one its refusal leaves
// the effect unknown.
func TestAllowEndsTheSending(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(500); io.WriteString(w, `{}`) })
	a := adapter(t, config(p.URL))
	refused := errors.New("the lease ends")
	for allowed, want := range []outbound.Effect{outbound.EffectNone, outbound.EffectUnknown, outbound.EffectUnknown} {
		d := delivery(t, a, chargeCall())
		asked := 0
		d.Allow = func() error {
			if asked++; asked > allowed {
				return refused
			}
			return nil
		}
		before := len(p.received())
		v := a.Send(t.Context(), d)
		if last := v[len(v)-1]; len(v) != max(1, allowed) || last.Effect != want || !errors.Is(last.Err, refused) {
			t.Errorf("after %d allowed attempts: %+v, want effect %v and Allow's error", allowed, v, want)
		}
		if got := len(p.received()) - before; got != allowed {
			t.Errorf("%d requests arrived, want %d", got, allowed)
		}
	}
}
