package httpadapter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
)

const lookupTimeout = 20 * time.Second // of one GET

// Find asks the codec to look an effect up. It may be called only for rows with
// a Lookup; for others, and where the codec is no Finder, it is an error, which
// is unknown.
func (a *Adapter) Find(ctx context.Context, l *outbound.Lookup) (outbound.Finding, error) {
	finder, ok := a.codec.(Finder)
	if !ok || l.Operation.Lookup == "" {
		return outbound.Finding{}, fmt.Errorf("%s: the adapter cannot look it up", l.Operation.Name)
	}
	return finder.Find(ctx, a.get(l), l)
}

// get returns the look-up's authorised GET.
func (a *Adapter) get(l *outbound.Lookup) Get {
	return func(ctx context.Context, target string, query url.Values) (*Exchange, error) {
		at, err := a.locate(target)
		if err != nil {
			return nil, err
		}
		to, err := a.url(at)
		if err != nil {
			return nil, errors.New("the target is no URL")
		}
		if len(query) > 0 {
			values := to.Query()
			for name, list := range query {
				values[name] = list
			}
			to.RawQuery = values.Encode()
		}
		w, err := a.ask(ctx, l, to)
		if err != nil {
			return nil, err
		}
		return &Exchange{Operation: l.Operation, Status: w.status, Header: w.header, Body: w.body}, nil
	}
}

// ask GETs once, and once more where refused credentials could be renewed.
func (a *Adapter) ask(ctx context.Context, l *outbound.Lookup, to *url.URL) (wire, error) {
	ctx, cancel := limited(ctx, lookupTimeout)
	defer cancel()
	limit := a.cfg.MaxBody
	if l.MaxBody > 0 {
		limit = l.MaxBody
	}
	for renewed := false; ; renewed = true {
		r := newRequest(ctx, http.MethodGet, to, a.versionOf(l.Message), nil)
		if err := a.authorize(l.Account, l.Credentials, r, nil); err != nil {
			return wire{}, err
		}
		w := a.exchange(a.transport, r, limit)
		if w.err != nil {
			return wire{}, fmt.Errorf("%s: the look-up failed: %w", l.Operation.Name, w.err)
		}
		if w.status != http.StatusUnauthorized || a.cfg.Refresh == nil || renewed {
			return w, nil
		}
		if err := a.renew(ctx, l.Account, r); err != nil {
			return wire{}, fmt.Errorf("the credentials could not be renewed: %w", err)
		}
	}
}

// versionOf returns the frozen headers that decide about the shape of an object,
// so that it is that of the operation's own answer.
func (a *Adapter) versionOf(m outbound.Message) (kept []outbound.Field) {
	for _, f := range m.Header {
		if a.frozen[f.Name] && f.Name != "Content-Type" && !strings.HasPrefix(f.Name, "If-") {
			kept = append(kept, f)
		}
	}
	return kept
}
