package console

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Sessions live in this process only: after a restart people sign in again.
const (
	sessionTime = 12 * time.Hour
	maxSessions = 256
)

// session is one browser that signed in. A console without a token has none.
type session struct {
	csrf string // What its forms carry.
	ends time.Time
}

// sessions are those of one console, by the cookie's value.
type sessions struct {
	mu  sync.Mutex
	all map[string]*session
}

// begin returns a new cookie's value. Where too many are there the oldest goes.
func (s *sessions) begin(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*session{}
	}
	oldest := ""
	for id, one := range s.all {
		if now.After(one.ends) {
			delete(s.all, id)
		} else if oldest == "" || one.ends.Before(s.all[oldest].ends) {
			oldest = id
		}
	}
	if len(s.all) >= maxSessions {
		delete(s.all, oldest)
	}
	id := rand.Text()
	s.all[id] = &session{csrf: rand.Text(), ends: now.Add(sessionTime)}
	return id
}

func (s *sessions) find(id string, now time.Time) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.all[id]; one != nil && now.Before(one.ends) {
		return one
	}
	return nil
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

// cookieName keeps a cookie of HTTPS from being set by a page of HTTP.
func (c *console) cookieName() string {
	if c.Secure {
		return "__Host-samekey-console"
	}
	return "samekey-console"
}

func (c *console) cookie(value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: c.cookieName(), Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: c.Secure, SameSite: http.SameSiteStrictMode,
	}
}

// sessionOf returns the session of a request, and false where one is needed and
// there is none.
func (c *console) sessionOf(r *http.Request) (*session, bool) {
	if c.Token == "" {
		return nil, true
	}
	cookie, err := r.Cookie(c.cookieName())
	if err != nil {
		return nil, false
	}
	s := c.sessions.find(cookie.Value, c.now())
	return s, s != nil
}

// signIn is the body of the page that asks for the token.
type signIn struct{ Next, Problem string }

func (c *console) loginPage(r *http.Request, _ *session) (view, error) {
	if _, in := c.sessionOf(r); in {
		return view{to: "/"}, nil
	}
	return view{name: "login", title: "Sign in", body: signIn{Next: localPath(r.FormValue("next"))}}, nil
}

func (c *console) login(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.PostFormValue("next"))
	if c.Token == "" {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	given := strings.TrimSpace(r.PostFormValue("token"))
	if subtle.ConstantTimeCompare([]byte(given), []byte(c.Token)) != 1 {
		c.Log.WarnContext(r.Context(), "console: wrong token", "from", r.RemoteAddr)
		c.render(w, r, nil, view{
			status: http.StatusForbidden, name: "login", title: "Sign in",
			body: signIn{next, "That is not this console's token. It stands where its operator put it: in SAMEKEY_CONSOLE_TOKEN or in the file of --token-file."},
		})
		return
	}
	http.SetCookie(w, c.cookie(c.sessions.begin(c.now()), int(sessionTime/time.Second)))
	c.Log.InfoContext(r.Context(), "console: signed in", "from", r.RemoteAddr)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (c *console) logout(w http.ResponseWriter, r *http.Request, _ *session) (view, error) {
	if cookie, err := r.Cookie(c.cookieName()); err == nil {
		c.sessions.end(cookie.Value)
	}
	http.SetCookie(w, c.cookie("", -1))
	return view{to: "/login"}, nil
}

// localPath returns a path of this console, and "/" for anything that might lead
// elsewhere.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// sameToken reports whether a form carries what its session gave out.
func sameToken(r *http.Request, s *session) bool {
	return s != nil && subtle.ConstantTimeCompare([]byte(r.PostFormValue("csrf")), []byte(s.csrf)) == 1
}
