package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// policy lets a page load the console's own style and pictures, send forms to it,
// and nothing else: no script, no frame, no other host.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard is what every request passes before it reaches a page.
func (c *console) guard(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.refuse(w, r, http.StatusForbidden, "This form was sent by a page of another site. Nothing was done.")
	}))
	next = crossOrigin.Handler(next)
	slots := make(chan struct{}, maxAtOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			w.Header().Set("Retry-After", "5")
			c.refuse(w, r, http.StatusServiceUnavailable, "Too many requests at once. Load the page again in a few seconds.")
			return
		}
		if len(c.Hosts) > 0 && !slices.Contains(c.Hosts, strings.ToLower(r.Host)) {
			c.refuse(w, r, http.StatusMisdirectedRequest, "This console does not answer to that name. Open it as "+c.Hosts[0]+", or start it with --host NAME.")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), maxWork)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // "no-referrer" would take the origin off forms
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Robots-Tag", "noindex")
}

// refuse answers without a page's work.
func (c *console) refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	c.Log.WarnContext(r.Context(), "console: refused", "status", status, "path", printable(r.URL.Path), "host", printable(r.Host))
	c.render(w, r, nil, view{status: status, name: "message", title: http.StatusText(status), body: text})
}
