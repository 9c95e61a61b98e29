package httpadapter

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"unicode"
)

const maxTarget = 16 << 10 // bytes of a path and its query

// location is a target that was checked: it is on one of the adapter's hosts.
type location struct {
	origin string // "https://files.stripe.com"; "" for the base URL
	path   string // Escaped, below the base URL or, on another host, whole.
	query  string
}

// target is how a location stands in a frozen message.
func (l location) target() string {
	if l.query == "" {
		return l.origin + l.path
	}
	return l.origin + l.path + "?" + l.query
}

// locate checks a target: a path below the base URL, or an absolute URL on one
// of the adapter's hosts. Credentials never go anywhere else.
func (a *Adapter) locate(target string) (location, error) {
	if len(target) > maxTarget {
		return location{}, fmt.Errorf("the target has more than %d bytes", maxTarget)
	}
	if path, query, _ := strings.Cut(target, "?"); a.base != nil && isPlain(path) && isPlain(query) && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") {
		return location{path: path, query: query}, checkPath(path)
	}
	u, err := url.Parse(target)
	if err != nil {
		return location{}, errors.New("the target is no URL")
	}
	return a.locateURL(u)
}

// isPlain reports whether s means the same escaped and not, wherever it stands in
// a URL: nothing in it has a meaning of its own but the slash.
func isPlain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '/', c == '-', c == '_', c == '.', c == '~':
		default:
			return false
		}
	}
	return true
}

func (a *Adapter) locateURL(u *url.URL) (location, error) {
	l := location{path: u.EscapedPath(), query: u.RawQuery}
	switch {
	case a.base == nil:
		return location{}, errors.New("the adapter has no base URL")
	case u.User != nil:
		return location{}, errors.New("the target holds credentials")
	case u.Opaque != "" || !strings.HasPrefix(l.path, "/"):
		return location{}, errors.New("the target is neither a path nor an absolute URL")
	case u.Fragment != "":
		return location{}, errors.New("the target holds a fragment")
	}
	if err := checkPath(l.path); err != nil {
		return location{}, err
	}
	if u.Scheme == "" && u.Host == "" {
		return l, nil
	}
	if u.Scheme != "https" && u.Scheme != a.base.Scheme || !a.hosts[hostKey(u.Scheme, u.Host)] {
		return location{}, errors.New("the target is on none of the adapter's hosts")
	}
	if u.Scheme == a.base.Scheme && hostKey(u.Scheme, u.Host) == hostKey(a.base.Scheme, a.base.Host) {
		below, ok := strings.CutPrefix(l.path, a.base.EscapedPath())
		if !ok || !strings.HasPrefix(below, "/") {
			return location{}, errors.New("the target is not below the base URL")
		}
		l.path = below
		return l, nil
	}
	l.origin = u.Scheme + "://" + hostKey(u.Scheme, u.Host)
	return l, nil
}

// url is where a location's requests go.
func (a *Adapter) url(l location) (*url.URL, error) {
	if l.origin != "" {
		return url.Parse(l.target())
	}
	if a.base.RawPath == "" && isPlain(l.path) {
		to := *a.base
		to.Path += l.path
		to.RawQuery = l.query
		return &to, nil
	}
	return url.Parse(a.base.String() + l.target())
}

// checkPath refuses steps that lead somewhere else, however they are escaped.
func checkPath(escaped string) error {
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return errors.New("the target's path is not percent-encoded")
	}
	if isPlain(path) && !strings.Contains(path, "/.") && !strings.HasPrefix(path, ".") {
		return nil // no piece is dots
	}
	for piece := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if piece == "." || piece == ".." {
			return errors.New("the target's path holds dots")
		}
	}
	if strings.ContainsFunc(path, unicode.IsControl) {
		return errors.New("the target's path holds a control character")
	}
	return nil
}

// hostKey is a host for comparing: lower case, with a port where it is not the
// scheme's own.
func hostKey(scheme, host string) string {
	host = strings.ToLower(host)
	if !strings.Contains(host, ":") {
		return host
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return strings.TrimSuffix(host, ":")
	}
	if port == "" || scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		if strings.ContainsRune(name, ':') {
			return "[" + name + "]"
		}
		return name
	}
	return net.JoinHostPort(name, port)
}
