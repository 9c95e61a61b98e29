package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

// view is what a page's work comes to.
type view struct {
	status int    // Defaults to 200.
	name   string // Of the template.
	title  string
	now    time.Time // The ledger's, where it was asked.
	body   any
	to     string // In place of a page: a path of this console to go on with.
}

// frame is what every template gets.
type frame struct {
	Title, Path   string
	Now           time.Time
	SignedIn      bool
	CSRF          string
	Acts, Locked  bool // It may resolve; it has a token.
	ShowsBodies   bool
	Body          any
	SearchBy, For string // What the search form holds.
}

// table is a list of records with its caption.
type table struct {
	Caption string
	Rows    []row
}

var (
	errNoPage   = errors.New("there is no such page")
	errNoRecord = errors.New("there is no such record")
)

// parsePages returns a template for each page, with the frame around it.
func parsePages() (map[string]*template.Template, error) {
	frame, err := template.New("frame.html").Funcs(template.FuncMap{
		"clock": explain.Clock, "span": explain.Span, "text": printable, "words": spaced,
		"iso":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"rows": func(caption string, rows []row) table { return table{caption, rows} },
	}).ParseFS(files, "templates/frame.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	pages := map[string]*template.Template{}
	for _, name := range []string{"login", "message", "open", "search", "record", "bodies", "moved", "rates", "reconciler"} {
		page, err := frame.Clone()
		if err == nil {
			page, err = page.ParseFS(files, "templates/"+name+".html")
		}
		if err != nil {
			return nil, err
		}
		pages[name] = page
	}
	return pages, nil
}

// work makes a page.
type work func(*http.Request, *session) (view, error)

// open serves a page to everybody.
func (c *console) open(do work) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := do(r, nil)
		c.answer(w, r, nil, v, err)
	})
}

// closed serves a page to who is signed in, where that is asked.
func (c *console) closed(do work) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, in := c.sessionOf(r)
		if !in {
			http.Redirect(w, r, "/login?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
			return
		}
		v, err := do(r, s)
		c.answer(w, r, s, v, err)
	})
}

// act serves a form that changes something: to who is signed in, from a page that
// this session was given.
func (c *console) act(do func(http.ResponseWriter, *http.Request, *session) (view, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, in := c.sessionOf(r)
		if !in || !sameToken(r, s) {
			c.refuse(w, r, http.StatusForbidden, "You are not signed in any more, or the form is older than your session. Nothing was done. Sign in and look again.")
			return
		}
		v, err := do(w, r, s)
		c.answer(w, r, s, v, err)
	})
}

// answer sends what a page's work came to.
func (c *console) answer(w http.ResponseWriter, r *http.Request, s *session, v view, err error) {
	if err != nil {
		v = c.failed(r, err)
	}
	if v.to != "" {
		http.Redirect(w, r, v.to, http.StatusSeeOther)
		return
	}
	c.render(w, r, s, v)
}

// failed says what a failure means to the reader of a page. The cause, which may
// name hosts and users, goes to the log only.
func (c *console) failed(r *http.Request, err error) view {
	say := func(status int, text string) view {
		return view{status: status, name: "message", title: http.StatusText(status), body: text}
	}
	switch {
	case errors.Is(err, errNoPage):
		return say(http.StatusNotFound, "There is no such page.")
	case errors.Is(err, errNoRecord), errors.Is(err, recordstore.ErrNotFound):
		return say(http.StatusNotFound, "The ledger holds no such record. It may have been removed after its time as evidence.")
	case errors.Is(err, recordstore.ErrInvalid):
		return say(http.StatusBadRequest, "The ledger does not take this: "+printable(err.Error()))
	}
	c.Log.ErrorContext(r.Context(), "console: the ledger did not answer", "path", printable(r.URL.Path), "error", err)
	switch {
	case errors.Is(err, recordstore.ErrTooLong), errors.Is(err, context.DeadlineExceeded):
		return say(http.StatusServiceUnavailable, "The ledger is too large to answer this in time, or too busy. It was given up, so that payments do not wait for it. Narrow the question: to a command, a provider, a shorter time.")
	case errors.Is(err, recordstore.ErrSchema), errors.Is(err, recordstore.ErrPinned):
		return say(http.StatusBadGateway, printable(err.Error()))
	}
	return say(http.StatusBadGateway, "The ledger could not be asked. The console's log says why; `samekey doctor` tells more.")
}

// render writes a page, whole or not at all.
func (c *console) render(w http.ResponseWriter, r *http.Request, s *session, v view) {
	f := frame{
		Title: v.title, Path: r.URL.Path, Now: v.now, Body: v.body,
		Acts: c.AllowResolve, Locked: c.Token != "", ShowsBodies: c.Sealer != nil, SignedIn: s != nil,
	}
	if s != nil {
		f.CSRF = s.csrf
	}
	if r.URL.Path == "/search" {
		f.SearchBy, f.For = r.FormValue("by"), r.FormValue("q")
	}
	var page bytes.Buffer
	if err := c.pages[v.name].ExecuteTemplate(&page, "frame.html", f); err != nil {
		c.Log.ErrorContext(r.Context(), "console: a page could not be made", "page", v.name, "error", err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	if v.status != 0 {
		w.WriteHeader(v.status)
	}
	_, _ = w.Write(page.Bytes()) // a reader that went away needs no more
}

// printable quotes what is not seen as it is written, as marks that turn the
// direction of a text.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strings.Trim(fmt.Sprintf("%+q", s), `"`)
	}
	return s
}

// spaced writes a name of the ledger as words.
func spaced(name any) string { return strings.ReplaceAll(fmt.Sprint(name), "_", " ") }
