package console_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/console"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// Nothing is shown before the token is given, and the cookie is no script's.
func TestSignIn(t *testing.T) {
	t.Parallel()
	p := open(t, openSQLite(t))
	p.refund("refund-1", "", "")
	base := serve(t, p.store, console.Options{Token: token})
	b := browse(t, base)
	at := "/records/" + p.mark("refund-1")
	for _, path := range []string{"/", at, at + "/bodies", "/rates", "/reconciler", "/search?by=command&q=refund-1", "/none"} {
		page := b.get(path, 200)
		shows(t, page, "The console's token")
		hides(t, page, "refund.create", "Open records")
	}
	shows(t, b.post("/login", url.Values{"token": {"wrong"}}, http.StatusForbidden), "That is not this console")
	page := b.post("/login", url.Values{"token": {token}, "next": {at}}, 200)
	shows(t, page, "refund.create")

	b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := b.http.PostForm(base+"/login", url.Values{"token": {token}, "next": {"//evil.example/"}})
	b.page(resp, err, http.StatusSeeOther)
	if to := resp.Header.Get("Location"); to != "/" {
		t.Errorf("signing in leads to %q", to)
	}
	cookie := resp.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Domain != "" || cookie.Value == "" || strings.Contains(cookie.Value, token) {
		t.Errorf("the cookie is %v", cookie)
	}
	b.post("/logout", url.Values{"csrf": {"guessed"}}, http.StatusForbidden)
	b.get("/", 200)
	b.post("/logout", url.Values{"csrf": {hidden(t, b.get("/", 200), "csrf")}}, http.StatusSeeOther)
	b.get("/", http.StatusSeeOther)
	thief := browse(t, base)
	thief.http.CheckRedirect = b.http.CheckRedirect
	req, _ := http.NewRequest(http.MethodGet, base+"/", nil)
	req.AddCookie(&http.Cookie{Name: cookie.Name, Value: "made up"})
	resp, err = thief.http.Do(req)
	thief.page(resp, err, http.StatusSeeOther)
}

// A cookie of a console behind HTTPS goes nowhere else.
func TestSecureCookie(t *testing.T) {
	t.Parallel()
	base := serve(t, openSQLite(t), console.Options{Token: token, Secure: true})
	b := browse(t, base)
	b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := b.http.PostForm(base+"/login", url.Values{"token": {token}})
	b.page(resp, err, http.StatusSeeOther)
	if c := resp.Cookies()[0]; !c.Secure || !strings.HasPrefix(c.Name, "__Host-") || c.Path != "/" {
		t.Errorf("the cookie is %v", c)
	}
}

// Pages of other sites can neither act through somebody who is signed in, nor read
// under a name of their own that leads here.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	p := open(t, openSQLite(t))
	p.review("refund-7")
	base := serve(t, p.store, console.Options{Token: token, AllowResolve: true})
	b := browse(t, base)
	b.signIn()
	at := "/records/" + p.mark("refund-7")
	page := b.get(at, 200)
	form := url.Values{
		"csrf": {hidden(t, page, "csrf")}, "version": {hidden(t, page, "version")},
		"verdict": {"applied"}, "reason": {"r"}, "name": {"n"},
	}
	before := p.record("refund-7").Version
	send := func(form url.Values, status int, header ...string) {
		t.Helper()
		req, _ := http.NewRequest(http.MethodPost, base+at+"/resolve", strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := b.http.Do(req)
		b.page(resp, err, status)
	}
	send(form, http.StatusForbidden, "Sec-Fetch-Site", "cross-site")
	send(form, http.StatusForbidden, "Sec-Fetch-Site", "same-site")
	send(form, http.StatusForbidden, "Origin", "https://evil.example")
	stale := url.Values{}
	for name, v := range form {
		stale[name] = v
	}
	stale.Set("csrf", "of-another-session")
	send(stale, http.StatusForbidden)
	stale.Set("csrf", form.Get("csrf"))
	stale.Set("reason", strings.Repeat("x", 100_000)) // beyond the bound nothing of the form is read
	send(stale, http.StatusForbidden)
	if now := p.record("refund-7").Version; now != before {
		t.Errorf("version %d became %d", before, now)
	}

	for _, host := range []string{"evil.example", "evil.example:80", "127.0.0.1.evil.example", ""} {
		req, _ := http.NewRequest(http.MethodGet, base+"/", nil)
		if req.Host = host; host == "" {
			req.Host = "localhost"
		}
		resp, err := b.http.Do(req)
		hides(t, b.page(resp, err, http.StatusMisdirectedRequest), "refund-7")
	}
}

// New refuses what would be open to others.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for says, o := range map[string]console.Options{
		"has 5 bytes":                {Token: "short"},
		"acts or shows bodies":       {AllowResolve: true, Hosts: []string{"localhost"}},
		"needs the names of its hos": {},
	} {
		if h, err := console.New(openSQLite(t), o); err == nil || h != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// slow is a ledger whose lists wait.
type slow struct {
	console.Ledger
	asked, free chan struct{}
}

func (l slow) List(ctx context.Context, _ recordstore.ListQuery) (recordstore.Listing, error) {
	l.asked <- struct{}{}
	select {
	case <-l.free:
	case <-ctx.Done():
	}
	return recordstore.Listing{}, ctx.Err()
}

// Requests beyond a bound are turned away at once; those under way when the console
// stops are answered.
func TestBoundsAndStop(t *testing.T) {
	t.Parallel()
	const atOnce = 32
	ledger := slow{asked: make(chan struct{}), free: make(chan struct{})}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h, err := console.New(ledger, console.Options{Hosts: []string{listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- console.Serve(ctx, listener, h, nil) }()
	b := browse(t, "http://"+listener.Addr().String())
	var waiting sync.WaitGroup
	for range atOnce {
		waiting.Go(func() {
			if resp, err := b.http.Get(b.base + "/"); err != nil || resp.StatusCode != 200 {
				t.Errorf("a request under way: %v", err)
			} else {
				resp.Body.Close()
			}
		})
	}
	for range atOnce {
		<-ledger.asked
	}
	shows(t, b.get("/", http.StatusServiceUnavailable), "Too many requests at once")
	stop()
	close(ledger.free)
	waiting.Wait()
	select {
	case err := <-served:
		if err != nil {
			t.Errorf("the console ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the console did not stop")
	}
}
