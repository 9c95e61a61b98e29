package httpadapter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// lister answers many look-ups by one list of ids.
type lister struct {
	seeker
	short bool // answers one look-up too few
}

func (s lister) FindAll(ctx context.Context, get Get, ls []*outbound.Lookup) ([]outbound.Finding, error) {
	x, err := get(ctx, "/v1/charges", url.Values{"limit": {"100"}})
	if err != nil {
		return nil, err
	}
	if x.Status != http.StatusOK {
		return nil, errors.New("the list failed")
	}
	findings := make([]outbound.Finding, len(ls))
	for i, l := range ls {
		if strings.Contains(string(x.Body), l.ExternalRef) {
			findings[i] = outbound.Finding{Effect: outbound.EffectApplied, ExternalRef: l.ExternalRef}
		}
	}
	if s.short {
		findings = findings[1:]
	}
	return findings, nil
}

func lookups(row rs.Operation, refs ...string) (ls []*outbound.Lookup) {
	for _, ref := range refs {
		ls = append(ls, &outbound.Lookup{Operation: row, Account: "A1", ExternalRef: ref})
	}
	return ls
}

// One request answers many look-ups, each in its place.
func TestFindAll(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { io.WriteString(w, "ch_1 ch_3") })
	cfg, row := lookupConfig(p.URL)
	a := New(lister{}, cfg)
	findings, err := a.FindAll(t.Context(), lookups(row, "ch_1", "ch_2", "ch_3"))
	if err != nil || len(findings) != 3 || findings[0].ExternalRef != "ch_1" || findings[1] != (outbound.Finding{}) || findings[2].ExternalRef != "ch_3" {
		t.Errorf("FindAll = %+v, %v", findings, err)
	}
	if n := len(p.received()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	if findings, err := a.FindAll(t.Context(), nil); err != nil || len(findings) != 0 {
		t.Errorf("nothing asked: %+v, %v", findings, err)
	}
}

// The answers to look-ups of messages in two versions have two shapes.
func TestFindAllByVersion(t *testing.T) {
	var versions []string
	p := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		versions = append(versions, r.Header.Get("Api-Version"))
		if r.Header.Get("Api-Version") == "8" {
			w.WriteHeader(http.StatusForbidden)
		}
		io.WriteString(w, "ch_1 ch_2 ch_3")
	})
	cfg, row := lookupConfig(p.URL)
	cfg.Defaults = fields("Api-Version", "9")
	ls := lookups(row, "ch_1", "ch_2", "ch_3", "ch_4")
	ls[1].Message.Header = fields("Api-Version", "8")
	ls[3].Message.Header = fields("Api-Version", "8")
	findings, err := New(lister{}, cfg).FindAll(t.Context(), ls)
	if err != nil || findings[0].ExternalRef != "ch_1" || findings[1].ExternalRef != "" || findings[2].ExternalRef != "ch_3" {
		t.Errorf("FindAll = %+v, %v", findings, err)
	}
	if !slices.Equal(versions, []string{"9", "8"}) {
		t.Errorf("asked in the versions %v", versions)
	}
}

// C24: what cannot be asked at once, or is not answered whole, is an error.
func TestFindAllFails(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { io.WriteString(w, "ch_1") })
	cfg, row := lookupConfig(p.URL)
	for name, spoil := range map[string]func(l *outbound.Lookup){
		"operation":   func(l *outbound.Lookup) { l.Operation.Name = "charge.capture" },
		"account":     func(l *outbound.Lookup) { l.Account = "A2" },
		"credentials": func(l *outbound.Lookup) { l.Credentials = fields("Authorization", "Bearer own") },
	} {
		ls := lookups(row, "ch_1", "ch_2")
		spoil(ls[1])
		if f, err := New(lister{}, cfg).FindAll(t.Context(), ls); err == nil {
			t.Errorf("another %s: %+v", name, f)
		}
	}
	if f, err := New(lister{short: true}, cfg).FindAll(t.Context(), lookups(row, "ch_1", "ch_2")); err == nil {
		t.Errorf("a codec that left one out: %+v", f)
	}
	row.Lookup = ""
	if f, err := New(lister{}, cfg).FindAll(t.Context(), lookups(row, "ch_1")); err == nil {
		t.Errorf("a row without a look-up: %+v", f)
	}
	if f, err := New(judge{}, config(p.URL)).FindAll(t.Context(), lookups(row, "ch_1")); err == nil {
		t.Errorf("a codec that is no Finder: %+v", f)
	}
}

