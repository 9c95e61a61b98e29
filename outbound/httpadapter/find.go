package httpadapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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
		return outbound.Finding{}, cannotLookUp(l)
	}
	return finder.Find(ctx, a.get(l, ignore), l)
}

// ignore takes the status of an answer and does nothing.
func ignore(int) {}

// FindAll looks up several effects of one operation and account. Where the codec
// is no BatchFinder it asks one by one, and stops where the provider objects. An
// error that met some of the look-ups leaves the zero Finding for them; it is
// returned if nothing at all was found out.
func (a *Adapter) FindAll(ctx context.Context, ls []*outbound.Lookup) ([]outbound.Finding, error) {
	findings := make([]outbound.Finding, len(ls))
	if len(ls) == 0 {
		return findings, nil
	}
	for _, l := range ls[1:] {
		if l.Operation.Name != ls[0].Operation.Name || l.Account != ls[0].Account || !slices.Equal(l.Credentials, ls[0].Credentials) {
			return nil, fmt.Errorf("%s: look-ups of several operations, accounts or credentials cannot be asked at once", l.Operation.Name)
		}
	}
	batch, able := a.codec.(BatchFinder)
	if !able || ls[0].Operation.Lookup == "" {
		return a.oneByOne(ctx, ls, findings)
	}
	var failed error
	known := false
	for _, group := range a.byHeader(ls) {
		part := make([]*outbound.Lookup, len(group))
		for i, at := range group {
			part[i] = ls[at]
		}
		got, err := batch.FindAll(ctx, a.get(part[0], ignore), part)
		if err == nil && len(got) != len(part) {
			err = fmt.Errorf("%s: the codec answered %d of %d look-ups", part[0].Operation.Name, len(got), len(part))
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		known = true
		for i, at := range group {
			findings[at] = got[i]
		}
	}
	if !known {
		return nil, failed
	}
	return findings, nil
}

// byHeader groups look-ups, by their places in ls, whose answers must have one
// shape: those with the same frozen headers.
func (a *Adapter) byHeader(ls []*outbound.Lookup) (groups [][]int) {
	place := make(map[string]int)
	for i, l := range ls {
		key := fmt.Sprintf("%q", a.headerOf(l.Message))
		g, seen := place[key]
		if !seen {
			g = len(groups)
			place[key] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// oneByOne asks for each look-up by itself, until the provider objects or ctx
// ends.
func (a *Adapter) oneByOne(ctx context.Context, ls []*outbound.Lookup, findings []outbound.Finding) ([]outbound.Finding, error) {
	finder, able := a.codec.(Finder)
	if !able || ls[0].Operation.Lookup == "" {
		return nil, cannotLookUp(ls[0])
	}
	var first error
	known, objected := false, false
	note := func(status int) { objected = objected || status == http.StatusTooManyRequests || status >= 500 }
	for i, l := range ls {
		f, err := finder.Find(ctx, a.get(l, note), l)
		if err == nil {
			findings[i], known = f, true
		}
		first = cmp.Or(first, err)
		if objected || ctx.Err() != nil {
			break
		}
	}
	if !known {
		return nil, first
	}
	return findings, nil
}

func cannotLookUp(l *outbound.Lookup) error {
	return fmt.Errorf("%s: the adapter cannot look it up", l.Operation.Name)
}

// get returns the look-up's authorised GET; note is told the status of each
// answer.
func (a *Adapter) get(l *outbound.Lookup, note func(status int)) Get {
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
		note(w.status)
		return &Exchange{Operation: l.Operation, Status: w.status, Header: w.header, Body: w.body}, nil
	}
}

// ask GETs once, and once more where refused credentials could be renewed. Each
// GET waits for its turn.
func (a *Adapter) ask(ctx context.Context, l *outbound.Lookup, to *url.URL) (wire, error) {
	r, w, err := a.askOnce(ctx, l, to)
	if err != nil || w.status != http.StatusUnauthorized || a.cfg.Refresh == nil {
		return w, err
	}
	renewing := limited(ctx, lookupTimeout)
	defer renewing.End()
	if err := a.renew(renewing, l.Account, r); err != nil {
		return wire{}, fmt.Errorf("the credentials could not be renewed: %w", uncoded{err})
	}
	_, w, err = a.askOnce(ctx, l, to)
	return w, err
}

func (a *Adapter) askOnce(ctx context.Context, l *outbound.Lookup, to *url.URL) (*http.Request, wire, error) {
	if err := l.Turn(ctx); err != nil {
		return nil, wire{}, fmt.Errorf("%s: the look-up was not sent: %w", l.Operation.Name, err)
	}
	bounded := limited(ctx, lookupTimeout)
	defer bounded.End()
	r := newRequest(bounded, http.MethodGet, to, a.headerOf(l.Message), nil)
	if _, err := a.authorize(l.Account, l.Credentials, r, nil); err != nil {
		// Without the error's own code: what a look-up meets says nothing of the command.
		return nil, wire{}, fmt.Errorf("%s: the look-up was not sent: %w", l.Operation.Name, uncoded{err})
	}
	w := a.exchange(a.transport, r, cmp.Or(max(l.MaxBody, 0), a.cfg.MaxBody))
	if w.status == http.StatusTooManyRequests || w.status >= http.StatusInternalServerError {
		l.Objected(retryAfter(w.header))
	}
	if w.err != nil {
		return nil, wire{}, fmt.Errorf("%s: the look-up failed: %w", l.Operation.Name, w.err)
	}
	return r, w, nil
}

// headerOf returns the frozen headers that decide about the shape of an object,
// so that it is that of the operation's own answer, and the defaults of those
// that the message lacks.
func (a *Adapter) headerOf(m outbound.Message) (kept []outbound.Field) {
	for _, f := range m.Header {
		if a.frozen[f.Name] && f.Name != "Content-Type" && !strings.HasPrefix(f.Name, "If-") {
			kept = append(kept, f)
		}
	}
	for _, f := range a.cfg.Defaults {
		if fieldValue(kept, f.Name) == "" {
			kept = append(kept, outbound.Field{Name: http.CanonicalHeaderKey(f.Name), Value: f.Value})
		}
	}
	return kept
}

// uncoded hides an outbound.Code in an error's chain: under it a caller would
// take the failure of a look-up for the command's own.
type uncoded struct{ err error }

func (u uncoded) Error() string { return u.err.Error() }

// Is reports what u wraps, codes excepted.
func (u uncoded) Is(target error) bool {
	_, code := errors.AsType[outbound.Code](target)
	return !code && errors.Is(u.err, target)
}