// A codec that finds one by one is asked so, and no longer once the provider
// objects.
func TestFindAllOneByOne(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { io.WriteString(w, "ch") })
	cfg, row := lookupConfig(p.URL)
	findings, err := New(seeker{target: "/x"}, cfg).FindAll(t.Context(), lookups(row, "", "", ""))
	if err != nil || len(findings) != 3 || findings[2].ExternalRef != "ch" || len(p.received()) != 3 {
		t.Errorf("FindAll = %+v, %v after %d requests", findings, err, len(p.received()))
	}
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		p := serve(t, func(w http.ResponseWriter, _ *http.Request, n int) {
			if n == 2 {
				w.WriteHeader(status)
			}
			io.WriteString(w, "ch")
		})
		cfg.BaseURL = p.URL
		findings, err := New(seeker{target: "/x"}, cfg).FindAll(t.Context(), lookups(row, "", "", ""))
		if err != nil || findings[0].ExternalRef != "ch" || findings[2] != (outbound.Finding{}) || len(p.received()) != 2 {
			t.Errorf("%d: FindAll = %+v, %v after %d requests", status, findings, err, len(p.received()))
		}
	}
	cfg.Authorize = func(context.Context, string, []outbound.Field, *http.Request) error { return outbound.ErrAuth }
	if f, err := New(seeker{target: "/x"}, cfg).FindAll(t.Context(), lookups(row, "", "")); err == nil {
		t.Errorf("without credentials: %+v", f)
	}
}

// An error of a look-up carries no code, under which the command itself would
// look refused.
func TestLookupErrorsHaveNoCode(t *testing.T) {
	cause := errors.New("vault down")
	for _, code := range []outbound.Code{outbound.ErrAuth, outbound.ErrInvalid} {
		cfg, row := lookupConfig("https://api.test")
		cfg.Authorize = func(context.Context, string, []outbound.Field, *http.Request) error { return errors.Join(code, cause) }
		_, err := New(seeker{target: "/x"}, cfg).Find(t.Context(), lookups(row, "")[0])
		if err == nil || errors.Is(err, code) || !errors.Is(err, cause) || !strings.Contains(err.Error(), "vault down") {
			t.Errorf("%s: got %v", code, err)
		}
	}
}

// A default is frozen where the caller gave none of the name, does not count in
// the fingerprint, and is what a look-up of an older message asks with.
func TestDefaults(t *testing.T) {
	cfg := config("https://api.test")
	cfg.Defaults = fields("x-region", "eu", "api-version", "9")
	a := adapter(t, cfg)
	for _, tt := range []struct{ given, want []outbound.Field }{
		{nil, fields("Api-Version", "9", "Content-Type", formType, "X-Region", "eu")},
		{fields("API-Version", "7"), fields("Api-Version", "7", "Content-Type", formType, "X-Region", "eu")},
		{fields("Api-Version", ""), fields("Api-Version", "9", "Content-Type", formType, "X-Region", "eu")},
	} {
		call := chargeCall()
		call.Message.Header = append(call.Message.Header, tt.given...)
		f, err := a.Freeze(charge, call.Message, "mark")
		if err != nil || !slices.Equal(f.Message.Header, tt.want) {
			t.Errorf("given %v: frozen %v, %v, want %v", tt.given, f.Message.Header, err, tt.want)
		}
	}
	var with, without bytes.Buffer
	m := chargeCall().Message
	if err := errors.Join(a.Canonical(&with, 1, charge, m, false), adapter(t, config("https://api.test")).Canonical(&without, 1, charge, m, false)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(with.Bytes(), without.Bytes()) {
		t.Error("a default counts in the fingerprint")
	}
	for name, defaults := range map[string][]outbound.Field{
		"no name": fields("", "x"), "no header name": fields("a b", "x"), "no value": fields("X-Region", ""),
		"a control character": fields("X-Region", "e\nu"), "twice": fields("X-Region", "eu", "x-region", "us"),
		"a content type": fields("Content-Type", jsonType), "a condition": fields("If-Match", "*"),
		"the key": fields("Idempotency-Key", "x"), "a credential": fields("Authorization", "Bearer x"),
	} {
		cfg.Defaults = defaults
		if _, err := New(judge{}, cfg).Profile(); err == nil {
			t.Errorf("%s was taken for a default", name)
		}
	}
}
